#include "data/options.h"

namespace rankine {

void declare_options(OptionTable& table, DataOptions& options) {
  table.heading("data");
  table.paths({"data", "data-path", "train-data-path"}, &options.data,
              "text or token files to train on; folders are searched, globs expanded");
  table.choice({"data-format"}, &options.format,
               {{"auto", DataFormat::automatic},
                {"text", DataFormat::text},
                {"raw-u16", DataFormat::raw_u16},
                {"raw-u32", DataFormat::raw_u32},
                {"llmc", DataFormat::llmc},
                {"megatron", DataFormat::megatron}},
               "what the files hold; raw token files (nanoGPT) carry no mark and need this");
  table.choice({"tokenizer", "tokenizer-type"}, &options.tokenizer, {{"bytes", Tokenizer::bytes}},
               "how text becomes tokens; bytes: 256 byte values and an end-of-text token");
  table.real({"validation-fraction"}, &options.validation_fraction,
             "part of the data, its end, kept for validation; 0 keeps none",
             {.least = 0, .most = 0.5});
}

}  // namespace rankine
