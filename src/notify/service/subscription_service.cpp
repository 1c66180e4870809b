#include "notify/service/subscription_service.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/contains.hpp"
#include "http/errors.hpp"
#include "notify/store/address_store.hpp"

namespace fencepost::notify {
namespace {

Error no_such_subscription() {
  return not_found("no_such_subscription", "You have no subscription with this id.");
}

Result<void> check_statuses(const std::string& standard, const std::vector<std::string>& statuses) {
  if (standard == "compound" || !contains(statuses, "expired")) return {};
  return fail(invalid("bad_request", "notifyOn: only flows of Compound's timelocks expire").with("field", "notifyOn"));
}

Error timelock_unknown(const ContractRef& contract) {
  return not_found("timelock_unknown",
                   fmt::format("This server does not follow {} on chain {}. Its operator can import it: POST "
                               "/api/v1/timelocks {{\"chainId\": {}, \"address\": \"{}\"}}",
                               contract.contract, contract.chain_id, contract.chain_id, contract.contract));
}

}  // namespace

awaitable<Result<AddedSubscription>> SubscriptionService::add(std::int64_t user_id, NewSubscription subscription) {
  const auto& contract = subscription.contract;
  if (const auto checked = check_statuses(contract.standard, subscription.notify_on); !checked) {
    co_return fail(checked.error());
  }
  if (!co_await find_email(pool(), user_id, subscription.user_email_id)) {
    co_return fail(not_found("no_such_email", "You have no address with this id."));
  }
  const auto watched = co_await flows_.find_contract(contract.chain_id, contract.contract);
  if (!watched) co_return fail(timelock_unknown(contract));
  if (watched->standard != contract.standard) {
    co_return fail(http::unprocessable(
        "wrong_standard", fmt::format("{} is a timelock of the standard {}.", contract.contract, watched->standard)));
  }
  subscription.since = watched->head;
  auto added = co_await add_subscription(pool(), user_id, std::move(subscription));
  if (!added) {
    co_return fail(conflict("too_many_subscriptions",
                            fmt::format("You have {} subscriptions: remove one first.", kMaxSubscriptionsOfUser)));
  }
  co_return std::move(*added);
}

awaitable<Result<Subscription>> SubscriptionService::get(std::int64_t user_id, std::int64_t id) {
  auto found = co_await find_subscription(pool(), user_id, id);
  if (!found) co_return fail(no_such_subscription());
  co_return std::move(*found);
}

awaitable<Result<Subscription>> SubscriptionService::change(std::int64_t user_id, std::int64_t id,
                                                            SubscriptionChanges changes) {
  const auto found = co_await find_subscription(pool(), user_id, id);
  if (!found) co_return fail(no_such_subscription());
  if (changes.notify_on) {
    if (const auto checked = check_statuses(found->contract.standard, *changes.notify_on); !checked) {
      co_return fail(checked.error());
    }
  }
  // Resumed, it begins anew: what happened meanwhile is not mailed.
  ChainHead head;
  if (changes.is_active.value_or(false)) {
    const auto watched = co_await flows_.find_contract(found->contract.chain_id, found->contract.contract);
    if (!watched) co_return fail(timelock_unknown(found->contract));
    head = watched->head;
  }
  if (!co_await change_subscription(pool(), user_id, id, std::move(changes), head)) {
    co_return fail(no_such_subscription());
  }
  co_return co_await get(user_id, id);
}

awaitable<Result<void>> SubscriptionService::remove(std::int64_t user_id, std::int64_t id) {
  if (!co_await remove_subscription(pool(), user_id, id)) co_return fail(no_such_subscription());
  co_return Result<void>{};
}

}  // namespace fencepost::notify
