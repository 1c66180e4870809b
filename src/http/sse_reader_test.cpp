#include "http/sse_reader.hpp"

#include <vector>

#include <gmock/gmock.h>

namespace fencepost::http {
namespace {

using ::testing::ElementsAre;

struct Read {
  std::vector<std::string> messages, comments;
  SseReader reader{[this](const SseReader::Message& m) { messages.push_back(m.id + "=" + m.data); },
                   [this](std::string_view text) { comments.emplace_back(text); }};
};

TEST(sse_reader, reads_messages_however_they_are_cut) {
  const std::string text = "id: 7\ndata: {\"a\":1}\n\n: keep-alive\n\nid: 8\ndata: x\ndata: y\n\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    Read read;
    for (std::size_t at = 0; at < text.size(); at += size) EXPECT_TRUE(read.reader.feed(text.substr(at, size)));
    EXPECT_THAT(read.messages, ElementsAre("7={\"a\":1}", "8=x\ny")) << size;
    EXPECT_THAT(read.comments, ElementsAre("keep-alive")) << size;
  }
}

TEST(sse_reader, a_message_may_only_announce_its_id) {
  Read read;
  EXPECT_TRUE(read.reader.feed("id: 9\r\n\r\ndata:z\n\n"));
  EXPECT_THAT(read.messages, ElementsAre("9=", "9=z"));
}

TEST(sse_reader, a_message_without_its_end_is_not_reported) {
  Read read;
  EXPECT_TRUE(read.reader.feed("id: 9\ndata: half\n"));
  EXPECT_TRUE(read.messages.empty());
}

TEST(sse_reader, refuses_a_line_without_end) {
  Read read;
  EXPECT_FALSE(read.reader.feed(std::string(SseReader::kMaxLine + 1, 'x')));
}

}  // namespace
}  // namespace fencepost::http
