#include "base/text.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace fencepost {
namespace {

constexpr std::size_t kLongestWord = 64;

// The length in bytes of the first UTF-8 character; 0 when it is invalid.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) > 0x9f;
  const bool beyond = lead == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

// U+0080 to U+009F: control characters that some terminals act on.
bool is_c1_control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

void append_escaped(std::string& out, std::string_view character) {
  const char c = character.front();
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f || is_c1_control(character)) {
    for (const char b : character) fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(b));
  } else {
    out += character;
  }
}

// Edit distance in which a swap of two neighbours counts as one error, since it is a common typing error.
std::size_t typing_errors(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string quote(std::string_view text, std::size_t max_bytes) {
  std::string out = "\"";
  std::size_t shown = 0;
  while (shown < text.size()) {
    const auto rest = text.substr(shown);
    const auto length = utf8_length(rest);
    if (shown + std::max<std::size_t>(length, 1) > max_bytes) break;
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(rest.front()));
      ++shown;
    } else {
      append_escaped(out, rest.substr(0, length));
      shown += length;
    }
  }
  out += shown < text.size() ? "…\"" : "\"";
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto length = utf8_length(text);
    out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string plain_text(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view kMore = "…";
  // Repairing never shortens the text, so the bytes cut off here would not fit into `max_bytes` either.
  const auto valid = repair_utf8(text.substr(0, max_bytes + 4));
  std::string out;
  out.reserve(valid.size());
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    const bool c1 = byte == 0xc2 && static_cast<unsigned char>(valid[i + 1]) < 0xa0;
    if (c1) ++i;
    out += c1 || byte < ' ' || byte == 0x7f ? ' ' : valid[i];
  }
  if (out.size() <= max_bytes) return out;
  auto end = max_bytes - std::min(max_bytes, kMore.size());
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;  // not inside a character
  out.resize(end);
  return out += kMore;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+,=";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_errors = std::max<std::size_t>(1, word.size() / 3) + 1;  // with more errors it is another word
  for (const auto candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const auto errors = typing_errors(word, candidate);
    if (errors < best_errors) {
      best = candidate;
      best_errors = errors;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const auto guess = nearest(word, candidates);
  return guess ? fmt::format("; did you mean \"{}\"?", *guess) : std::string();
}

std::string one_of_list(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

}  // namespace fencepost
