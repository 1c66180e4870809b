#include "notify/workers/mail_cleaner.hpp"

#include "runtime/log.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;

constexpr auto kCodesAge = std::chrono::days(2);  // longer than a code is valid and than limits count it
constexpr auto kAddressAge = std::chrono::days(1);
constexpr int kBatches = 1000;
constexpr int kAddressBatches = 100;  // most addresses stay, and each is looked up in three tables

}  // namespace

MailCleaner::MailCleaner(Executor executor, pg::Database& database, std::chrono::milliseconds retention,
                         Metrics& metrics, std::int64_t batch)
    : database_(database),
      batch_(batch),
      mails_{{{sql::kRemoveFlowMails, retention, kBatches},
              {sql::kRemoveOperatorMails, retention, kBatches},
              {sql::kRemoveCodes, kCodesAge, kBatches}}},
      addresses_{sql::kRemoveAddresses, kAddressAge, kAddressBatches},
      worker_(
          executor,
          {.name = "mail_cleaner", .interval = 1h, .backoff = {.initial = 1min, .cap = 1h}, .stop_grace = 0ms},
          [this]() -> awaitable<Worker::Next> {
            const auto rows = co_await clean();
            if (rows > 0) log::info("removed old rows of mail", {{"rows", rows}});
            co_return Worker::Next::kRest;
          },
          metrics) {}

// Addresses last: what refers to them goes before.
awaitable<std::int64_t> MailCleaner::clean() {
  std::int64_t rows = 0;
  for (auto& walk : mails_) rows += co_await continue_walk(walk);
  rows += co_await forget_requests();
  rows += co_await continue_walk(addresses_);
  co_return rows;
}

awaitable<std::int64_t> MailCleaner::continue_walk(Walk& walk) {
  std::int64_t rows = 0;
  for (int i = 0; i < walk.batches; ++i) {
    const auto removed = co_await remove_old(database_.pool(), walk.statement, walk.after, batch_, walk.age);
    rows += removed.rows;
    walk.after = removed.next.value_or(0);
    if (!removed.next) break;
  }
  co_return rows;
}

awaitable<std::int64_t> MailCleaner::forget_requests() {
  std::int64_t rows = 0;
  for (int i = 0; i < kBatches; ++i) {
    const auto removed = co_await forget_code_requests(database_.pool(), batch_);
    rows += removed;
    if (removed < batch_) break;
  }
  co_return rows;
}

}  // namespace fencepost::notify
