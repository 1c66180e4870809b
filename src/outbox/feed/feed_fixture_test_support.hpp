// A running feed on a real log. What is settled depends on every transaction of the server, so it has one of its own.
#pragma once

#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "outbox/feed/event_feed.hpp"
#include "outbox/feed/feed_test_support.hpp"
#include "outbox/log_test_support.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::outbox::testing {

class FeedFixture : public ::testing::Test {
 protected:
  void launch(FeedOptions options = {}) {
    feed_.emplace(runtime_, database_, listener_, catalog(), options, metrics_);
    runtime_.start();
    runtime_.run_on(0, database_.start());
    runtime_.run_on(0, [](EventFeed& feed, pg::Listener& listener) -> awaitable<> {
      co_await feed.prepare();
      listener.start();
      feed.start();
    }(*feed_, listener_));
  }
  ~FeedFixture() override { shut_down(); }
  void shut_down() {
    if (!feed_ || stopped_) return;
    stopped_ = true;
    runtime_.run_on(0, listener_.stop());
    runtime_.run_on(0, feed_->stop());
    runtime_.run_on(0, database_.stop(std::chrono::seconds(1)));
    runtime_.stop();
  }

  // Appends events of the signer 0xa.
  void append(int count, const std::string& subject = "tx/1") {
    db_.exec(
        fmt::format("INSERT INTO event (type, subject, data) SELECT 'TxConfirmed', '{}', jsonb_build_object("
                    "'signer', '0xa', 'chainId', 1, 'n', n) FROM generate_series(1, {}) AS n",
                    subject, count));
  }

  double metric(const std::string& name) {
    const auto text = metrics_.scrape();
    const auto line = "\n" + name + " ";
    const auto at = text.find(line);
    return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size()));
  }

  OwnServer own_;
  test::TestDatabase db_{test::Template::kMigrated};
  Runtime runtime_{{.threads = 2}};
  Metrics metrics_;
  pg::Database database_{runtime_, test::connect_options(db_.dsn()), {}, metrics_};
  pg::Listener listener_{runtime_.executor(0), database_.connector(), {}, metrics_};
  std::optional<EventFeed> feed_;

 private:
  bool stopped_ = false;
};

}  // namespace fencepost::outbox::testing
