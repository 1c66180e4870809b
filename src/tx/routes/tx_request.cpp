#include "tx/routes/tx_request.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/duration_text.hpp"
#include "base/hex.hpp"
#include "base/id_text.hpp"
#include "base/request_id.hpp"
#include "base/text.hpp"
#include "evm/address.hpp"

namespace fencepost::tx {
namespace {

using http::need;
using http::refuse_parameter;
using http::Request;
using http::required_parameter;

constexpr std::size_t kMaxAddressText = 64;
constexpr JsonReader::Hint kHints[] = {
    {"from", R"(did you mean "signer"?)"},
    {"idempotencyKey", R"(did you mean "requestId"?)"},
    {"to", "it belongs into `payload`"},
    {"value", "it belongs into `payload`"},
    {"data", "it belongs into `payload`"},
    {"input", "it belongs into `payload`, as `data`"},
    {"gas", "it belongs into `payload`"},
    {"gasLimit", "it belongs into `payload`, as `gas`"},
    {"gasPrice", "it belongs into `payload`"},
    {"maxFeePerGas", "it belongs into `payload`"},
    {"maxPriorityFeePerGas", "it belongs into `payload`"},
    {"nonce", "Fencepost assigns the nonce: leave it out"},
};
constexpr std::array<std::pair<std::string_view, WaitFor>, 3> kWaits{
    {{"submitted", WaitFor::kSubmitted}, {"mined", WaitFor::kMined}, {"confirmed", WaitFor::kConfirmed}}};

// Throws the error that another parser returned for the text of a parameter.
[[noreturn]] void refuse(std::string_view parameter, const Error& error) {
  throw Exception(
      invalid(error.code, fmt::format("{}: {}", parameter, error.message)).with("parameter", std::string(parameter)));
}

std::string signer_of(std::string_view parameter, std::string_view text) {
  auto signer = evm::parse_address(text);
  if (!signer) refuse(parameter, signer.error());
  return std::move(*signer);
}

std::optional<std::int64_t> query_chain_id(const Request& request) {
  const auto chain_id = need(request.query_as<std::int64_t>("chainId"));
  if (chain_id && *chain_id <= 0) refuse_parameter("chainId", "a positive integer", std::to_string(*chain_id));
  return chain_id;
}

std::string read_signer(const JsonReader& in) {
  auto signer = evm::parse_address(in.string(kMaxAddressText));
  if (!signer) in.reject(signer.error().code, signer.error().message);
  return std::move(*signer);
}

std::string read_request_id(const JsonReader& in) {
  const auto* text = in.value().if_string();
  // in.string() reports a value that is not a string. parse_request_id checks strings: length, NUL and more.
  if (text == nullptr) return in.string();
  auto request_id = parse_request_id(std::string_view(*text));
  if (!request_id) in.reject(request_id.error().code, request_id.error().message);
  return std::move(*request_id);
}

}  // namespace

CreateBody read_create(const JsonReader& in, bool request_id_required) {
  in.reject_unknown({"chainId", "signer", "requestId", "payload", "preflight"}, kHints);
  CreateBody body;
  body.chain_id = read_chain_id(in.field("chainId"));
  body.signer = read_signer(in.field("signer"));
  const auto request_id = in.field("requestId");
  if (request_id.present()) body.request_id = read_request_id(request_id);
  if (request_id_required && !body.request_id) {
    request_id.reject("request_id_required", "is required, in the body or as the header Idempotency-Key");
  }
  body.payload = read_payload(in.field("payload"));
  const auto preflight = in.field("preflight");
  if (preflight.present()) body.preflight = preflight.boolean();
  return body;
}

std::optional<WaitQuery> read_wait(const Request& request) {
  const auto wait = need(request.query_as<std::string>("wait"));
  const auto timeout = need(request.query_as<std::string>("timeout"));
  if (!wait) {
    if (timeout) refuse_parameter("timeout", "to be used together with wait", *timeout);
    return std::nullopt;
  }
  const auto* const found = std::ranges::find(kWaits, *wait, &std::pair<std::string_view, WaitFor>::first);
  if (found == kWaits.end()) refuse_parameter("wait", "submitted, mined or confirmed", *wait);
  WaitQuery query{.what = found->second};
  if (!timeout) return query;
  const auto duration = parse_duration(*timeout);
  if (!duration || *duration > kWaitMax) {
    refuse_parameter("timeout", fmt::format("a duration such as 30s, at most {}", duration_text(kWaitMax)), *timeout);
  }
  query.timeout = *duration;
  return query;
}

TxFilter read_filter(const Request& request) {
  check_query(request, {"chainId", "signer", "state", "cursor", "limit"});
  TxFilter filter;
  filter.chain_id = query_chain_id(request);
  if (const auto signer = need(request.query_as<std::string>("signer"))) filter.signer = signer_of("signer", *signer);
  if (const auto state = need(request.query_as<std::string>("state"))) {
    if (!kManagedTx.find(*state)) refuse_parameter("state", one_of_list(kManagedTx.names()), *state);
    filter.state = *state;
  }
  if (const auto cursor = need(request.query_as<std::string>("cursor"))) {
    const auto before = Uuid::parse(*cursor);
    if (!before) refuse_parameter("cursor", "the nextCursor of a page", *cursor);
    filter.before = *before;
  }
  filter.limit = http::read_limit(request);
  return filter;
}

LogPage read_log_page(const Request& request, std::size_t max) {
  check_query(request, {"cursor", "limit"});
  LogPage page;
  if (const auto cursor = need(request.query_as<std::string>("cursor"))) {
    const auto after = parse_id(*cursor);
    if (!after) refuse_parameter("cursor", "the nextCursor of a page", *cursor);
    page.after = *after;
  }
  page.limit = http::read_limit(request, max, max);
  return page;
}

RequestQuery read_request_query(const Request& request) {
  check_query(request, {"chainId", "signer", "requestId"});
  RequestQuery query;
  query.chain_id = query_chain_id(request);
  query.signer = signer_of("signer", required_parameter(request, "signer"));
  auto request_id = parse_request_id(required_parameter(request, "requestId"));
  if (!request_id) refuse("requestId", request_id.error());
  query.request_id = std::move(*request_id);
  return query;
}

std::optional<Uuid> read_forwarded(const Request& request) {
  const auto text = request.header(kForwardedHeader);
  if (!text) return std::nullopt;
  const auto tx_id = Uuid::parse(*text);
  if (!tx_id || tx_id->version() != 7) {
    throw Exception(invalid("invalid_header",
                            fmt::format("{}: expected a UUID of version 7, got {}", kForwardedHeader, quote(*text)))
                        .with("header", std::string(kForwardedHeader)));
  }
  return *tx_id;
}

std::string read_path_signer(const Request& request) {
  return signer_of("signer", request.param("signer"));
}

std::string read_tx_hash(const JsonReader& in) {
  const auto text = in.string();
  const auto bytes = from_hex0x_fixed<32>(text);
  if (!bytes) in.reject("bad_hash", fmt::format("expected 0x and 64 hexadecimal digits, got {}", quote(text, 80)));
  return to_hex0x(*bytes);
}

std::optional<std::int64_t> read_chain_id(const JsonReader& in) {
  if (!in.present()) return std::nullopt;
  return in.int64(1);
}

}  // namespace fencepost::tx
