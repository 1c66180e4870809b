#include "evm/block_follower.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "runtime/gather.hpp"
#include "runtime/log.hpp"

namespace fencepost::evm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kFirstStepBack = 4;  // most reorgs are that shallow
constexpr std::int64_t kPruneEvery = 256;  // blocks
constexpr std::size_t kPruneAtOnce = 10'000;
constexpr milliseconds kLongAgo = seconds(30);

BackoffOptions patience(const BlockFollower::Options& options) {
  return {.initial = options.poll_interval, .cap = std::max(options.poll_interval, options.max_backoff)};
}

BlockFollower::Options sane(BlockFollower::Options options) {
  options.poll_interval = std::max(options.poll_interval, milliseconds(1));
  options.batch = std::max<std::size_t>(options.batch, 1);
  options.window = std::max<std::size_t>(options.window, 1);
  return options;
}

std::string label(const BlockFollower::Options& options, const ChainConnector& chain) {
  return options.chain.empty() ? std::to_string(chain.chain_id()) : options.chain;
}

std::vector<BlockHeader> headers_of(const std::vector<Block>& blocks) {
  std::vector<BlockHeader> headers;
  headers.reserve(blocks.size());
  for (const auto& block : blocks) headers.push_back(block.header);
  return headers;
}

Error blocks_missing(const Block& head, std::int64_t number) {
  return unavailable("blocks_missing",
                     fmt::format("the endpoint's head is {}, but it has no block {}", head.header.number, number));
}

}  // namespace

BlockFollower::BlockFollower(Executor executor, ChainConnector& chain, HeaderStore& store, const Clock& clock,
                             Options options, Metrics& metrics)
    : chain_(chain),
      store_(store),
      clock_(clock),
      options_(sane(std::move(options))),
      window_(options_.window),
      head_gauge_(metrics.gauge("chain_head_block", "The newest block on this node's branch",
                                {{"chain", label(options_, chain)}})),
      reorgs_total_(metrics.counter("chain_reorgs_total", "Reorgs seen", {{"chain", label(options_, chain)}})),
      errors_total_(metrics.counter("chain_follower_errors_total", "Failed polls of the chain",
                                    {{"chain", label(options_, chain)}})),
      executor_(executor),
      metrics_(metrics),
      worker_(
          executor,
          {.name = "block_follower",
           .chain = label(options_, chain),
           .interval = options_.poll_interval,
           .backoff = patience(options_),
           .stop_grace = options_.stop_grace},
          [this] { return count_failures(); }, metrics) {}

void BlockFollower::subscribe(std::string name, Subscriber subscriber) {
  BlockSubscription::Options options{.chain = label(options_, chain_),
                                     .subscriber = std::move(name),
                                     .limit = options_.max_undelivered,
                                     .backoff = patience(options_),
                                     .stop_grace = options_.stop_grace};
  subscriptions_.push_back(
      std::make_unique<BlockSubscription>(executor_, std::move(options), std::move(subscriber), metrics_));
}

void BlockFollower::start() {
  for (const auto& subscription : subscriptions_) subscription->start();
  worker_.start();
}

awaitable<> BlockFollower::stop() {
  std::vector<awaitable<>> stops;
  stops.push_back(worker_.stop());
  for (const auto& subscription : subscriptions_) stops.push_back(subscription->stop());
  co_await gather(std::move(stops));
}

void BlockFollower::wake() {
  worker_.wake();
}

bool BlockFollower::synced() const {
  const milliseconds limit = std::max(kLongAgo, options_.poll_interval * 10);
  return caught_up_ && polled_at_ && clock_.now() - *polled_at_ <= limit;
}

awaitable<Worker::Next> BlockFollower::count_failures() {
  std::exception_ptr failure;
  try {
    co_return co_await poll();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  errors_total_.Increment();
  avoid_ = std::exchange(polled_, std::nullopt);
  std::rethrow_exception(failure);
}

awaitable<Worker::Next> BlockFollower::poll() {
  polled_.reset();
  auto head = co_await latest();
  const auto number = head.header.number;
  polled_ = head.endpoint;
  if (window_.empty()) {
    co_await begin(std::move(head));
  } else {
    co_await follow(std::move(head));
  }
  co_await forget_old_headers();
  polled_at_ = clock_.now();
  caught_up_ = window_.head()->number >= number;
  co_return caught_up_ ? Worker::Next::kRest : Worker::Next::kAgain;
}

awaitable<Block> BlockFollower::latest() {
  if (const auto avoid = std::exchange(avoid_, std::nullopt)) {
    auto other = co_await elsewhere(*avoid, window_.empty() ? 0 : window_.head()->number);
    if (other) co_return std::move(*other);
  }
  auto head = co_await chain_.block(BlockTag::kLatest);
  if (!head) throw Exception(head.error());
  const bool news = window_.empty() || head->header.number > window_.head()->number;
  still_polls_ = news ? 0 : still_polls_ + 1;
  if (still_polls_ > options_.ask_others_after) {
    auto other = co_await elsewhere(head->endpoint, window_.head()->number + 1);
    if (other) co_return std::move(*other);
  }
  co_return std::move(*head);
}

awaitable<std::optional<Block>> BlockFollower::elsewhere(std::size_t except, std::int64_t at_least) {
  for (std::size_t i = 0; i < chain_.endpoint_count(); ++i) {
    const auto status = chain_.endpoint_status(i);
    if (i == except || status.wrong_chain || status.cooling_until) continue;
    auto head = co_await chain_.block(BlockTag::kLatest, i);
    if (head && head->header.number >= at_least) co_return std::move(*head);
  }
  co_return std::nullopt;
}

awaitable<> BlockFollower::begin(Block head) {
  const auto syncing = co_await chain_.syncing(head.endpoint);
  if (syncing && *syncing) {
    throw Exception(unavailable("endpoint_syncing", "the endpoint is still syncing; waiting for it"));
  }
  const auto number = head.header.number;
  auto first = number - static_cast<std::int64_t>(options_.window) + 1;
  const auto stored = co_await store_.newest(chain_.chain_id());
  if (stored && *stored + 1 < first) first = std::max(*stored + 1, number - options_.max_catch_up);
  co_await restart(std::move(head), std::max<std::int64_t>(first, 0), false);
  // Older headers that the endpoint does not have may be in the store.
  const auto bottom = window_.bottom()->number;
  const auto room = static_cast<std::int64_t>(window_.capacity());
  const auto older = co_await store_.recent(chain_.chain_id(), bottom - room, 2 * window_.capacity());
  window_.prepend(older);
}

awaitable<> BlockFollower::follow(Block head) {
  if (!co_await believed(head)) co_return;
  const auto own = *window_.head();
  const auto number = head.header.number;
  if (number - own.number > options_.max_catch_up) {
    log::error("too far behind the chain: skipping to its head",
               {{"chain", chain_.chain_id()}, {"from", own.number}, {"to", number}});
    const auto first = number - static_cast<std::int64_t>(options_.window) + 1;
    co_return co_await restart(std::move(head), std::max<std::int64_t>(first, 0), false);
  }
  std::vector<Block> branch;
  if (number <= own.number + 1) {
    branch.push_back(head);
  } else {
    const auto last = std::min(number, own.number + static_cast<std::int64_t>(options_.batch));
    branch = co_await fetch(own.number + 1, last, head.endpoint);
    if (branch.empty()) {
      throw Exception(blocks_missing(head, own.number + 1));
    }
  }
  if (co_await root(branch)) co_return co_await take(std::move(branch));
  const auto bottom = window_.bottom()->number;
  log::error("a reorg is deeper than the window: the whole window is replaced",
             {{"chain", chain_.chain_id()}, {"window", bottom}, {"head", own.number}, {"newHead", number}});
  const auto first = std::min(number - static_cast<std::int64_t>(options_.window) + 1, bottom);
  co_await restart(std::move(head), std::max<std::int64_t>(first, 0), true);
}

// Whether to follow this head. May replace `head` by another endpoint's head.
awaitable<bool> BlockFollower::believed(Block& head) {
  const auto& own = *window_.head();
  const auto& bottom = *window_.bottom();
  const auto& theirs = head.header;
  if (theirs.number >= own.number || window_.contains(theirs.number, theirs.hash) == true) {
    lower_ = {};
    co_return theirs.number >= own.number&& theirs.hash != own.hash;
  }
  if (theirs.number < bottom.number && theirs.timestamp < bottom.timestamp) co_return false;
  if (lower_.endpoint != head.endpoint) lower_ = {.endpoint = head.endpoint, .polls = 0};
  if (++lower_.polls < options_.believe_lower_after) co_return false;
  lower_ = {};
  auto other = co_await elsewhere(head.endpoint, own.number);
  if (other) {
    head = std::move(*other);
    co_return head.header.hash != window_.head()->hash;
  }
  log::warn("the chain's head stays below ours and on another branch: following it", {{"chain", chain_.chain_id()},
                                                                                      {"head", window_.head()->number},
                                                                                      {"newHead", head.header.number},
                                                                                      {"hash", head.header.hash}});
  co_return true;
}

// The blocks first … last, cut off at the first block that the endpoint does not have or that does not link up.
awaitable<std::vector<Block>> BlockFollower::fetch(std::int64_t first, std::int64_t last, std::size_t endpoint) {
  auto blocks = co_await chain_.blocks(first, static_cast<std::size_t>(last - first + 1), endpoint);
  if (!blocks) throw Exception(blocks.error());
  for (std::size_t i = 1; i < blocks->size(); ++i) {
    if (!follows((*blocks)[i].header, (*blocks)[i - 1].header)) {
      blocks->resize(i);
      break;
    }
  }
  co_return std::move(*blocks);
}

awaitable<bool> BlockFollower::root(std::vector<Block>& branch) {
  auto step = static_cast<std::int64_t>(std::min(kFirstStepBack, options_.batch));
  for (;;) {
    const auto front = branch.front().header;
    const auto known = window_.contains(front.number - 1, front.parent_hash);
    if (known == true) co_return true;
    if (!known || front.number - 1 == window_.bottom()->number) co_return false;
    const auto first = std::max(window_.bottom()->number + 1, front.number - step);
    auto before = co_await fetch(first, front.number - 1, branch.front().endpoint);
    if (before.empty() || !follows(front, before.back().header)) {
      throw Exception(unavailable("chain_moved", "the endpoint's chain changed while it was read"));
    }
    const auto ours = std::ranges::find_if(before, [this](const Block& block) {
      return window_.contains(block.header.number, block.header.hash) != true;
    });
    branch.insert(branch.begin(), std::make_move_iterator(ours), std::make_move_iterator(before.end()));
    step = std::min(step * 2, static_cast<std::int64_t>(options_.batch));
  }
}

awaitable<> BlockFollower::restart(Block head, std::int64_t first, bool reorged) {
  const auto last = std::min(head.header.number, first + static_cast<std::int64_t>(options_.batch) - 1);
  auto blocks = co_await fetch(first, last, head.endpoint);
  if (blocks.empty() && (!window_.empty() || chain_.endpoint_count() > 1)) {
    // A head alone is no reason to give up the known branch, or not to ask another endpoint: the endpoint must have the
    // block before it, too.
    const auto parent = head.header.number - 1;
    const auto before = co_await fetch(parent, parent, head.endpoint);
    if (before.empty() || !follows(head.header, before.back().header)) throw Exception(blocks_missing(head, parent));
  }
  if (blocks.empty()) {
    log::warn("the endpoint does not have the recent blocks: following from its head",
              {{"chain", chain_.chain_id()}, {"missing", first}, {"head", head.header.number}});
    blocks.push_back(std::move(head));
  }
  auto headers = headers_of(blocks);
  co_await store_.save(chain_.chain_id(), headers);
  const bool missed = !window_.empty() && !reorged;
  window_.clear();
  if (const auto applied = window_.apply(headers); !applied) throw Exception(applied.error());
  if (reorged) reorgs_total_.Increment();
  const auto kept = blocks.front().header.number - 1;
  publish(std::move(blocks), reorged ? std::optional(std::min(kept, first - 1)) : std::nullopt, missed);
}

awaitable<> BlockFollower::take(std::vector<Block> blocks) {
  auto headers = headers_of(blocks);
  co_await store_.save(chain_.chain_id(), headers);
  const auto old_head = window_.head()->number;
  const auto applied = window_.apply(headers);
  if (!applied) throw Exception(applied.error());
  if (applied->reorged_to) {
    reorgs_total_.Increment();
    log::warn("reorg", {{"chain", chain_.chain_id()},
                        {"ancestor", *applied->reorged_to},
                        {"depth", old_head - *applied->reorged_to},
                        {"head", window_.head()->hash}});
  }
  publish(std::move(blocks), applied->reorged_to, false);
}

void BlockFollower::publish(std::vector<Block> blocks, std::optional<std::int64_t> reorged_to, bool missed) {
  head_gauge_.Set(static_cast<double>(window_.head()->number));
  for (const auto& block : blocks) listed_.add(block);
  listed_.keep_only(window_);
  for (std::size_t done = 0; done < blocks.size(); done += options_.batch) {
    const auto begin = blocks.begin() + static_cast<std::ptrdiff_t>(done);
    const auto end = blocks.begin() + static_cast<std::ptrdiff_t>(std::min(blocks.size(), done + options_.batch));
    ChainUpdate update;
    if (done == 0) {
      update.reorged_to = reorged_to;
      update.missed = missed;
    }
    update.blocks.assign(std::make_move_iterator(begin), std::make_move_iterator(end));
    const auto shared = std::make_shared<const ChainUpdate>(std::move(update));
    for (const auto& subscription : subscriptions_) subscription->add(shared);
  }
}

awaitable<> BlockFollower::forget_old_headers() {
  const auto head = window_.head()->number;
  if (options_.keep_headers <= 0 || head < options_.keep_headers || head < pruned_at_ + kPruneEvery) co_return;
  co_await store_.prune(chain_.chain_id(), head - options_.keep_headers, kPruneAtOnce);
  pruned_at_ = head;
}

}  // namespace fencepost::evm
