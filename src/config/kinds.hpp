// The kinds of values a configuration key can have. Each kind turns text into a value or says what it expected,
// prints a value so that reading it gives the same, and names itself for the documentation.
//
// Kinds parse plain text, so YAML's own rules (010 is octal, yes is true) do not apply.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/duration_text.hpp"
#include "base/error.hpp"
#include "base/secret.hpp"
#include "base/text.hpp"
#include "base/uint256.hpp"

#include "config/config.hpp"

namespace fencepost::config {

inline constexpr std::string_view kMask = "***";

// Error of a kind. Only load_config reads it, and puts the place and the key in front of the reason.
inline Error bad_value(std::string reason) {
  return invalid("bad_config", std::move(reason));
}

struct Text {
  std::size_t max_bytes = 1024;

  Result<std::string> parse(std::string_view text) const;
  std::string print(const std::string& value) const { return value; }
  std::string type() const { return "text"; }
};

// A name of letters, digits, "-" and "_"; with `dotted`, several of them with dots between.
struct Name {
  std::size_t max_bytes = 64;
  bool dotted = false;

  Result<std::string> parse(std::string_view text) const;
  std::string print(const std::string& value) const { return value; }
  std::string type() const {
    return fmt::format("letters, digits, - and _{}", dotted ? ", with dots between parts" : "");
  }
};

// A whole decimal number without plus sign or leading zeros.
template <std::integral T>
struct Number {
  T min;
  T max;

  Result<T> parse(std::string_view text) const {
    T value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto digits = text.starts_with('-') ? text.substr(1) : text;
    const bool whole = ec == std::errc() && end == text.data() + text.size();
    const bool leading_zero = whole && digits.size() > 1 && digits.front() == '0';
    if (!whole || leading_zero || value < min || value > max) {
      return fail(
          bad_value(fmt::format("expected {}, got {}{}", type(), quote(text), leading_zero ? ": leading zero" : "")));
    }
    return value;
  }
  std::string print(T value) const { return fmt::format("{}", value); }
  std::string type() const { return fmt::format("an integer from {} to {}", min, max); }
};

struct Boolean {
  Result<bool> parse(std::string_view text) const;
  std::string print(bool value) const { return value ? "true" : "false"; }
  std::string type() const { return "true or false"; }
};

// "250ms", "10s", "5m", "24h", "1d"
struct Duration {
  std::chrono::milliseconds min{1};
  std::chrono::milliseconds max = std::chrono::days{1};

  Result<std::chrono::milliseconds> parse(std::string_view text) const;
  std::string print(std::chrono::milliseconds value) const { return duration_text(value); }
  std::string type() const { return fmt::format("a duration from {} to {}", duration_text(min), duration_text(max)); }
};

template <class Enum, std::size_t N>
struct Choice {
  std::array<std::pair<std::string_view, Enum>, N> table;

  Result<Enum> parse(std::string_view text) const {
    for (const auto& [name, value] : table) {
      if (name == text) return value;
    }
    return fail(bad_value(fmt::format("expected {}, got {}", type(), quote(text))));
  }
  std::string print(Enum wanted) const {
    for (const auto& [name, value] : table) {
      if (value == wanted) return std::string(name);
    }
    std::unreachable();
  }
  std::string type() const {
    std::array<std::string_view, N> names;
    for (std::size_t i = 0; i < N; ++i) names[i] = table[i].first;
    return one_of_list(names);
  }
};
template <class Enum, std::size_t N>
Choice(const std::pair<std::string_view, Enum> (&)[N]) -> Choice<Enum, N>;

// "127.0.0.1:9464", "[::1]:9464", "localhost:9464"
struct ListenAt {
  Result<ListenAddress> parse(std::string_view text) const;
  std::string print(const ListenAddress& value) const;
  std::string type() const { return "an address and a port such as 127.0.0.1:9464 or [::]:9464"; }
};

// A secret: never quoted in an error, never printed.
struct SecretText {
  Result<Secret> parse(std::string_view text) const;
  std::string print(const Secret& value) const { return std::string(value.empty() ? "" : kMask); }
  std::string type() const { return "secret text"; }
};

// A URL of one of two schemes with a host and without user and password. Never quoted in an error: users may put
// credentials into it by mistake.
struct Url {
  std::string_view plain;   // "http"
  std::string_view secure;  // "https"
  bool host_only = false;   // refuse a path, query or fragment

  Result<std::string> parse(std::string_view text) const;
  std::string print(const std::string& value) const { return value; }
  std::string type() const { return fmt::format("a URL that begins with {}:// or {}://", plain, secure); }
};

// At least one URL of one of two schemes; each may hold credentials.
struct SecretUrls {
  std::string_view plain = "http";
  std::string_view secure = "https";

  Result<std::vector<Secret>> parse(const std::vector<std::string>& items) const;
  std::vector<std::string> print(const std::vector<Secret>& value) const {
    return std::vector<std::string>(value.size(), std::string(kMask));
  }
  std::string type() const { return fmt::format("a list of {}:// or {}:// URLs", plain, secure); }
};

// Plain private keys in hex, at least one.
struct SecretKeys {
  Result<std::vector<Secret>> parse(const std::vector<std::string>& items) const;
  std::vector<std::string> print(const std::vector<Secret>& value) const {
    return std::vector<std::string>(value.size(), std::string(kMask));
  }
  std::string type() const { return "a list of private keys of 64 hex digits"; }
};

// Names of JSON-RPC methods; a `*` at the end stands for any rest. May be empty.
struct MethodPatterns {
  Result<std::vector<std::string>> parse(const std::vector<std::string>& items) const;
  std::vector<std::string> print(const std::vector<std::string>& value) const { return value; }
  std::string type() const { return "a list of method names, each with an optional * at the end"; }
};

// A bare address, local@domain, in the form that notify stores.
struct MailAddress {
  Result<std::string> parse(std::string_view text) const;
  std::string print(const std::string& value) const { return value; }
  std::string type() const { return "a mail address such as no-reply@example.org"; }
};

struct MailAddresses {
  static constexpr std::size_t kMax = 100;

  Result<std::vector<std::string>> parse(const std::vector<std::string>& items) const;
  std::vector<std::string> print(const std::vector<std::string>& value) const { return value; }
  std::string type() const { return "a list of mail addresses"; }
};

template <class Kind>
inline constexpr bool kHoldsSecrets = std::same_as<Kind, SecretUrls> || std::same_as<Kind, SecretKeys>;
template <class Kind>
inline constexpr bool kTakesList =
    kHoldsSecrets<Kind> || std::same_as<Kind, MethodPatterns> || std::same_as<Kind, MailAddresses>;
template <class Kind>
inline constexpr bool kIsSecret = std::same_as<Kind, SecretText> || kHoldsSecrets<Kind>;

// An optional value; prints nothing if it is not set.
template <class Kind>
struct Optional {
  Kind kind;
  using Value = std::optional<typename decltype(kind.parse(std::string_view()))::value_type>;

  Result<Value> parse(std::string_view text) const {
    auto value = kind.parse(text);
    if (!value) return fail(std::move(value).error());
    return Value(std::move(*value));
  }
  std::string print(const Value& value) const { return value ? kind.print(*value) : ""; }
  std::string type() const { return kind.type(); }
};
template <class Kind>
Optional(Kind) -> Optional<Kind>;

// Stored in lowercase; mixed case must have a valid checksum.
struct EvmAddress {
  Result<std::string> parse(std::string_view text) const;
  std::string print(const std::string& value) const { return value; }
  std::string type() const { return "an address of 0x and 40 hex digits"; }
};

// "1500000000", or "30gwei"
struct Wei {
  Result<Uint256> parse(std::string_view text) const;
  std::string print(const Uint256& value) const { return to_decimal(value); }
  std::string type() const { return "an amount of wei, or of gwei such as 30gwei"; }
};

struct Finality {
  Result<evm::FinalityRule> parse(std::string_view text) const;
  std::string print(const evm::FinalityRule& value) const { return to_string(value); }
  std::string type() const { return "an integer from 1 to 100000, safe or finalized"; }
};

}  // namespace fencepost::config
