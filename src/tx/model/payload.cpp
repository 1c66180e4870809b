#include "tx/model/payload.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/json.hpp"
#include "evm/address.hpp"

namespace fencepost::tx {
namespace {

constexpr std::uint64_t kMaxGas = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxDataText = 2 + 2 * kPayloadMaxDataBytes;
constexpr std::size_t kMaxStoredBytes = kMaxDataText + 4096;

std::optional<std::string> read_address(const JsonReader& in) {
  const auto text = in.optional_string();
  if (!text) return std::nullopt;
  auto address = evm::parse_address(*text);
  if (!address) in.reject(address.error().code, address.error().message);
  return std::move(*address);
}

std::optional<Uint256> read_amount(const JsonReader& in) {
  if (!in.present()) return std::nullopt;
  return parse_decimal(in.uint256_text()).value();
}

std::optional<std::string> read_data(const JsonReader& in) {
  if (!in.present()) return std::nullopt;
  const auto* text = in.value().if_string();
  if (text != nullptr && text->size() > kMaxDataText) {
    in.reject("data_too_large", fmt::format("expected at most {} bytes of data", kPayloadMaxDataBytes));
  }
  const auto bytes = from_hex0x(in.string(kMaxDataText));
  if (!bytes) in.reject(bytes.error().code, bytes.error().message);
  return to_hex0x(*bytes);
}

std::optional<std::uint64_t> read_gas(const JsonReader& in) {
  if (!in.present()) return std::nullopt;
  if (in.value().is_number()) return in.uint64(0, kMaxGas);
  const auto gas = parse_decimal(in.uint256_text()).value();
  if (gas > kMaxGas) in.reject("bad_request", fmt::format("expected at most {}, got {}", kMaxGas, to_decimal(gas)));
  return static_cast<std::uint64_t>(gas);
}

// What Ethereum clients put into a transaction.
constexpr JsonReader::Hint kHints[] = {
    {"gasLimit", R"(did you mean "gas"?)"},
    {"input", R"(did you mean "data"?)"},
    {"nonce", "Fencepost assigns the nonce: leave it out"},
    {"from", "the sender is `signer`, beside the payload"},
    {"chainId", "it belongs beside the payload"},
    {"type", "the type follows from the fees: leave it out"},
    {"accessList", "access lists are not supported: leave it out"},
    {"authorizationList", "transactions that set code are not supported: leave it out"},
    {"maxFeePerBlobGas", "blobs are not supported: leave it out"},
    {"blobs", "blobs are not supported: leave it out"},
};

Payload read_members(const JsonReader& in) {
  in.reject_unknown({"to", "value", "data", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas",
                     "feeCeilingPerGas", "feeCeilingTotal"},
                    kHints);
  return {.to = read_address(in.field("to")),
          .value = read_amount(in.field("value")),
          .data = read_data(in.field("data")),
          .gas = read_gas(in.field("gas")),
          .gas_price = read_amount(in.field("gasPrice")),
          .max_fee_per_gas = read_amount(in.field("maxFeePerGas")),
          .max_priority_fee_per_gas = read_amount(in.field("maxPriorityFeePerGas")),
          .fee_ceiling_per_gas = read_amount(in.field("feeCeilingPerGas")),
          .fee_ceiling_total = read_amount(in.field("feeCeilingTotal"))};
}

Bytes data_bytes(const Payload& payload) {
  return payload.data ? from_hex0x(*payload.data).value() : Bytes{};
}

void check_gas(const JsonReader& in, const Payload& payload) {
  if (!payload.gas) return;
  const auto intrinsic = evm::intrinsic_gas(!payload.to, data_bytes(payload));
  if (*payload.gas >= intrinsic) return;
  in.field("gas").reject("gas_too_low", fmt::format("{} is under the intrinsic cost of {}: it could never be mined",
                                                    *payload.gas, intrinsic));
}

void check_fees(const JsonReader& in, const Payload& payload) {
  const auto& tip = payload.max_priority_fee_per_gas;
  const auto& cap = payload.max_fee_per_gas;
  if (payload.gas_price && (cap || tip)) {
    in.field("gasPrice").reject("bad_fees", "must not be given together with maxFeePerGas or maxPriorityFeePerGas");
  }
  if (!tip) return;
  const auto at = in.field("maxPriorityFeePerGas");
  if (!cap) at.reject("bad_fees", "needs maxFeePerGas beside it");
  if (*tip > *cap) at.reject("bad_fees", "must not be above maxFeePerGas");
}

void append_member(std::string& out, std::string_view key, const std::string& value) {
  fmt::format_to(std::back_inserter(out), R"({}"{}":"{}")", out.size() > 1 ? "," : "", key, value);
}
void append_member(std::string& out, std::string_view key, const std::optional<Uint256>& value) {
  if (value) append_member(out, key, to_decimal(*value));
}

}  // namespace

std::string Payload::canonical() const {
  // The values are digits and hex, so nothing needs escaping.
  std::string out = "{";
  if (to) append_member(out, "to", *to);
  append_member(out, "value", value);
  if (data) append_member(out, "data", *data);
  if (gas) append_member(out, "gas", std::to_string(*gas));
  append_member(out, "gasPrice", gas_price);
  append_member(out, "maxFeePerGas", max_fee_per_gas);
  append_member(out, "maxPriorityFeePerGas", max_priority_fee_per_gas);
  append_member(out, "feeCeilingPerGas", fee_ceiling_per_gas);
  append_member(out, "feeCeilingTotal", fee_ceiling_total);
  return out += '}';
}

std::string Payload::hash() const {
  const auto digest = sha256(canonical());
  return {digest.begin(), digest.end()};
}

Payload read_payload(const JsonReader& in) {
  auto payload = read_members(in);
  const bool has_data = payload.data && *payload.data != "0x";
  if (!payload.to && !has_data) in.reject("empty_payload", "needs `to`, or `data` to create a contract");
  check_gas(in, payload);
  check_fees(in, payload);
  return payload;
}

Payload stored_payload(std::string_view json) {
  const auto broken = [](const Error& error) {
    return Exception(internal("bad_stored_payload", "a stored payload cannot be read").because(error.to_string()));
  };
  const auto document = parse_json(json, kMaxStoredBytes);
  if (!document) throw broken(document.error());
  try {
    return read_members(JsonReader(*document, "payload"));
  } catch (const Exception& e) {
    throw broken(e.error());
  }
}

evm::Transaction build_transaction(const Payload& payload, std::int64_t chain_id, std::int64_t nonce, std::uint64_t gas,
                                   evm::Fees fees) {
  return {.chain_id = static_cast<std::uint64_t>(chain_id),
          .nonce = static_cast<std::uint64_t>(nonce),
          .gas = gas,
          .to = payload.to.transform([](const std::string& to) { return evm::address_bytes(to); }),
          .value = payload.value.value_or(0),
          .data = data_bytes(payload),
          .fees = std::move(fees)};
}

}  // namespace fencepost::tx
