#include "generate/generate.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/text.h"
#include "checkpoint/generation_settings.h"
#include "command.h"
#include "data/options.h"
#include "library/ranks.h"
#include "machine/process.h"
#include "machine/stop_signal.h"
#include "ops/backend.h"

namespace rankine {
namespace {

OptionTable declare(GenerateOptions& o) {
  OptionTable table;
  table.heading("Model and prompt");
  declare_options(table, o.source);
  table.texts({"prompt"}, &o.prompts, "texts to continue, each one by itself");
  table.paths({"prompt-file"}, &o.prompt_files,
              "files that are a text to continue each, or, as *.jsonl, have a {\"prompt\"} or "
              "{\"messages\"} a line; -: standard input");
  table.texts({"prompt-ids"}, &o.prompt_ids,
              "token ids to continue; prints ids, or with --tokenizer text", "ID");
  table.flag({"parse-special"}, &o.parse_special,
             "read \"<|endoftext|>\" and its like in prompts as tokens");
  table.heading("Chat");
  table.flag({"chat"}, &o.chat,
             "answer as a chat model: the prompts, or without any a conversation on standard "
             "input");
  table.text({"system"}, &o.system, "what a chat begins with: how to behave");
  table.text({"chat-template"}, &o.template_choice.name,
             "llama3, llama3.1, chatml, qwen3, mistral, llama2 or plain; empty: the model's own",
             "NAME");
  declare_chat_kwargs(table, o.template_choice.kwargs);
  table.heading("Text");
  table.integer({"max-tokens"}, &o.max_tokens, "most tokens to write", {.least = 1});
  table.texts({"stop"}, &o.stops, "end a text before one of these");
  table.text({"end-token"}, &o.source.end_token,
             "the token that ends a text, as it is spelled, beside those of the model's files",
             "TEXT");
  table.integer({"num-samples"}, &o.samples, "texts of each prompt", {.least = 1});
  table.integer({"batch-size"}, &o.batch_size,
                "most texts to write at once; it changes no text, only memory and time",
                {.least = 1, .most = 256});
  table.integer({"context"}, &o.context,
                "tokens to have room for, of a prompt and its text or of a conversation; 0: what "
                "they need, 4096 for a conversation",
                {.least = 0});
  table.flag({"json"}, &o.json,
             "print a line of JSON for each text: prompt, sample, text, tokens, finish_reason");
  declare_precision_option(table, o.precision);
  declare_options(table, o.sampler);
  table.heading("Machine");
  declare_machine_options(table, {&o.device, &o.threads, &o.instruction_set});
  table.bytes({"memory-limit"}, &o.memory_limit,
              "refuse to start when the plan needs more; 0: the machine's memory");
  return table;
}

// All texts of all prompts, printed in their order as soon as they and those before are there. A
// signal ends the writing; texts that are not whole then are not printed, but for one that streams.
class Writer {
 public:
  Writer(const GenerateOptions& o, const TextTools& tools, const ChatEncoder* chat,
         const std::vector<Prompt>& prompts, const StopSignal& stop)
      : o_(o),
        chat_(chat),
        stop_(stop),
        alone_(prompts.size() * static_cast<size_t>(o.samples) == 1) {
    for (const Prompt& prompt : prompts)
      for (uint64_t sample = 0; sample < static_cast<uint64_t>(o.samples); ++sample) {
        requests_.push_back({prompt.ids, o.max_tokens, sample});
        Text& text = texts_.emplace_back(Text{{.prompt = prompt, .sample = sample}, {}, false});
        if (tools.tokenizer != nullptr)
          text.stream.emplace(*tools.tokenizer, tools.stops, prompt.ids);
      }
  }

  const std::vector<TextRequest>& requests() const { return requests_; }

  // Returns how many tokens were written.
  int64_t write(Generator& generator) {
    if (streams()) print_prompt(texts_[0]);
    try {
      generator.run(
          requests_, [&](size_t i, int32_t id) { return add(texts_[i], id); },
          [&](size_t i, TextEnd end) { finish(texts_[i], end); });
    } catch (const Stopped&) {
      if (streams()) finish(texts_[0], TextEnd::stopped);
    }
    int64_t tokens = 0;
    for (const Text& text : texts_) tokens += static_cast<int64_t>(text.record.tokens.size());
    return tokens;
  }

 private:
  struct Text {
    Record record;
    std::optional<TextStream> stream;  // none: ids
    bool ended;
  };
  struct Stopped {};  // thrown out of the generator, which would read all prompts that are left
  bool streams() const { return alone_ && !o_.json; }

  void print_prompt(const Text& text) const {
    if (text.stream && !text.record.prompt.is_chat()) print_out(text.record.prompt.text);
  }

  void put(Text& text, std::string piece) const {
    if (text.record.prompt.is_chat() && text.record.text.empty())
      piece.erase(0, chat_->reply_begins(piece));
    text.record.text += piece;
    if (streams()) print_out(piece);
  }

  bool add(Text& text, int32_t id) const {
    text.record.tokens.push_back(id);
    put(text, text.stream ? text.stream->push(id) : fmt::format("{} ", id));
    if (stop_.received() != 0) throw Stopped();
    return !text.stream || !text.stream->stopped();
  }

  void finish(Text& text, TextEnd end) {
    if (text.stream) put(text, text.stream->finish());
    if (text.stream) text.record.unfinished = text.stream->unfinished();
    text.record.end = end;
    text.ended = true;
    print_ended();
  }

  void print_ended() {
    for (; printed_ < texts_.size() && texts_[printed_].ended; ++printed_) {
      const Text& text = texts_[printed_];
      if (o_.json) {
        print_out(json_line(text.record, text.stream.has_value()));
        continue;
      }
      if (!alone_) {
        print_out(fmt::format("{}--- {} of {}\n", printed_ == 0 ? "" : "\n", printed_ + 1,
                              texts_.size()));
        print_prompt(text);
        print_out(text.record.text);
      }
      print_out("\n");
    }
  }

  const GenerateOptions& o_;
  const ChatEncoder* chat_;
  const StopSignal& stop_;
  bool alone_;
  std::vector<TextRequest> requests_;
  std::vector<Text> texts_;
  size_t printed_ = 0;
};

TextTools tools_for(const GenerateOptions& o, const ModelSource& source,
                    const std::vector<Prompt>& prompts) {
  TextTools tools;
  tools.vocabulary = source.config.vocabulary;
  std::ranges::for_each(o.stops, check_stop_text);
  tools.stops = o.stops;
  if (o.prompt_ids.empty() || !o.source.tokenizer.empty()) {
    tools.text = tokenizer_of(source, o.source);
    tools.tokenizer = &tools.text->bpe();  // which copies share
  }
  const bool names_text =
      !o.stops.empty() || !o.source.begin_token.empty() || !o.source.end_token.empty();
  require(tools.tokenizer != nullptr || !names_text, ErrorKind::usage,
          "--stop, --begin-token and --end-token want text, and --prompt-ids without --tokenizer "
          "gives none");
  const bool chats = o.chat || std::ranges::any_of(prompts, &Prompt::is_chat);
  const bool names_chat =
      !o.system.empty() || !o.template_choice.name.empty() || !o.template_choice.kwargs.empty();
  require(chats || !names_chat, ErrorKind::usage,
          "--system, --chat-template and --chat-template-kwargs are for conversations; give --chat "
          "too");
  if (chats) {
    tools.chat = tools.text->chat_template(o.template_choice);
    tools.chat->set_time(std::time(nullptr));
  }
  return tools;
}

// What ends a text, with what ends a reply of the template.
void take_bounds(const ModelSource& source, const ChatEncoder* chat, TextTools& tools, Log& log) {
  const TextTokenizer* tokenizer = tools.text ? &*tools.text : nullptr;
  tools.bounds = text_bounds({source.config, source.generation_eos, tokenizer,
                              chat != nullptr ? chat->marks().end_token : -1});
  if (chat != nullptr && !chat->marks().stop.empty()) tools.stops.push_back(chat->marks().stop);
  log_line(log, "text      {}", to_string(tools.bounds, tokenizer));
  if (tools.chat) log_line(log, "chat      template {}", tools.chat->name());
}

// The model's own way to draw tokens, where the user does not say.
void take_settings(const ModelSource& source, const OptionTable& table, GenerateOptions& o,
                   Log& log) {
  const std::string file = (source.folder / "generation_config.json").string();
  const GenerationSettings settings =
      parse_generation_settings(source.generation_config, fmt::format("'{}'", file));
  std::string taken;
  const auto take = [&](const char* option, auto& into, const auto& value) {
    if (!value || table.origin(option) != OptionOrigin::standard) return;
    into = *value;
    taken += fmt::format("{}--{} {}", taken.empty() ? "" : ", ", option, *value);
  };
  if (settings.do_sample == false)
    take("temperature", o.sampler.temperature, std::optional<double>(0));
  else
    take("temperature", o.sampler.temperature, settings.temperature);
  take("top-p", o.sampler.top_p, settings.top_p);
  take("top-k", o.sampler.top_k, settings.top_k);
  if (!taken.empty()) log_line(log, "sampling  {} by '{}'", taken, file);
}

// Tokens that caches must have room for.
int64_t positions_for(const GenerateOptions& o, const ModelConfig& config,
                      const std::vector<Prompt>& prompts) {
  require(o.context <= config.positions, ErrorKind::usage,
          "--context {} exceeds the model's {} positions", o.context, config.positions);
  int64_t needed = 0;
  for (const Prompt& prompt : prompts) {
    check_prompt_ids(prompt.ids, config.vocabulary, prompt.place);
    const auto length = static_cast<int64_t>(prompt.ids.size());
    const int64_t limit = o.context > 0 ? o.context : config.positions;
    require(length + o.max_tokens <= limit, ErrorKind::usage,
            "{}a prompt of {} tokens and --max-tokens {} exceed {} {}{}", before(prompt.place),
            length, o.max_tokens, o.context > 0 ? "--context" : "the model's", limit,
            o.context > 0 ? "" : " positions");
    needed = std::max(needed, length + o.max_tokens);
  }
  if (o.context > 0) return o.context;
  return prompts.empty() ? std::min<int64_t>(config.positions, 4096) : needed;
}

void log_memory(Log& log, const Engine& engine) {
  uint64_t caches = 0;
  for (const PlanLine& line : summary(engine.plan(), Tier::device))
    if (line.category == "key/value cache") caches = line.bytes;
  log_line(log, "memory {}, of it {} keys and values: {} x {} tokens",
           format_bytes(engine.plan().peak_bytes(Tier::device)), format_bytes(caches),
           engine.setup().sequences, engine.setup().positions);
}

}  // namespace

void print_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  require(std::fflush(stdout) == 0, ErrorKind::environment, "cannot write to standard output");
}

int run_generate(const CommandArguments& arguments) {
  GenerateOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine generate", "Continues texts, or chats."));
    return 0;
  }
  receive_stop_signals_aside();
  check_threads(o.threads);
  require(!o.source.model.empty(), ErrorKind::usage,
          "--model is missing: the folder of a run, a checkpoint or a Hugging Face model");
  Log log(stderr);
  const ModelSource source = open_text_model(o.source);
  const bool interactive = is_interactive(o);
  require(!interactive || o.samples == 1, ErrorKind::usage,
          "a conversation has one reply at a time; leave --num-samples out");
  std::vector<Prompt> prompts = interactive ? std::vector<Prompt>() : read_prompts(o);
  take_settings(source, table, o, log);
  TextTools tools = tools_for(o, source, prompts);
  std::optional<ChatEncoder> chat;
  if (tools.chat) chat.emplace(*tools.chat, *tools.tokenizer);
  take_bounds(source, chat ? &*chat : nullptr, tools, log);
  for (Prompt& prompt : prompts)
    prompt.ids = encode_prompt(prompt, o, tools, chat ? &*chat : nullptr);
  const int64_t positions = positions_for(o, source.config, prompts);
  const int64_t texts = interactive ? 1 : static_cast<int64_t>(prompts.size()) * o.samples;

  const auto ops = make_backend({o.device, static_cast<int>(o.threads), o.instruction_set}).ops;
  Engine engine(
      *ops, source.config,
      generation_setup(compute_dtype(o.precision, *ops), positions, std::min(texts, o.batch_size)));
  require_memory(engine.plan(), {.all = o.memory_limit > 0 ? o.memory_limit : physical_memory()},
                 "choose a smaller --batch-size, --max-tokens, --context or model, or --precision "
                 "f32 (no second copy)");
  engine.allocate();
  load_weights_from(source, engine, log);
  if (tools.tokenizer != nullptr) warn_of(*tools.tokenizer, source.config.vocabulary, log);
  log_memory(log, engine);
  Generator generator(engine, o.sampler, tools.bounds.ends);
  if (tools.tokenizer != nullptr)
    generator.forbid(ids_without_token(source.config, *tools.tokenizer));
  if (interactive) return converse({o, tools, *chat}, generator, positions, log);
  const StopSignal stop;
  const double start = monotonic_seconds();
  const int64_t tokens = Writer(o, tools, chat ? &*chat : nullptr, prompts, stop).write(generator);
  const double seconds = monotonic_seconds() - start;
  const int signal = stop.received();
  log_line(log, "{}{} tokens in {}, {:.1f} tokens/s", signal != 0 ? "stopped; " : "", tokens,
           format_seconds(seconds), static_cast<double>(tokens) / seconds);
  return signal != 0 ? stopped_code(signal) : 0;
}

}  // namespace rankine
