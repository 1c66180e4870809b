#include "evm/own_branch.hpp"

#include <algorithm>

namespace fencepost::evm {
namespace {

constexpr std::int64_t kAtOnce = 2'000;      // headers in one query
constexpr std::size_t kMostBelow = 100'000;  // as many as the follower stores
constexpr int kRounds = 2 * static_cast<int>(kMostBelow / kAtOnce);

}  // namespace

awaitable<std::optional<bool>> OwnBranch::contains(std::int64_t number, std::string hash) {
  if (const auto known = window_.contains(number, hash)) co_return known;
  if (!co_await reach(number)) co_return std::nullopt;
  const auto* header = find(number);
  if (header == nullptr) co_return std::nullopt;
  co_return header->hash == hash;
}

awaitable<std::vector<BlockHeader>> OwnBranch::from(std::int64_t first, std::size_t count) {
  std::vector<BlockHeader> out;
  if (!co_await reach(first)) co_return out;
  for (auto number = first; out.size() < count; ++number) {
    const auto* header = find(number);
    if (header == nullptr || (!out.empty() && !follows(*header, out.back()))) break;
    out.push_back(*header);
  }
  co_return out;
}

const BlockHeader* OwnBranch::find(std::int64_t number) const {
  if (const auto* header = window_.find(number)) return header;
  if (below_.empty() || number < below_.front().number || number > below_.back().number) return nullptr;
  return &below_[static_cast<std::size_t>(number - below_.front().number)];
}

// Each round makes one query. The window may move during a query, and another caller may load headers: so each round
// starts from what is there.
awaitable<bool> OwnBranch::reach(std::int64_t number) {
  for (int round = 0; round < kRounds; ++round) {
    if (window_.empty()) co_return false;
    const auto bottom = *window_.bottom();
    if (number >= bottom.number) co_return number <= window_.head()->number;
    while (!below_.empty() && below_.back().number >= bottom.number) below_.pop_back();
    while (below_.size() > kMostBelow && below_.front().number < number) below_.pop_front();
    const bool gap = !below_.empty() && below_.back().number + 1 < bottom.number;
    if (!below_.empty() && !gap && !follows(bottom, below_.back())) below_.clear();
    if (!below_.empty() && !gap && below_.front().number <= number) co_return true;
    if (gap) {
      co_await close_gap(bottom);
    } else if (!co_await extend(below_.empty() ? bottom : below_.front(), number)) {
      co_return false;
    }
  }
  co_return false;
}

awaitable<> OwnBranch::close_gap(const BlockHeader& bottom) {
  const auto missing = bottom.number - 1 - below_.back().number;
  std::vector<BlockHeader> line;
  if (missing <= kAtOnce) {
    line = co_await headers_.ancestors(chain_id_, bottom.parent_hash, static_cast<std::size_t>(missing));
  }
  std::ranges::reverse(line);
  if (line.empty() || below_.empty() || !follows(line.front(), below_.back())) {
    below_.clear();  // another branch, or too long ago: load anew
    co_return;
  }
  for (auto& header : line) below_.push_back(std::move(header));
}

awaitable<bool> OwnBranch::extend(BlockHeader child, std::int64_t number) {
  const auto wanted = std::clamp<std::int64_t>(child.number - number, 1, kAtOnce);
  auto line = co_await headers_.ancestors(chain_id_, child.parent_hash, static_cast<std::size_t>(wanted));
  if (line.empty() || line.front().number != child.number - 1) co_return false;
  for (auto& header : line) {
    if (below_.empty() ? follows(child, header) : follows(below_.front(), header)) below_.push_front(std::move(header));
  }
  co_return true;
}

}  // namespace fencepost::evm
