#include "data/json_lines.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

std::vector<std::string> texts(const std::string& lines, LineCounts& counts) {
  std::vector<std::string> out;
  JsonLines reader;
  reader.read_field(lines, "text", counts, [&](std::string_view text) { out.emplace_back(text); });
  return out;
}

TEST(JsonLines, TheLastOfAKeyGivenTwiceCounts) {
  LineCounts counts;
  EXPECT_EQ(texts("{\"text\": \"a\", \"text\": \"b\"}\n"
                  "{\"text\": 1, \"x\": {\"text\": \"inner\"}, \"text\": \"c\"}\n"
                  "{\"text\": \"d\", \"te\\u0078t\": \"e\"}\n"
                  "{\"text\": \"f\", \"text\": null}\n",
                  counts),
            (std::vector<std::string>{"b", "c", "e"}));
  EXPECT_EQ(counts.bad, 1U);
  ASSERT_EQ(counts.faults.size(), 1U);
  EXPECT_EQ(counts.faults[0].line, 3U);
  EXPECT_EQ(counts.faults[0].reason, "\"text\" is null, not a string");
}

TEST(JsonLines, AlsoInConversations) {
  JsonLines reader;
  LineCounts counts;
  std::vector<std::string> said;
  reader.read_conversations(
      "{\"prompt\": \"p\", \"prompt\": \"q\", \"response\": \"r\", \"response\": \"s\"}\n"
      "{\"messages\": 1, \"messages\": [{\"role\": \"user\", \"role\": \"system\", \"content\": "
      "\"t\", \"content\": \"u\"}]}\n",
      {}, counts, [&](const Conversation& conversation) {
        for (const ChatMessage& message : conversation.messages)
          said.push_back(message.role + ":" + message.content);
      });
  EXPECT_EQ(counts.bad, 0U);
  EXPECT_EQ(said, (std::vector<std::string>{"user:q", "assistant:s", "system:u"}));
}

}  // namespace
}  // namespace rankine
