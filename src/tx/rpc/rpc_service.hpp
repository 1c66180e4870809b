// Answers the calls of POST /rpc/{chainId}: sends become creates, a few methods are answered from the node's own
// records, and everything else is passed on to the chain. docs/json-rpc.md has the table. Any loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.hpp"
#include "evm/keys/key_ring.hpp"
#include "http/auth.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "tx/options.hpp"
#include "tx/rpc/rpc_method.hpp"
#include "tx/rpc/rpc_reply_text.hpp"
#include "tx/rpc/rpc_request.hpp"
#include "tx/service/hash_waits.hpp"
#include "tx/service/tx_service.hpp"

namespace fencepost::tx {

struct ChainContext;
struct SendRequest;

// The caller of a request, and what belongs to all of its calls.
struct RpcCaller {
  http::Principal principal;
  std::string authorization;                   // "Bearer …", sent along when a create is forwarded
  std::optional<std::string> idempotency_key;  // of the whole request; in a batch, "-<index>" is added
  std::string http_request_id;
};

class RpcService {
 public:
  struct Parts {
    TxService& service;
    HashWaits& hashes;
    pg::Database& database;
    const evm::KeyRing& keys;
    UuidGenerator& ids;
    Metrics& metrics;
    std::map<std::int64_t, ChainContext*> chains;
  };
  RpcService(Parts parts, RpcOptions options);

  // Error: kInvalid `unknown_chain`.
  Result<void> check_chain(std::int64_t chain_id) const;
  // The body of the answer: an object, or an array for a batch. Empty when no call has an id. The calls of a batch run
  // concurrently; their answers are in order. Requires: check_chain has succeeded. Does not throw for a failed call.
  awaitable<std::string> answer(std::int64_t chain_id, RpcRequest request, RpcCaller caller);

  // The same on a chain that is not configured (any more): sends that were accepted before are answered from the
  // database, everything else with `unknown_chain`. nullopt when there is no such send.
  awaitable<std::optional<std::string>> answer_removed(std::int64_t chain_id, RpcRequest request, RpcCaller caller);

 private:
  // One HTTP request; shared by its calls, which may outlive a cancelled caller.
  struct Session {
    ChainContext& chain;
    RpcRequest request;
    RpcCaller caller;
  };
  using SessionPtr = std::shared_ptr<const Session>;
  struct Planned {
    std::size_t index = 0;
    RpcMethod method;
  };
  using Replies = std::vector<std::pair<std::size_t, RpcReply>>;

  // rpc_service.cpp
  std::optional<RpcReply> refuse_call(const Session& session, const RpcRequestCall& call,
                                      const RpcMethod& method) const;
  RpcReply refused(const Session& session, const RpcMethod& method, const Error& error) const;
  awaitable<Replies> run(SessionPtr session, Planned planned);
  awaitable<RpcReply> handle(SessionPtr session, Planned planned);
  awaitable<Replies> pass_on(SessionPtr session, std::vector<Planned> planned);
  awaitable<Replies> pass_on_unguarded(SessionPtr session, std::vector<Planned> planned);
  awaitable<RpcReply> pass_on_one(SessionPtr session, Planned planned);
  RpcReply accounts(const Session& session) const;
  void count(const Session& session, const RpcMethod& method, bool ok);

  // rpc_records.cpp
  awaitable<RpcReply> transaction_count(SessionPtr session, Planned planned);
  awaitable<RpcReply> send_raw(SessionPtr session, Planned planned);
  awaitable<RpcReply> from_record(SessionPtr session, Planned planned);

  // rpc_send.cpp
  awaitable<RpcReply> send(SessionPtr session, std::size_t index);
  awaitable<Result<std::string>> find_sent(std::int64_t chain_id, const RpcRequest& request, std::size_t index,
                                           const RpcCaller& caller);
  awaitable<Result<std::string>> send_and_wait(SessionPtr session, std::size_t index);
  awaitable<Result<void>> check_nonce(SessionPtr session, SignerKey key, std::string request_id, std::uint64_t nonce);
  awaitable<Result<std::string>> hash_of(CreatedTx created, std::unique_ptr<HashWaits::Wait> wait, Deadline deadline);

  Parts parts_;
  RpcOptions options_;
  std::map<std::tuple<std::int64_t, std::string_view, bool>, Metrics::Counter*> calls_total_;  // chain, class, ok
};

}  // namespace fencepost::tx
