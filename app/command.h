#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankine {

// The subcommands. Each takes its arguments and returns the exit code; faults are thrown.
using Arguments = std::vector<std::string>;

int run_train(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_convert(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_tokenize(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);

}  // namespace rankine
