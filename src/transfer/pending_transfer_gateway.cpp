#include "transfer/pending_transfer_gateway.hpp"

#include <array>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "transfer/economy_call.hpp"
#include "transfer/sync_set.hpp"

namespace fencepost::transfer {

using pg::Statement;

namespace {

std::optional<TransferStatus> status_of(const pg::Row& row) {
  const auto word = row.get<std::optional<std::string>>("status");
  if (!word) return std::nullopt;
  const auto status = kPendingTransfer.find(*word);
  if (!status) throw Exception(internal("bad_status", "unknown status: " + *word));
  return status;
}

std::optional<std::chrono::milliseconds> seconds_of(const pg::Row& row, std::string_view column) {
  const auto seconds = row.get<std::optional<double>>(column);
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

boost::json::object object_of(const pg::Row& row, std::string_view column) {
  return boost::json::parse(row.get<std::string_view>(column)).as_object();
}

// The transfers as arrays, one per column, as the functions take them.
struct Columns {
  std::vector<Uuid> ids;
  std::vector<std::int64_t> guilds, initiators, targets, amounts;
  std::vector<std::optional<std::string>> reasons, keys;
  std::vector<std::string> metadata;
  std::vector<std::optional<std::int32_t>> hours, max_retries;

  explicit Columns(std::span<const NewTransfer> transfers) {
    for (const auto& t : transfers) {
      ids.push_back(t.transfer_id);
      guilds.push_back(t.guild_id);
      initiators.push_back(t.initiator_id);
      targets.push_back(t.target_id);
      amounts.push_back(t.amount);
      reasons.push_back(t.reason);
      keys.push_back(t.idempotency_key);
      metadata.push_back(boost::json::serialize(t.metadata));
      hours.push_back(t.expires_hours);
      max_retries.push_back(t.max_retries);
    }
  }
};

constexpr Statement kCreate{"transfer_create", R"(
  SELECT outcome, transfer_id, status
    FROM economy.fn_create_pending_transfers($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                                             $6::text[], $7::text[], $8::integer[], $9::text[],
                                             p_max_retries => $10::integer[], p_patient => $11))"};

// The words of the SQL function, in the order of the enumeration.
constexpr std::array<std::string_view, 5> kCreateOutcomes{"created", "existing", "conflict", "invalid", "kept"};

}  // namespace

awaitable<std::vector<CreateResult>> PendingTransferGateway::create(std::span<const NewTransfer> transfers,
                                                                    std::chrono::milliseconds patience) {
  const Columns w(transfers);
  const auto rows = co_await run_set(pool_, kCreate, patience, w.ids, w.guilds, w.initiators, w.targets, w.amounts,
                                     w.reasons, w.metadata, w.hours, w.keys, w.max_retries);
  std::vector<CreateResult> out;
  for (const auto row : rows) {
    out.push_back({.outcome = outcome_of<CreateOutcome>(row, kCreateOutcomes),
                   .transfer_id = row.get<std::optional<Uuid>>("transfer_id"),
                   .status = status_of(row)});
  }
  co_return out;
}

awaitable<SyncResults> PendingTransferGateway::transfer_now(std::span<const NewTransfer> transfers,
                                                            std::chrono::milliseconds patience) {
  co_return co_await SyncSet(transfers).run(pool_, patience);
}

namespace {

#define FENCEPOST_PROCESSED                                                                                   \
  "SELECT claimed, completed, approved, waiting, denied, put_off, more, busy, lane_busy, extract(epoch FROM " \
  "next_due_at - clock_timestamp())::double precision AS next_due FROM "
constexpr Statement kProcess{"transfer_process",
                             FENCEPOST_PROCESSED "economy.fn_process_due($1, NULL, $3, p_hold_lanes => $2)"};
constexpr Statement kProcessOnly{"transfer_process_only", FENCEPOST_PROCESSED
                                 "economy.fn_process_due(cardinality($1::uuid[]), $1::uuid[], false, $2)"};

ProcessResult read_processed(const pg::ResultSet& rows) {
  const auto row = rows.one();
  return {.claimed = row.get<std::int64_t>("claimed"),
          .completed = row.get<std::int64_t>("completed"),
          .approved = row.get<std::int64_t>("approved"),
          .waiting = row.get<std::int64_t>("waiting"),
          .denied = row.get<std::int64_t>("denied"),
          .put_off = row.get<std::int64_t>("put_off"),
          .more = row.get<bool>("more"),
          .busy = row.get<bool>("busy"),
          .lane_busy = row.get<bool>("lane_busy"),
          .next_due = seconds_of(row, "next_due")};
}

}  // namespace

awaitable<ProcessResult> PendingTransferGateway::process_due(std::size_t limit, std::chrono::milliseconds patience,
                                                             bool hold_lanes) {
  const auto rows = co_await run_set(pool_, kProcess, patience, static_cast<std::int64_t>(limit), hold_lanes);
  co_return read_processed(rows);
}

awaitable<ProcessResult> PendingTransferGateway::process_only(std::vector<Uuid> only, bool hold_lanes) {
  const auto rows = co_await run_alone(pool_, kProcessOnly, std::move(only), hold_lanes);
  co_return read_processed(rows);
}

// In the order of fn_process_due, which alternates between the lanes.
constexpr Statement kDue{"transfer_due", R"(
  SELECT transfer_id
    FROM (SELECT transfer_id, due_at, row_number() OVER (PARTITION BY lane ORDER BY due_at, seq) AS turn
            FROM economy.transfer_work
           WHERE due_at <= clock_timestamp()) AS due
   ORDER BY turn, due_at
   LIMIT $1)"};

awaitable<std::vector<Uuid>> PendingTransferGateway::list_due(std::size_t limit) {
  std::vector<Uuid> out;
  for (const auto row : co_await pool_.query(kDue, limit)) out.push_back(row.get<Uuid>("transfer_id"));
  co_return out;
}

constexpr Statement kDefer{"transfer_defer", "SELECT economy.fn_defer_transfer($1, $2)"};
constexpr Statement kExpire{"transfer_expire", "SELECT economy.fn_expire_transfers($1) AS expired"};

awaitable<> PendingTransferGateway::defer(Uuid transfer_id, std::chrono::milliseconds delay) {
  co_await run_alone(pool_, kDefer, transfer_id, static_cast<double>(delay.count()) / 1000.0);
}

constexpr Statement kRefused{"transfer_execution_refused", "SELECT economy.fn_execution_refused($1, $2) AS failed"};

awaitable<bool> PendingTransferGateway::execution_refused(Uuid transfer_id, std::chrono::milliseconds delay) {
  const auto rows = co_await run_alone(pool_, kRefused, transfer_id, static_cast<double>(delay.count()) / 1000.0);
  co_return rows.one().get<bool>("failed");
}

// Sessions that hold a lane. One of our own role, which is that of the nodes, is terminated if it waits for its client:
// it was stopped or cut off. PostgreSQL shows the transactions of other roles only to roles that may read all
// statistics.
constexpr Statement kEndLaneHolders{"transfer_end_lane_holders", R"(
  SELECT h.pid, coalesce(h.usename, '') AS role, coalesce(h.application_name, '') AS application,
         CASE WHEN h.usename = current_user AND h.wait_event_type = 'Client' AND h.is_old
              THEN pg_terminate_backend(h.pid)
              ELSE false
         END AS ended,
         coalesce(h.is_old, h.usename IS DISTINCT FROM current_user) AS keeps
    FROM (SELECT a.*, a.xact_start < clock_timestamp() - make_interval(secs => $1::double precision) AS is_old
            FROM economy.fn_lane_holders() AS l
            JOIN pg_stat_activity AS a USING (pid)) AS h)"};

awaitable<std::vector<LaneHolder>> PendingTransferGateway::end_lane_holders(std::chrono::milliseconds patience) {
  std::vector<LaneHolder> out;
  const auto rows = co_await pool_.execute(kEndLaneHolders, static_cast<double>(patience.count()) / 1000.0);
  for (const auto row : rows) {
    const bool ended = row.get<bool>("ended");
    out.push_back({.pid = row.get<std::int64_t>("pid"),
                   .role = row.get<std::string>("role"),
                   .application = row.get<std::string>("application"),
                   .ended = ended,
                   .keeps = !ended && row.get<bool>("keeps")});
  }
  co_return out;
}

awaitable<std::int64_t> PendingTransferGateway::expire(std::size_t limit) {
  const auto rows = co_await run_alone(pool_, kExpire, static_cast<std::int64_t>(limit));
  co_return rows.one().get<std::int32_t>("expired");
}

namespace {

constexpr Statement kFind{"transfer_find", R"(
  SELECT *
    FROM economy.fn_get_pending_transfer($1))"};
constexpr Statement kFindSync{"transfer_find_sync", R"(
  SELECT transfer_id, guild_id, debit_id AS initiator_id, credit_id AS target_id, amount, id AS ledger_id, reason,
         coalesce(metadata, '{}') AS metadata, idempotency_key, created_at
    FROM economy.transactions
   WHERE transfer_id = $1
     AND kind = 'transfer')"};

Transfer read_transfer(const pg::Row& row) {
  return {.transfer_id = row.get<Uuid>("transfer_id"),
          .mode = Mode::kPool,
          .guild_id = row.get<std::int64_t>("guild_id"),
          .initiator_id = row.get<std::int64_t>("initiator_id"),
          .target_id = row.get<std::int64_t>("target_id"),
          .amount = row.get<std::int64_t>("amount"),
          .status = status_of(row).value(),
          .checks = object_of(row, "checks"),
          .retry_count = row.get<std::int32_t>("retry_count"),
          .max_retries = row.get<std::optional<std::int32_t>>("retry_limit"),
          .expires_at = row.get<TimePoint>("expires_at"),
          .next_attempt_at = row.get<std::optional<TimePoint>>("next_attempt_at"),
          .denied_reason = row.get<std::optional<std::string>>("denied_reason"),
          .ledger_id = row.get<std::optional<std::int64_t>>("ledger_id"),
          .reason = row.get<std::optional<std::string>>("reason"),
          .metadata = object_of(row, "metadata"),
          .idempotency_key = row.get<std::optional<std::string>>("idempotency_key"),
          .created_at = row.get<TimePoint>("created_at"),
          .updated_at = row.get<TimePoint>("updated_at"),
          .seq = row.get<std::int64_t>("seq")};
}

Transfer read_sync_transfer(const pg::Row& row) {
  const auto at = row.get<TimePoint>("created_at");
  return {.transfer_id = row.get<Uuid>("transfer_id"),
          .mode = Mode::kSync,
          .guild_id = row.get<std::int64_t>("guild_id"),
          .initiator_id = row.get<std::int64_t>("initiator_id"),
          .target_id = row.get<std::int64_t>("target_id"),
          .amount = row.get<std::int64_t>("amount"),
          .status = TransferStatus::kCompleted,
          .max_retries = 0,
          .ledger_id = row.get<std::int64_t>("ledger_id"),
          .reason = row.get<std::optional<std::string>>("reason"),
          .metadata = object_of(row, "metadata"),
          .idempotency_key = row.get<std::optional<std::string>>("idempotency_key"),
          .created_at = at,
          .updated_at = at};
}

}  // namespace

awaitable<std::optional<Transfer>> PendingTransferGateway::find(Uuid transfer_id) {
  const auto pooled = co_await pool_.query(kFind, transfer_id);
  if (!pooled.empty()) co_return read_transfer(pooled.one());
  const auto synchronous = co_await pool_.query(kFindSync, transfer_id);
  if (!synchronous.empty()) co_return read_sync_transfer(synchronous.one());
  co_return std::nullopt;
}

namespace {

constexpr Statement kList{"transfer_list", R"(
  SELECT *
    FROM economy.fn_list_pending_transfers($1, $2, $3, 0, $4)
   ORDER BY seq DESC)"};

}  // namespace

awaitable<std::vector<Transfer>> PendingTransferGateway::list(std::int64_t guild_id,
                                                              std::optional<TransferStatus> status,
                                                              std::optional<std::int64_t> before, std::size_t limit) {
  const auto name = status ? std::optional(std::string(kPendingTransfer.name(*status))) : std::nullopt;
  const auto rows = co_await pool_.query(kList, guild_id, name, limit, before);
  std::vector<Transfer> out;
  for (const auto row : rows) out.push_back(read_transfer(row));
  co_return out;
}

constexpr Statement kCancel{"transfer_cancel", "SELECT cancelled, status FROM economy.fn_cancel_transfer($1)"};

awaitable<PendingTransferGateway::Cancelled> PendingTransferGateway::cancel(Uuid transfer_id) {
  const auto rows = co_await run_alone(pool_, kCancel, transfer_id);
  co_return Cancelled{.cancelled = rows.one().get<bool>("cancelled"), .status = status_of(rows.one())};
}

constexpr Statement kFail{"transfer_fail", "SELECT failed, status FROM economy.fn_fail_transfer($1, $2, $3)"};

awaitable<PendingTransferGateway::Failed> PendingTransferGateway::fail(Uuid transfer_id, std::string reason,
                                                                       std::string actor) {
  const auto rows = co_await run_alone(pool_, kFail, transfer_id, std::move(reason), std::move(actor));
  co_return Failed{.failed = rows.one().get<bool>("failed"), .status = status_of(rows.one())};
}

constexpr Statement kState{"transfer_pool_state", R"(
  SELECT waiting, approved, retries_due, due, oldest_approved_id,
         extract(epoch FROM clock_timestamp() - oldest_waiting_at)::double precision AS oldest_waiting,
         extract(epoch FROM clock_timestamp() - oldest_due_at)::double precision AS oldest_due,
         extract(epoch FROM clock_timestamp() - oldest_approved_at)::double precision AS oldest_approved,
         pg_notification_queue_usage() AS notify_queue
    FROM economy.fn_pool_state())"};

awaitable<PoolState> PendingTransferGateway::pool_state() {
  const auto rows = co_await run_alone(pool_, kState);
  const auto row = rows.one();
  co_return PoolState{.waiting = row.get<std::int64_t>("waiting"),
                      .approved = row.get<std::int64_t>("approved"),
                      .retries_due = row.get<std::int64_t>("retries_due"),
                      .due = row.get<std::int64_t>("due"),
                      .oldest_waiting = seconds_of(row, "oldest_waiting"),
                      .oldest_due = seconds_of(row, "oldest_due"),
                      .oldest_approved = seconds_of(row, "oldest_approved"),
                      .oldest_approved_id = row.get<std::optional<Uuid>>("oldest_approved_id"),
                      .notify_queue = row.get<double>("notify_queue")};
}

constexpr Statement kWake{"transfer_wake", "SELECT pg_notify('economy_work', '')"};

awaitable<> PendingTransferGateway::wake_nodes() {
  co_await pool_.execute(kWake);
}

}  // namespace fencepost::transfer
