#include "config/kinds.hpp"

#include <algorithm>

#include <boost/asio/ip/address.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "base/contains.hpp"
#include "evm/address.hpp"
#include "evm/keys/private_key.hpp"
#include "notify/model/mail_address.hpp"

namespace fencepost::config {

namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
}

}  // namespace

Result<std::string> Text::parse(std::string_view text) const {
  if (text.size() > max_bytes) {
    return fail(bad_value(fmt::format("expected at most {} bytes, got {}", max_bytes, text.size())));
  }
  if (std::ranges::any_of(text, is_control)) {
    return fail(bad_value(fmt::format("expected text without control characters, got {}", quote(text))));
  }
  return std::string(text);
}

Result<std::string> Name::parse(std::string_view text) const {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  bool valid = text.size() <= max_bytes;
  char before = '.';
  for (const char c : text) {
    valid = valid && (letter(c) || (dotted && c == '.' && before != '.'));
    before = c;
  }
  if (!valid || before == '.') {
    return fail(bad_value(fmt::format("expected {}, at most {} bytes, got {}", type(), max_bytes, quote(text))));
  }
  return std::string(text);
}

Result<bool> Boolean::parse(std::string_view text) const {
  if (text == "true") return true;
  if (text == "false") return false;
  return fail(bad_value(fmt::format("expected true or false, got {}", quote(text))));
}

Result<std::chrono::milliseconds> Duration::parse(std::string_view text) const {
  auto value = parse_duration(text);
  if (!value) return fail(bad_value(value.error().message));
  if (*value < min || *value > max) {
    return fail(bad_value(fmt::format("expected {}, got {}", type(), quote(text))));
  }
  return value;
}

Result<ListenAddress> ListenAt::parse(std::string_view text) const {
  const auto refuse = [&] { return fail(bad_value(fmt::format("expected {}, got {}", type(), quote(text)))); };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  auto host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto port = Number<std::uint16_t>{1, 65535}.parse(text.substr(colon + 1));
  boost::system::error_code no_address;
  const auto address = boost::asio::ip::make_address(std::string(host), no_address);
  const bool good_host = no_address ? host == "localhost" && !bracketed : address.is_v6() == bracketed;
  if (!port || !good_host) return refuse();
  return ListenAddress{std::string(host), *port};
}

std::string ListenAt::print(const ListenAddress& value) const {
  return fmt::format(fmt::runtime(value.host.contains(':') ? "[{}]:{}" : "{}:{}"), value.host, value.port);
}

Result<Secret> SecretText::parse(std::string_view text) const {
  if (text.empty()) return fail(bad_value("is empty"));
  if (std::ranges::any_of(text, is_control)) return fail(bad_value("expected one line without control characters"));
  return Secret(text);
}

Result<std::string> Url::parse(std::string_view text) const {
  const auto url = boost::urls::parse_uri(text);
  if (!url || (url->scheme() != plain && url->scheme() != secure) || url->encoded_host().empty()) {
    return fail(bad_value(fmt::format("expected {}", type())));
  }
  if (url->has_userinfo()) return fail(bad_value("expected a URL without user and password"));
  if (url->has_port() && (url->port_number() == 0)) return fail(bad_value("expected a port from 1 to 65535"));
  const bool bare_path = url->encoded_path().empty() || url->encoded_path() == "/";
  if (host_only && (!bare_path || url->has_query() || url->has_fragment())) {
    return fail(bad_value(fmt::format("expected {} with nothing after host and port", type())));
  }
  return std::string(text);
}

Result<std::vector<Secret>> SecretUrls::parse(const std::vector<std::string>& items) const {
  std::vector<Secret> out;
  for (const auto& item : items) {
    const auto url = boost::urls::parse_uri(item);
    if (!url || (url->scheme() != plain && url->scheme() != secure) || url->encoded_host().empty()) {
      return fail(bad_value(fmt::format("expected {}; number {} is not one", type(), out.size() + 1)));
    }
    out.emplace_back(item);
  }
  if (out.empty()) return fail(bad_value(fmt::format("expected {}, got none", type())));
  return out;
}

Result<std::vector<Secret>> SecretKeys::parse(const std::vector<std::string>& items) const {
  std::vector<Secret> out;
  for (const auto& item : items) {
    Secret secret(item);
    if (!evm::PrivateKey::from_hex(secret)) {
      return fail(bad_value(fmt::format("expected {}; number {} is not one", type(), out.size() + 1)));
    }
    out.push_back(std::move(secret));
  }
  if (out.empty()) return fail(bad_value(fmt::format("expected {}, got none", type())));
  return out;
}

Result<std::vector<std::string>> MethodPatterns::parse(const std::vector<std::string>& items) const {
  for (const auto& item : items) {
    const auto name = std::string_view(item).substr(0, item.size() - (item.ends_with('*') ? 1 : 0));
    const bool good = !item.empty() && item.size() <= 100 && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!good) return fail(bad_value(fmt::format("expected {}, got {}", type(), quote(item))));
  }
  return items;
}

Result<std::string> EvmAddress::parse(std::string_view text) const {
  auto address = evm::parse_address(text);
  if (!address) return fail(bad_value(address.error().message));
  return address;
}

Result<Uint256> Wei::parse(std::string_view text) const {
  constexpr std::string_view kGwei = "gwei";
  constexpr std::size_t kMostGweiDigits = 68;  // times 10^9 is below 2^256
  const bool gwei = text.ends_with(kGwei);
  const auto digits = gwei ? text.substr(0, text.size() - kGwei.size()) : text;
  const auto number = parse_decimal(digits);
  if (!number || (gwei && digits.size() > kMostGweiDigits)) {
    return fail(bad_value(fmt::format("expected {}, got {}", type(), quote(text))));
  }
  return gwei ? Uint256(*number * 1'000'000'000U) : *number;
}

Result<evm::FinalityRule> Finality::parse(std::string_view text) const {
  auto rule = evm::parse_finality_rule(text);
  if (!rule) return fail(bad_value(std::move(rule.error().message)));
  return *rule;
}

Result<std::string> MailAddress::parse(std::string_view text) const {
  auto address = notify::normalize_mail_address(text);
  if (!address) return fail(bad_value(fmt::format("expected {}: {}", type(), address.error().message)));
  return address;
}

Result<std::vector<std::string>> MailAddresses::parse(const std::vector<std::string>& items) const {
  std::vector<std::string> out;
  for (const auto& item : items) {
    auto address = MailAddress{}.parse(item);
    if (!address) return fail(std::move(address).error());
    if (!contains(out, *address)) out.push_back(std::move(*address));
  }
  if (out.size() > kMax) return fail(bad_value(fmt::format("expected at most {} addresses", kMax)));
  return out;
}

}  // namespace fencepost::config
