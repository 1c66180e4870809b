// What the transaction routes are asked, read strictly: a misspelt member or parameter is refused, never ignored.
//
// Everything here throws Exception kInvalid, with `field` (of a body) or `parameter` (of a query) in the context; the
// server answers with it. Pure: no I/O.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "base/json_reader.hpp"
#include "http/message.hpp"
#include "tx/payload.hpp"
#include "tx/tx_service.hpp"
#include "tx/tx_store.hpp"

namespace fencepost::tx {

inline constexpr std::size_t kBatchMaxItems = 1000;
inline constexpr std::size_t kPageMaxItems = 200;
inline constexpr std::size_t kPageDefaultItems = 50;
inline constexpr std::size_t kReasonMaxCharacters = 500;
inline constexpr std::chrono::milliseconds kWaitMax{120'000};
inline constexpr std::chrono::milliseconds kWaitDefault{30'000};

// The body. Stricter than Request::json: no repeated keys, no integers that would lose digits (`bad_json`).
boost::json::value read_body(const http::Request& request);

// `invalid_parameter` for one that is not listed, or given twice.
void check_query(const http::Request& request, std::initializer_list<std::string_view> known);

struct CreateBody {
  std::optional<std::int64_t> chain_id;
  std::string signer;  // lowercase; whether there is a key for it is not known here
  std::optional<std::string> request_id;
  Payload payload;
  bool preflight = false;
};
// `bad_address`, `bad_checksum`, `bad_request_id`, those of read_payload, `bad_request` for the rest.
CreateBody read_create(const JsonReader& in, bool request_id_required);

// {"items": […]}, each still unread: a bad one fails alone. `too_many_items` over kBatchMaxItems.
std::vector<JsonReader> read_batch(const JsonReader& in);

// ?wait=submitted|mined|confirmed&timeout=30s. Nothing without `wait`.
struct WaitQuery {
  WaitFor what = WaitFor::kSubmitted;
  std::chrono::milliseconds timeout = kWaitDefault;
};
std::optional<WaitQuery> read_wait(const http::Request& request);

// ?chainId=&signer=&state=&cursor=&limit=. `allowed_signers` is left to the caller.
TxFilter read_filter(const http::Request& request);

// ?chainId=&signer=&requestId=
struct RequestQuery {
  std::optional<std::int64_t> chain_id;
  std::string signer;
  std::string request_id;
};
RequestQuery read_request_query(const http::Request& request);

// The txId that the forwarding node has given the request; nothing when it comes from a client. `invalid_header` unless
// it is an id as nodes make them.
std::optional<Uuid> read_forwarded(const http::Request& request);

// {"reason": "…"}: 1 to 500 characters, not all of them blank.
std::string read_reason(const JsonReader& in);
// 0x and 64 digits of either case, given in lowercase. `bad_hash`.
std::string read_tx_hash(const JsonReader& in);
std::optional<std::int64_t> read_chain_id(const JsonReader& in);

}  // namespace fencepost::tx
