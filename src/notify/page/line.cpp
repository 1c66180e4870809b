#include "notify/page/line.hpp"

#include <utility>

#include "notify/page/safe_text.hpp"

namespace fencepost::notify {
namespace {

// Calls `text` for each piece of the phrase between placeholders and `value` with the number of each placeholder.
template <class OnText, class OnValue>
void split_phrase(std::string_view phrase, std::size_t count, OnText text, OnValue value) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i + 2 < phrase.size(); ++i) {
    if (phrase[i] != '{' || phrase[i + 2] != '}' || phrase[i + 1] < '0' || phrase[i + 1] > '9') continue;
    const auto number = static_cast<std::size_t>(phrase[i + 1] - '0');
    if (number >= count) continue;
    if (i > begin) text(phrase.substr(begin, i - begin));
    value(number);
    begin = i + 3;
  }
  if (begin < phrase.size()) text(phrase.substr(begin));
}

}  // namespace

Line words(std::string_view text) {
  return {Piece{.text = std::string(text), .mono = false, .strong = false, .url = {}}};
}

Line mono(std::string_view text) {
  return {Piece{.text = std::string(text), .mono = true, .strong = false, .url = {}}};
}

Line strong(std::string_view text) {
  return {Piece{.text = std::string(text), .mono = false, .strong = true, .url = {}}};
}

Line linked(Line line, std::string_view url) {
  if (!is_web_url(url)) return line;
  for (auto& piece : line) piece.url = url;
  return line;
}

Line fill(std::string_view phrase, std::initializer_list<Line> values) {
  Line out;
  split_phrase(
      phrase, values.size(), [&](std::string_view text) { out.push_back(words(text).front()); },
      [&](std::size_t i) { out.insert(out.end(), values.begin()[i].begin(), values.begin()[i].end()); });
  return out;
}

std::string fill_text(std::string_view phrase, std::initializer_list<std::string_view> values) {
  std::string out;
  split_phrase(
      phrase, values.size(), [&](std::string_view text) { out += text; },
      [&](std::size_t i) { out += values.begin()[i]; });
  return out;
}

}  // namespace fencepost::notify
