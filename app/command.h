#pragma once
#include "base/options.h"

namespace rankine {

// The subcommands. Each takes its arguments and returns the exit code; faults are thrown.
int run_train(const CommandArguments& arguments);
int run_plan(const CommandArguments& arguments);
int run_generate(const CommandArguments& arguments);
int run_eval(const CommandArguments& arguments);
int run_convert(const CommandArguments& arguments);
int run_inspect(const CommandArguments& arguments);
int run_bench(const CommandArguments& arguments);
int run_tokenize(const CommandArguments& arguments);
int run_tokenizer(const CommandArguments& arguments);

}  // namespace rankine
