// Reads the requests of the transaction routes, strictly: every function throws an Exception about the first wrong
// field or parameter, as http/request_reader.hpp does. Pure: no I/O.
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
  std::string signer;  // lowercase; not checked against the keys of this node
  std::optional<std::string> request_id;
  Payload payload;
  bool preflight = false;
};
// Throws `bad_address`, `bad_checksum`, `bad_request_id`, `request_id_required`, the errors of read_payload, and
// `bad_request` for everything else.
CreateBody read_create(const JsonReader& in, bool request_id_required);

// ?wait=submitted|mined|confirmed&timeout=30s. nullopt without `wait`.
struct WaitQuery {
  WaitFor what = WaitFor::kSubmitted;
  std::chrono::milliseconds timeout = kWaitDefault;
};
std::optional<WaitQuery> read_wait(const http::Request& request);

// ?chainId=&signer=&state=&cursor=&limit=. The caller sets `allowed_signers`.
TxFilter read_filter(const http::Request& request);

// ?cursor=&limit= of a list in log order. `max` is the largest page and also the default.
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

// The txId that the forwarding node assigned to the request; nullopt when the request comes from a client. Throws
// `invalid_header` unless the header is a UUID of version 7, as nodes generate them.
std::optional<Uuid> read_forwarded(const http::Request& request);

// `{signer}` of the path, by the rules of a body's `signer`. Throws `bad_address`, `bad_checksum`.
std::string read_path_signer(const http::Request& request);

// Accepts 0x and 64 hexadecimal digits in either case, and returns them in lowercase. Throws `bad_hash`.
std::string read_tx_hash(const JsonReader& in);
// nullopt when the member is absent.
std::optional<std::int64_t> read_chain_id(const JsonReader& in);

}  // namespace fencepost::tx
