// Text inside HTML. Pure.
#pragma once

#include <string>
#include <string_view>

#include "notify/page/line.hpp"

namespace fencepost::notify {

// one_line(text), with the characters that mean something in HTML escaped: fit for content and for quoted attributes.
std::string html_text(std::string_view text);

// The pieces of a line, with their looks and links.
std::string html_line(const Line& line);

}  // namespace fencepost::notify
