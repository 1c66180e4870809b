#include "notify/model/mail_address.hpp"

#include <algorithm>
#include <memory>
#include <ranges>

#include <fmt/format.h>
#include <idn2.h>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kLocalPartMaxBytes = 64;  // RFC 5321
constexpr std::size_t kLabelMaxBytes = 63;

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_alphanumeric(char c) {
  return is_ascii_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// `atext` of RFC 5322.
bool is_atom_character(char c) {
  return is_alphanumeric(c) || std::string_view("!#$%&'*+-/=?^_`{|}~").contains(c);
}

std::unexpected<Error> bad_email(std::string_view text, std::string_view why) {
  return fail(invalid("bad_email", fmt::format("the email address {} {}", quote(text), why)));
}

// What is wrong with the part before the @; empty: nothing.
std::string_view fault_of_local_part(std::string_view local) {
  if (local.empty()) return "has nothing before the @";
  if (local.size() > kLocalPartMaxBytes) return "has more than 64 characters before the @";
  if (!std::ranges::all_of(local, [](char c) { return c == '.' || is_atom_character(c); })) {
    return "has a character before the @ that is not allowed there: use ASCII letters, digits, dots and "
           "!#$%&'*+-/=?^_`{|}~, without a display name, quotes or spaces";
  }
  if (local.front() == '.' || local.back() == '.' || local.contains("..")) {
    return "has a dot at the begin or the end of the part before the @, or two dots in a row";
  }
  return {};
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kLabelMaxBytes && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, [](char c) { return c == '-' || is_alphanumeric(c); });
}

// What is wrong with a domain in its ASCII form; empty: nothing.
std::string_view fault_of_domain(std::string_view domain) {
  if (domain.ends_with('.')) return "ends with a dot";
  if (!domain.contains('.')) return "has a domain without a dot: write the whole domain, such as example.org";
  for (const auto label : std::views::split(domain, '.')) {
    if (!is_label(std::string_view(label))) {
      return "has a domain that is not a host name: its parts are 1 to 63 letters, digits and inner hyphens";
    }
  }
  if (std::ranges::all_of(domain.substr(domain.rfind('.') + 1), is_ascii_digit)) {
    return "has a number where the domain ends: address literals are not accepted";
  }
  return {};
}

// Without the mapping of UTS 46: it accepts look-alikes such as full-width letters and drops invisible characters, so
// that the stored domain would differ from the one that the person sees.
Result<std::string> to_ascii(std::string_view address, const std::string& domain) {
  char* out = nullptr;
  const int code = idn2_to_ascii_8z(domain.c_str(), &out, IDN2_NFC_INPUT | IDN2_NO_TR46);
  const std::unique_ptr<char, decltype([](char* text) { idn2_free(text); })> owner(out);
  if (code != IDN2_OK) {
    return bad_email(address,
                     fmt::format("has a domain that is not a valid internationalised name: {}; write it in lowercase",
                                 idn2_strerror(code)));
  }
  return lowercase(out);
}

}  // namespace

Result<std::string> normalize_mail_address(std::string_view text) {
  if (text.size() > kMailAddressMaxBytes) return bad_email(text, "is longer than 200 bytes");
  if (!is_utf8(text)) return bad_email(text, "is not UTF-8");
  const auto at = text.find('@');
  if (at == std::string_view::npos) return bad_email(text, "has no @: write it as name@example.org");
  if (text.find('@', at + 1) != std::string_view::npos) return bad_email(text, "has more than one @");
  const auto local = text.substr(0, at);
  const auto given_domain = text.substr(at + 1);
  if (const auto fault = fault_of_local_part(local); !fault.empty()) return bad_email(text, fault);
  if (given_domain.empty()) return bad_email(text, "has nothing after the @");
  // libidn2 reads up to the first NUL, and a later check would not see the rest.
  if (given_domain.contains('\0')) return bad_email(text, "has a control character");

  const auto domain = to_ascii(text, lowercase(given_domain));
  if (!domain) return fail(domain.error());
  if (const auto fault = fault_of_domain(*domain); !fault.empty()) return bad_email(text, fault);
  auto address = fmt::format("{}@{}", local, *domain);
  if (address.size() > kMailAddressMaxBytes)
    return bad_email(text, "is longer than 200 bytes with its domain in ASCII");
  return address;
}

std::string_view domain_of(std::string_view address) {
  return address.substr(address.rfind('@') + 1);
}

}  // namespace fencepost::notify
