#include "notify/words/language.hpp"

#include <charconv>
#include <optional>
#include <string>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// Takes what comes before the separator; all of it if there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const auto out = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return trimmed(out);
}

// "q=0.8"; 1 without it, 0 if it cannot be read.
double weight_of(std::string_view parameter) {
  if (parameter.empty()) return 1;
  if (!lowercase(parameter).starts_with("q=")) return 0;
  const auto number = parameter.substr(2);
  double weight = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), weight);
  return error == std::errc{} && end == number.data() + number.size() && weight <= 1 ? weight : 0;
}

}  // namespace

Language preferred_language(std::string_view accept_language) {
  Language best = Language::kEnglish;
  double best_weight = 0;
  while (!accept_language.empty()) {
    auto entry = take_until(accept_language, ',');
    auto tag = take_until(entry, ';');
    const auto weight = weight_of(trimmed(entry));
    const auto language = kLanguages.find(lowercase(take_until(tag, '-')));
    if (!language || !(weight > best_weight)) continue;
    best = *language;
    best_weight = weight;
  }
  return best;
}

}  // namespace fencepost::notify
