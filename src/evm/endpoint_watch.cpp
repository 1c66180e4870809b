#include "evm/endpoint_watch.hpp"

#include "evm/connector_read.hpp"
#include "evm/reply/block_reply.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"

namespace fencepost::evm {

EndpointWatch::EndpointWatch(Executor executor, JsonRpcClient& rpc, JsonRpcClient* submit, Options options,
                             Metrics& metrics)
    : rpc_(rpc),
      submit_(submit),
      options_(std::move(options)),
      since_(options_.steady->now()),
      usable_gauge_(metrics.gauge("chain_usable", "1 when an endpoint of the chain answers, 0 when none does",
                                  {{"chain", options_.chain}})),
      worker_(
          executor,
          {.name = "endpoint_watch",
           .chain = options_.chain,
           .interval = options_.head_interval,
           .stop_grace = options_.stop_grace,
           .clock = options_.steady},
          [this] { return check(); }, metrics) {
  usable_gauge_.Set(1);
  rpc_.on_health([this] { look(); });
  if (submit_ != nullptr) submit_->on_health([this] { look(); });
}

awaitable<> EndpointWatch::check_all() {
  co_await check_ids(rpc_, true, Proof::kNothing);
  if (submit_ != nullptr) co_await check_ids(*submit_, true, Proof::kAnswers);
  ids_checked_at_ = options_.steady->now();
  co_await compare_heads();
}

awaitable<Worker::Next> EndpointWatch::check() {
  const auto now = options_.steady->now();
  const bool all = !ids_checked_at_ || now - *ids_checked_at_ >= options_.id_interval;
  if (all) ids_checked_at_ = now;
  co_await check_ids(rpc_, all, Proof::kNothing);
  if (submit_ != nullptr) co_await check_ids(*submit_, all, Proof::kAnswers);
  co_await compare_heads();
  co_return Worker::Next::kRest;
}

// An endpoint in cooldown is left alone. After that it is checked even if nothing else is asked of it: a relay gets
// only broadcasts, and a node that released its leases because the relay failed has none.
awaitable<> EndpointWatch::check_ids(JsonRpcClient& rpc, bool all, Proof proof) {
  std::vector<awaitable<Result<std::uint64_t>>> checks;
  for (std::size_t i = 0; i < rpc.endpoint_count(); ++i) {
    const auto status = rpc.endpoint_status(i);
    const bool due = all || status.wrong_chain || status.consecutive_failures > 0;
    if (due && !status.cooling_until) checks.push_back(rpc.check_endpoint(i, options_.chain_id, proof));
  }
  co_await gather(std::move(checks));
}

// The head of a single endpoint is asked for only to see whether it works again.
awaitable<> EndpointWatch::compare_heads() {
  if (rpc_.endpoint_count() == 1 && rpc_.endpoint_status(0).consecutive_failures == 0) co_return;
  std::vector<awaitable<std::optional<std::int64_t>>> questions;
  for (std::size_t i = 0; i < rpc_.endpoint_count(); ++i) questions.push_back(head_of(i));
  rpc_.compare_heads(co_await gather(std::move(questions)));
}

awaitable<std::optional<std::int64_t>> EndpointWatch::head_of(std::size_t endpoint) {
  const auto status = rpc_.endpoint_status(endpoint);
  if (status.wrong_chain || status.cooling_until) co_return std::nullopt;
  RpcCall question{"eth_blockNumber", {}};
  RpcCallOptions only_this;
  only_this.endpoint = endpoint;
  only_this.proof = Proof::kAnswers;
  const auto answer = co_await rpc_.call(std::move(question), only_this);
  if (!answer) co_return std::nullopt;
  const auto number = parse_int64_result(*answer);
  if (!number) co_return std::nullopt;
  rpc_.note_head(endpoint, *number);
  co_return *number;
}

void EndpointWatch::look() {
  const bool usable = rpc_.any_usable() && (submit_ == nullptr || submit_->any_usable());
  if (usable == usable_) return;
  const auto now = options_.steady->now();
  const auto lasted = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
  usable_ = usable;
  since_ = now;
  changed_at_ = now;
  usable_gauge_.Set(usable ? 1 : 0);
  for (const auto& callback : callbacks_) callback(usable, lasted);
}

}  // namespace fencepost::evm
