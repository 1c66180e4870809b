#include "timelock/workers/verify_worker.hpp"

#include <algorithm>

#include "runtime/log.hpp"
#include "timelock/store/scan_store.hpp"

namespace fencepost::timelock {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLook = 60s;  // how often to see whether a run is due
constexpr std::int64_t kLoggedDifferences = 100;  // of one run

}  // namespace

VerifyWorker::VerifyWorker(ScannerParts parts, const ScannerOptions& options, Verifier& verifier)
    : parts_(std::move(parts)),
      interval_(options.verify_interval),
      verifier_(verifier),
      due_(std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(
                                                  static_cast<double>(interval_.count()) * random_.uniform()))),
      differences_(parts_.metrics.gauge("timelock_verify_differences",
                                        "Differences that the last verification of flows found",
                                        {{"chain", parts_.chain.name()}})),
      last_success_(parts_.metrics.gauge("timelock_verify_last_success_timestamp_seconds",
                                         "When this node last verified all flows of the chain",
                                         {{"chain", parts_.chain.name()}})),
      worker_(
          parts_.chain.home(),
          {.name = "timelock_verify",
           .chain = parts_.chain.name(),
           .interval = std::clamp(interval_, std::chrono::milliseconds(10), kLook),
           .backoff = {.initial = 1s, .cap = 5min}},
          [this] { return step(); }, parts_.metrics) {}

void VerifyWorker::start() {
  if (interval_ > 0ms) worker_.start();
}

awaitable<> VerifyWorker::stop() {
  if (interval_ > 0ms) co_await worker_.stop();
}

awaitable<Worker::Next> VerifyWorker::step() {
  if (!round_ && std::chrono::steady_clock::now() < due_) co_return Worker::Next::kRest;
  const auto claimed = co_await claim_scan(parts_.database.pool(), parts_.chain.id(), parts_.node, kScanClaim);
  if (!claimed) {
    // The node that has the claim reports now; what this one found before is no longer the last word.
    differences_.Set(0);
    round_.reset();
    due_ = std::chrono::steady_clock::now() + interval_;
    co_return Worker::Next::kRest;
  }
  if (!round_) round_.emplace();
  if (co_await verify_page()) co_return Worker::Next::kAgain;
  end_round();
  co_return Worker::Next::kRest;
}

awaitable<bool> VerifyWorker::verify_page() {
  auto& pool = parts_.database.pool();
  std::optional<Timelock> contract;
  if (round_->contract && !round_->after.empty()) contract = co_await find_timelock(pool, *round_->contract);
  if (!contract) {
    const auto next = co_await list_timelocks(pool, parts_.chain.id(), std::nullopt, round_->contract, 1);
    if (next.empty()) co_return false;
    contract = next.front();
    round_->after.clear();
    round_->failure.reset();
  }
  const auto page = co_await verifier_.page(contract->key, contract->standard, round_->after);
  log_page(page);
  co_await report_contract(*contract, page);
  round_->contract = contract->key;
  round_->after = page.next.value_or("");
  round_->flows += page.flows;
  round_->differences += std::ssize(page.differences);
  round_->not_checked += page.not_checked;
  co_return true;
}

void VerifyWorker::log_page(const VerifiedPage& page) const {
  auto logged = round_->differences;
  for (const auto& difference : page.differences) {
    if (logged++ >= kLoggedDifferences) break;
    log::error("a flow differs from its events or its contract", {{"chain", parts_.chain.name()},
                                                                  {"contract", difference.key.contract},
                                                                  {"flow", difference.key.flow_id},
                                                                  {"generation", difference.generation},
                                                                  {"what", difference.what},
                                                                  {"stored", difference.stored},
                                                                  {"expected", difference.expected}});
  }
  if (page.not_checked > 0) {
    log::warn("flows could not be compared with their contract",
              {{"chain", parts_.chain.name()}, {"flows", page.not_checked}, {"reason", page.reason}});
  }
}

// One event for each contract and run, after its last page.
awaitable<> VerifyWorker::report_contract(const Timelock& contract, const VerifiedPage& page) {
  auto& failure = round_->failure;
  if (!page.differences.empty() && !failure) {
    const auto& first = page.differences.front();
    failure = {
        .contract = contract.key, .standard = contract.standard, .flow_id = first.key.flow_id, .what = first.what};
  }
  if (!failure) co_return;
  failure->flows += page.flows;
  failure->differences += std::ssize(page.differences);
  if (page.next) co_return;
  co_await announce_verify_failure(parts_.database.pool(), std::move(*failure));
  failure.reset();
}

void VerifyWorker::end_round() {
  log::info("flows were verified", {{"chain", parts_.chain.name()},
                                    {"flows", round_->flows},
                                    {"differences", round_->differences},
                                    {"notChecked", round_->not_checked}});
  differences_.Set(static_cast<double>(round_->differences));
  if (round_->not_checked == 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    last_success_.Set(std::chrono::duration<double>(now).count());
  }
  round_.reset();
  due_ = std::chrono::steady_clock::now() + interval_;
}

}  // namespace fencepost::timelock
