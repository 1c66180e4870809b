#include <fmt/format.h>
#include <gtest/gtest.h>

#include "evm/header_store.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::evm {
namespace {

constexpr std::int64_t kChain = 31337;

std::string hash(std::int64_t number, char branch) {
  return fmt::format("0x{}{:063x}", branch, number);
}

BlockHeader header(std::int64_t number, char branch = 'a') {
  return {number, hash(number, branch), hash(number - 1, branch), 1'700'000'000 + number, Uint256(1'000'000'000)};
}

std::vector<BlockHeader> run(std::int64_t first, std::int64_t last, char branch = 'a') {
  std::vector<BlockHeader> headers;
  for (auto n = first; n <= last; ++n) headers.push_back(header(n, branch));
  return headers;
}

void with_store(const std::function<awaitable<>(HeaderStore&)>& body) {
  const test::TestDatabase db(test::Template::kMigrated);
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    PgHeaderStore store(pool);
    co_await body(store);
  });
}

TEST(header_store, returns_the_headers_that_were_saved) {
  with_store([](HeaderStore& store) -> awaitable<> {
    auto headers = run(1, 3);
    headers[0].base_fee = std::nullopt;
    headers[1].base_fee =
        parse_decimal("115792089237316195423570985008687907853269984665640564039457584007913129639935").value();
    headers[2].timestamp = 0;
    EXPECT_EQ(co_await store.newest(kChain), std::nullopt);
    co_await store.save(kChain, headers);
    EXPECT_EQ(co_await store.recent(kChain, 0, 100), headers);
    EXPECT_EQ(co_await store.newest(kChain), 3);
  });
}

TEST(header_store, ancestors_follow_one_branch_as_far_as_it_is_stored) {
  const test::TestDatabase db(test::Template::kMigrated);
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    PgHeaderStore store(pool);
    co_await store.save(kChain, run(5, 20));
    auto fork = run(11, 14, 'b');
    fork.front().parent_hash = hash(10, 'a');
    co_await store.save(kChain, fork);
    const auto line = co_await store.ancestors(kChain, hash(14, 'b'), 100);
    std::vector<std::string> hashes;
    hashes.reserve(line.size());
    for (const auto& one : line) hashes.push_back(one.hash);
    std::vector<std::string> expected;
    for (auto n = 14; n >= 5; --n) expected.push_back(hash(n, n > 10 ? 'b' : 'a'));
    EXPECT_EQ(hashes, expected);
    EXPECT_EQ((co_await store.ancestors(kChain, hash(14, 'b'), 3)).size(), 3U);
    EXPECT_TRUE((co_await store.ancestors(kChain, hash(30, 'a'), 3)).empty());
    EXPECT_TRUE((co_await store.ancestors(kChain + 1, hash(14, 'b'), 3)).empty());
  });
}

TEST(header_store, an_empty_list_may_be_saved) {
  with_store([](HeaderStore& store) -> awaitable<> {
    co_await store.save(kChain, {});
    EXPECT_TRUE((co_await store.recent(kChain, 0, 100)).empty());
  });
}

TEST(header_store, a_stored_header_is_never_changed) {
  with_store([](HeaderStore& store) -> awaitable<> {
    const auto first = run(1, 2);
    co_await store.save(kChain, first);
    auto again = run(1, 3);
    again[0].timestamp = 5;
    co_await store.save(kChain, again);
    const auto kept = co_await store.recent(kChain, 0, 100);
    EXPECT_EQ(kept.size(), 3U);
    EXPECT_EQ(kept.front(), first.front());
  });
}

TEST(header_store, stores_several_branches_and_chains) {
  with_store([](HeaderStore& store) -> awaitable<> {
    co_await store.save(kChain, run(1, 3));
    co_await store.save(kChain, run(2, 4, 'b'));
    co_await store.save(1, run(9, 9));
    EXPECT_EQ((co_await store.recent(kChain, 0, 100)).size(), 6U);
    EXPECT_EQ((co_await store.recent(kChain, 3, 100)).size(), 3U);
    EXPECT_EQ(co_await store.newest(kChain), 4);
    EXPECT_EQ(co_await store.newest(1), 9);
  });
}

TEST(header_store, a_limit_cuts_off_the_oldest) {
  with_store([](HeaderStore& store) -> awaitable<> {
    co_await store.save(kChain, run(1, 10));
    EXPECT_EQ(co_await store.recent(kChain, 0, 3), run(8, 10));
  });
}

TEST(header_store, deletes_at_most_limit_headers_at_a_time) {
  with_store([](HeaderStore& store) -> awaitable<> {
    co_await store.save(kChain, run(1, 10));
    co_await store.save(1, run(1, 10));
    EXPECT_EQ(co_await store.prune(kChain, 8, 5), 5U);
    EXPECT_EQ(co_await store.recent(kChain, 0, 100), run(6, 10));
    EXPECT_EQ(co_await store.prune(kChain, 8, 5), 2U);
    EXPECT_EQ(co_await store.prune(kChain, 8, 5), 0U);
    EXPECT_EQ(co_await store.recent(kChain, 0, 100), run(8, 10));
    EXPECT_EQ((co_await store.recent(1, 0, 100)).size(), 10U);
  });
}

TEST(header_store, the_table_refuses_malformed_headers) {
  with_store([](HeaderStore& store) -> awaitable<> {
    std::vector<std::pair<std::string, BlockHeader>> cases;
    const auto wrong = [&](std::string name, auto change) {
      auto bad = header(1);
      change(bad);
      cases.emplace_back(std::move(name), std::move(bad));
    };
    wrong("upper case", [](BlockHeader& h) { h.hash = "0xA" + h.hash.substr(3); });
    wrong("short", [](BlockHeader& h) { h.hash.pop_back(); });
    wrong("no 0x", [](BlockHeader& h) { h.hash = "000" + h.hash.substr(3); });
    wrong("parent", [](BlockHeader& h) { h.parent_hash = "0x"; });
    wrong("number", [](BlockHeader& h) { h.number = -1; });
    wrong("time", [](BlockHeader& h) { h.timestamp = -1; });
    for (const auto& [name, bad] : cases) {
      std::vector<BlockHeader> headers{header(7), bad};
      EXPECT_NE(co_await test::code_of(store.save(kChain, headers)), "ok") << name;
    }
    EXPECT_TRUE((co_await store.recent(kChain, 0, 100)).empty());
  });
}

}  // namespace
}  // namespace fencepost::evm
