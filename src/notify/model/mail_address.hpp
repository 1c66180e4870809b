// Mail addresses that people give. Pure: no I/O.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::notify {

inline constexpr std::size_t kMailAddressMaxBytes = 200;

// The address in the one form that is stored: local part as given, domain in lowercase ASCII (IDNA 2008, so that
// "ü.example" and "xn--tda.example" are one address). Accepts a dot-atom local part of ASCII characters and a domain
// with at least one dot; no display name, quotes, comments, address literals, spaces or control characters.
// Errors: kInvalid `bad_email`, with what is wrong.
Result<std::string> normalize_mail_address(std::string_view text);

// The part after the @. Requires: a normalised address.
std::string_view domain_of(std::string_view address);

}  // namespace fencepost::notify
