#include "evm/keys/keystore_json.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "evm/address.hpp"

namespace fencepost::evm {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxSalt = 1024;

Error bad_keystore(std::string reason) {
  return invalid("bad_keystore", std::move(reason));
}

Error unsupported_keystore(std::string reason) {
  return invalid("unsupported_keystore", std::move(reason));
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view without_0x(std::string_view digits) {
  return digits.starts_with("0x") ? digits.substr(2) : digits;
}

// Finds the members of a key file. Remembers the first error and returns empty values after it, so that the reader
// below needs no error handling.
class KeyFileMembers {
 public:
  // nullptr when absent or null.
  const json::value* find(const json::object& in, std::string_view name) {
    const json::value* found = nullptr;
    for (const auto& [key, value] : in) {
      if (!same_name(key, name)) continue;
      if (found != nullptr) reject(bad_keystore(fmt::format("\"{}\" is given twice", name)));
      found = &value;
    }
    return found != nullptr && found->is_null() ? nullptr : found;
  }

  const json::object& object(const json::object& in, std::string_view name) {
    static const json::object kNone;
    const auto* value = find(in, name);
    if (value != nullptr && value->is_object()) return value->get_object();
    wrong(name, "an object", value);
    return kNone;
  }

  std::string_view text(const json::object& in, std::string_view name) {
    const auto* value = find(in, name);
    if (value != nullptr && value->is_string()) return value->get_string();
    wrong(name, "a string", value);
    return {};
  }

  std::uint64_t number(const json::object& in, std::string_view name) {
    const auto* value = find(in, name);
    if (value != nullptr && value->is_uint64()) return value->get_uint64();
    if (value != nullptr && value->is_int64() && value->get_int64() >= 0) {
      return static_cast<std::uint64_t>(value->get_int64());
    }
    wrong(name, "a whole number", value);
    return 0;
  }

  Bytes bytes(const json::object& in, std::string_view name, std::size_t max_bytes) {
    const auto digits = without_0x(text(in, name));
    auto decoded = from_hex(digits);
    if (!decoded) {
      reject(bad_keystore(fmt::format("{}: {}", name, decoded.error().message)));
    } else if (decoded->empty() || decoded->size() > max_bytes) {
      reject(bad_keystore(fmt::format("{}: expected 1 to {} bytes, got {}", name, max_bytes, decoded->size())));
    } else {
      return *std::move(decoded);
    }
    return {};
  }

  template <std::size_t N>
  std::array<std::uint8_t, N> fixed_bytes(const json::object& in, std::string_view name) {
    std::array<std::uint8_t, N> out{};
    if (const auto decoded = decode_hex(without_0x(text(in, name)), out); !decoded) {
      reject(bad_keystore(fmt::format("{}: {}", name, decoded.error().message)));
    }
    return out;
  }

  void expect_text(const json::object& in, std::string_view name, std::string_view expected) {
    const auto found = text(in, name);
    if (!same_name(found, expected)) {
      reject(unsupported_keystore(fmt::format("{}: only {} is supported, got {}", name, expected, quote(found))));
    }
  }

  void expect_number(const json::object& in, std::string_view name, std::uint64_t expected) {
    const auto found = number(in, name);
    if (found != expected) {
      reject(unsupported_keystore(fmt::format("{}: only {} is supported, got {}", name, expected, found)));
    }
  }

  void reject(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  void wrong(std::string_view name, std::string_view expected, const json::value* found) {
    reject(bad_keystore(found == nullptr
                            ? fmt::format("{} is missing", name)
                            : fmt::format("{}: expected {}, got {}", name, expected, describe_json(*found))));
  }

  std::optional<Error> error_;
};

std::optional<std::string> read_address(KeyFileMembers& members, const json::object& top) {
  if (members.find(top, "address") == nullptr) return std::nullopt;
  const auto digits = without_0x(members.text(top, "address"));
  if (digits.empty()) return std::nullopt;
  Address address{};
  if (const auto decoded = decode_hex(digits, address); !decoded) {
    members.reject(bad_keystore("address: " + decoded.error().message));
  }
  return address_text(address);
}

KdfCost read_cost(KeyFileMembers& members, const json::object& crypto, const json::object& params) {
  members.expect_number(params, "dklen", 32);
  const auto kdf = members.text(crypto, "kdf");
  if (same_name(kdf, "pbkdf2")) {
    members.expect_text(params, "prf", "hmac-sha256");
    return Pbkdf2Cost{members.number(params, "c")};
  }
  if (!same_name(kdf, "scrypt")) {
    members.reject(unsupported_keystore(fmt::format("kdf: only scrypt and pbkdf2 are supported, got {}", quote(kdf))));
    return {};
  }
  ScryptCost cost;
  cost.n = members.number(params, "n");
  cost.r = members.number(params, "r");
  cost.p = members.number(params, "p");
  return cost;
}

Result<void> check_scrypt(const ScryptCost& cost) {
  if (cost.n < 2 || !std::has_single_bit(cost.n)) {
    return fail(unsupported_keystore(fmt::format("scrypt: n must be a power of two over 1, got {}", cost.n)));
  }
  if (cost.r == 0 || cost.p == 0) return fail(unsupported_keystore("scrypt: r and p must be at least 1"));
  // Check each factor alone first, so that the products cannot wrap.
  const auto most = kMaxScryptWork;
  if (cost.n > most || cost.r > most || cost.p > most || cost.n * cost.r > most || cost.n * cost.r * cost.p > most ||
      128 * cost.r * (cost.n + cost.p) > kMaxScryptMemory) {
    return fail(
        unsupported_keystore(fmt::format("scrypt: n={} r={} p={} costs too much; the most is {} MiB and n × r × p = {}",
                                         cost.n, cost.r, cost.p, kMaxScryptMemory >> 20, most)));
  }
  return {};
}

}  // namespace

Result<void> check_cost(const KdfCost& cost) {
  if (const auto* scrypt = std::get_if<ScryptCost>(&cost)) return check_scrypt(*scrypt);
  const auto rounds = std::get<Pbkdf2Cost>(cost).c;
  if (rounds >= 1 && rounds <= kMaxPbkdf2Rounds) return {};
  return fail(unsupported_keystore(fmt::format("pbkdf2: c must be from 1 to {}, got {}", kMaxPbkdf2Rounds, rounds)));
}

Result<KeystoreJson> parse_keystore(std::string_view text) {
  const auto document = parse_json(text, kMaxKeystoreBytes);
  if (!document) return fail(bad_keystore(document.error().message));
  if (!document->is_object()) return fail(bad_keystore("expected an object, got " + describe_json(*document)));
  const auto& top = document->get_object();

  KeyFileMembers members;
  KeystoreJson out;
  members.expect_number(top, "version", 3);
  const auto& crypto = members.object(top, "crypto");
  members.expect_text(crypto, "cipher", "aes-128-ctr");
  const auto& params = members.object(crypto, "kdfparams");
  out.cost = read_cost(members, crypto, params);
  out.salt = members.bytes(params, "salt", kMaxSalt);
  out.iv = members.fixed_bytes<16>(members.object(crypto, "cipherparams"), "iv");
  out.ciphertext = members.bytes(crypto, "ciphertext", 32);
  out.mac = members.fixed_bytes<32>(crypto, "mac");
  out.address = read_address(members, top);
  if (members.error()) return fail(*members.error());
  if (auto affordable = check_cost(out.cost); !affordable) return fail(std::move(affordable).error());
  return out;
}

std::string keystore_text(const KeystoreJson& keystore, const Uuid& id) {
  json::object params{{"dklen", 32}};
  if (const auto* scrypt = std::get_if<ScryptCost>(&keystore.cost)) {
    params["n"] = scrypt->n;
    params["p"] = scrypt->p;
    params["r"] = scrypt->r;
  } else {
    params["c"] = std::get<Pbkdf2Cost>(keystore.cost).c;
    params["prf"] = "hmac-sha256";
  }
  params["salt"] = to_hex(keystore.salt);

  json::object crypto{{"cipher", "aes-128-ctr"}, {"ciphertext", to_hex(keystore.ciphertext)}};
  crypto["cipherparams"] = json::object{{"iv", to_hex(keystore.iv)}};
  crypto["kdf"] = std::holds_alternative<ScryptCost>(keystore.cost) ? "scrypt" : "pbkdf2";
  crypto["kdfparams"] = std::move(params);
  crypto["mac"] = to_hex(keystore.mac);

  json::object top;
  if (keystore.address) top["address"] = without_0x(*keystore.address);
  top["crypto"] = std::move(crypto);
  top["id"] = id.to_string();
  top["version"] = 3;
  return json::serialize(top);
}

}  // namespace fencepost::evm
