#include <algorithm>

#include "data/byte_tokenizer.h"
#include "support/npm.h"
#include "support/read_safetensors.h"
#include "support/reference_model.h"
#include "training_run.h"

// A model tuned to chat and exported, in a reader that shares no code with the product: prompts by
// npm's @huggingface/jinja and @huggingface/tokenizers, logits by plain loops in double precision,
// the end by the export's generation_config.json.
namespace rankine::test {
namespace {

class IndependentChat : public TrainingRun {
 protected:
  // Bytes, then the end of a text and the marks of turns.
  void write_tokenizer(const fs::path& folder) {
    Json json = Json::parse(byte_tokenizer_json());
    int id = 257;
    for (const char* content : {"<|im_start|>", "<|im_end|>"}) {
      Json token = json.at("added_tokens").at(0);
      token["id"] = id++;
      token["content"] = content;
      json.at("added_tokens").push_back(token);
    }
    write_text_atomically(folder / "tokenizer.json", json.dump());
    write_text_atomically(folder / "tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  }

  // The most probable tokens behind a prompt, up to one of `ends`, which is the last of them.
  static std::vector<int32_t> reply_of(const ReferenceModel& model, std::vector<int32_t> ids,
                                       const std::vector<int32_t>& ends, size_t limit) {
    std::vector<int32_t> reply;
    while (reply.size() < limit) {
      const std::vector<double> last = model.logits(ids).back();
      const auto next = static_cast<int32_t>(std::ranges::max_element(last) - last.begin());
      ids.push_back(next);
      reply.push_back(next);
      if (std::ranges::count(ends, next) > 0) break;
    }
    return reply;
  }
};

TEST_F(IndependentChat, AnExportStopsByItselfWithTheSameTokens) {
  if (!install_npm_folder(home(), "chat_js", at("js"))) GTEST_SKIP() << "no node, npm or registry";
  fs::create_directories(at("tokenizer"));
  write_tokenizer(at("tokenizer"));
  Json shape = Json::parse(read_text(home() / "shape" / "config.json"));
  shape["vocab_size"] = 264;
  write_text_atomically(home() / "shape" / "config.json", shape.dump());
  write_text_atomically(
      home() / "talk.jsonl",
      R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]})"
      "\n"
      R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Bye"},)"
      R"( {"role": "assistant", "content": "Ciao"}, {"role": "user", "content": "Hi"},)"
      R"( {"role": "assistant", "content": "Again?"}]})"
      "\n");
  const Finished tuned = run({"train",
                              "--model",
                              at("shape"),
                              "--from-scratch",
                              "--tokenizer",
                              at("tokenizer"),
                              "--data",
                              at("talk.jsonl"),
                              "--data-format",
                              "instructions",
                              "--chat-template",
                              "chatml",
                              "--seq-length",
                              "128",
                              "--steps",
                              "200",
                              "--lr",
                              "1e-2",
                              "--warmup-steps",
                              "5",
                              "--micro-batch-size",
                              "1",
                              "--validation-fraction",
                              "0",
                              "--precision",
                              "f32",
                              "--threads",
                              "1",
                              "--output",
                              at("run")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  ASSERT_EQ(run({"convert", "--from", at("run"), "--to", at("out"), "--dtype", "f32"}).code, 0);

  const Json conversations = Json::parse(R"([
    [{"role": "user", "content": "Hi"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Bye"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Bye"},
     {"role": "assistant", "content": "Ciao"}, {"role": "user", "content": "Hi"}]])");
  write_text_atomically(home() / "conversations.json", conversations.dump());
  const Finished read =
      run_tool(home(), "node", {at("js") + "/prompts.mjs", at("out"), at("conversations.json")});
  ASSERT_EQ(read.code, 0) << read.err;
  const Json prompts = Json::parse(read.out);

  const HfModel exported = read_hf_folder(at("out"));
  const ReferenceModel model(exported);
  const auto ends = Json::parse(read_text(home() / "out" / "generation_config.json"))
                        .at("eos_token_id")
                        .get<std::vector<int32_t>>();
  const std::vector<std::string> replies{"Yo", "Ciao", "Again?"};
  for (size_t i = 0; i < conversations.size(); ++i) {
    std::vector<int32_t> reply =
        reply_of(model, prompts[i].at("ids").get<std::vector<int32_t>>(), ends, 20);
    ASSERT_EQ(reply.back(), 258) << "the mark that ends a turn, as taught";
    reply.pop_back();
    EXPECT_EQ(std::string(reply.begin(), reply.end()), replies[i]);
    write_text_atomically(home() / "one.jsonl",
                          Json({{"messages", conversations[i]}}).dump() + "\n");
    const Finished said =
        run({"generate", "--model", at("out"), "--chat", "--prompt-file", at("one.jsonl"),
             "--temperature", "0", "--max-tokens", "20", "--json"});
    ASSERT_EQ(said.code, 0) << said.err;
    const Json line = Json::parse(said.out);
    EXPECT_EQ(line.at("tokens").get<std::vector<int32_t>>(), reply);
    EXPECT_EQ(line.at("finish_reason"), "stop");
  }
}

}  // namespace
}  // namespace rankine::test
