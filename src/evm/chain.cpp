#include "evm/chain.hpp"

#include <algorithm>

#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"

namespace fencepost::evm {
namespace {

std::vector<std::string> reveal(const std::vector<Secret>& urls) {
  std::vector<std::string> out;
  out.reserve(urls.size());
  for (const auto& url : urls) out.emplace_back(url.reveal());
  return out;
}

// Short, because the stop of a node has a deadline. A step that is cut off runs again after the next start.
constexpr std::chrono::milliseconds kStopGrace{500};

// The depth of finality, and the same again for reorgs.
std::size_t window_for(const FinalityRule& rule) {
  constexpr std::size_t kLeast = 256;
  return std::max(kLeast, rule.kind == FinalityRule::Kind::kDepth ? 2 * std::size_t{rule.depth} : 0);
}

}  // namespace

Chain::Chain(const Parts& parts, std::size_t loop, ChainOptions options)
    : options_(std::move(options)),
      home_(parts.runtime.executor(loop)),
      http_(home_, {}),
      rpc_(http_, reveal(options_.rpc_urls), {.chain = options_.name}, parts.clock, parts.random, parts.metrics),
      connector_(rpc_, options_.chain_id),
      headers_(parts.database.pool_of(loop)),
      follower_(home_, connector_, headers_, parts.clock,
                {.chain = options_.name,
                 .poll_interval = options_.poll_interval,
                 .window = window_for(options_.finality),
                 .stop_grace = kStopGrace},
                parts.metrics) {}

awaitable<ChainStatus> Chain::status() {
  co_return co_await on_loop(home_, [this]() -> awaitable<ChainStatus> { co_return status_now(); });
}

ChainStatus Chain::status_now() const {
  ChainStatus status{.chain_id = id(),
                     .name = name(),
                     .head = std::nullopt,
                     .synced = follower_.synced(),
                     .finality = finality(),
                     .endpoints = {}};
  if (const auto* head = follower_.window().head()) status.head = *head;
  for (std::size_t i = 0; i < connector_.endpoint_count(); ++i) {
    status.endpoints.push_back(connector_.endpoint_status(i));
  }
  return status;
}

awaitable<std::optional<FinalBlock>> Chain::final_block() {
  const auto* head = follower_.window().head();
  if (head == nullptr) co_return std::nullopt;
  if (finality().kind == FinalityRule::Kind::kDepth) {
    const auto number = final_by_depth(head->number, finality().depth);
    if (!number) co_return std::nullopt;
    co_return FinalBlock{*number, std::nullopt};
  }
  const auto tag = finality().kind == FinalityRule::Kind::kSafe ? BlockTag::kSafe : BlockTag::kFinalized;
  const auto block = co_await connector().block(tag);
  if (!block) {
    log::warn("no endpoint reports the final block", block.error(), {{"chain", name()}});
    co_return std::nullopt;
  }
  // Read the window again: it may have changed during the await.
  const auto ours = follower_.window().contains(block->header.number, block->header.hash);
  if (ours == false) co_return std::nullopt;
  co_return FinalBlock{block->header.number, block->endpoint};
}

awaitable<> Chain::check_endpoints() {
  co_await on_loop(home_, [this]() -> awaitable<> {
    if (auto checked = co_await rpc_.check_chain_id(static_cast<std::uint64_t>(id())); !checked) {
      log::error("the check of the chain id failed", checked.error(), {{"chain", name()}});
    }
  });
}

awaitable<> Chain::start() {
  co_await on_loop(home_, [this]() -> awaitable<> {
    follower_.start();
    co_return;
  });
}

awaitable<> Chain::stop() {
  co_await on_loop(home_, [this] { return follower_.stop(); });
}

}  // namespace fencepost::evm
