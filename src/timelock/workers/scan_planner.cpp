#include "timelock/workers/scan_planner.hpp"

#include <algorithm>

#include "evm/header_store.hpp"
#include "runtime/log.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::size_t kBlocksCompared = 50;  // in one request

// nullopt: the block is outside the window and not right below it.
std::optional<bool> on_branch(const evm::HeaderWindow& window, std::int64_t number, const std::string& hash) {
  const auto& bottom = *window.bottom();
  if (number == bottom.number - 1) return bottom.parent_hash == hash;
  return window.contains(number, hash);
}

Error deep_reorg(const std::string& chain, const ScanPoint& point) {
  return unavailable("deep_reorg",
                     "The block up to which the chain was scanned is not on it any more, and none of its known "
                     "ancestors is.")
      .with("chain", chain)
      .with("block", std::to_string(point.number))
      .with("hash", point.hash);
}

}  // namespace

awaitable<std::optional<ScanPlan>> ScanPlanner::plan(ScanPoint point) {
  behind_ = false;
  if (window().empty()) co_return std::nullopt;
  const auto next = point.number + 1;
  if (next < window().bottom()->number) {
    if (!co_await is_on_chain(point)) co_return co_await after_reorg(std::move(point));
    if (next >= window().bottom()->number) co_return std::nullopt;  // the window has moved
    co_return ScanPlan{
        .first = next, .range_last = window().bottom()->number - 1, .parent = point.hash, .headers = {}, .fork = {}};
  }
  if (!on_branch(window(), point.number, point.hash).value_or(false)) co_return co_await after_reorg(std::move(point));
  lower_since_.reset();
  const auto head = window().head()->number;
  if (point.number >= head) co_return std::nullopt;
  const auto last = std::min(head, point.number + kBlocksAtOnce);
  co_return ScanPlan{
      .first = next, .range_last = -1, .parent = {}, .headers = headers_between(window(), next, last), .fork = {}};
}

awaitable<std::optional<ScanPlan>> ScanPlanner::after_reorg(ScanPoint point) {
  const auto line = co_await line_of(point);
  if (window().empty()) co_return std::nullopt;
  const auto head = *window().head();
  if (point.number > head.number) {
    const auto same_height = std::ranges::find(line, head.number, &Place::number);
    const bool unknown = same_height == line.end() && line.size() <= kMaxReorg;
    behind_ = unknown || (same_height != line.end() && same_height->hash == head.hash);
    if (behind_) lower_since_.reset();
    if (behind_ || !co_await lower_head_is_believed(point)) co_return std::nullopt;
  }
  const auto shared = std::ranges::find_if(
      line, [&](const Place& place) { return on_branch(window(), place.number, place.hash) == true; });
  const auto fork = shared != line.end() ? std::optional(*shared) : co_await newest_on_chain(line);
  if (!fork) throw Exception(deep_reorg(parts_.chain.name(), point));
  if (fork->number == point.number) co_return std::nullopt;  // the window has moved, or the endpoint was behind
  log::warn("a reorg: scanning for timelocks again", {{"chain", parts_.chain.name()},
                                                      {"scanned", point.number},
                                                      {"hash", point.hash},
                                                      {"fork", fork->number},
                                                      {"head", window().head()->number}});
  co_return from_fork(point, *fork);
}

// Everything up to the height of the old branch is scanned at once: what has only moved is then not taken back.
ScanPlan ScanPlanner::from_fork(const ScanPoint& point, const Place& fork) const {
  const auto bottom = window().bottom()->number;
  const auto first = fork.number + 1;
  ScanPlan plan{.first = first,
                .range_last = std::min(point.number, bottom - 1),
                .parent = fork.hash,
                .headers = {},
                .fork = fork.number};
  if (point.number >= bottom || first >= bottom) {
    plan.headers = headers_between(window(), std::max(first, bottom), window().head()->number);
  }
  return plan;
}

awaitable<std::vector<ScanPlanner::Place>> ScanPlanner::line_of(ScanPoint point) {
  evm::PgHeaderStore store(parts_.database.pool());
  std::vector<Place> line{{point.number, point.hash}};
  for (auto& header : co_await store.ancestors(parts_.chain.id(), point.hash, kMaxReorg)) {
    if (header.number > 0) line.push_back({header.number - 1, std::move(header.parent_hash)});
  }
  co_return line;
}

awaitable<bool> ScanPlanner::is_on_chain(ScanPoint point) {
  const auto blocks = co_await old_blocks(point.number, 1);
  co_return blocks.front().header.hash == point.hash;
}

awaitable<std::vector<evm::Block>> ScanPlanner::old_blocks(std::int64_t first, std::size_t count) {
  auto& connector = parts_.chain.connector();
  std::optional<Error> failure;
  for (std::size_t endpoint = 0; endpoint < connector.endpoint_count(); ++endpoint) {
    if (connector.endpoint_status(endpoint).wrong_chain) continue;
    if (const auto on_branch = co_await check_branch(parts_.chain, endpoint); !on_branch) {
      failure = on_branch.error();
      continue;
    }
    auto blocks = co_await connector.blocks(first, count, endpoint);
    if (blocks && blocks->size() == count) co_return std::move(*blocks);
    if (!blocks) failure = blocks.error();
  }
  if (failure) throw Exception(*failure);
  throw Exception(unavailable("endpoint_behind", "No endpoint has the block up to which the chain was scanned.")
                      .with("block", std::to_string(first + static_cast<std::int64_t>(count) - 1)));
}

awaitable<bool> ScanPlanner::lower_head_is_believed(ScanPoint point) {
  if (!parts_.chain.follower().synced()) co_return false;
  const auto now = std::chrono::steady_clock::now();
  if (!lower_since_) {
    lower_since_ = now;
    log::warn("the head is below the scanned block and on another branch: waiting whether it stays so",
              {{"chain", parts_.chain.name()}, {"scanned", point.number}, {"head", window().head()->number}});
  }
  if (now - *lower_since_ < kBelieveLowerAfter) co_return false;
  bool unanswered = false;
  for (std::size_t endpoint = 0; endpoint < parts_.chain.connector().endpoint_count(); ++endpoint) {
    const auto blocks = co_await parts_.chain.connector().blocks(point.number, 1, endpoint);
    if (!blocks) unanswered = true;
    if (!blocks || blocks->empty() || blocks->front().header.hash != point.hash) continue;
    lower_since_.reset();
    behind_ = true;
    co_return false;
  }
  if (unanswered && now - *lower_since_ < kBelieveLowerUnanswered) co_return false;
  lower_since_.reset();
  co_return true;
}

awaitable<std::optional<ScanPlanner::Place>> ScanPlanner::newest_on_chain(std::vector<Place> line) {
  const auto bottom = window().bottom()->number;
  std::erase_if(line, [&](const Place& place) { return place.number >= bottom - 1; });
  for (std::size_t done = 0; done < line.size(); done += kBlocksCompared) {
    const auto count = std::min(kBlocksCompared, line.size() - done);
    const auto blocks = co_await old_blocks(line[done + count - 1].number, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (blocks[count - 1 - i].header.hash == line[done + i].hash) co_return line[done + i];
    }
  }
  co_return std::nullopt;
}

}  // namespace fencepost::timelock
