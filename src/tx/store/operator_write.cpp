#include "tx/store/operator_write.hpp"

#include "pg/error.hpp"
#include "tx/store/fence.hpp"

namespace fencepost::tx {

using pg::Statement;

pg::Params params_of(const std::string& node, const OperatorAct& act) {
  return pg::Params::of(node, act.lease.key.chain_id, act.lease.key.signer, act.lease.fencing_token, act.tx_id,
                        act.action, act.reason, act.actor, act.detail);
}

awaitable<pg::ResultSet> run_or_refuse(pg::Pool& pool, pg::Batch batch) {
  std::string cause;
  try {
    co_return co_await run_fenced(pool, std::move(batch));
  } catch (const pg::QueryError& error) {
    if (!error.is_lock_timeout()) throw;
    cause = error.error().to_string();
  }
  throw Exception(unavailable("tx_locked",
                              "another database session holds a lock on the transaction or on the signer's nonces; "
                              "nothing was changed: retry, or end that session")
                      .because(std::move(cause))
                      .after(std::chrono::seconds(1)));
}

awaitable<StepOutcome> write_row(pg::Pool& pool, const std::string& node, const OperatorAct& act,
                                 const Statement& statement, pg::Params params) {
  FencedRows rows;
  rows.add(act.lease, *act.tx_id);
  auto batch = fence_rows(node, rows);
  batch.add_params(statement, std::move(params));
  const auto answer = co_await run_or_refuse(pool, std::move(batch));
  co_return read_outcome(answer.one());
}

awaitable<pg::ResultSet> write_cursor(pg::Pool& pool, const std::string& node, const OperatorAct& act,
                                      const Statement& statement, pg::Params params) {
  auto batch = fence_cursors(node, FencedLeases({act.lease}));
  batch.add_params(statement, std::move(params));
  co_return co_await run_or_refuse(pool, std::move(batch));
}

}  // namespace fencepost::tx
