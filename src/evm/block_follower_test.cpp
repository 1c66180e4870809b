#include "evm/block_follower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/fake_chain_test_support.hpp"
#include "runtime/runtime_test_support.hpp"

namespace fencepost::evm {
namespace {

using test::comes_true;
using testing::FakeChain;
using testing::FakeStore;
using testing::short_name;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The updates of a subscriber, as "<4 b5 b6" (reorged to 4, then blocks) or ">a90 a91" (updates were missed), and the
// chain that results from them.
struct Listener {
  explicit Listener(BlockFollower& follower, std::string name = "listener") {
    follower.subscribe(std::move(name), [this](const ChainUpdate& update) -> awaitable<> { return hear(update); });
  }
  awaitable<> hear(const ChainUpdate& update) {
    ++calls;
    if (gate != nullptr) co_await gate->pass();
    if (fails > 0) {
      --fails;
      throw Exception(unavailable("listener_failed", "not now"));
    }
    std::string text = update.reorged_to ? fmt::format("<{} ", *update.reorged_to) : update.missed ? ">" : "";
    if (update.reorged_to) std::erase_if(chain, [&](const auto& h) { return h.number > *update.reorged_to; });
    if (update.missed) chain.clear();
    for (const auto& block : update.blocks) {
      if (!chain.empty() && !follows(block.header, chain.back())) ++breaks;
      chain.push_back(block.header);
      text += short_name(block.header) + " ";
      if (before_block) before_block(block);
    }
    text.pop_back();
    heard.push_back(text);
  }

  std::vector<std::string> heard;
  std::vector<BlockHeader> chain;
  int breaks = 0;  // blocks that did not follow the ones before
  int calls = 0;
  int fails = 0;  // of the next calls
  test::Gate* gate = nullptr;
  std::function<void(const Block&)> before_block;
};

class BlockFollowerTest : public ::testing::Test {
 protected:
  BlockFollowerTest() {
    options_.poll_interval = 1ms;
    options_.window = 8;
    options_.batch = 5;
    options_.believe_lower_after = 4;
    options_.ask_others_after = 10;
    options_.max_backoff = 2ms;
    options_.stop_grace = 20ms;
  }

  // Runs body(follower, listener) with a started follower.
  void follow(const std::function<awaitable<>(BlockFollower&, Listener&)>& body) {
    test::on_loop([&]() -> awaitable<> {
      const auto executor = co_await this_executor();
      BlockFollower follower(executor, chain_, store_, clock_, options_, metrics_);
      Listener listener(follower);
      if (prepare_) prepare_(follower, listener);
      follower.start();
      std::exception_ptr failure;
      try {
        co_await body(follower, listener);
      } catch (const std::exception&) {
        failure = std::current_exception();
      }
      co_await follower.stop();
      if (failure) std::rethrow_exception(failure);
    });
  }
  // True once the follower has reached the endpoint's head and the listener has got it.
  awaitable<bool> arrives(BlockFollower& follower, Listener& listener, std::size_t endpoint = 0) {
    return comes_true([&, endpoint] {
      const auto* head = follower.window().head();
      return head != nullptr && *head == chain_.head(endpoint).header && !listener.chain.empty() &&
             listener.chain.back() == *head;
    });
  }
  // Waits for `count` more polls.
  awaitable<bool> polls(int count) {
    return comes_true([this, until = chain_.polls + count] { return chain_.polls >= until; });
  }
  double metric(const std::string& name) { return metric_with(name + "{chain=\"31337\"} "); }
  double metric_with(const std::string& name_and_labels) {
    const auto text = metrics_.scrape();
    const auto at = text.find("\nfencepost_" + name_and_labels);
    return at == std::string::npos ? -1 : std::stod(text.substr(text.find("} ", at) + 2));
  }

  FakeChain chain_;
  FakeStore store_;
  ManualClock clock_{TimePoint{1h}};
  Metrics metrics_;
  BlockFollower::Options options_;
  std::function<void(BlockFollower&, Listener&)> prepare_;
};

TEST_F(BlockFollowerTest, starts_with_the_last_window_in_batches) {
  chain_.grow(0, 101);
  prepare_ = [](BlockFollower& follower, Listener&) {
    EXPECT_TRUE(follower.window().empty());
    EXPECT_FALSE(follower.synced());
  };
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("a93 a94 a95 a96 a97", "a98 a99 a100"));
    EXPECT_EQ(follower.window().bottom()->number, 93);
    EXPECT_EQ(follower.window().confirmations(98, testing::hash_of('a', 98)).size(), 3U);
    EXPECT_TRUE(co_await comes_true([&] { return follower.synced(); }));
    EXPECT_EQ(store_.rows.size(), 8U);
    EXPECT_EQ(metric("chain_head_block"), 100);
  });
}

TEST_F(BlockFollowerTest, a_young_chain_is_followed_from_its_genesis) {
  chain_.grow(0, 1);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("a0"));
  });
}

TEST_F(BlockFollowerTest, a_new_block_needs_no_request_beyond_the_poll) {
  chain_.grow(0, 11);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    listener.heard.clear();
    const auto fetches = chain_.fetches;
    for (int i = 0; i < 3; ++i) {
      chain_.grow(0, 1);
      EXPECT_TRUE(co_await arrives(follower, listener));
    }
    EXPECT_THAT(listener.heard, ElementsAre("a11", "a12", "a13"));
    EXPECT_EQ(chain_.fetches, fetches);
    EXPECT_EQ(follower.window().size(), 8U);
    EXPECT_EQ(metric("chain_reorgs_total"), 0);
    EXPECT_EQ(metric("chain_follower_errors_total"), 0);
  });
}

TEST_F(BlockFollowerTest, an_unchanged_head_makes_no_update) {
  chain_.grow(0, 5);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_TRUE(co_await polls(20));
    EXPECT_EQ(listener.heard.size(), 1U);
  });
}

TEST_F(BlockFollowerTest, a_wake_polls_at_once) {
  options_.poll_interval = 1h;
  chain_.grow(0, 5);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    chain_.grow(0, 1);
    follower.wake();
    EXPECT_TRUE(co_await arrives(follower, listener));
  });
}

TEST_F(BlockFollowerTest, catches_up_in_batches_and_loses_nothing) {
  options_.window = 64;
  options_.batch = 50;
  chain_.grow(0, 100);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    chain_.grow(0, 5'000);
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_EQ(listener.chain.size(), 5'064U);
    EXPECT_EQ(chain_.largest_fetch, 50U);
    EXPECT_EQ(follower.window().size(), 64U);
    EXPECT_EQ(store_.rows.size(), 5'064U);
  });
}

TEST_F(BlockFollowerTest, continues_from_the_newest_stored_header_when_all_nodes_were_down) {
  chain_.grow(0, 101);
  for (int n = 0; n <= 60; ++n) {
    const auto& header = chain_.nodes[0].chain[static_cast<std::size_t>(n)].header;
    store_.rows.emplace(std::pair(header.number, header.hash), header);
  }
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_EQ(listener.chain.front().number, 61);
    EXPECT_EQ(listener.chain.size(), 40U);
    EXPECT_EQ(listener.breaks, 0);
  });
}

TEST_F(BlockFollowerTest, headers_that_the_endpoint_has_lost_come_from_the_store) {
  chain_.grow(0, 101);
  chain_.nodes[0].oldest = 100;
  for (int n = 90; n <= 99; ++n) {
    const auto& header = chain_.nodes[0].chain[static_cast<std::size_t>(n)].header;
    store_.rows.emplace(std::pair(header.number, header.hash), header);
  }
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_TRUE(co_await comes_true([&] { return follower.window().size() == 8; }));
    EXPECT_EQ(follower.window().bottom()->number, 93);
    EXPECT_THAT(listener.heard, ElementsAre("a100"));
  });
}

TEST_F(BlockFollowerTest, a_gap_too_wide_is_skipped) {
  options_.max_catch_up = 100;
  chain_.grow(0, 20);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    listener.heard.clear();
    chain_.grow(0, 500);
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre(">a512 a513 a514 a515 a516", "a517 a518 a519"));
    EXPECT_EQ(metric("chain_reorgs_total"), 0);
  });
}

TEST_F(BlockFollowerTest, reorgs_are_noticed_by_parent_hash) {
  struct Case {
    std::string name;
    std::int64_t fork;   // the first block that differs, of 20
    std::int64_t count;  // blocks of the new branch
    std::vector<std::string> heard;
  };
  const std::vector<Case> cases{
      {"one block, same height", 19, 1, {"<18 b19"}},
      {"one block, higher", 19, 2, {"<18 b19 b20"}},
      {"several, same height", 16, 4, {"<15 b16 b17 b18 b19"}},
      {"as deep as the window allows", 13, 7, {"<12 b13 b14 b15 b16 b17", "b18 b19"}},
      {"deep, and far ahead",
       15,
       20,
       {"<14 b15 b16 b17 b18 b19", "b20 b21 b22 b23 b24", "b25 b26 b27 b28 b29", "b30 b31 b32 b33 b34"}},
  };
  for (const auto& [name, fork, count, heard] : cases) {
    SCOPED_TRACE(name);
    chain_ = FakeChain();
    chain_.grow(0, 20);
    follow([&](BlockFollower& follower, Listener& listener) -> awaitable<> {
      EXPECT_TRUE(co_await arrives(follower, listener));
      listener.heard.clear();
      chain_.grow(0, count, 'b', fork);
      EXPECT_TRUE(co_await arrives(follower, listener));
      EXPECT_EQ(listener.heard, heard);
      EXPECT_EQ(listener.breaks, 0);
      EXPECT_NE(follower.window().contains(fork - 1, testing::hash_of('a', fork - 1)), false);
      EXPECT_NE(follower.window().contains(fork, testing::hash_of('a', fork)), true);
      EXPECT_TRUE(store_.has(testing::hash_of('b', fork)));
      EXPECT_TRUE(store_.has(testing::hash_of('a', fork))) << "stored headers are never removed by a reorg";
    });
  }
  EXPECT_EQ(metric("chain_reorgs_total"), static_cast<double>(cases.size()));
}

TEST_F(BlockFollowerTest, a_reorg_deeper_than_the_window_replaces_all_of_it) {
  chain_.grow(0, 20);
  test::LogText log;
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_EQ(follower.window().bottom()->number, 12);
    listener.heard.clear();
    chain_.grow(0, 20, 'b', 3);
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_EQ(listener.heard.front(), "<11 b12 b13 b14 b15 b16");
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_EQ(follower.window().bottom()->number, 15);
    EXPECT_EQ(metric("chain_reorgs_total"), 1);
  });
  EXPECT_THAT(log.take(), HasSubstr("a reorg is deeper than the window"));
}

TEST_F(BlockFollowerTest, a_lagging_endpoint_causes_no_reorg) {
  chain_ = FakeChain(2);
  chain_.grow(0, 30);
  chain_.mirror(0, 1, 3);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    listener.heard.clear();
    chain_.nodes[0].down = true;
    EXPECT_TRUE(co_await polls(20));
    EXPECT_EQ(follower.window().head()->number, 29);
    EXPECT_TRUE(listener.heard.empty());
    chain_.grow(1, 5);
    EXPECT_TRUE(co_await arrives(follower, listener, 1));
    EXPECT_THAT(listener.heard, ElementsAre("a30 a31"));
    EXPECT_EQ(metric("chain_reorgs_total"), 0);
  });
}

TEST_F(BlockFollowerTest, an_endpoint_that_syncs_from_genesis_is_never_followed) {
  chain_ = FakeChain(2);
  chain_.grow(0, 100);
  chain_.mirror(0, 1, 99);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    listener.heard.clear();
    chain_.nodes[0].down = true;
    EXPECT_TRUE(co_await polls(30));
    chain_.mirror(0, 1, 50);
    EXPECT_TRUE(co_await polls(30));
    EXPECT_EQ(follower.window().head()->number, 99);
    EXPECT_TRUE(listener.heard.empty());
    chain_.nodes[0].down = false;
    chain_.grow(0, 1);
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("a100"));
  });
}

TEST_F(BlockFollowerTest, does_not_start_with_an_endpoint_that_is_still_syncing) {
  chain_.grow(0, 1);
  chain_.nodes[0].syncing = true;
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await polls(3));
    EXPECT_TRUE(follower.window().empty());
    chain_.grow(0, 50);
    chain_.nodes[0].syncing = false;
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_EQ(listener.chain.front().number, 43);
  });
}

TEST_F(BlockFollowerTest, a_lower_head_on_another_branch_is_followed_when_it_stays) {
  options_.poll_interval = 1h;  // polls are counted, so the test makes them
  chain_.grow(0, 20);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    listener.heard.clear();
    chain_.grow(0, 1, 'b', 17);  // rolled back to 16, and one new block
    for (int i = 1; i < options_.believe_lower_after; ++i) {
      const auto before = chain_.polls;
      follower.wake();
      EXPECT_TRUE(co_await comes_true([&] { return chain_.polls > before; }));
      co_await test::turns();
      EXPECT_EQ(follower.window().head()->number, 19) << "poll " << i;
    }
    follower.wake();
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("<16 b17"));
  });
}

TEST_F(BlockFollowerTest, a_lower_fork_is_not_followed_while_another_endpoint_is_ahead) {
  chain_ = FakeChain(2);
  chain_.grow(1, 20);
  chain_.mirror(1, 0);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    listener.heard.clear();
    chain_.grow(0, 2, 'b', 16);
    EXPECT_TRUE(co_await polls(30));
    EXPECT_TRUE(listener.heard.empty());
    chain_.nodes[1].down = true;
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("<15 b16 b17"));
  });
}

TEST_F(BlockFollowerTest, a_chain_started_anew_is_followed) {
  chain_.grow(0, 50);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    listener.heard.clear();
    chain_.grow(0, 3, 'z', 0, 2'000'000);
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("<-1 z0 z1 z2"));
    EXPECT_EQ(listener.chain.size(), 3U);
    EXPECT_EQ(follower.window().size(), 3U);
  });
}

TEST_F(BlockFollowerTest, a_stuck_endpoint_does_not_delay_the_follower) {
  chain_ = FakeChain(3);
  chain_.grow(2, 20);
  chain_.mirror(2, 0);
  chain_.mirror(2, 1);
  chain_.nodes[1].wrong_chain = true;
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    for (int i = 0; i < 3; ++i) {
      chain_.grow(2, 2);
      EXPECT_TRUE(co_await arrives(follower, listener, 2));
    }
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_THAT(chain_.asked, ::testing::Not(::testing::Contains(1U)));
  });
}

TEST_F(BlockFollowerTest, an_endpoint_that_has_a_head_but_not_its_blocks_does_not_stop_the_follower) {
  chain_ = FakeChain(2);
  options_.max_catch_up = 100;
  chain_.grow(1, 20);
  chain_.mirror(1, 0);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener, 1));
    chain_.nodes[0].oldest = 10'000;
    for (const auto ahead : {10, 500}) {
      SCOPED_TRACE(ahead);
      chain_.mirror(1, 0);
      chain_.grow(0, ahead, 'x');
      for (int i = 0; i < 3; ++i) {
        chain_.grow(1, 2);
        EXPECT_TRUE(co_await arrives(follower, listener, 1));
      }
    }
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_EQ(follower.window().contains(25, testing::hash_of('a', 25)), true);
    EXPECT_EQ(metric("chain_reorgs_total"), 0);
  });
}

TEST_F(BlockFollowerTest, does_not_start_from_a_head_whose_blocks_the_endpoint_does_not_have) {
  chain_ = FakeChain(2);
  chain_.grow(1, 20);
  chain_.mirror(1, 0);
  chain_.grow(0, 500, 'x');
  chain_.nodes[0].oldest = 10'000;
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener, 1));
    EXPECT_EQ(follower.window().head()->number, 19);
  });
}

TEST_F(BlockFollowerTest, one_poll_uses_one_endpoint) {
  chain_ = FakeChain(2);
  chain_.grow(0, 20);
  chain_.mirror(0, 1);
  chain_.grow(1, 6, 'b', 18);  // on another fork
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    listener.before_block = [](const Block& block) {
      EXPECT_EQ(block.endpoint, block.header.hash[2] == 'b' ? 1U : 0U) << short_name(block.header);
    };
    EXPECT_TRUE(co_await arrives(follower, listener));
    chain_.nodes[0].down = true;
    EXPECT_TRUE(co_await arrives(follower, listener, 1));
    EXPECT_THAT(listener.heard, ::testing::Contains(HasSubstr("<17 b18")));
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_EQ(follower.window().contains(17, testing::hash_of('a', 17)), true);
  });
}

TEST_F(BlockFollowerTest, a_chain_that_changes_during_a_poll_is_read_again) {
  chain_.grow(0, 20);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    int moves = 0;
    chain_.before_fetch = [&] {
      if (++moves <= 3) chain_.grow(0, 4, static_cast<char>('b' + moves), 17);
    };
    chain_.grow(0, 3, 'b', 18);
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_TRUE(co_await comes_true([&] { return moves > 3; }));
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_GE(metric("chain_follower_errors_total"), 1);
  });
}

TEST_F(BlockFollowerTest, no_block_is_lost_in_an_outage) {
  chain_.grow(0, 20);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_TRUE(co_await comes_true([&] { return follower.synced(); }));
    chain_.nodes[0].down = true;
    EXPECT_TRUE(co_await polls(3));
    clock_.advance(1min);
    EXPECT_FALSE(follower.synced());
    chain_.grow(0, 12);
    chain_.nodes[0].down = false;
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_TRUE(co_await comes_true([&] { return follower.synced(); }));
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_GE(metric("chain_follower_errors_total"), 1);
  });
}

TEST_F(BlockFollowerTest, headers_are_stored_before_subscribers_are_notified) {
  chain_.grow(0, 20);
  store_.broken = true;
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    listener.before_block = [this](const Block& block) { EXPECT_TRUE(store_.has(block.header.hash)); };
    EXPECT_TRUE(co_await comes_true([&] { return metric("chain_follower_errors_total") >= 2; }));
    EXPECT_EQ(listener.calls, 0);
    EXPECT_TRUE(follower.window().empty());
    store_.broken = false;
    EXPECT_TRUE(co_await arrives(follower, listener));
    store_.broken = true;
    listener.heard.clear();
    chain_.grow(0, 2, 'b', 19);
    EXPECT_TRUE(co_await polls(3));
    EXPECT_EQ(follower.window().head()->hash, testing::hash_of('a', 19));
    store_.broken = false;
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("<18 b19 b20"));
  });
}

TEST_F(BlockFollowerTest, a_subscriber_that_fails_gets_the_same_update_again_and_delays_no_other) {
  chain_.grow(0, 5);
  std::unique_ptr<Listener> other;
  prepare_ = [&](BlockFollower& follower, Listener& listener) {
    other = std::make_unique<Listener>(follower, "other");
    listener.fails = 2;
  };
  follow([&](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, *other));
    chain_.grow(0, 1);
    EXPECT_TRUE(co_await arrives(follower, *other));
    EXPECT_THAT(other->heard, ElementsAre("a0 a1 a2 a3 a4", "a5"));
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard, ElementsAre("a0 a1 a2 a3 a4", "a5"));
    EXPECT_EQ(listener.calls, 4);
    EXPECT_EQ(metric("chain_follower_errors_total"), 0);
  });
}

TEST_F(BlockFollowerTest, a_subscriber_that_takes_nothing_loses_its_backlog_and_delays_no_other) {
  options_.max_undelivered = 3;
  chain_.grow(0, 1);
  std::unique_ptr<Listener> other;
  prepare_ = [&](BlockFollower& follower, Listener& listener) {
    other = std::make_unique<Listener>(follower, "other");
    listener.fails = 1'000'000;
  };
  follow([&](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, *other));
    EXPECT_TRUE(co_await comes_true([&] { return listener.calls >= 1; }));
    for (int i = 0; i < 6; ++i) {
      chain_.grow(0, 1);
      EXPECT_TRUE(co_await arrives(follower, *other));
    }
    chain_.grow(0, 1, 'b', 5);  // and a reorg among the missed updates
    chain_.grow(0, 2, 'b');
    EXPECT_TRUE(co_await arrives(follower, *other));
    for (int i = 0; i < 3; ++i) {
      chain_.grow(0, 1, 'b');
      EXPECT_TRUE(co_await arrives(follower, *other));
    }
    EXPECT_EQ(other->breaks, 0);
    listener.fails = 0;
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_THAT(listener.heard.front(), ::testing::StartsWith("<4 b")) << "merged, with the reorg";
    EXPECT_GE(metric_with("chain_updates_missed_total{chain=\"31337\",subscriber=\"listener\"} "), 1);
    EXPECT_EQ(metric_with("chain_updates_missed_total{chain=\"31337\",subscriber=\"other\"} "), 0);
  });
}

TEST_F(BlockFollowerTest, a_slow_subscriber_delays_no_poll_and_a_hung_one_is_cancelled_at_stop) {
  chain_.grow(0, 1);
  test::on_loop([&]() -> awaitable<> {
    const auto executor = co_await this_executor();
    test::Gate gate(executor);
    BlockFollower follower(executor, chain_, store_, clock_, options_, metrics_);
    Listener listener(follower);
    listener.gate = &gate;
    follower.start();
    EXPECT_TRUE(co_await comes_true([&] { return listener.calls == 1; }));
    EXPECT_TRUE(co_await polls(3));
    EXPECT_TRUE(listener.heard.empty());
    gate.open();
    EXPECT_TRUE(co_await comes_true([&] { return listener.heard.size() == 1; }));
    test::Gate shut(executor);
    listener.gate = &shut;
    chain_.grow(0, 1);
    EXPECT_TRUE(co_await comes_true([&] { return listener.calls == 2; }));
    co_await follower.stop();
    EXPECT_THAT(listener.heard, ElementsAre("a0"));
  });
}

TEST(block_subscription, merged_updates_reach_as_deep_as_the_deepest_and_keep_the_newest_blocks) {
  const auto one = [](std::optional<std::int64_t> reorged_to, std::int64_t block) {
    ChainUpdate update;
    update.reorged_to = reorged_to;
    update.blocks = {testing::make_block(block, 'a', 'a')};
    return update;
  };
  for (const auto& [earlier, later, wanted] :
       {std::tuple<std::optional<std::int64_t>, std::optional<std::int64_t>, std::optional<std::int64_t>>{
            std::nullopt, std::nullopt, std::nullopt},
        {3, std::nullopt, 3},
        {std::nullopt, 4, 4},
        {3, 4, 3},
        {4, -1, -1}}) {
    const auto merged = merge_missed(one(earlier, 7), one(later, 8));
    EXPECT_TRUE(merged.missed);
    EXPECT_EQ(merged.reorged_to, wanted);
    EXPECT_EQ(merged.blocks.front().header.number, 8);
  }
}

TEST_F(BlockFollowerTest, old_headers_are_deleted) {
  options_.keep_headers = 500;
  options_.batch = 50;
  chain_.grow(0, 10);
  follow([this](BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(follower, listener));
    chain_.grow(0, 2'000);
    EXPECT_TRUE(co_await arrives(follower, listener));
    EXPECT_TRUE(co_await comes_true([&] { return store_.rows.size() <= 500 + 256 + 50; }));
    EXPECT_GE(store_.rows.size(), 500U);
  });
}

// Whatever the endpoints do, a subscriber that applies every update ends with the chain that they agree on.
TEST_F(BlockFollowerTest, random_histories_end_in_agreement) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    const auto below = [&](std::uint64_t limit) { return random.next() % limit; };
    const auto below_signed = [&](std::uint64_t limit) { return static_cast<std::int64_t>(below(limit)); };
    chain_ = FakeChain(3);
    store_ = FakeStore();
    options_.window = 12;
    chain_.grow(0, 5);
    chain_.mirror(0, 1);
    chain_.mirror(0, 2);
    char branch = 'a';
    std::int64_t floor = 1;  // no reorg goes below, so that none is deeper than the window
    std::unique_ptr<Listener> other;
    prepare_ = [&](BlockFollower& follower, Listener&) { other = std::make_unique<Listener>(follower, "other"); };
    follow([&](BlockFollower& follower, Listener& listener) -> awaitable<> {
      for (int i = 0; i < 60; ++i) {
        const auto size = static_cast<std::int64_t>(chain_.nodes[0].chain.size());
        floor = std::max(floor, size - 8);
        switch (below(8)) {
          case 0:
            branch = branch == 'f' ? 'a' : static_cast<char>(branch + 1);
            chain_.grow(0, below_signed(6) + 1, branch, std::max<std::int64_t>(floor, size - below_signed(8)));
            break;
          case 1:
            chain_.mirror(0, 1, below(4));
            break;
          case 2:
            chain_.mirror(0, 2, below(20));
            break;
          case 3:
            chain_.nodes[below(3)].down = below(2) == 0;
            break;
          case 4:
            store_.broken = below(2) == 0;
            break;
          case 5:
            listener.fails = static_cast<int>(below(4));
            break;
          default:
            chain_.grow(0, below_signed(9), branch);
        }
        if (below(2) == 0) continue;
        EXPECT_TRUE(co_await comes_true([&, until = chain_.polls + 1] {
          clock_.advance(5s);
          return chain_.polls >= until;
        }));
      }
      store_.broken = false;
      for (auto& node : chain_.nodes) node.down = false;
      chain_.grow(0, 30, 'q');
      chain_.mirror(0, 1);
      chain_.mirror(0, 2);
      for (auto* each : {&listener, other.get()}) {
        EXPECT_TRUE(co_await comes_true([&] {
          clock_.advance(5s);
          return !each->chain.empty() && each->chain.back() == chain_.head().header;
        }));
        EXPECT_EQ(each->breaks, 0);
        for (const auto& header : each->chain) {
          EXPECT_EQ(header, chain_.nodes[0].chain[static_cast<std::size_t>(header.number)].header);
        }
      }
    });
  }
}

}  // namespace
}  // namespace fencepost::evm
