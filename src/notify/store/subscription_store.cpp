#include "notify/store/subscription_store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "notify/store/address_store.hpp"

namespace fencepost::notify {

using pg::Statement;

#define FENCEPOST_SUBSCRIPTION                                                                                    \
  "s.id, s.user_email_id, s.timelock_standard, s.chain_id, s.contract_address, s.notify_on, s.notify_filters, "   \
  "s.scope, s.is_active, s.created_at, s.updated_at, ue.is_verified, ue.last_verified_at, "                       \
  "NOT ue.is_verified OR (SELECT e.is_deliverable FROM emails AS e WHERE e.id = ue.email_id) AS is_deliverable, " \
  "(SELECT e.email FROM emails AS e WHERE e.id = ue.email_id) AS email "

// No row: the person does not have the address, has it already subscribed, or is at the limit ($11).
const Statement sql::kAddSubscription{"mail_add_subscription", R"(
  INSERT INTO user_email_subscriptions
    (user_email_id, timelock_standard, chain_id, contract_address, notify_on, notify_filters, scope, since_block,
     since_timestamp)
  SELECT ue.id, $3, $4::bigint, $5, $6::jsonb, $7::jsonb, $8, $9::bigint, $10::timestamptz
    FROM user_emails AS ue
   WHERE ue.id = $2
     AND ue.user_id = $1
     AND (SELECT count(*)
            FROM (SELECT id FROM user_emails WHERE user_id = $1 OFFSET 0) AS o
           CROSS JOIN LATERAL (SELECT FROM user_email_subscriptions WHERE user_email_id = o.id OFFSET 0) AS s) < $11
  ON CONFLICT (user_email_id, chain_id, contract_address, timelock_standard) DO NOTHING
  RETURNING id)"};

const Statement sql::kFindSubscription{"mail_subscription_by_key", "SELECT " FENCEPOST_SUBSCRIPTION R"(
    FROM (SELECT id, email_id, is_verified, last_verified_at
            FROM user_emails
           WHERE id = $2
             AND user_id = $1
          OFFSET 0) AS ue
   CROSS JOIN LATERAL (SELECT *
                         FROM user_email_subscriptions
                        WHERE user_email_id = ue.id
                          AND timelock_standard = $3
                          AND chain_id = $4
                          AND contract_address = $5
                        LIMIT 1) AS s)"};

constexpr Statement kFind{"mail_subscription_by_id", "SELECT " FENCEPOST_SUBSCRIPTION R"(
    FROM user_email_subscriptions AS s
   CROSS JOIN LATERAL (SELECT email_id, is_verified, last_verified_at
                         FROM user_emails
                        WHERE id = s.user_email_id
                          AND user_id = $1
                        LIMIT 1) AS ue
   WHERE s.id = $2)"};

// All of the person's, sorted. OFFSET 0 keeps the planner from walking the subscriptions of all people in the order of
// ids.
const Statement sql::kListSubscriptions{"mail_subscriptions", "SELECT " FENCEPOST_SUBSCRIPTION R"(
    FROM (SELECT id, email_id, is_verified, last_verified_at FROM user_emails WHERE user_id = $1 OFFSET 0) AS ue
   CROSS JOIN LATERAL (SELECT * FROM user_email_subscriptions WHERE user_email_id = ue.id OFFSET 0) AS s
   WHERE s.id > $2
   ORDER BY s.id
   LIMIT $3)"};

#define FENCEPOST_IS_MINE "EXISTS (SELECT FROM user_emails WHERE id = s.user_email_id AND user_id = $1 OFFSET 0)"

const Statement sql::kChangeSubscription{"mail_change_subscription", R"(
  UPDATE user_email_subscriptions AS s
     SET notify_on = coalesce($3::jsonb, s.notify_on),
         scope = coalesce($4, s.scope),
         notify_filters = CASE WHEN $5::boolean THEN $6::jsonb ELSE s.notify_filters END,
         is_active = coalesce($7::boolean, s.is_active),
         since_block = CASE WHEN $7::boolean AND NOT s.is_active THEN $8::bigint ELSE s.since_block END,
         since_timestamp = CASE WHEN $7::boolean AND NOT s.is_active THEN $9::timestamptz ELSE s.since_timestamp END,
         updated_at = clock_timestamp()
   WHERE s.id = $2
     AND )" FENCEPOST_IS_MINE};

constexpr Statement kRemove{"mail_remove_subscription",
                            "DELETE FROM user_email_subscriptions AS s WHERE s.id = $2 AND " FENCEPOST_IS_MINE};

const Statement sql::kUnsubscribe{"mail_unsubscribe", R"(
  UPDATE user_email_subscriptions AS s
     SET is_active = false,
         updated_at = clock_timestamp()
   WHERE s.user_email_id = ANY (ARRAY(SELECT id FROM user_emails WHERE email_id = $1))
     AND s.chain_id = $2
     AND s.contract_address = $3
     AND s.is_active)"};

constexpr Statement kAddress{"mail_address", "SELECT email FROM emails WHERE id = $1"};

namespace {

namespace json = boost::json;

std::string array_text(const std::vector<std::string>& values) {
  return json::serialize(json::array(values.begin(), values.end()));
}

std::optional<std::string> filters_text(const NotifyFilters& filters) {
  return filters.empty() ? std::nullopt : std::optional(json::serialize(to_json(filters)));
}

Subscription subscription_of(const pg::Row& row) {
  Subscription out{.id = row.get<std::int64_t>("id"),
                   .user_email_id = row.get<std::int64_t>("user_email_id"),
                   .email = row.get<std::string>("email"),
                   .is_verified = row.get<bool>("is_verified"),
                   .last_verified_at = row.get<std::optional<TimePoint>>("last_verified_at"),
                   .is_deliverable = row.get<bool>("is_deliverable"),
                   .contract = {row.get<std::string>("timelock_standard"), row.get<std::int64_t>("chain_id"),
                                row.get<std::string>("contract_address")},
                   .notify_on = {},
                   .scope = kScopes.find(row.get<std::string_view>("scope")).value(),
                   .filters = {},
                   .is_active = row.get<bool>("is_active"),
                   .created_at = row.get<TimePoint>("created_at"),
                   .updated_at = row.get<TimePoint>("updated_at")};
  for (const auto& status : row.get<json::value>("notify_on").as_array()) {
    out.notify_on.emplace_back(status.as_string());
  }
  if (const auto filters = row.get<std::optional<json::value>>("notify_filters")) {
    out.filters = read_notify_filters(JsonReader(*filters));
  }
  return out;
}

std::optional<Subscription> subscription_in(const pg::ResultSet& rows) {
  return rows.empty() ? std::nullopt : std::optional(subscription_of(rows.one()));
}

}  // namespace

awaitable<std::optional<AddedSubscription>> add_subscription(pg::Pool& pool, std::int64_t user_id,
                                                             NewSubscription subscription) {
  const auto& contract = subscription.contract;
  // The lock keeps two requests of one person from passing the limit together.
  pg::Batch batch;
  batch.add(sql::kLockUser, user_id)
      .add(sql::kAddSubscription, user_id, subscription.user_email_id, contract.standard, contract.chain_id,
           contract.contract, array_text(subscription.notify_on), filters_text(subscription.filters),
           kScopes.name(subscription.scope), subscription.since.block, subscription.since.timestamp,
           kMaxSubscriptionsOfUser)
      .add(sql::kFindSubscription, user_id, subscription.user_email_id, contract.standard, contract.chain_id,
           contract.contract);
  const auto results = co_await pool.run(std::move(batch));
  auto found = subscription_in(results[2]);
  if (!found) co_return std::nullopt;
  co_return AddedSubscription{std::move(*found), !results[1].empty()};
}

awaitable<std::optional<Subscription>> find_subscription(pg::Pool& pool, std::int64_t user_id, std::int64_t id) {
  co_return subscription_in(co_await pool.query(kFind, user_id, id));
}

awaitable<std::vector<Subscription>> list_subscriptions(pg::Pool& pool, std::int64_t user_id, std::int64_t after,
                                                        std::size_t limit) {
  std::vector<Subscription> out;
  const auto rows = co_await pool.query(sql::kListSubscriptions, user_id, after, std::uint64_t{limit});
  for (const auto row : rows) out.push_back(subscription_of(row));
  co_return out;
}

awaitable<bool> change_subscription(pg::Pool& pool, std::int64_t user_id, std::int64_t id, SubscriptionChanges changes,
                                    ChainHead head) {
  std::optional<std::string> notify_on, scope, filters;
  if (changes.notify_on) notify_on = array_text(*changes.notify_on);
  if (changes.scope) scope = kScopes.name(*changes.scope);
  if (changes.filters) filters = filters_text(*changes.filters);
  const auto result =
      co_await pool.execute(sql::kChangeSubscription, user_id, id, notify_on, scope, changes.filters.has_value(),
                            filters, changes.is_active, head.block, head.timestamp);
  co_return result.affected() > 0;
}

awaitable<bool> remove_subscription(pg::Pool& pool, std::int64_t user_id, std::int64_t id) {
  const auto result = co_await pool.execute(kRemove, user_id, id);
  co_return result.affected() > 0;
}

awaitable<std::int64_t> unsubscribe(pg::Pool& pool, Unsubscribe what) {
  const auto result = co_await pool.execute(sql::kUnsubscribe, what.email_id, what.chain_id, what.contract);
  co_return result.affected();
}

awaitable<std::optional<std::string>> address_of(pg::Pool& pool, std::int64_t email_id) {
  const auto rows = co_await pool.query(kAddress, email_id);
  if (rows.empty()) co_return std::nullopt;
  co_return rows.one().get<std::string>("email");
}

}  // namespace fencepost::notify
