#include "tx/workers/unled_gauge.hpp"

#include "runtime/log.hpp"
#include "tx/store/ability_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::chrono::seconds kUnledInterval{10};
constexpr std::size_t kUnledSigners = 1'000;

}  // namespace

UnledGauge::UnledGauge(Executor home, pg::Database& database, std::vector<std::int64_t> chains,
                       std::chrono::milliseconds silence, Metrics& metrics)
    : database_(database),
      silence_(silence),
      metrics_(metrics),
      worker_(home, {.name = "tx_unled_gauge", .interval = kUnledInterval}, [this] { return refresh(); }, metrics) {
  for (const auto chain_id : chains) {
    for (const auto reason : {kChainNotConfigured, kNoKey, kNoLeader}) shown_[{chain_id, std::string(reason)}] = 0;
  }
  for (const auto& [series, count] : shown_) gauge(series).Set(0);
}

Metrics::Gauge& UnledGauge::gauge(const Series& series) {
  return metrics_.gauge("tx_unled", "Open transactions that no live node can lead or sign for, or that none leads",
                        {{"chain_id", std::to_string(series.first)}, {"reason", series.second}});
}

awaitable<Worker::Next> UnledGauge::refresh() {
  const auto signers = co_await unled_work(database_.pool(), silence_, kUnledSigners);
  std::map<Series, std::int64_t> now;
  for (const auto& [series, count] : shown_) now[series] = 0;
  for (const auto& signer : signers) now[{signer.key.chain_id, signer.reason}] += signer.transactions;
  for (const auto& [series, count] : now) {
    gauge(series).Set(static_cast<double>(count));
    if (count == 0 || shown_[series] > 0) continue;
    log::warn("open transactions that no live node finishes; `fencepost doctor` lists their signers",
              {{"chainId", series.first}, {"reason", series.second}, {"transactions", count}});
  }
  shown_ = std::move(now);
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::tx
