// Text for people: quotes untrusted input for messages, and suggests the word that was probably meant.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fencepost {

// The text in double quotes, fit for an error message or a log line: control characters, quotes, backslashes
// and broken UTF-8 are escaped, and at most `max_bytes` of the text are shown (a "…" marks a cut).
std::string quote(std::string_view text, std::size_t max_bytes = 64);

// Change ASCII letters only, in every locale.
inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lowercase(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

bool is_utf8(std::string_view text);

// The text as valid UTF-8: each byte that is not part of a valid character becomes U+FFFD.
std::string repair_utf8(std::string_view text);

// The text as one line that is safe for terminals and for PostgreSQL: valid UTF-8, a space for each control character,
// cut to at most `max_bytes` (a "…" at the end marks a cut).
std::string plain_text(std::string_view text, std::size_t max_bytes);

// The text as one word of a shell's command line: quoted if it has to be.
std::string shell_word(std::string_view text);

// The candidate that differs from `word` by the fewest typing errors; nullopt when none is near, or when `word` has
// more than 64 characters (the cost grows with the product of the lengths).
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean \"x\"?" for the end of an error about an unknown word; empty when no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

// "a, b or c"
std::string one_of_list(std::span<const std::string_view> words);

}  // namespace fencepost
