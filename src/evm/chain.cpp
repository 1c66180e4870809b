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

constexpr std::chrono::seconds kHeadInterval{5};

// How often every endpoint is asked, if there are several; the preferred one is asked at each poll.
std::chrono::milliseconds head_interval(const ChainOptions& options) {
  return std::max<std::chrono::milliseconds>(kHeadInterval, 2 * options.poll_interval);
}

JsonRpcOptions rpc_options(const ChainOptions& options) {
  return {
      .chain = options.name, .chain_id = static_cast<std::uint64_t>(options.chain_id), .max_batch = options.batch_size};
}

// The depth of finality, and the same again for reorgs.
std::size_t window_for(const FinalityRule& rule) {
  constexpr std::size_t kLeast = 256;
  return std::max(kLeast, rule.kind == FinalityRule::Kind::kDepth ? 2 * std::size_t{rule.depth} : 0);
}

std::optional<JsonRpcClient> make_submit(http::Client& http, const ChainOptions& options, const Chain::Parts& parts) {
  if (options.submit_urls.empty()) return std::nullopt;
  auto relays = rpc_options(options);
  relays.relays = true;
  return std::optional<JsonRpcClient>(std::in_place, http, reveal(options.submit_urls), std::move(relays), parts.clock,
                                      parts.random, parts.metrics);
}

}  // namespace

Chain::Chain(const Parts& parts, std::size_t loop, ChainOptions options)
    : options_(std::move(options)),
      clock_(parts.clock),
      home_(parts.runtime.executor(loop)),
      http_(home_, {}),
      rpc_(http_, reveal(options_.rpc_urls), rpc_options(options_), parts.clock, parts.random, parts.metrics),
      submit_(make_submit(http_, options_, parts)),
      watch_(home_, rpc_, submit_ ? &*submit_ : nullptr,
             {.chain = options_.name,
              .chain_id = static_cast<std::uint64_t>(options_.chain_id),
              .head_interval = head_interval(options_),
              .stop_grace = kStopGrace},
             parts.metrics),
      connector_(rpc_, options_.chain_id, submit_ ? &*submit_ : nullptr),
      headers_(parts.database.pool_of(loop)),
      follower_(home_, connector_, headers_, parts.clock,
                {.chain = options_.name,
                 .poll_interval = options_.poll_interval,
                 .window = window_for(options_.finality),
                 .stop_grace = kStopGrace},
                parts.metrics),
      branch_(options_.chain_id, follower_.window(), headers_) {}

awaitable<ChainStatus> Chain::status() {
  co_return co_await on_loop(home_, [this]() -> awaitable<ChainStatus> { co_return status_now(); });
}

ChainStatus Chain::status_now() const {
  // One round of questions may be lost.
  const auto since = clock_.now() - 2 * head_interval(options_);
  const auto polled = follower_.polled_at();
  ChainStatus status{.chain_id = id(),
                     .name = name(),
                     .head = std::nullopt,
                     .synced = follower_.synced() && polled && *polled >= since,
                     .finality = finality(),
                     .endpoints = {},
                     .submit_endpoints = {},
                     .answers_since = since};
  if (const auto* head = follower_.window().head()) status.head = *head;
  for (std::size_t i = 0; i < connector_.endpoint_count(); ++i) {
    status.endpoints.push_back(connector_.endpoint_status(i));
  }
  for (std::size_t i = 0; submit_ && i < submit_->endpoint_count(); ++i) {
    status.submit_endpoints.push_back(submit_->endpoint_status(i));
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
  // An endpoint that is behind would report an older block as final.
  const auto block = co_await connector().block(tag, connector().endpoint_with(head->number));
  if (!block) {
    log::warn("no endpoint reports the final block", block.error(), {{"chain", name()}});
    co_return std::nullopt;
  }
  const auto ours = co_await branch_.contains(block->header.number, block->header.hash);
  if (ours == false) co_return std::nullopt;
  co_return FinalBlock{block->header.number, block->endpoint};
}

awaitable<> Chain::check_endpoints() {
  co_await on_loop(home_, [this] { return watch_.check_all(); });
}

awaitable<> Chain::start() {
  co_await on_loop(home_, [this]() -> awaitable<> {
    watch_.start();
    follower_.start();
    co_return;
  });
}

awaitable<> Chain::stop() {
  co_await on_loop(home_, [this]() -> awaitable<> {
    co_await follower_.stop();
    co_await watch_.stop();
    co_await connector_.stop();
  });
}

}  // namespace fencepost::evm
