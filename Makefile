# The few commands a person types; everything else is CMake (see CMakePresets.json).
BUILD := build/release
JOBS ?= $(shell nproc)

.PHONY: all setup build test test-slow test-sanitizers test-launchers demo bench lint format fuzz clean

all: build

setup:
	@scripts/setup

build: setup
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target rankine

# All tests of the release build but the slow ones.
test: setup
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure -LE slow

# The whole table of layouts.
test-slow: setup
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target slow_ranks
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure -L slow

# Unit and property tests under AddressSanitizer + UBSan, then under ThreadSanitizer.
test-sanitizers: setup
	@scripts/test-sanitizers asan
	@scripts/test-sanitizers tsan

# Ranks under Slurm's srun, and on two hosts over TCP (needs root; see the scripts).
test-launchers: build
	@scripts/test-slurm
	@scripts/test-network

demo: build
	@scripts/demo

bench: build
	@scripts/bench

lint: setup
	@scripts/lint

format:
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

fuzz: setup
	@scripts/fuzz

clean:
	rm -rf build
