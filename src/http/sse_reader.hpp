// Reads the messages of an event stream (text/event-stream) from pieces of any size. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fencepost::http {

class SseReader {
 public:
  struct Message {
    std::string id;    // the last id that the stream has announced
    std::string data;  // empty: the message only announces the id
  };
  static constexpr std::size_t kMaxLine = 16 << 20;

  SseReader(std::function<void(const Message&)> on_message, std::function<void(std::string_view)> on_comment)
      : on_message_(std::move(on_message)), on_comment_(std::move(on_comment)) {}

  // False when a line is longer than kMaxLine: the peer does not send events.
  bool feed(std::string_view piece);

 private:
  void line(std::string_view text);

  std::function<void(const Message&)> on_message_;
  std::function<void(std::string_view)> on_comment_;
  std::string rest_;  // the beginning of a line
  Message message_;
  bool any_ = false;  // the message has a field
};

}  // namespace fencepost::http
