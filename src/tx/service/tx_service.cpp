#include "tx/service/tx_service.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "pg/error.hpp"
#include "runtime/on_loop.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/create_checks.hpp"
#include "tx/service/gas.hpp"

namespace fencepost::tx {
namespace {

// How often a waiting request reads the database, for changes that other nodes made.
constexpr auto kLookInterval = std::chrono::milliseconds(500);
constexpr int kLeaseTries = 3;

Error request_conflict(const ManagedTx& existing) {
  return conflict("request_conflict", "this requestId was already used with another payload; use a new requestId")
      .with("txId", existing.tx_id.to_string());
}

Error needs_reconcile(const SignerKey& key, ReconcileReason reason) {
  return conflict("signer_needs_reconcile",
                  fmt::format("new transactions of this signer are refused: {}", kReconcileReasons.meaning(reason)))
      .with("signer", key.signer)
      .with("reason", std::string(kReconcileReasons.name(reason)));
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
                     evm::KeyRing& keys, LeaseManager& leases, LeaseWatch& watch, TransactionWriter& writer,
                     LeaderClient& leaders, TxChangeSignal& changes, Metrics& metrics)
    : options_(options),
      database_(database),
      chains_(std::move(chains)),
      keys_(keys),
      leases_(leases),
      watch_(watch),
      writer_(writer),
      leaders_(leaders),
      changes_(changes),
      metrics_(metrics) {
  for (const auto& [id, chain] : chains_) {
    for (const auto* result : {"created", "existing"}) count(id, result, 0);
  }
}

// A chain that is not configured has no name.
void TxService::count(std::int64_t chain_id, std::string_view result, int creates) {
  const auto chain = chains_.find(chain_id);
  if (chain == chains_.end()) return;
  metrics_
      .counter("tx_create_total", "Requests to create a transaction",
               {{"chain", chain->second->evm_chain.name()}, {"result", std::string(result)}})
      .Increment(creates);
}

Result<std::int64_t> TxService::name_chain(std::optional<std::int64_t> chain_id) const {
  return chain_id ? Result<std::int64_t>(*chain_id) : resolve_chain(chain_id);
}

Result<std::int64_t> TxService::resolve_chain(std::optional<std::int64_t> chain_id) const {
  if (!chain_id) {
    if (chains_.size() == 1) return chains_.begin()->first;
    return fail(
        invalid("chain_required", "chainId: is required when several chains are configured").with("field", "chainId"));
  }
  if (!chains_.contains(*chain_id)) return fail(unknown_chain());
  return *chain_id;
}

awaitable<Result<CreatedTx>> TxService::create(CreateTx request) {
  const auto chain_id = request.key.chain_id;
  Result<CreatedTx> result = fail(Error{});
  try {
    result = co_await create_in_time(std::move(request));
  } catch (const Exception& e) {
    count(chain_id, e.error().code);
    throw;
  }
  count(chain_id, !result ? result.error().code : result->existing ? "existing" : "created");
  co_return result;
}

// A node that got the request and has not answered may store it after another node has refused it.
Result<CreatedTx> TxService::settled(const Course& course, Result<CreatedTx> result) {
  if (result || !course.maybe_stored) return result;
  const auto& code = result.error().code;
  if (code == "request_conflict" || code == "tx_id_taken" || code == "outcome_unknown") return result;
  return fail(leader_unknown(result.error().to_string()));
}

awaitable<Result<CreatedTx>> TxService::create_in_time(CreateTx request) {
  const auto deadline = std::min(request.deadline, std::chrono::steady_clock::now() + options_.forward_timeout);
  auto payload_hash = request.payload.hash();
  Course course{.request = std::move(request), .payload_hash = std::move(payload_hash), .deadline = deadline};
  for (;;) {
    if (auto tried = co_await try_create(course)) co_return settled(course, std::move(*tried));
    if (std::chrono::steady_clock::now() < course.deadline) continue;
    if (course.maybe_stored) co_return fail(leader_unknown("no node has answered the request"));
    co_return fail(course.keyless ? no_key_now() : no_leader());
  }
}

awaitable<TxService::Tried> TxService::try_create(Course& course) {
  const auto& request = course.request;
  course.keyless = false;
  if (!chains_.contains(request.key.chain_id) || !leases_.can_sign(request.key)) {
    co_return co_await try_elsewhere(course);
  }
  const auto lease = leases_.held(request.key);
  const bool asks_chain = !request.payload.gas || request.preflight;
  // Answer a request that was accepted before, whatever the chain says now and whichever node leads.
  if (!lease || asks_chain || course.maybe_stored) {
    if (auto known = co_await answer_known(course)) co_return known;
  }
  if (!lease) {
    // A request that another node passed on has no other place to go.
    auto leader = co_await leases_.lead(request.key, request.forwarded);
    if (auto* other = std::get_if<LeaseView>(&leader)) co_return co_await pass_on(course, std::move(*other));
  }
  const auto gas = co_await decide_gas(request);
  if (!gas) {
    // Limits and balances may have changed since the request was accepted.
    if (auto known = co_await answer_known(course)) co_return known;
    co_return fail(gas.error());
  }
  co_return co_await write(course, *gas);
}

awaitable<TxService::Tried> TxService::write(Course& course, std::int64_t gas) {
  const auto& request = course.request;
  PendingCreate pending{.tx = {.tx_id = request.tx_id,
                               .key = request.key,
                               .request_id = request.request_id,
                               .payload = request.payload.canonical(),
                               .payload_hash = course.payload_hash,
                               .gas_limit = gas},
                        .max_in_flight = chains_.at(request.key.chain_id)->options.window_of(request.key.signer)};
  CreateResult written;
  bool id_taken = false;
  try {
    written = co_await writer_.create(std::move(pending));
  } catch (const pg::QueryError& refused) {
    id_taken = refused.constraint() == "managed_tx_pkey" || refused.constraint() == "tx_open_tx_id_key";
    if (!id_taken) throw;
  }
  // Only a request that was forwarded can have an id that is in use: all other ids are generated here.
  if (id_taken) co_return co_await answer_by_id(course);
  switch (written.outcome) {
    case CreateOutcome::kCreated:
      co_return CreatedTx{std::move(*written.tx), false};
    case CreateOutcome::kExisting:
      co_return CreatedTx{std::move(*written.tx), true};
    case CreateOutcome::kConflict:
      co_return fail(request_conflict(*written.tx));
    case CreateOutcome::kNeedsReconcile:
      co_return fail(needs_reconcile(request.key, written.reason.value_or(ReconcileReason::kChainAhead)));
    case CreateOutcome::kFenced:
      break;
  }
  // The first node of a forwarded request looks for the leader.
  if (++course.lost_leases >= kLeaseTries && request.forwarded) {
    co_return fail(not_leader("this node lost the lease during the request"));
  }
  // This node was probably suspended, and had no time to look for the next leader.
  if (course.lost_leases == 1) course.deadline = std::chrono::steady_clock::now() + options_.forward_timeout;
  co_return std::nullopt;
}

awaitable<TxService::Tried> TxService::answer_known(const Course& course) {
  const auto& request = course.request;
  if (!request.request_id) {
    // Only the id that this node assigned can tell whether a leader has stored the request.
    if (!course.maybe_stored) co_return std::nullopt;
    co_return co_await answer_by_id(course);
  }
  auto found = co_await find_requests(database_.pool(), {{request.key, *request.request_id}});
  auto& known = found.front();
  if (!known) co_return std::nullopt;
  if (known->payload_hash != course.payload_hash) co_return fail(request_conflict(known->tx));
  co_return CreatedTx{std::move(known->tx), true};
}

awaitable<Result<std::int64_t>> TxService::decide_gas(const CreateTx& request) {
  auto& chain = *chains_.at(request.key.chain_id);
  if (auto small = check_size(request.payload, chain.options.limits); !small) co_return fail(small.error());
  // Before the estimate: some endpoints estimate a transfer whatever its value is.
  auto funded = co_await check_funds(chain, request.key.signer, request.payload.value.value_or(0));
  if (!funded) co_return fail(funded.error());
  const auto gas = co_await gas_of(request);
  if (!gas) co_return fail(gas.error());
  auto allowed = co_await check_gas(chain, *gas);
  if (!allowed) co_return fail(allowed.error());
  if (auto affordable = check_fees(request, *gas); !affordable) co_return fail(affordable.error());
  co_return *gas;
}

awaitable<Result<std::int64_t>> TxService::gas_of(const CreateTx& request) {
  if (request.payload.gas && !request.preflight) co_return static_cast<std::int64_t>(*request.payload.gas);
  auto* chain = chains_.at(request.key.chain_id);
  const auto estimate =
      co_await on_loop(chain->home, [chain, call = call_of(request)] { return chain->connector.estimate_gas(call); });
  if (!estimate) co_return fail(estimate.error());
  if (request.payload.gas) co_return static_cast<std::int64_t>(*request.payload.gas);
  auto gas = with_gas_margin(*estimate, options_.gas_margin_percent);
  if (gas) *gas = within_gas_limits(*chain, *gas, *estimate);
  co_return gas;
}

// Only the caller's own fees can be refused here: the market's may fall.
Result<void> TxService::check_fees(const CreateTx& request, std::int64_t gas) const {
  const auto& chain = *chains_.at(request.key.chain_id);
  const auto& payload = request.payload;
  if (payload.max_fee_per_gas && chain.fee_kind.get() == FeeKind::kLegacy) return fail(no_dynamic_fees());
  const auto ceiling = chain.options.ceiling_of(request.key.signer)
                           .tightest(ceiling_of(payload))
                           .per_gas(static_cast<std::uint64_t>(gas));
  const auto& offered = payload.gas_price ? payload.gas_price : payload.max_fee_per_gas;
  if (!offered) return {};
  if (auto fits = within_ceiling(evm::LegacyFees{*offered}, ceiling); !fits) return fail(fits.error());
  return {};
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
