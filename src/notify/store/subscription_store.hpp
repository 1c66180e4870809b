// Subscriptions. Every function but the last two acts for one person: another person's rows are not found. Functions
// throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "notify/model/subscription.hpp"
#include "notify/model/unsubscribe_token.hpp"
#include "pg/pool.hpp"

namespace fencepost::notify {

namespace sql {
extern const pg::Statement kAddSubscription;
extern const pg::Statement kListSubscriptions;
extern const pg::Statement kUnsubscribe;
extern const pg::Statement kFindSubscription;
extern const pg::Statement kChangeSubscription;
}  // namespace sql

inline constexpr std::int64_t kMaxSubscriptionsOfUser = 1'000;

struct AddedSubscription {
  Subscription subscription;
  bool is_new = true;  // false: it existed, and is unchanged
};

// nullopt: the person has no such address, or has kMaxSubscriptionsOfUser subscriptions.
awaitable<std::optional<AddedSubscription>> add_subscription(pg::Pool& pool, std::int64_t user_id,
                                                             NewSubscription subscription);
awaitable<std::optional<Subscription>> find_subscription(pg::Pool& pool, std::int64_t user_id, std::int64_t id);
// Those with an id above `after`, in the order of ids.
awaitable<std::vector<Subscription>> list_subscriptions(pg::Pool& pool, std::int64_t user_id, std::int64_t after,
                                                        std::size_t limit);
// `head`: where the chain is now; counts if the change makes an inactive subscription active. False, also below: the
// person has no such subscription.
awaitable<bool> change_subscription(pg::Pool& pool, std::int64_t user_id, std::int64_t id, SubscriptionChanges changes,
                                    ChainHead head);
awaitable<bool> remove_subscription(pg::Pool& pool, std::int64_t user_id, std::int64_t id);

// Deactivates every subscription of the address to the contract, of all people. Returns how many were active.
awaitable<std::int64_t> unsubscribe(pg::Pool& pool, Unsubscribe what);
// The address with that id; nullopt: there is none.
awaitable<std::optional<std::string>> address_of(pg::Pool& pool, std::int64_t email_id);

}  // namespace fencepost::notify
