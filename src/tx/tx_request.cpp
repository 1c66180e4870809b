#include "tx/tx_request.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/duration_text.hpp"
#include "base/hex.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "evm/address.hpp"
#include "tx/request_id.hpp"

namespace fencepost::tx {
namespace {

using http::Request;

constexpr std::size_t kMaxAddressText = 64;
constexpr std::size_t kBytesPerCharacter = 4;  // of UTF-8, at most
constexpr std::array<std::pair<std::string_view, WaitFor>, 3> kWaits{
    {{"submitted", WaitFor::kSubmitted}, {"mined", WaitFor::kMined}, {"confirmed", WaitFor::kConfirmed}}};

template <class T>
T need(Result<T> result) {
  if (!result) throw Exception(std::move(result).error());
  return std::move(*result);
}

[[noreturn]] void refuse(std::string_view parameter, std::string_view expected, std::string_view got) {
  throw Exception(http::bad_parameter(parameter, expected, got));
}

// Another part's error about a parameter's text.
[[noreturn]] void refuse(std::string_view parameter, const Error& error) {
  throw Exception(
      invalid(error.code, fmt::format("{}: {}", parameter, error.message)).with("parameter", std::string(parameter)));
}

std::string required(const Request& request, std::string_view name) {
  auto text = need(request.query_as<std::string>(name));
  if (!text) {
    throw Exception(
        invalid("invalid_parameter", fmt::format("{}: is required", name)).with("parameter", std::string(name)));
  }
  return std::move(*text);
}

std::string signer_of(std::string_view parameter, const std::string& text) {
  auto signer = evm::parse_address(text);
  if (!signer) refuse(parameter, signer.error());
  return std::move(*signer);
}

std::optional<std::int64_t> query_chain_id(const Request& request) {
  const auto chain_id = need(request.query_as<std::int64_t>("chainId"));
  if (chain_id && *chain_id <= 0) refuse("chainId", "a positive integer", std::to_string(*chain_id));
  return chain_id;
}

std::size_t count_characters(std::string_view utf8) {
  const auto starts_one = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::ranges::count_if(utf8, starts_one));
}

std::string read_signer(const JsonReader& in) {
  auto signer = evm::parse_address(in.string(kMaxAddressText));
  if (!signer) in.reject(signer.error().code, signer.error().message);
  return std::move(*signer);
}

std::string read_request_id(const JsonReader& in) {
  const auto* text = in.value().if_string();
  // Anything but a string is told as such; a string has rules of its own, NUL and length among them.
  if (text == nullptr) return in.string();
  auto request_id = parse_request_id(std::string_view(*text));
  if (!request_id) in.reject(request_id.error().code, request_id.error().message);
  return std::move(*request_id);
}

}  // namespace

boost::json::value read_body(const Request& request) {
  // The server has bounded it.
  return need(parse_json(request.body(), std::numeric_limits<std::size_t>::max()));
}

void check_query(const Request& request, std::initializer_list<std::string_view> known) {
  const std::vector<std::string_view> names(known);
  const auto& given = request.query_parameters();
  for (const auto& [name, value] : given) {
    const auto same_name = [&](const auto& other) { return other.first == name; };
    if (std::ranges::count_if(given, same_name) > 1) refuse(name, "one value", "several");
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Exception(
        invalid("invalid_parameter", fmt::format("{}: unknown parameter{}", quote(name), did_you_mean(name, names)))
            .with("parameter", name));
  }
}

CreateBody read_create(const JsonReader& in, bool request_id_required) {
  in.reject_unknown({"chainId", "signer", "requestId", "payload", "preflight"});
  CreateBody body;
  body.chain_id = read_chain_id(in.field("chainId"));
  body.signer = read_signer(in.field("signer"));
  const auto request_id = in.field("requestId");
  if (request_id_required || request_id.present()) body.request_id = read_request_id(request_id);
  body.payload = read_payload(in.field("payload"));
  const auto preflight = in.field("preflight");
  if (preflight.present()) body.preflight = preflight.boolean();
  return body;
}

std::vector<JsonReader> read_batch(const JsonReader& in) {
  in.reject_unknown({"items"});
  const auto items = in.field("items");
  if (const auto* array = items.value().if_array(); array != nullptr && array->size() > kBatchMaxItems) {
    items.reject("too_many_items", fmt::format("expected at most {} items, got {}", kBatchMaxItems, array->size()));
  }
  std::vector<JsonReader> out;
  // A reader of its own for each, so that errors name the fields as they do for a single create.
  for (const auto& item : items.array(kBatchMaxItems)) out.emplace_back(item.value(), "item");
  return out;
}

std::optional<WaitQuery> read_wait(const Request& request) {
  const auto wait = need(request.query_as<std::string>("wait"));
  const auto timeout = need(request.query_as<std::string>("timeout"));
  if (!wait) {
    if (timeout) refuse("timeout", "to be used together with wait", *timeout);
    return std::nullopt;
  }
  const auto* const found = std::ranges::find(kWaits, *wait, &std::pair<std::string_view, WaitFor>::first);
  if (found == kWaits.end()) refuse("wait", "submitted, mined or confirmed", *wait);
  WaitQuery query{.what = found->second};
  if (!timeout) return query;
  const auto duration = parse_duration(*timeout);
  if (!duration || *duration > kWaitMax) {
    refuse("timeout", fmt::format("a duration such as 30s, at most {}", duration_text(kWaitMax)), *timeout);
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
    if (!kManagedTx.find(*state)) refuse("state", one_of_list(kManagedTx.names()), *state);
    filter.state = *state;
  }
  if (const auto cursor = need(request.query_as<std::string>("cursor"))) {
    const auto before = Uuid::parse(*cursor);
    if (!before) refuse("cursor", "the nextCursor of a page", *cursor);
    filter.before = *before;
  }
  filter.limit = need(request.query_or<std::size_t>("limit", kPageDefaultItems));
  if (filter.limit < 1 || filter.limit > kPageMaxItems) {
    refuse("limit", fmt::format("a number from 1 to {}", kPageMaxItems), std::to_string(filter.limit));
  }
  return filter;
}

RequestQuery read_request_query(const Request& request) {
  check_query(request, {"chainId", "signer", "requestId"});
  RequestQuery query;
  query.chain_id = query_chain_id(request);
  query.signer = signer_of("signer", required(request, "signer"));
  auto request_id = parse_request_id(required(request, "requestId"));
  if (!request_id) refuse("requestId", request_id.error());
  query.request_id = std::move(*request_id);
  return query;
}

std::optional<Uuid> read_forwarded(const Request& request) {
  const auto text = request.header(kForwardedHeader);
  if (!text) return std::nullopt;
  const auto tx_id = Uuid::parse(*text);
  if (!tx_id || tx_id->version() != 7) {
    throw Exception(invalid("invalid_header", fmt::format("{}: expected the id that a node has given, got {}",
                                                          kForwardedHeader, quote(*text)))
                        .with("header", std::string(kForwardedHeader)));
  }
  return *tx_id;
}

std::string read_reason(const JsonReader& in) {
  const auto field = in.field("reason");
  auto reason = field.string(kReasonMaxCharacters * kBytesPerCharacter);
  const bool blank = std::ranges::all_of(reason, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  if (blank || count_characters(reason) > kReasonMaxCharacters) {
    field.reject("bad_request", fmt::format("expected 1 to {} characters that say why", kReasonMaxCharacters));
  }
  return reason;
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
