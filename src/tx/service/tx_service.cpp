#include "tx/service/tx_service.hpp"

#include <boost/json/serialize.hpp>

#include "base/json.hpp"
#include "pg/error.hpp"
#include "runtime/on_loop.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {
namespace {

// How often a waiting request reads the database, for changes that other nodes made.
constexpr auto kLookInterval = std::chrono::milliseconds(500);
constexpr int kLeaseTries = 3;

Error request_conflict(const ManagedTx& existing) {
  return conflict("request_conflict", "this requestId was already used with another payload; use a new requestId")
      .with("txId", existing.tx_id.to_string());
}

evm::CallRequest call_of(const CreateTx& request) {
  evm::CallRequest call;
  call.from = request.key.signer;
  call.to = request.payload.to;
  call.value = request.payload.value.value_or(0);
  call.data = request.payload.data.value_or("0x");
  if (request.payload.gas) call.gas = Uint256(*request.payload.gas);
  return call;
}

std::string forwarded_body(const CreateTx& request) {
  boost::json::object body{{"chainId", request.key.chain_id},
                           {"signer", request.key.signer},
                           {"payload", parse_json(request.payload.canonical(), 1 << 20).value()},
                           {"preflight", request.preflight}};
  if (request.request_id) body["requestId"] = *request.request_id;
  return boost::json::serialize(body);
}

}  // namespace

bool has_reached(const ManagedTx& tx, WaitFor what) {
  if (kManagedTx.terminal(tx.state)) return true;
  switch (what) {
    case WaitFor::kSubmitted:
      return tx.state == TxState::kTracking || tx.state == TxState::kStuck;
    case WaitFor::kMined:
      return tx.mined();
    case WaitFor::kConfirmed:
      return false;
  }
  return true;
}

TxService::TxService(TxOptions options, pg::Database& database, std::map<std::int64_t, ChainContext*> chains,
                     evm::KeyRing& keys, LeaseManager& leases, TransactionWriter& writer, LeaderClient& leaders,
                     TxChangeSignal& changes, Metrics& metrics)
    : options_(options),
      database_(database),
      chains_(std::move(chains)),
      keys_(keys),
      leases_(leases),
      writer_(writer),
      leaders_(leaders),
      changes_(changes),
      metrics_(metrics) {
  for (const auto& [id, chain] : chains_) {
    for (const auto* result : {"created", "existing"}) create_total(id, result);
  }
}

Metrics::Counter& TxService::create_total(std::int64_t chain_id, std::string_view result) {
  return metrics_.counter("tx_create_total", "Requests to create a transaction",
                          {{"chain", chains_.at(chain_id)->evm_chain.name()}, {"result", std::string(result)}});
}

Result<std::int64_t> TxService::resolve_chain(std::optional<std::int64_t> chain_id) const {
  if (!chain_id) {
    if (chains_.size() == 1) return chains_.begin()->first;
    return fail(
        invalid("chain_required", "chainId: is required when several chains are configured").with("field", "chainId"));
  }
  if (!chains_.contains(*chain_id)) {
    return fail(invalid("unknown_chain", "chainId: this chain is not configured").with("field", "chainId"));
  }
  return *chain_id;
}

Result<void> TxService::check_signer(const std::string& signer) const {
  if (keys_.find(signer) != nullptr) return {};
  return fail(invalid("unknown_signer", "signer: this node has no key for this address").with("field", "signer"));
}

awaitable<Result<CreatedTx>> TxService::create(CreateTx request) {
  Result<CreatedTx> result = fail(not_leader("this node lost the lease during the request"));
  bool lost_lease = true;
  const auto chain_id = request.key.chain_id;
  try {
    for (int i = 0; i < kLeaseTries && lost_lease; ++i) result = co_await try_create(request, lost_lease);
  } catch (const Exception& e) {
    create_total(chain_id, e.error().code).Increment();
    throw;
  }
  create_total(chain_id, !result ? result.error().code : result->existing ? "existing" : "created").Increment();
  co_return result;
}

awaitable<Result<CreatedTx>> TxService::try_create(CreateTx& request, bool& lost_lease) {
  lost_lease = false;
  const auto payload_hash = request.payload.hash();
  auto lease = leases_.held(request.key);
  const bool asks_chain = !request.payload.gas || request.preflight;
  // Answer a request that was accepted before, whatever the chain says now and whichever node leads.
  if (!lease || asks_chain) {
    if (auto known = co_await answer_known(request, payload_hash)) co_return std::move(*known);
  }
  if (!lease) {
    auto leader = co_await leases_.lead(request.key);
    if (auto* other = std::get_if<LeaseView>(&leader)) co_return co_await forward(request, std::move(*other));
  }
  const auto gas = co_await decide_gas(request);
  if (!gas) co_return fail(gas.error());

  PendingCreate pending{.tx = {.tx_id = request.tx_id,
                               .key = request.key,
                               .request_id = request.request_id,
                               .payload = request.payload.canonical(),
                               .payload_hash = payload_hash,
                               .gas_limit = *gas},
                        .max_in_flight = chains_.at(request.key.chain_id)->options.window_of(request.key.signer)};
  CreateResult written;
  try {
    written = co_await writer_.create(std::move(pending));
  } catch (const pg::QueryError& refused) {
    // Only a forwarded request can have an id that is in use: all other ids are generated here.
    if (refused.constraint() != "managed_tx_pkey" && refused.constraint() != "tx_open_tx_id_key") throw;
    co_return fail(conflict("tx_id_taken", "another transaction already has this txId"));
  }
  switch (written.outcome) {
    case CreateOutcome::kCreated:
      co_return CreatedTx{std::move(*written.tx), false};
    case CreateOutcome::kExisting:
      co_return CreatedTx{std::move(*written.tx), true};
    case CreateOutcome::kConflict:
      co_return fail(request_conflict(*written.tx));
    case CreateOutcome::kNeedsReconcile:
      co_return fail(
          conflict("signer_needs_reconcile",
                   "the chain has more transactions of this signer than Fencepost sent; new ones are refused until "
                   "an operator calls accept-reconcile")
              .with("signer", request.key.signer));
    case CreateOutcome::kFenced:
      lost_lease = true;
      break;
  }
  co_return fail(not_leader("this node lost the lease during the request"));
}

awaitable<std::optional<Result<CreatedTx>>> TxService::answer_known(const CreateTx& request,
                                                                    const std::string& payload_hash) {
  if (!request.request_id) co_return std::nullopt;
  auto found = co_await find_requests(database_.pool(), {{request.key, *request.request_id}});
  auto& known = found.front();
  if (!known) co_return std::nullopt;
  if (known->payload_hash != payload_hash) co_return Result<CreatedTx>(fail(request_conflict(known->tx)));
  co_return Result<CreatedTx>(CreatedTx{std::move(known->tx), true});
}

awaitable<Result<std::int64_t>> TxService::decide_gas(const CreateTx& request) {
  if (request.payload.gas && !request.preflight) co_return static_cast<std::int64_t>(*request.payload.gas);
  auto* chain = chains_.at(request.key.chain_id);
  const auto estimate =
      co_await on_loop(chain->home, [chain, call = call_of(request)] { return chain->connector.estimate_gas(call); });
  if (!estimate) co_return fail(estimate.error());
  if (request.payload.gas) co_return static_cast<std::int64_t>(*request.payload.gas);
  // A contract call may need more gas when it is mined than at the estimate; a plain transfer always needs the same.
  Uint256 gas = *estimate;
  if (gas > 21'000) gas += gas * options_.gas_margin_percent / 100;
  if (gas > std::numeric_limits<std::int64_t>::max()) {
    co_return fail(
        Error{ErrorKind::kUnprocessable, "gas_too_high", "the estimated gas does not fit 63 bits", {}, {}, {}});
  }
  co_return static_cast<std::int64_t>(gas);
}

awaitable<Result<CreatedTx>> TxService::forward(const CreateTx& request, LeaseView leader) {
  if (request.forwarded)
    co_return fail(not_leader("the request was already forwarded once, and this node does not lead the signer"));
  if (!options_.forwarding) co_return fail(not_leader("forwarding is turned off"));
  if (leader.advertise_url.empty()) co_return fail(not_leader("the leader has no advertised URL"));
  const auto answer =
      co_await leaders_.create(leader.advertise_url, request.authorization, request.tx_id, forwarded_body(request));
  if (!answer) co_return fail(answer.error());
  auto tx = co_await find_tx(database_.pool(), answer->tx_id);
  if (!tx) co_return fail(internal("forwarded_lost", "the leader accepted a transaction that is not in the database"));
  co_return CreatedTx{std::move(*tx), answer->existing};
}

awaitable<std::optional<ManagedTx>> TxService::find(Uuid tx_id) {
  co_return co_await find_tx(database_.pool(), tx_id);
}

awaitable<std::optional<ManagedTx>> TxService::find_by_request(SignerKey key, std::string request_id) {
  auto found = co_await find_requests(database_.pool(), {{std::move(key), std::move(request_id)}});
  if (!found.front()) co_return std::nullopt;
  co_return std::move(found.front()->tx);
}

awaitable<std::optional<ManagedTx>> TxService::wait(Uuid tx_id, WaitFor what, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  TxChangeSignal::Listener listener(changes_, tx_id, co_await this_executor());
  for (;;) {
    auto tx = co_await find_tx(database_.pool(), tx_id);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (!tx || has_reached(*tx, what) || left.count() <= 0) co_return tx;
    co_await listener.changed(std::min(left, kLookInterval));
  }
}

}  // namespace fencepost::tx
