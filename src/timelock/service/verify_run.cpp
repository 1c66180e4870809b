#include "timelock/service/verify_run.hpp"

#include <algorithm>
#include <iterator>

#include "runtime/on_loop.hpp"

namespace fencepost::timelock {
namespace {

// The contract and the flow to go on from.
struct Place {
  ContractKey contract;
  Standard standard = Standard::kCompound;
  std::string after;
};

awaitable<std::optional<Place>> next_place(TimelockService& service, const VerifyScope& scope,
                                           const std::optional<VerifyCursor>& after) {
  if (after && !after->flow_id.empty()) {
    const auto found = co_await find_timelock(service.pool(), after->contract);
    if (found) co_return Place{found->key, found->standard, after->flow_id};
  }
  const auto before = after ? std::optional(after->contract) : std::nullopt;
  const auto rows = co_await list_timelocks(service.pool(), scope.chain_id, scope.only, before, 1);
  if (rows.empty()) co_return std::nullopt;
  co_return Place{rows.front().key, rows.front().standard, ""};
}

void add(VerifyAnswer& answer, const ContractKey& contract, VerifiedPage page) {
  answer.flows += page.flows;
  answer.compared += page.compared;
  answer.lagging += page.lagging;
  answer.difference_count += std::ssize(page.differences);
  const auto room = kMaxDifferences - answer.differences.size();
  page.differences.resize(std::min(page.differences.size(), room));
  std::ranges::move(page.differences, std::back_inserter(answer.differences));
  if (page.not_checked == 0) return;
  auto& list = answer.not_checked;
  if (!list.empty() && list.back().contract == contract && list.back().reason == page.reason) {
    list.back().flows += page.not_checked;
  } else {
    list.push_back({contract, page.not_checked, std::move(page.reason)});
  }
}

}  // namespace

awaitable<VerifyAnswer> verify(TimelockService& service, VerifyScope scope, std::chrono::milliseconds budget) {
  const auto deadline = std::chrono::steady_clock::now() + budget;
  VerifyAnswer answer;
  auto cursor = scope.after;
  while (const auto place = co_await next_place(service, scope, cursor)) {
    if (place->after.empty()) ++answer.contracts;
    cursor = VerifyCursor{place->contract, ""};
    auto* chain = service.find_chain(place->contract.chain_id);
    auto* verifier = service.find_verifier(place->contract.chain_id);
    if (chain == nullptr || verifier == nullptr) {
      answer.not_checked.push_back({place->contract, 0, "this node does not have the chain in its configuration"});
    } else {
      auto page = co_await on_loop(
          chain->home(), [verifier, at = *place] { return verifier->page(at.contract, at.standard, at.after); });
      cursor->flow_id = page.next.value_or("");
      add(answer, place->contract, std::move(page));
    }
    if (std::chrono::steady_clock::now() < deadline) continue;
    answer.next = cursor;
    break;
  }
  co_return answer;
}

}  // namespace fencepost::timelock
