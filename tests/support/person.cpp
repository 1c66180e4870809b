#include "tests/support/person.hpp"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/clock.hpp"
#include "base/hex.hpp"
#include "evm/address.hpp"
#include "evm/keys/private_key.hpp"
#include "identity/wallet_signature.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

std::string message_of(const evm::PrivateKey& key, const json::value& nonce) {
  const auto text = [&](const char* name) { return std::string(nonce.at(name).as_string()); };
  return fmt::format(
      "{} wants you to sign in with your Ethereum account:\n{}\n\n\nURI: {}\nVersion: 1\nChain ID: 31337\nNonce: {}\n"
      "Issued At: {}",
      text("domain"), evm::checksum_address(evm::address_text(key.address())), text("uri"), text("nonce"),
      to_rfc3339(SystemClock().now()));
}

// r, s and v, as personal_sign returns them.
std::string signature_of(const evm::PrivateKey& key, const std::string& message) {
  const auto made = key.sign(identity::personal_message_hash(message));
  Bytes bytes(made.r.begin(), made.r.end());
  bytes.insert(bytes.end(), made.s.begin(), made.s.end());
  bytes.push_back(made.y_parity ? 28 : 27);
  return to_hex0x(bytes);
}

}  // namespace

Person::Person(TxCluster& cluster, const std::string& private_key, std::size_t node)
    : base_(cluster.node(node).url("")) {
  const auto key = evm::PrivateKey::from_hex(Secret(private_key)).value();
  wallet_ = evm::address_text(key.address());
  const auto nonce = ask({.url = base_ + "/api/v1/auth/nonce", .key = "", .body = ""}).json();
  const auto message = message_of(key, nonce);
  headers_.emplace_back("Origin", std::string(nonce.at("uri").as_string()));
  const auto answer = post("/api/v1/auth/verify", {{"message", message}, {"signature", signature_of(key, message)}});
  if (answer.status != 200) throw Exception(internal("login", answer.body));
  for (const auto& [name, value] : answer.headers) {
    if (name == "Set-Cookie") headers_.emplace_back("Cookie", value.substr(0, value.find(';')));
  }
}

Answer Person::post(const std::string& path, const json::object& body) const {
  return call("POST", path, json::serialize(body));
}

Answer Person::patch(const std::string& path, const json::object& body) const {
  return call("PATCH", path, json::serialize(body));
}

Answer Person::call(const std::string& method, const std::string& path, const std::string& body) const {
  return ask({.method = method, .url = base_ + path, .key = "", .body = body, .headers = headers_});
}

}  // namespace fencepost::test
