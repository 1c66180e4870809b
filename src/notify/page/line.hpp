// A line of a page: pieces of text, each with its own look. Pure.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::notify {

struct Piece {
  std::string text;  // may come from outside: rendering makes it safe
  bool mono = false;
  bool strong = false;
  std::string url;  // empty: no link

  friend bool operator==(const Piece&, const Piece&) = default;
};

using Line = std::vector<Piece>;

Line words(std::string_view text);
Line mono(std::string_view text);    // hashes, addresses, code
Line strong(std::string_view text);  // what the eye should find first

// The line as a link. Unchanged if the URL is not safe to link to (is_web_url).
Line linked(Line line, std::string_view url);

// The phrase with "{0}" to "{9}" replaced. What is inserted is not searched for placeholders. A placeholder without a
// value stays as it is.
Line fill(std::string_view phrase, std::initializer_list<Line> values);
std::string fill_text(std::string_view phrase, std::initializer_list<std::string_view> values);

}  // namespace fencepost::notify
