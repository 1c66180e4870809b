#include "pg/halving.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "pg/error.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::pg {
namespace {

using Answers = std::vector<std::string>;

// Writes a set of numbers unless one of `bad` is in it; notes every set that was tried.
struct Table {
  std::vector<int> bad;
  std::string sqlstate = "23514";  // check_violation
  std::vector<std::vector<int>> tried;

  Answers write(std::vector<int> items) {
    const std::function<awaitable<Answers>(std::span<const int>)> insert =
        [this](std::span<const int> some) -> awaitable<Answers> {
      tried.emplace_back(some.begin(), some.end());
      for (const auto item : some) {
        if (std::ranges::count(bad, item) > 0) throw QueryError("insert", sqlstate, "refused", "");
      }
      co_return Answers(some.size(), "written");
    };
    const std::function<std::string(const int&, const std::exception_ptr&)> alone =
        [](const int& item, const std::exception_ptr&) { return "refused " + std::to_string(item); };
    return run_blocking(write_or_halve<int, std::string>(items, insert, alone));
  }
};

TEST(pg_halving, a_set_that_is_taken_is_written_once) {
  Table table;
  EXPECT_EQ(table.write({1, 2, 3}), (Answers{"written", "written", "written"}));
  EXPECT_EQ(table.tried.size(), 1U);
}

TEST(pg_halving, one_that_is_refused_fails_alone_and_the_rest_is_written_in_order) {
  Table table{.bad = {3}};
  EXPECT_EQ(table.write({1, 2, 3, 4, 5}), (Answers{"written", "written", "refused 3", "written", "written"}));
  table = {.bad = {1, 5}};
  EXPECT_EQ(table.write({1, 2, 3, 4, 5}), (Answers{"refused 1", "written", "written", "written", "refused 5"}));
}

TEST(pg_halving, a_lock_that_is_not_had_may_be_one_items_too) {
  Table table{.bad = {2}, .sqlstate = "55P03"};
  EXPECT_EQ(table.write({1, 2}), (Answers{"written", "refused 2"}));
}

TEST(pg_halving, what_is_nobodys_fault_is_thrown_before_anything_is_halved) {
  Table table{.bad = {2}, .sqlstate = "57P01"};  // admin_shutdown
  EXPECT_THROW(table.write({1, 2}), QueryError);
  EXPECT_EQ(table.tried.size(), 1U);
}

// The first half may have been written: its answers must not be lost with the second.
TEST(pg_halving, a_half_that_fails_otherwise_is_answered_item_by_item) {
  bool down = false;
  const std::vector<int> items{1, 2, 3, 4};
  const std::function<awaitable<Answers>(std::span<const int>)> insert =
      [&](std::span<const int> some) -> awaitable<Answers> {
    if (down) throw QueryError("insert", "57P01", "gone", "");
    if (some.size() == 4) throw QueryError("insert", "23514", "refused", "");
    down = true;
    co_return Answers(some.size(), "written");
  };
  const std::function<std::string(const int&, const std::exception_ptr&)> alone =
      [](const int& item, const std::exception_ptr&) { return "unknown " + std::to_string(item); };
  EXPECT_EQ((run_blocking(write_or_halve<int, std::string>(items, insert, alone))),
            (Answers{"written", "written", "unknown 3", "unknown 4"}));
}

}  // namespace
}  // namespace fencepost::pg
