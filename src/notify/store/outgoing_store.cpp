#include "notify/store/outgoing_store.hpp"

#include <map>
#include <set>
#include <utility>

#include <boost/json/value.hpp>

namespace fencepost::notify {

using pg::Statement;

// What joins these tables looks each row up in a subquery: a plain join would read the other table as a whole, if its
// plan was made while the tables were empty.

// The subquery makes the time a constant, which an index can be searched for.
#define FENCEPOST_IS_DUE "send_status IN ('pending', 'failed') AND next_attempt_at <= (SELECT clock_timestamp()) "

// $1 how many, $2 milliseconds. A claim that is taken again was not ended: its node died, perhaps after the mail left.
#define FENCEPOST_CLAIM_MAILS(table, more)                                                                \
  "WITH due AS MATERIALIZED (SELECT d.id FROM " table " AS d WHERE d." FENCEPOST_IS_DUE more              \
  "ORDER BY next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED), "                                           \
  "l AS (UPDATE " table                                                                                   \
  " AS m SET claim_token = m.claim_token + 1, maybe_sent = m.maybe_sent OR m.claimed_until IS NOT NULL, " \
  "claimed_until = clock_timestamp() + make_interval(secs => $2 / 1000.0), "                              \
  "next_attempt_at = clock_timestamp() + make_interval(secs => $2 / 1000.0) "                             \
  "WHERE m.id = ANY (ARRAY(SELECT id FROM due)) RETURNING m.*) "

#define FENCEPOST_MAIL_ROW                             \
  "l.id, l.claim_token, l.retry_count, l.created_at, " \
  "(extract(epoch FROM clock_timestamp() - l.created_at) * 1000)::bigint AS age_ms, "

const Statement sql::kClaimCodes{"mail_claim_codes",
                                 FENCEPOST_CLAIM_MAILS("email_verification_codes", "") "SELECT " FENCEPOST_MAIL_ROW R"(
         encode(l.salt, 'hex') AS salt, l.expires_at <= clock_timestamp() AS expired,
         (SELECT e.email FROM emails AS e WHERE e.id = ue.email_id) AS email,
         (SELECT u.language FROM users AS u WHERE u.id = ue.user_id) AS language
    FROM l
   CROSS JOIN LATERAL (SELECT email_id, user_id FROM user_emails WHERE id = l.user_email_id LIMIT 1) AS ue
   ORDER BY l.id)"};

// Of the mails about one flow to one address the oldest goes first: otherwise a correction could overtake, and the last
// mail would say the opposite of what is true.
#define FENCEPOST_NO_OLDER_MAIL                                                                                       \
  "AND (SELECT o.id FROM email_send_logs AS o WHERE o.email_id = d.email_id AND o.flow_id = d.flow_id AND o.flow_id " \
  "<> '' AND "                                                                                                        \
  "o.id + 0 < d.id AND o.send_status IN ('pending', 'failed') LIMIT 1) IS NULL "

// The people of an address who want the mail now, by what they ask for now; a correction goes to all who still
// subscribe. `voided`: why the mail is not to be sent any more.
const Statement sql::kClaimFlowMails{
    "mail_claim_flow_mails",
    FENCEPOST_CLAIM_MAILS("email_send_logs", FENCEPOST_NO_OLDER_MAIL) "SELECT " FENCEPOST_MAIL_ROW R"(
         l.email_id, e.email, e.is_deliverable, l.timelock_standard, l.chain_id, l.contract_address, l.flow_id,
         l.generation, l.status_from, l.status_to, l.kind, l.tx_hash, l.changed_at, l.initiator_address, l.via_address,
         CASE WHEN l.retracted THEN 'a reorg undid the change'
              WHEN l.corrects IS NOT NULL
                   AND NOT (SELECT o.send_status = 'success' OR o.maybe_sent FROM email_send_logs AS o WHERE o.id = l.corrects)
              THEN 'the mail that it corrects was not sent'
         END AS voided,
         (SELECT coalesce(jsonb_agg(jsonb_build_object('language', u.language, 'remark', ue.remark, 'filters', s.filters)),
                          '[]')
                 FROM (SELECT id, user_id, remark
                         FROM user_emails
                        WHERE email_id = l.email_id
                          AND is_verified
                        LIMIT 1000) AS ue
                CROSS JOIN LATERAL (SELECT language, wallet_address
                                      FROM users
                                     WHERE id = ue.user_id
                                     LIMIT 1) AS u
                CROSS JOIN LATERAL (SELECT scope, notify_on, since_block, since_timestamp, notify_filters AS filters
                                      FROM user_email_subscriptions
                                     WHERE user_email_id = ue.id
                                       AND chain_id = l.chain_id
                                       AND contract_address = l.contract_address
                                       AND timelock_standard = l.timelock_standard
                                       AND is_active
                                     LIMIT 1) AS s
                WHERE (s.scope = 'all' OR u.wallet_address IN (l.initiator_address, l.via_address))
                  AND (l.kind = 'correction'
                       OR s.notify_on ? l.status_to
                          AND CASE WHEN l.block_number IS NULL THEN s.since_timestamp < l.changed_at
                                   ELSE s.since_block < l.block_number
                              END)) AS people
    FROM l
   CROSS JOIN LATERAL (SELECT email, is_deliverable FROM emails WHERE id = l.email_id LIMIT 1) AS e
   ORDER BY l.id)"};

const Statement sql::kClaimOperatorMails{
    "mail_claim_operator_mails", FENCEPOST_CLAIM_MAILS("operator_email_logs", "") "SELECT " FENCEPOST_MAIL_ROW R"(
         l.email, l.event_type, l.event_subject, l.event_at, l.event_data::text AS event_data
    FROM l
   ORDER BY l.id)"};

// $1 ids, $2 tokens, $3 statuses, $4 milliseconds until the next attempt, $5 perhaps sent, $6 no such mailbox, $7
// errors. A status `pending` means that the attempt was not made: the row keeps its status. By id and not by place: a
// person who tries a code, and a retraction, write the row while the claim lasts.
#define FENCEPOST_END_ATTEMPTS(table, more, email_id)                                                             \
  "WITH e AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], "           \
  "$5::boolean[], $6::boolean[], $7::text[]) AS e(id, token, status, delay_ms, maybe_sent, no_mailbox, error)), " \
  "ended AS (UPDATE " table                                                                                       \
  " AS m SET send_status = CASE WHEN e.status = 'pending' THEN m.send_status ELSE e.status END, "                 \
  "error_message = CASE WHEN e.status = 'pending' THEN m.error_message ELSE nullif(e.error, '') END, "            \
  "retry_count = m.retry_count + (e.status IN ('failed', 'dead'))::integer, "                                     \
  "maybe_sent = m.maybe_sent OR e.maybe_sent, claimed_until = NULL, "                                             \
  "sent_at = CASE WHEN e.status = 'success' THEN clock_timestamp() ELSE m.sent_at END, " more                     \
  "next_attempt_at = clock_timestamp() + make_interval(secs => e.delay_ms / 1000.0) FROM e "                      \
  "WHERE m.id = e.id AND m.id = ANY ($1::bigint[]) AND m.claim_token = e.token AND m.claimed_until IS NOT NULL "  \
  "AND m.send_status NOT IN ('success', 'dead', 'suppressed') "                                                   \
  "RETURNING m.id, e.no_mailbox, " email_id                                                                       \
  " AS email_id), "                                                                                               \
  "bounced AS (UPDATE emails AS a SET is_deliverable = false, updated_at = clock_timestamp() "                    \
  "WHERE a.id = ANY (ARRAY(SELECT email_id FROM ended WHERE no_mailbox)) AND a.is_deliverable) "                  \
  "SELECT id FROM ended"

const Statement sql::kEndCodes{
    "mail_end_codes",
    FENCEPOST_END_ATTEMPTS("email_verification_codes",
                           "salt = CASE WHEN e.status IN ('pending', 'failed') THEN m.salt END, ",
                           "(SELECT ue.email_id FROM user_emails AS ue WHERE ue.id = m.user_email_id)")};
const Statement sql::kEndFlowMails{"mail_end_flow_mails", FENCEPOST_END_ATTEMPTS("email_send_logs", "", "m.email_id")};
const Statement sql::kEndOperatorMails{"mail_end_operator_mails",
                                       FENCEPOST_END_ATTEMPTS("operator_email_logs", "", "NULL::bigint")};

// A claimed mail is due when its claim expires, so this leaves out what is being sent.
#define FENCEPOST_DUE_MAILS(table) \
  "(SELECT next_attempt_at FROM " table " WHERE " FENCEPOST_IS_DUE "ORDER BY next_attempt_at LIMIT $1)"

const Statement sql::kBacklog{
    "mail_backlog",
    "SELECT count(*) AS mails, coalesce((extract(epoch FROM clock_timestamp() - "
    "min(next_attempt_at)) * 1000)::bigint, 0) AS oldest_ms "
    "FROM (" FENCEPOST_DUE_MAILS("email_verification_codes") " UNION ALL " FENCEPOST_DUE_MAILS(
        "email_send_logs") " UNION ALL " FENCEPOST_DUE_MAILS("operator_email_logs") ") AS m"};

namespace {

// An outcome that a crash of PostgreSQL loses is not missed: the claim, which is durable, expires, and the mail is sent
// again under the same Message-ID. Waiting for the disk would cost more time than sending.
constexpr Statement kCommitWithoutWaiting{"mail_commit_without_waiting",
                                          "SELECT set_config('synchronous_commit', 'off', true)"};

MailRow row_of(MailKind kind, const pg::Row& row) {
  return {.kind = kind,
          .id = row.get<std::int64_t>("id"),
          .token = row.get<std::int64_t>("claim_token"),
          .failures = row.get<std::int64_t>("retry_count"),
          .age = std::chrono::milliseconds(row.get<std::int64_t>("age_ms")),
          .created_at = row.get<TimePoint>("created_at"),
          .address = row.get<std::string>("email")};
}

CodeMail code_of(const pg::Row& row) {
  return {.row = row_of(MailKind::kCode, row),
          .salt = row.get<std::optional<std::string>>("salt"),
          .expired = row.get<bool>("expired"),
          .language = row.get<std::string>("language")};
}

std::vector<Reader> readers_of(const boost::json::value& people) {
  std::vector<Reader> out;
  for (const auto& person : people.as_array()) {
    const auto& filters = person.at("filters");
    const auto& remark = person.at("remark");
    out.push_back({.language = std::string(person.at("language").as_string()),
                   .remark = remark.is_null() ? std::nullopt : std::optional(std::string(remark.as_string())),
                   .filters = stored_filters(filters.is_null() ? std::nullopt : std::optional(filters))});
  }
  return out;
}

FlowMail flow_of(const pg::Row& row) {
  return {.row = row_of(MailKind::kFlow, row),
          .email_id = row.get<std::int64_t>("email_id"),
          .ref = {.standard = row.get<std::string>("timelock_standard"),
                  .chain_id = row.get<std::int64_t>("chain_id"),
                  .contract = row.get<std::string>("contract_address"),
                  .flow_id = row.get<std::string>("flow_id"),
                  .generation = row.get<std::int64_t>("generation")},
          .change = {.from = row.get<std::optional<std::string>>("status_from"),
                     .to = row.get<std::string>("status_to"),
                     .correction = row.get<std::string_view>("kind") == "correction",
                     .tx_hash = row.get<std::optional<std::string>>("tx_hash"),
                     .changed_at = row.get<TimePoint>("changed_at")},
          .initiator = row.get<std::string>("initiator_address"),
          .via = row.get<std::optional<std::string>>("via_address"),
          .is_deliverable = row.get<bool>("is_deliverable"),
          .voided = row.get<std::optional<std::string>>("voided"),
          .readers = readers_of(row.get<boost::json::value>("people"))};
}

OperatorMail operator_of(const pg::Row& row) {
  return {.row = row_of(MailKind::kOperator, row),
          .type = row.get<std::string>("event_type"),
          .subject = row.get<std::string>("event_subject"),
          .at = row.get<TimePoint>("event_at"),
          .data = row.get<std::string>("event_data")};
}

const Statement& end_statement(MailKind kind) {
  switch (kind) {
    case MailKind::kCode:
      return sql::kEndCodes;
    case MailKind::kFlow:
      return sql::kEndFlowMails;
    case MailKind::kOperator:
      return sql::kEndOperatorMails;
  }
  std::unreachable();
}

// The ends of one kind, as columns.
struct EndColumns {
  std::vector<std::int64_t> ids, tokens, delays;
  std::vector<std::string> statuses, errors;
  std::vector<bool> maybe_sent, no_mailbox;
  std::vector<std::size_t> places;  // in the caller's list

  void add(const MailEnd& end, std::size_t place) {
    ids.push_back(end.id);
    tokens.push_back(end.token);
    delays.push_back(end.decision.delay.count());
    statuses.emplace_back(kSendStatus.name(end.decision.status));
    errors.push_back(end.decision.error);
    maybe_sent.push_back(end.decision.maybe_sent);
    no_mailbox.push_back(end.decision.unknown_address);
    places.push_back(place);
  }
};

}  // namespace

awaitable<Outgoing> claim_mails(pg::Pool& pool, ClaimLimits limits, std::chrono::milliseconds duration) {
  pg::Batch batch;
  batch.add(sql::kClaimCodes, std::uint64_t{limits.codes}, duration.count())
      .add(sql::kClaimFlowMails, std::uint64_t{limits.flows}, duration.count())
      .add(sql::kClaimOperatorMails, std::uint64_t{limits.operators}, duration.count());
  const auto results = co_await pool.run(std::move(batch));
  Outgoing out;
  for (const auto row : results[0]) out.codes.push_back(code_of(row));
  for (const auto row : results[1]) out.flows.push_back(flow_of(row));
  for (const auto row : results[2]) out.operators.push_back(operator_of(row));
  co_return out;
}

awaitable<std::vector<bool>> end_attempts(pg::Pool& pool, std::span<const MailEnd> ends) {
  std::map<MailKind, EndColumns> by_kind;
  for (std::size_t i = 0; i < ends.size(); ++i) by_kind[ends[i].kind].add(ends[i], i);
  pg::Batch batch;
  batch.add(kCommitWithoutWaiting);
  for (const auto& [kind, columns] : by_kind) {
    batch.add(end_statement(kind), columns.ids, columns.tokens, columns.statuses, columns.delays, columns.maybe_sent,
              columns.no_mailbox, columns.errors);
  }
  const auto results = co_await pool.run(std::move(batch));
  std::vector<bool> out(ends.size(), false);
  std::size_t at = 1;
  for (const auto& [kind, columns] : by_kind) {
    std::set<std::int64_t> ended;
    for (const auto row : results[at]) ended.insert(row.get<std::int64_t>("id"));
    for (std::size_t i = 0; i < columns.ids.size(); ++i) out[columns.places[i]] = ended.contains(columns.ids[i]);
    ++at;
  }
  co_return out;
}

awaitable<Backlog> mail_backlog(pg::Pool& pool) {
  const auto rows = co_await pool.query(sql::kBacklog, kBacklogCounted);
  const auto row = rows.one();
  co_return Backlog{.mails = row.get<std::int64_t>("mails"),
                    .oldest = std::chrono::milliseconds(row.get<std::int64_t>("oldest_ms"))};
}

}  // namespace fencepost::notify
