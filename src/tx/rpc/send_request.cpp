#include "tx/rpc/send_request.hpp"

#include <limits>

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "base/hex.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/uint256.hpp"
#include "evm/address.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxQuantityText = 2 + 64;
constexpr std::uint64_t kMaxUint64 = std::numeric_limits<std::uint64_t>::max();

std::optional<Uint256> read_quantity(const JsonReader& in) {
  if (!in.present()) return std::nullopt;
  const auto text = in.string(kMaxQuantityText);
  const auto value = parse_quantity(text);
  if (!value) {
    in.reject("bad_request",
              fmt::format("expected 0x and hexadecimal digits without leading zeros, got {}", quote(text)));
  }
  return *value;
}

std::optional<std::uint64_t> read_uint64(const JsonReader& in) {
  const auto value = read_quantity(in);
  if (!value) return std::nullopt;
  if (*value > kMaxUint64) in.reject("bad_request", "expected at most 64 bits");
  return static_cast<std::uint64_t>(*value);
}

void check_chain(const JsonReader& tx, std::int64_t chain_id) {
  const auto given = read_quantity(tx.field("chainId"));
  if (!given || *given == chain_id) return;
  tx.field("chainId").reject("wrong_chain_id",
                             fmt::format("the transaction is for chain {}, and this is the endpoint of chain {}",
                                         to_decimal(*given), chain_id));
}

// `data` and its newer name `input`: clients send either or both.
std::optional<std::string> read_input(const JsonReader& tx) {
  const auto data = tx.field("data");
  const auto input = tx.field("input");
  if (!data.present() && !input.present()) return std::nullopt;
  constexpr std::size_t kMaxText = 4 + 2 * kPayloadMaxDataBytes;  // read_payload reports what is over its limit
  auto text = (data.present() ? data : input).string(kMaxText);
  if (data.present() && input.present() && !equal_ignoring_case(input.string(kMaxText), text)) {
    input.reject("bad_request", "differs from data; send one of them, or the same value");
  }
  return text;
}

// The type follows from the fees, which the node chooses where the caller gives none.
void check_type(const JsonReader& tx) {
  const auto type = read_uint64(tx.field("type"));
  if (!type) return;
  const auto at = tx.field("type");
  const bool legacy = tx.field("gasPrice").present();
  if (*type == 0 && !legacy)
    at.reject("unsupported_transaction", "0x0 needs gasPrice; leave type out to send type 0x2");
  if (*type == 2 && legacy) at.reject("unsupported_transaction", "0x2 must not have gasPrice");
  if (*type != 0 && *type != 2) {
    at.reject("unsupported_transaction", fmt::format("0x{:x} is not supported; expected 0x0 or 0x2", *type));
  }
}

void check_access_list(const JsonReader& tx) {
  const auto list = tx.field("accessList");
  if (!list.present() || list.array(1).empty()) return;
  list.reject("unsupported_transaction", "access lists are not supported; leave it out");
}

std::optional<Uint256> read_gas_limit(const JsonReader& tx) {
  const auto gas = read_quantity(tx.field("gas"));
  const auto limit = read_quantity(tx.field("gasLimit"));
  if (gas && limit && *gas != *limit) tx.field("gasLimit").reject("bad_request", "differs from gas; send one of them");
  return gas ? gas : limit;
}

// The payload as POST /api/v1/tx takes it.
json::object payload_object(const JsonReader& tx) {
  json::object payload;
  if (const auto to = tx.field("to"); to.present()) payload["to"] = to.string();
  if (const auto data = read_input(tx)) payload["data"] = *data;
  if (const auto gas = read_gas_limit(tx)) payload["gas"] = to_decimal(*gas);
  for (const auto* name : {"value", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"}) {
    if (const auto amount = read_quantity(tx.field(name))) payload[name] = to_decimal(*amount);
  }
  return payload;
}

std::string read_from(const JsonReader& in) {
  auto from = evm::parse_address(in.string());
  if (!from) in.reject(from.error().code, from.error().message);
  return std::move(*from);
}

}  // namespace

SendRequest read_send_request(std::string_view params, std::int64_t chain_id) {
  const auto document = parse_json(params, params.size());
  if (!document) throw Exception(invalid("bad_request", "params: " + document.error().message).with("field", "params"));
  const auto* list = document->if_array();
  if (list == nullptr || list->size() != 1) {
    throw Exception(invalid("bad_request", "params: expected an array of one transaction").with("field", "params"));
  }
  const JsonReader tx(list->front(), "params[0]");
  tx.reject_unknown({"from", "to", "value", "data", "input", "gas", "gasLimit", "gasPrice", "maxFeePerGas",
                     "maxPriorityFeePerGas", "type", "chainId", "nonce", "accessList"});
  SendRequest request;
  request.from = read_from(tx.field("from"));
  check_chain(tx, chain_id);
  check_type(tx);
  check_access_list(tx);
  request.nonce = read_uint64(tx.field("nonce"));
  const json::value payload = payload_object(tx);
  request.payload = read_payload(JsonReader(payload, "params[0]"));
  return request;
}

}  // namespace fencepost::tx
