#include "pg/halving.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "pg/error.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::pg {
namespace {

using Texts = std::vector<std::string>;
using Write = std::function<awaitable<Texts>(std::span<const int>)>;

// The answers, and the messages of errors.
Texts texts(const std::vector<Outcome<std::string>>& outcomes) {
  Texts out;
  for (const auto& one : outcomes) out.push_back(one ? *one : error_of(one.error()).message);
  return out;
}

Texts write_all(const std::vector<int>& items, const Write& write) {
  return texts(run_blocking(write_or_halve<std::string>(std::span<const int>(items), write)));
}

// Writes a set of numbers unless it contains one of `bad`, and records every set that was tried.
struct Table {
  std::vector<int> bad;
  std::string sqlstate = "23514";  // check_violation
  std::vector<std::vector<int>> tried;

  awaitable<Texts> insert(std::span<const int> some) {
    tried.emplace_back(some.begin(), some.end());
    for (const auto item : some) {
      if (std::ranges::count(bad, item) > 0) throw QueryError("insert", sqlstate, "refused", "");
    }
    co_return Texts(some.size(), "written");
  }
  Texts write(const std::vector<int>& items) {
    return write_all(items, [this](std::span<const int> some) { return insert(some); });
  }
};

TEST(pg_halving, an_accepted_set_is_written_once) {
  Table table;
  EXPECT_EQ(table.write({1, 2, 3}), (Texts{"written", "written", "written"}));
  EXPECT_EQ(table.tried.size(), 1U);
}

TEST(pg_halving, a_refused_item_fails_alone_and_the_rest_is_written_in_order) {
  Table table{.bad = {3}};
  EXPECT_EQ(table.write({1, 2, 3, 4, 5}), (Texts{"written", "written", "refused", "written", "written"}));
  table = {.bad = {1, 5}};
  EXPECT_EQ(table.write({1, 2, 3, 4, 5}), (Texts{"refused", "written", "written", "written", "refused"}));
}

TEST(pg_halving, a_lock_that_another_session_holds_fails_one_item) {
  Table table{.bad = {2}, .sqlstate = "55P03"};
  EXPECT_EQ(table.write({1, 2}), (Texts{"written", "refused"}));
}

TEST(pg_halving, an_error_that_no_item_caused_is_thrown_without_halving) {
  Table table{.bad = {2}, .sqlstate = "57P01"};  // admin_shutdown
  EXPECT_THROW(table.write({1, 2}), QueryError);
  EXPECT_EQ(table.tried.size(), 1U);
}

TEST(pg_halving, the_caller_may_decide_which_errors_one_item_causes) {
  const std::vector<int> items{1, 2};
  const auto write = [](std::span<const int> some) -> awaitable<Texts> {
    if (some.back() == 2) throw Exception(unavailable("lease_locked", "locked"));
    co_return Texts(some.size(), "written");
  };
  const auto locked = [](const Exception& error) { return error.error().code == "lease_locked"; };
  EXPECT_EQ(texts(run_blocking(write_or_halve<std::string>(std::span<const int>(items), write, locked))),
            (Texts{"written", "locked"}));
}

// The first half may have been written: its answers must not be lost when the second half fails.
TEST(pg_halving, a_half_that_fails_otherwise_is_answered_item_by_item) {
  bool down = false;
  const auto insert = [&](std::span<const int> some) -> awaitable<Texts> {
    if (down) throw QueryError("insert", "57P01", "gone", "");
    if (some.size() == 4) throw QueryError("insert", "23514", "refused", "");
    down = true;
    co_return Texts(some.size(), "written");
  };
  EXPECT_EQ(write_all({1, 2, 3, 4}, insert), (Texts{"written", "written", "gone", "gone"}));
}

TEST(pg_halving, a_write_that_loses_an_answer_is_a_bug) {
  const auto forgets = [](std::span<const int>) -> awaitable<Texts> { co_return Texts{"written"}; };
  EXPECT_THROW(write_all({1, 2}, forgets), Exception);
}

}  // namespace
}  // namespace fencepost::pg
