// Wraps text for the plain part of a mail. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fencepost::notify {

// The columns that a terminal or a monospaced mail program needs: a Chinese character takes two.
std::size_t columns_of(std::string_view text);

// Lines of at most `columns`, all ending with \n. They break at spaces and between Chinese characters, and inside a
// word only if it is longer than a line. Lines after the first begin with `indent` spaces. Requires: one_line(text).
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

}  // namespace fencepost::notify
