#include "notify/store/recipient_store.hpp"

#include <boost/json/value.hpp>

namespace fencepost::notify {

using pg::Statement;

// $1 standard, $2 chain, $3 contract, $4 status, $5 the event's block or NULL, $6 when it changed. A change that an
// event made is newer than the subscription if its block is; one that the clock made, if its due time is.
#define FENCEPOST_ASKS_FOR_CHANGE                                          \
  "s.notify_on ? $4 AND "                                                  \
  "CASE WHEN $5::bigint IS NULL THEN s.since_timestamp < $6::timestamptz " \
  "ELSE s.since_block < $5::bigint END"

// From the people to their subscriptions, each step by a key: it does not matter how many others the contract has.
// $7 the initiator, $8 the contract that the initiator called, or NULL.
const Statement sql::kByInitiator{"mail_by_initiator", R"(
  SELECT ue.email_id, s.notify_filters
    FROM users AS u
   CROSS JOIN LATERAL (SELECT id, email_id
                         FROM user_emails
                        WHERE user_id = u.id
                          AND is_verified
                       OFFSET 0) AS ue
   CROSS JOIN LATERAL (SELECT s.notify_filters
                         FROM user_email_subscriptions AS s
                        WHERE s.user_email_id = ue.id
                          AND s.chain_id = $2
                          AND s.contract_address = $3
                          AND s.timelock_standard = $1
                          AND s.is_active
                          AND )" FENCEPOST_ASKS_FOR_CHANGE R"(
                        LIMIT 1) AS s
   CROSS JOIN LATERAL (SELECT FROM emails WHERE id = ue.email_id AND is_deliverable LIMIT 1) AS e
   WHERE u.wallet_address IN ($7, $8))"};

// A page of one index, in its order, read from the index alone. `email_id` is NULL for a subscription that does not ask
// for the change, or whose address gets no mail.
const Statement sql::kByContract{"mail_by_contract", R"(
  SELECT p.user_email_id,
         CASE WHEN p.asks THEN (SELECT ue.email_id
                                  FROM user_emails AS ue
                                 WHERE ue.id = p.user_email_id
                                   AND ue.is_verified
                                   AND NOT EXISTS (SELECT
                                                     FROM emails
                                                    WHERE id = ue.email_id
                                                      AND NOT is_deliverable
                                                   OFFSET 0)) END AS email_id,
         CASE WHEN p.asks AND p.has_filters THEN (SELECT f.notify_filters
                                                    FROM user_email_subscriptions AS f
                                                   WHERE f.user_email_id = p.user_email_id
                                                     AND f.chain_id = $2
                                                     AND f.contract_address = $3
                                                     AND f.timelock_standard = $1) END AS notify_filters
    FROM (SELECT s.user_email_id, s.has_filters, )" FENCEPOST_ASKS_FOR_CHANGE R"( AS asks
            FROM user_email_subscriptions AS s
           WHERE s.chain_id = $2
             AND s.contract_address = $3
             AND s.timelock_standard = $1
             AND s.scope = 'all'
             AND s.is_active
             AND s.user_email_id > $7
           ORDER BY s.user_email_id
           LIMIT $8) AS p
   ORDER BY p.user_email_id)"};

// $1 … $13 as in `change_params`; $14 initiator, $15 via, $16 addresses, $17 block.
const Statement sql::kAddMails{"mail_add_flow_mails", "WITH " FENCEPOST_HOLDS_CLAIM R"(,
  added AS (
    INSERT INTO email_send_logs
      (email_id, timelock_standard, chain_id, contract_address, flow_id, generation, status_from, status_to, retraction,
       tx_hash, changed_at, initiator_address, via_address, block_number, kind)
    SELECT a.email_id, $4, $5::bigint, $6, $7, $8::integer, $9, $10, $11::integer, $12, $13::timestamptz, $14, $15,
           $17::bigint, 'change'
      FROM claim, unnest($16::bigint[]) AS a(email_id)
     ORDER BY a.email_id
        ON CONFLICT DO NOTHING
    RETURNING id
  )
  SELECT (SELECT count(*) FROM claim) AS held, (SELECT count(*) FROM added) AS added)"};

// `told`: mails about the change that may need something, by the key of the table. The filters are one CASE, so that no
// other index fits. A mail that has not left is stopped. A mail that has left, or may have, gets a correction, also
// while its attempt is under way: a correction leaves after the mail that it corrects, and only if that one may have
// left.
const Statement sql::kRetract{"mail_retract_flow_mails", "WITH " FENCEPOST_HOLDS_CLAIM R"(,
  told AS MATERIALIZED (
    SELECT l.id, l.email_id, l.initiator_address, l.via_address, l.claimed_until IS NOT NULL AS claimed,
           l.send_status IN ('pending', 'failed') AS waits,
           l.send_status = 'success' OR l.maybe_sent OR l.claimed_until IS NOT NULL AS may_have_left
      FROM email_send_logs AS l, claim
     WHERE l.flow_id = $7
       AND l.status_to = $10
       AND CASE WHEN l.contract_address <> $6 OR l.chain_id <> $5 OR l.timelock_standard <> $4 OR l.generation <> $8
                  OR l.kind <> 'change' OR l.retraction >= $11
                THEN false
                ELSE l.send_status IN ('pending', 'failed', 'success') OR l.maybe_sent
           END
       AND (SELECT c.id FROM email_send_logs AS c WHERE c.corrects = l.id) IS NULL
     ORDER BY l.id + 0
     LIMIT $14
       FOR UPDATE OF l
  ),
  stopped AS (
    UPDATE email_send_logs AS l
       SET send_status = 'suppressed',
           error_message = 'a reorg undid the change'
     WHERE l.id = ANY (ARRAY(SELECT id FROM told WHERE waits AND NOT claimed))
  ),
  marked AS (
    UPDATE email_send_logs AS l
       SET retracted = true
     WHERE l.id = ANY (ARRAY(SELECT id FROM told WHERE waits AND claimed))
  ),
  corrected AS (
    INSERT INTO email_send_logs
      (email_id, timelock_standard, chain_id, contract_address, flow_id, generation, status_from, status_to, retraction,
       tx_hash, changed_at, initiator_address, via_address, kind, corrects)
    SELECT told.email_id, $4, $5::bigint, $6, $7, $8::integer, $9, $10, $11::integer, $12, $13::timestamptz,
           told.initiator_address, told.via_address, 'correction', told.id
      FROM told
     WHERE told.may_have_left
     ORDER BY told.email_id
        ON CONFLICT DO NOTHING
  )
  SELECT (SELECT count(*) FROM claim) AS held, count(*) AS handled
    FROM told)"};

const Statement sql::kAddOperatorMails{"mail_add_operator_mails", "WITH " FENCEPOST_HOLDS_CLAIM R"(,
  added AS (
    INSERT INTO operator_email_logs (email, event_id, event_type, event_subject, event_at, event_data)
    SELECT a.email, $4::bigint, $5, $6, $7::timestamptz, $8::jsonb
      FROM claim, unnest($9::text[]) AS a(email)
        ON CONFLICT DO NOTHING
    RETURNING id
  )
  SELECT (SELECT count(*) FROM claim) AS held, (SELECT count(*) FROM added) AS added)"};

namespace {

Candidate candidate_of(const pg::Row& row) {
  return {.email_id = row.get<std::int64_t>("email_id"),
          .filters = stored_filters(row.get<std::optional<boost::json::value>>("notify_filters"))};
}

// $1 … $13 of the statements that write mails about a change.
pg::Params change_params(const outbox::Claim& claim, const FlowChange& change) {
  return pg::Params::of(claim.consumer, claim.node, claim.token, change.ref.standard, change.ref.chain_id,
                        change.ref.contract, change.ref.flow_id, change.ref.generation, change.from, change.to,
                        change.retraction, change.tx_hash, change.changed_at);
}

pg::Params page_params(const FlowChange& change, std::int64_t after) {
  return pg::Params::of(change.ref.standard, change.ref.chain_id, change.ref.contract, change.to, change.block,
                        change.changed_at, after, std::uint64_t{kCandidatePage});
}

CandidatePage page_of(const pg::ResultSet& rows) {
  CandidatePage page;
  for (const auto row : rows) {
    if (!row.is_null("email_id")) page.candidates.push_back(candidate_of(row));
  }
  const auto size = static_cast<std::size_t>(rows.size());
  if (size == kCandidatePage) page.next = rows[rows.size() - 1].get<std::int64_t>("user_email_id");
  return page;
}

awaitable<pg::ResultSet> write(pg::Pool& pool, const Statement& statement, pg::Params params) {
  pg::Batch batch;
  batch.add_params(statement, std::move(params));
  auto results = co_await pool.run(std::move(batch));
  co_return std::move(results.front());
}

std::optional<std::int64_t> added_of(const pg::ResultSet& rows) {
  const auto row = rows.one();
  if (row.get<std::int64_t>("held") == 0) return std::nullopt;
  return row.get<std::int64_t>("added");
}

}  // namespace

awaitable<std::vector<Candidates>> find_candidates(pg::Pool& pool, const std::vector<FlowChange>& changes) {
  pg::Batch batch;
  for (const auto& change : changes) {
    batch
        .add(sql::kByInitiator, change.ref.standard, change.ref.chain_id, change.ref.contract, change.to, change.block,
             change.changed_at, change.initiator, change.via)
        .add_params(sql::kByContract, page_params(change, 0));
  }
  const auto results = co_await pool.run(std::move(batch), {.access = pg::Access::kRead});
  std::vector<Candidates> out(changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (const auto row : results[2 * i]) out[i].by_initiator.push_back(candidate_of(row));
    out[i].by_contract = page_of(results[2 * i + 1]);
  }
  co_return out;
}

awaitable<CandidatePage> more_candidates(pg::Pool& pool, const FlowChange& change, std::int64_t after) {
  pg::Batch batch;
  batch.add_params(sql::kByContract, page_params(change, after));
  const auto results = co_await pool.run(std::move(batch), {.access = pg::Access::kRead});
  co_return page_of(results.front());
}

awaitable<std::optional<std::int64_t>> add_flow_mails(pg::Pool& pool, const outbox::Claim& claim,
                                                      std::vector<FlowMails> mails) {
  pg::Batch batch;
  for (const auto& one : mails) {
    auto params = change_params(claim, one.change);
    params.add(one.change.initiator).add(one.change.via).add(one.email_ids).add(one.change.block);
    batch.add_params(sql::kAddMails, std::move(params));
  }
  std::int64_t added = 0;
  for (const auto& rows : co_await pool.run(std::move(batch))) {
    const auto some = added_of(rows);
    if (!some) co_return std::nullopt;
    added += *some;
  }
  co_return added;
}

awaitable<std::optional<std::int64_t>> retract_flow_mails(pg::Pool& pool, const outbox::Claim& claim,
                                                          const FlowChange& change, std::int64_t limit) {
  auto params = change_params(claim, change);
  params.add(limit);
  const auto rows = co_await write(pool, sql::kRetract, std::move(params));
  const auto row = rows.one();
  if (row.get<std::int64_t>("held") == 0) co_return std::nullopt;
  co_return row.get<std::int64_t>("handled");
}

awaitable<std::optional<std::int64_t>> add_operator_mails(pg::Pool& pool, const outbox::Claim& claim,
                                                          OperatorEvent event, std::vector<std::string> addresses) {
  auto params = pg::Params::of(claim.consumer, claim.node, claim.token, event.seq, event.type, event.subject, event.at,
                               event.data, addresses);
  co_return added_of(co_await write(pool, sql::kAddOperatorMails, std::move(params)));
}

}  // namespace fencepost::notify
