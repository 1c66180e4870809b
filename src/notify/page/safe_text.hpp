// Makes text from outside fit for a mail: contract names, remarks and arguments of calls come from strangers. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fencepost::notify {

// The text as one line of valid UTF-8 that cannot change what stands around it: a control character or a line separator
// becomes a space, a character that changes the direction of text becomes U+FFFD.
std::string one_line(std::string_view text);

// At most `max_bytes` from the beginning of the text, without half a character at the end.
std::string_view first_bytes(std::string_view text, std::size_t max_bytes);

// One line of at most `max_characters`; a "…" at the end marks a cut.
std::string shortened(std::string_view text, std::size_t max_characters);

// "0x1234…abcd"; a text of up to 13 characters stays whole.
std::string short_hex(std::string_view hex);

// "12,345"
std::string grouped(std::size_t number);

// Whether a link to the URL is safe: http or https, visible ASCII only, nothing that ends an attribute of HTML.
bool is_web_url(std::string_view url);

}  // namespace fencepost::notify
