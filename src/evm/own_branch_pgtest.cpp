#include <fmt/format.h>
#include <gtest/gtest.h>

#include "evm/own_branch.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::evm {
namespace {

constexpr std::int64_t kChain = 31337;

std::string hash(std::int64_t number, char branch) {
  return fmt::format("0x{}{:063x}", branch, number);
}

std::vector<BlockHeader> run(std::int64_t first, std::int64_t last, char branch = 'a') {
  std::vector<BlockHeader> headers;
  for (auto n = first; n <= last; ++n) {
    headers.push_back({n, hash(n, branch), hash(n - 1, branch), 1'700'000'000 + n, std::nullopt});
  }
  return headers;
}

struct Fixture {
  PgHeaderStore& store;
  HeaderWindow& window;
  OwnBranch& branch;

  // Stores the headers and appends them to the window, as the follower does.
  awaitable<> take(std::vector<BlockHeader> headers) {
    co_await store.save(kChain, headers);
    const auto applied = window.apply(headers);
    EXPECT_TRUE(applied) << applied.error().to_string();
  }
};

void with_branch(std::size_t window_size, const std::function<awaitable<>(Fixture&)>& body) {
  const test::TestDatabase db(test::Template::kMigrated);
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    PgHeaderStore store(pool);
    HeaderWindow window(window_size);
    OwnBranch branch(kChain, window, store);
    Fixture fixture{store, window, branch};
    co_await body(fixture);
  });
}

TEST(own_branch, reaches_below_the_window_as_far_as_headers_are_stored) {
  with_branch(10, [](Fixture& f) -> awaitable<> {
    EXPECT_EQ(co_await f.branch.contains(5, hash(5, 'a')), std::nullopt) << "no window yet";
    co_await f.take(run(100, 5'000));
    auto fork = run(4'000, 4'900, 'b');
    fork.front().parent_hash = hash(3'999, 'a');
    co_await f.store.save(kChain, fork);
    EXPECT_EQ(co_await f.branch.contains(5'000, hash(5'000, 'a')), true);
    EXPECT_EQ(co_await f.branch.contains(5'001, hash(5'001, 'a')), std::nullopt) << "above the head";
    EXPECT_EQ(co_await f.branch.contains(4'500, hash(4'500, 'a')), true);
    EXPECT_EQ(co_await f.branch.contains(4'500, hash(4'500, 'b')), false);
    EXPECT_EQ(co_await f.branch.contains(100, hash(100, 'a')), true);
    EXPECT_EQ(co_await f.branch.contains(99, hash(99, 'a')), std::nullopt) << "not stored";
    EXPECT_EQ(co_await f.branch.from(4'980, 30), run(4'980, 5'000));
    EXPECT_EQ(co_await f.branch.from(200, 3), run(200, 202));
    EXPECT_TRUE((co_await f.branch.from(99, 3)).empty());
  });
}

TEST(own_branch, follows_the_window_as_it_moves) {
  with_branch(10, [](Fixture& f) -> awaitable<> {
    co_await f.take(run(1, 100));
    EXPECT_EQ(co_await f.branch.contains(50, hash(50, 'a')), true);
    co_await f.take(run(101, 150));
    EXPECT_EQ(co_await f.branch.contains(120, hash(120, 'a')), true) << "left the window since";
    EXPECT_EQ(co_await f.branch.contains(50, hash(50, 'a')), true);
    EXPECT_EQ(co_await f.branch.contains(95, hash(95, 'b')), false);
    co_await f.take(run(151, 5'000));
    EXPECT_EQ(co_await f.branch.contains(50, hash(50, 'a')), true) << "further away than one query reads";
  });
}

TEST(own_branch, forgets_a_branch_that_the_window_has_left) {
  with_branch(10, [](Fixture& f) -> awaitable<> {
    co_await f.take(run(1, 100));
    EXPECT_EQ(co_await f.branch.contains(60, hash(60, 'a')), true);
    // A reorg deeper than the window: the follower starts the window anew.
    auto other = run(51, 110, 'b');
    other.front().parent_hash = hash(50, 'a');
    f.window.clear();
    co_await f.take(other);
    EXPECT_EQ(co_await f.branch.contains(60, hash(60, 'a')), false);
    EXPECT_EQ(co_await f.branch.contains(60, hash(60, 'b')), true);
    EXPECT_EQ(co_await f.branch.contains(50, hash(50, 'a')), true);
  });
}

TEST(own_branch, headers_that_do_not_link_up_are_not_the_branch) {
  with_branch(10, [](Fixture& f) -> awaitable<> {
    co_await f.store.save(kChain, run(1, 20));
    co_await f.take(run(25, 60));
    EXPECT_EQ(co_await f.branch.contains(30, hash(30, 'a')), true);
    EXPECT_EQ(co_await f.branch.contains(20, hash(20, 'a')), std::nullopt) << "21 to 24 are missing";
  });
}

}  // namespace
}  // namespace fencepost::evm
