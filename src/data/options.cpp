#include "data/options.h"

namespace rankine {

void declare_options(OptionTable& table, TextOptions& options) {
  table.paths({"data", "data-path", "train-data-path"}, &options.data,
              "text, JSON lines (both also as .gz or .zst) or token files; folders are searched, "
              "globs expanded");
  table.choice(
      {"data-format"}, &options.format,
      {{"auto", DataFormat::automatic},
       {"text", DataFormat::text},
       {"jsonl", DataFormat::jsonl},
       {"instructions", DataFormat::instructions},
       {"tokens", DataFormat::tokens},
       {"raw-u16", DataFormat::raw_u16},
       {"raw-u32", DataFormat::raw_u32},
       {"llmc", DataFormat::llmc},
       {"megatron", DataFormat::megatron}},
      "what the files hold; raw token files (nanoGPT) carry no mark and need this, and so do "
      "instructions: JSON lines of conversations, of which the replies are learned");
  table.text({"text-field", "json-keys"}, &options.text_field,
             "the field of JSON lines that holds a document", "NAME");
  table.real(
      {"bad-lines"}, &options.bad_lines,
      "largest share of a file's JSON lines that may be left out because they are no JSON or "
      "lack the field",
      {.least = 0, .most = 1});
  table.real({"max-expansion"}, &options.max_expansion,
             "a compressed file may become at most this many times as large; the first 64 MiB are "
             "always allowed",
             {.least = 1});
}

void declare_instruction_options(OptionTable& table, TextOptions& options) {
  ConversationFields& fields = options.conversation;
  table.text({"prompt-field"}, &fields.prompt, "of instructions: the field of a question", "NAME");
  table.text({"response-field"}, &fields.response, "of instructions: the field of its answer",
             "NAME");
  table.text({"messages-field"}, &fields.messages,
             "of instructions: the field of a list of {role, content}", "NAME");
  table.texts({"ignore-fields"}, &fields.ignored,
              "of instructions: fields of conversations and messages that are left out; others "
              "without a meaning are refused");
  table.text({"chat-template"}, &options.chat.name,
             "how conversations become text: llama3, llama3.1, chatml, qwen3, mistral, llama2, "
             "plain, or none for prompt and response one after the other; empty: the tokenizer's "
             "own, if it has one",
             "NAME");
  declare_chat_kwargs(table, options.chat.kwargs);
}

void declare_chat_kwargs(OptionTable& table, std::string& kwargs) {
  table.text({"chat-template-kwargs"}, &kwargs,
             "further variables of the chat template, as '{\"enable_thinking\": false}'", "JSON");
}

void declare_begin_token(OptionTable& table, std::string& begin_token) {
  table.text({"begin-token"}, &begin_token,
             "the token in front of every text, as it is spelled, or none; empty: the tokenizer's "
             "bos_token, where the tokenizer adds it",
             "TEXT");
}

void declare_tokenizer_options(OptionTable& table, const TokenizerOptions& options) {
  table.text({"tokenizer", "tokenizer-model"}, &options.tokenizer,
             "how text becomes tokens: bytes, a tokenizer.json, or a folder with one or with "
             "vocab.json and merges.txt",
             "NAME");
  declare_begin_token(table, options.begin_token);
  table.text({"end-token"}, &options.end_token,
             "the token between documents, as it is spelled; empty: the tokenizer's eos_token",
             "TEXT");
}

void declare_document_mask(OptionTable& table, bool& document_mask) {
  table.flag({"document-mask", "reset-attention-mask"}, &document_mask,
             "attention sees nothing of earlier documents in the same sequence");
}

void declare_options(OptionTable& table, DataOptions& options) {
  table.heading("Data");
  declare_options(table, options.text);
  declare_instruction_options(table, options.text);
  table.text({"data-weights"}, &options.weights,
             "shares of the samples that come from each path of --data, as 0.7,0.3; empty: the "
             "paths are one corpus",
             "LIST");
  declare_tokenizer_options(table, {options.tokenizer, options.begin_token, options.end_token});
  table.path({"data-cache"}, &options.cache,
             "folder of the token files that are made from text; empty: token-cache beside the "
             "run's folder");
  declare_document_mask(table, options.document_mask);
  table.real({"validation-fraction"}, &options.validation_fraction,
             "part of the data, its end, kept for validation; 0 keeps none",
             {.least = 0, .most = 0.5});
}

}  // namespace rankine
