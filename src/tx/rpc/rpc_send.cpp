// The part of RpcService that sends: eth_sendTransaction becomes a create, and waits for the hash.
#include <fmt/format.h>

#include "base/request_id.hpp"
#include "http/errors.hpp"
#include "http/request_reader.hpp"
#include "runtime/on_loop.hpp"
#include "tx/rpc/rpc_service.hpp"
#include "tx/rpc/send_request.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/signer_access.hpp"
#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

// The requestId of a send. Without a key of the client, a nonce is one: a client that repeats a send with the same
// nonce must not pay twice. Throws `bad_request_id` when the key with its index is too long.
std::string request_id_of(const RpcCaller& caller, const RpcRequest& request, std::size_t index, const Uuid& tx_id,
                          const std::optional<std::uint64_t>& nonce) {
  if (caller.idempotency_key) {
    const auto& key = *caller.idempotency_key;
    return http::need(parse_request_id(request.batch ? fmt::format("{}-{}", key, index) : key));
  }
  return nonce ? fmt::format("nonce-{}", *nonce) : "rpc-" + tx_id.to_string();
}

Error too_many_waiting() {
  return Error{ErrorKind::kRateLimited, "too_many_waiting", "too many sends wait for their hash; retry shortly", {}, {}}
      .after(std::chrono::seconds(1));
}

Error sign_timeout(const Uuid& tx_id) {
  return Error{ErrorKind::kTimeout,
               "sign_timeout",
               "the transaction is stored and will be sent, but is not signed yet: transactions before it are not "
               "mined. Do not send it again; GET /api/v1/tx/{txId} shows it",
               {},
               {}}
      .with("txId", tx_id.to_string());
}

Error send_stuck(const Uuid& tx_id, const HashOutcome& outcome) {
  return Error{ErrorKind::kUnprocessable,
               "send_stuck",
               fmt::format("the transaction is stored but cannot be signed: {}", outcome.why),
               {},
               {}}
      .with("txId", tx_id.to_string())
      .with("state", outcome.state);
}

// Clients recognize "nonce too low" and "nonce too high".
Error nonce_mismatch(std::uint64_t wanted, const Uint256& next, bool waiting) {
  const auto relation = waiting ? "too low" : Uint256(wanted) < next ? "too low" : "too high";
  return conflict(
             "nonce_mismatch",
             fmt::format("nonce {}: the signer's next nonce is {}{}, got {}; leave nonce out, Fencepost assigns it",
                         relation, to_decimal(next), waiting ? ", and other transactions wait for it" : "", wanted))
      .with("nextNonce", to_decimal(next));
}

}  // namespace

awaitable<RpcReply> RpcService::send(SessionPtr session, std::size_t index) {
  const auto hash = co_await send_and_wait(session, index);
  if (!hash) co_return refused(*session, {.kind = RpcMethodKind::kSend}, hash.error());
  co_return RpcReply::result(fmt::format(R"("{}")", *hash));
}

awaitable<Result<std::string>> RpcService::send_and_wait(SessionPtr session, std::size_t index) {
  const auto deadline = std::chrono::steady_clock::now() + options_.sign_wait;
  auto wanted = read_send_request(session->request.calls[index].params, session->chain.chain_id());
  if (auto allowed = check_allowed(session->caller.principal, wanted.from); !allowed) co_return fail(allowed.error());
  const auto tx_id = parts_.ids.next();
  CreateTx create{.tx_id = tx_id,
                  .key = {session->chain.chain_id(), std::move(wanted.from)},
                  .request_id = request_id_of(session->caller, session->request, index, tx_id, wanted.nonce),
                  .payload = std::move(wanted.payload),
                  .preflight = false,
                  .forwarded = false,
                  .authorization = session->caller.authorization,
                  .deadline = deadline};
  if (wanted.nonce) {
    auto checked = co_await check_nonce(session, create.key, *create.request_id, *wanted.nonce);
    if (!checked) co_return fail(checked.error());
  }
  auto wait = parts_.hashes.begin(tx_id, co_await this_executor());
  if (!wait) co_return fail(too_many_waiting());
  const auto request_id = *create.request_id;
  Result<CreatedTx> created = fail(Error{});
  try {
    created = co_await parts_.service.create(std::move(create));
  } catch (const Exception& e) {
    created = fail(e.error());
  }
  if (!created) {
    auto error = std::move(created).error();
    // The caller can find out what happened.
    if (error.code == "outcome_unknown") error.with("txId", tx_id.to_string()).with("requestId", request_id);
    co_return fail(std::move(error));
  }
  co_return co_await hash_of(std::move(*created), std::move(wait), deadline);
}

// A known request passes: the create finds it. For a new one, the nonce must be the one that it would get now.
awaitable<Result<void>> RpcService::check_nonce(SessionPtr session, SignerKey key, std::string request_id,
                                                std::uint64_t nonce) {
  if (co_await parts_.service.find_by_request(key, std::move(request_id))) co_return Result<void>();
  auto& chain = session->chain;
  const auto cursor = co_await find_next_nonce(parts_.database.pool(), key);
  if (cursor && (cursor->waiting || Uint256(cursor->next_nonce) != nonce)) {
    co_return fail(nonce_mismatch(nonce, Uint256(cursor->next_nonce), cursor->waiting));
  }
  if (cursor) co_return Result<void>();
  // The first use of the signer takes its nonce from the chain.
  const auto counts =
      co_await on_loop(chain.home, [&chain, key] { return chain.chain_nonces({key.signer}, evm::NonceTag::kPending); });
  if (!counts.front()) co_return fail(counts.front().error());
  if (Uint256(*counts.front()) != nonce) co_return fail(nonce_mismatch(nonce, Uint256(*counts.front()), false));
  co_return Result<void>();
}

awaitable<Result<std::string>> RpcService::hash_of(CreatedTx created, std::unique_ptr<HashWaits::Wait> wait,
                                                   Deadline deadline) {
  if (created.tx.tx_hash) co_return *created.tx.tx_hash;
  if (created.existing) {
    // An earlier request made it: wait for that one, and look first, since its hash may be announced already.
    wait.reset();
    wait = parts_.hashes.begin(created.tx.tx_id, co_await this_executor());
    if (!wait) co_return fail(too_many_waiting());
    const auto now = co_await parts_.service.find(created.tx.tx_id);
    if (now && now->tx_hash) co_return *now->tx_hash;
  }
  const auto outcome = co_await wait->outcome(deadline);
  if (!outcome) co_return fail(sign_timeout(created.tx.tx_id));
  if (!outcome->tx_hash) co_return fail(send_stuck(created.tx.tx_id, *outcome));
  co_return *outcome->tx_hash;
}

awaitable<Result<std::string>> RpcService::find_sent(std::int64_t chain_id, const RpcRequest& request,
                                                     std::size_t index, const RpcCaller& caller) {
  const auto method = find_rpc_method(request.calls[index].method, options_.denied_methods);
  if (request.calls[index].error || method.kind != RpcMethodKind::kSend) co_return fail(unknown_chain());
  const std::string scope(method.scope);
  if (!caller.principal.has_scope(scope)) co_return fail(http::insufficient_scope(scope));
  auto wanted = read_send_request(request.calls[index].params, chain_id);
  if (auto allowed = check_allowed(caller.principal, wanted.from); !allowed) co_return fail(allowed.error());
  const auto tx_id = parts_.ids.next();
  auto request_id = request_id_of(caller, request, index, tx_id, wanted.nonce);
  const auto created = co_await parts_.service.create({.tx_id = tx_id,
                                                       .key = {chain_id, std::move(wanted.from)},
                                                       .request_id = std::move(request_id),
                                                       .payload = std::move(wanted.payload)});
  if (!created) co_return fail(created.error());
  if (!created->tx.tx_hash) co_return fail(sign_timeout(created->tx.tx_id));
  co_return *created->tx.tx_hash;
}

awaitable<std::optional<std::string>> RpcService::answer_removed(std::int64_t chain_id, RpcRequest request,
                                                                 RpcCaller caller) {
  std::string body;
  bool found = false;
  for (std::size_t i = 0; i < request.calls.size(); ++i) {
    Result<std::string> hash = fail(Error{});
    try {
      hash = co_await find_sent(chain_id, request, i, caller);
    } catch (const Exception& e) {
      hash = fail(e.error());
    }
    found = found || hash || hash.error().code == "sign_timeout" || hash.error().code == "request_conflict";
    if (!request.calls[i].id) continue;
    if (request.batch) body += body.empty() ? '[' : ',';
    append_rpc_reply(body, *request.calls[i].id,
                     hash ? RpcReply::result(fmt::format(R"("{}")", *hash))
                          : rpc_refusal(hash.error(), RpcFailed::kSend, caller.http_request_id));
  }
  if (!found) co_return std::nullopt;
  if (request.batch && !body.empty()) body += ']';
  co_return body;
}

}  // namespace fencepost::tx
