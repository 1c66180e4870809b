#include "http/sse_reader.hpp"

#include <utility>

namespace fencepost::http {

bool SseReader::feed(std::string_view piece) {
  rest_ += piece;
  std::size_t begin = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    auto text = std::string_view(rest_).substr(begin, end - begin);
    if (text.ends_with('\r')) text.remove_suffix(1);
    line(text);
    begin = end + 1;
  }
  rest_.erase(0, begin);
  return rest_.size() <= kMaxLine;
}

void SseReader::line(std::string_view text) {
  if (text.empty()) {
    if (std::exchange(any_, false)) on_message_(message_);
    message_.data.clear();
    return;
  }
  const auto colon = text.find(':');
  const auto field = text.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field.empty()) {
    on_comment_(value);
  } else if (field == "id") {
    message_.id = value;
    any_ = true;
  } else if (field == "data") {
    if (!message_.data.empty()) message_.data += '\n';
    message_.data += value;
    any_ = true;
  }
}

}  // namespace fencepost::http
