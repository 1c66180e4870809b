// What the statements of all operator actions share: their first parameters, the audit row, the entry in the history,
// and how they are run.
#pragma once

#include <string>

#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "pg/result.hpp"
#include "tx/store/operator_store.hpp"

// $1 … $9 of every statement here: node, chain, signer, token, tx, action, reason, actor, detail.
#define FENCEPOST_HELD                                                                                             \
  "held AS MATERIALIZED ( SELECT l.fencing_token FROM (SELECT * FROM signer_lease AS l WHERE l.chain_id = $2 AND " \
  "l.signer = $3 LIMIT 1) AS l WHERE l.owner_node = $1 AND l.fencing_token = $4 AND l.expires_at > "               \
  "clock_timestamp() )"
#define FENCEPOST_AUDIT(done)                                                                                     \
  "audit AS ( INSERT INTO operator_action (chain_id, signer, tx_id, action, reason, actor, node, detail) SELECT " \
  "$2, $3, $5::uuid, $6, $7, $8, $1, $9::jsonb FROM " done " )"
// The reason comes before the actor, an id that tells little where a terminal cuts the line.
#define FENCEPOST_WHY "$6 || ': ' || $7 || '; by ' || $8"
// The history of a step, and what consumers are told when it ends TxStuck.
#define FENCEPOST_HISTORY(done)                                                                                     \
  "logged AS ( INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data) " \
  "SELECT 'tx/' || tx_id, CASE WHEN from_state = 'STUCK' THEN 'TxResumed' END, from_state, state, sub_state, $1, "  \
  "$4, " FENCEPOST_WHY                                                                                              \
  ", CASE WHEN from_state = 'STUCK' THEN jsonb_build_object('txId', tx_id, 'chainId', chain_id, "                   \
  "'signer', signer, 'nonce', nonce, 'state', state, 'detail', " FENCEPOST_WHY ") END FROM " done " )"
#define FENCEPOST_OUTCOME(done)                                                                     \
  "SELECT CASE WHEN NOT EXISTS (SELECT FROM held) THEN 'fenced' WHEN NOT EXISTS (SELECT FROM " done \
  ") THEN 'moved' ELSE 'done' END AS outcome"

namespace fencepost::tx {

// $1 … $9.
pg::Params params_of(const std::string& node, const OperatorAct& act);

// Runs a batch that begins with the fence. A lock timeout becomes `tx_locked`, which the caller may retry: the whole
// batch was rolled back.
awaitable<pg::ResultSet> run_or_refuse(pg::Pool& pool, pg::Batch batch);

// Locks the row of the open transaction, then runs the statement. Requires: act.tx_id.
awaitable<StepOutcome> write_row(pg::Pool& pool, const std::string& node, const OperatorAct& act,
                                 const pg::Statement& statement, pg::Params params);
// Locks the cursor, then runs the statement.
awaitable<pg::ResultSet> write_cursor(pg::Pool& pool, const std::string& node, const OperatorAct& act,
                                      const pg::Statement& statement, pg::Params params);

}  // namespace fencepost::tx
