#include "pg/array.hpp"

#include <fmt/format.h>

namespace fencepost::pg {

namespace detail {

void bad_element(std::string_view column, std::string_view why) {
  throw Exception(internal("bad_column", fmt::format("array '{}' {}", column, why)));
}

}  // namespace detail

namespace {

[[noreturn]] void not_an_array(std::string_view text) {
  throw Exception(internal("bad_column", fmt::format("not an array of one dimension: {:.100}", text)));
}

// Reads the quoted element that begins at `at`, and leaves `at` behind it.
std::string quoted(std::string_view text, std::size_t& at) {
  std::string out;
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && ++at == text.size()) break;
    out.push_back(text[at]);
  }
  if (at >= text.size()) not_an_array(text);
  ++at;
  return out;
}

}  // namespace

std::vector<std::optional<std::string>> parse_array(std::string_view text) {
  std::vector<std::optional<std::string>> out;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') not_an_array(text);
  if (text == "{}") return out;
  for (std::size_t at = 1;; ++at) {
    if (text[at] == '"') {
      out.emplace_back(quoted(text, at));
    } else {
      const auto end = text.find_first_of(",}{\"", at);
      if (end == at || end == std::string_view::npos) not_an_array(text);
      const auto word = text.substr(at, end - at);
      out.push_back(word == "NULL" ? std::nullopt : std::optional<std::string>(word));
      at = end;
    }
    if (at == text.size() - 1) return out;
    if (at >= text.size() || text[at] != ',') not_an_array(text);
  }
}

}  // namespace fencepost::pg
