#include "identity/siwe_message.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/address.hpp"

namespace fencepost::identity {
namespace {

constexpr std::string_view kInvitation = " wants you to sign in with your Ethereum account:";

[[noreturn]] void reject(std::string message) {
  throw Exception(unauthenticated("bad_login_message", std::move(message)));
}

// The message line by line.
class Lines {
 public:
  explicit Lines(std::string_view text) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      lines_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  std::string_view next(std::string_view what) {
    if (at_ == lines_.size()) reject(fmt::format("The message ends before {}.", what));
    return lines_[at_++];
  }
  void empty(std::string_view after) {
    if (!next("its end").empty()) reject(fmt::format("There must be an empty line after {}.", after));
  }
  std::string_view field(std::string_view name) {
    auto value = optional_field(name);
    if (!value) reject(fmt::format("Line {} must begin with '{}: '.", at_ + 1, name));
    return *value;
  }
  std::optional<std::string_view> optional_field(std::string_view name) {
    if (at_ == lines_.size()) return std::nullopt;
    auto line = lines_[at_];
    if (!line.starts_with(name) || !line.substr(name.size()).starts_with(": ")) return std::nullopt;
    ++at_;
    return line.substr(name.size() + 2);
  }
  bool take(std::string_view line) {
    if (at_ == lines_.size() || lines_[at_] != line) return false;
    ++at_;
    return true;
  }
  bool at_end() const { return at_ == lines_.size(); }
  std::string_view peek() const { return at_ == lines_.size() ? std::string_view() : lines_[at_]; }
  std::size_t number() const { return at_ + 1; }

 private:
  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
};

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The display form with its checksum, and no other: so says the specification.
std::string read_address(std::string_view text) {
  const auto address = evm::parse_address(text);
  if (!address || evm::checksum_address(*address) != text) {
    reject("The second line must be the address in its mixed-case form (EIP-55).");
  }
  return *address;
}

// A statement is one line between two empty ones; without it there are two empty lines.
void skip_statement(Lines& lines) {
  lines.empty("the address");
  if (lines.take("")) return;
  lines.next("its fields");
  lines.empty("the statement");
}

std::int64_t read_chain_id(std::string_view text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size() || id <= 0 || text.starts_with('0')) {
    reject("Chain ID must be a number above 0.");
  }
  return id;
}

std::string read_nonce(std::string_view text) {
  if (text.size() < 8 || !std::ranges::all_of(text, is_alphanumeric)) {
    reject("Nonce must have eight or more letters and digits.");
  }
  return std::string(text);
}

TimePoint read_time(std::string_view name, std::string_view text) {
  const auto time = parse_rfc3339(text);
  if (!time) reject(fmt::format("{} must be a time such as 2026-11-18T06:00:00Z.", name));
  return *time;
}

std::optional<TimePoint> read_optional_time(Lines& lines, std::string_view name) {
  const auto text = lines.optional_field(name);
  return text ? std::optional(read_time(name, *text)) : std::nullopt;
}

void skip_resources(Lines& lines) {
  if (!lines.take("Resources:")) return;
  while (lines.peek().starts_with("- ")) lines.next("its end");
}

// ASCII as the grammar has it: no other character can look like one of these.
void check_characters(std::string_view text) {
  if (text.size() > kSiweMaxBytes) reject(fmt::format("The message has more than {} bytes.", kSiweMaxBytes));
  if (!std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); })) {
    reject("The message has a character that is neither printable ASCII nor a line feed.");
  }
}

SiweMessage read(std::string_view text) {
  check_characters(text);
  Lines lines(text);
  SiweMessage message;
  auto first = lines.next("the domain");
  if (!first.ends_with(kInvitation)) reject(fmt::format("The first line must end with '{}'.", kInvitation));
  first.remove_suffix(kInvitation.size());
  if (const auto scheme = first.find("://"); scheme != std::string_view::npos) {
    message.scheme = first.substr(0, scheme);
    first.remove_prefix(scheme + 3);
  }
  message.domain = first;
  message.address = read_address(lines.next("the address"));
  skip_statement(lines);
  message.uri = lines.field("URI");
  if (lines.field("Version") != "1") reject("Version must be 1.");
  message.chain_id = read_chain_id(lines.field("Chain ID"));
  message.nonce = read_nonce(lines.field("Nonce"));
  message.issued_at = read_time("Issued At", lines.field("Issued At"));
  message.expires_at = read_optional_time(lines, "Expiration Time");
  message.not_before = read_optional_time(lines, "Not Before");
  lines.optional_field("Request ID");
  skip_resources(lines);
  if (!lines.at_end()) reject(fmt::format("Line {} is not expected there.", lines.number()));
  return message;
}

// "https://example.org:8443" of a URI; empty when it has no authority.
std::string_view origin_of(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (scheme == std::string_view::npos) return {};
  return uri.substr(0, std::min(uri.find_first_of("/?#", scheme + 3), uri.size()));
}

}  // namespace

Result<SiweMessage> parse_siwe(std::string_view text) {
  try {
    return read(text);
  } catch (const Exception& e) {
    return fail(e.error());
  }
}

Result<void> check_siwe(const SiweMessage& message, const LoginPlace& place, TimePoint now) {
  if (message.domain != place.domain || message.scheme.value_or(place.scheme) != place.scheme) {
    return fail(unauthenticated("wrong_login_domain", fmt::format("The message is for {}, and this server is {}.",
                                                                  quote(message.domain), quote(place.origin()))));
  }
  if (origin_of(message.uri) != place.origin()) {
    return fail(
        unauthenticated("wrong_login_domain", fmt::format("The message names the URI {}, and this server is {}.",
                                                          quote(message.uri), quote(place.origin()))));
  }
  if (message.issued_at > now + kLoginClockSkew || (message.not_before && *message.not_before > now)) {
    return fail(unauthenticated("login_not_yet_valid", "The message is not valid yet."));
  }
  if (message.expires_at && *message.expires_at <= now) {
    return fail(unauthenticated("login_expired", "The message has expired: ask for a new nonce and sign again."));
  }
  return {};
}

}  // namespace fencepost::identity
