// What the transaction routes are asked, read as http/request_reader.hpp reads: strictly, and what is wrong is thrown.
// Pure: no I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "http/request_reader.hpp"
#include "tx/model/payload.hpp"
#include "tx/service/tx_service.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {

using http::read_batch;
using http::read_reason;

inline constexpr std::chrono::milliseconds kWaitMax{120'000};
inline constexpr std::chrono::milliseconds kWaitDefault{30'000};

struct CreateBody {
  std::optional<std::int64_t> chain_id;
  std::string signer;  // lowercase; whether there is a key for it is not known here
  std::optional<std::string> request_id;
  Payload payload;
  bool preflight = false;
};
// `bad_address`, `bad_checksum`, `bad_request_id`, `request_id_required`, those of read_payload, `bad_request` for the
// rest.
CreateBody read_create(const JsonReader& in, bool request_id_required);

// ?wait=submitted|mined|confirmed&timeout=30s. Nothing without `wait`.
struct WaitQuery {
  WaitFor what = WaitFor::kSubmitted;
  std::chrono::milliseconds timeout = kWaitDefault;
};
std::optional<WaitQuery> read_wait(const http::Request& request);

// ?chainId=&signer=&state=&cursor=&limit=. `allowed_signers` is left to the caller.
TxFilter read_filter(const http::Request& request);

// ?cursor=&limit= of a list that is in the order of the log. `max` is also what one page has unless asked otherwise.
struct LogPage {
  std::int64_t after = 0;
  std::size_t limit = 0;
};
LogPage read_log_page(const http::Request& request, std::size_t max);

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

// `{signer}` of the path, by the rules of a body's `signer`. `bad_address`, `bad_checksum`.
std::string read_path_signer(const http::Request& request);

// 0x and 64 digits of either case, given in lowercase. `bad_hash`.
std::string read_tx_hash(const JsonReader& in);
std::optional<std::int64_t> read_chain_id(const JsonReader& in);

}  // namespace fencepost::tx
