// What people subscribe to. Every method acts for one person. Any loop may call.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "notify/service/flow_source.hpp"
#include "notify/store/subscription_store.hpp"
#include "pg/database.hpp"

namespace fencepost::notify {

class SubscriptionService {
 public:
  SubscriptionService(pg::Database& database, FlowSource& flows) : database_(database), flows_(flows) {}

  // `since` is filled here. An existing subscription is returned unchanged. Errors: kInvalid `bad_request` for a status
  // that the standard does not have; kNotFound `no_such_email`, `timelock_unknown`; kUnprocessable `wrong_standard`;
  // kConflict `too_many_subscriptions`.
  awaitable<Result<AddedSubscription>> add(std::int64_t user_id, NewSubscription subscription);
  // Errors, all: kNotFound `no_such_subscription`; `change` also kInvalid as above.
  awaitable<Result<Subscription>> get(std::int64_t user_id, std::int64_t id);
  awaitable<Result<Subscription>> change(std::int64_t user_id, std::int64_t id, SubscriptionChanges changes);
  awaitable<Result<void>> remove(std::int64_t user_id, std::int64_t id);

  pg::Pool& pool() { return database_.pool(); }

 private:
  pg::Database& database_;
  FlowSource& flows_;
};

}  // namespace fencepost::notify
