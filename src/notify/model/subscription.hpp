// What a person subscribes to. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/name_table.hpp"
#include "notify/model/notify_filters.hpp"

namespace fencepost::notify {

enum class Scope {
  kInitiator,  // flows that the person's own wallet queued
  kAll,        // every flow of the contract
};

inline constexpr auto kScopes = name_table<Scope>({
    {Scope::kInitiator, "initiator", "Flows that the person's wallet queued, itself or as a Safe."},
    {Scope::kAll, "all", "Every flow of the contract."},
});

// The statuses of flows, in the order of their life. `expired` is Compound's only.
inline constexpr std::array<std::string_view, 5> kNotifyStatuses{"waiting", "ready", "executed", "cancelled",
                                                                 "expired"};

struct ContractRef {
  std::string standard;
  std::int64_t chain_id = 0;
  std::string contract;
};

// Where the chain was when a subscription was made or resumed.
struct ChainHead {
  std::int64_t block = 0;
  TimePoint timestamp;
};

struct NewSubscription {
  std::int64_t user_email_id = 0;
  ContractRef contract;
  std::vector<std::string> notify_on;  // not empty
  Scope scope = Scope::kInitiator;
  NotifyFilters filters;
  ChainHead since;
};

struct Subscription {
  std::int64_t id = 0;
  std::int64_t user_email_id = 0;
  std::string email;
  bool is_verified = false;  // of the address; false: nothing is mailed
  std::optional<TimePoint> last_verified_at;
  bool is_deliverable = true;  // as UserEmail's
  ContractRef contract;
  std::vector<std::string> notify_on;
  Scope scope = Scope::kInitiator;
  NotifyFilters filters;
  bool is_active = true;
  TimePoint created_at;
  TimePoint updated_at;
};

// nullopt of a member: unchanged.
struct SubscriptionChanges {
  std::optional<std::vector<std::string>> notify_on;
  std::optional<Scope> scope;
  std::optional<NotifyFilters> filters;
  std::optional<bool> is_active;
};

}  // namespace fencepost::notify
