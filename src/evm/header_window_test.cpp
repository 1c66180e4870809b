#include "evm/header_window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Block `number` of branch `branch`, whose parent is on branch `from` (the same unless it forks there).
BlockHeader header(std::int64_t number, char branch = 'a', char from = 0) {
  const auto name = [](std::int64_t n, char b) { return fmt::format("0x{}{}", b, n); };
  return {number, name(number, branch), name(number - 1, from == 0 ? branch : from), number * 10, std::nullopt};
}

std::vector<BlockHeader> run(std::int64_t first, std::int64_t last, char branch = 'a', char from = 0) {
  std::vector<BlockHeader> headers;
  for (auto n = first; n <= last; ++n) headers.push_back(header(n, branch, n == first ? from : char{0}));
  return headers;
}

std::vector<std::string> hashes(const std::vector<BlockHeader>& headers) {
  std::vector<std::string> out;
  out.reserve(headers.size());
  for (const auto& h : headers) out.push_back(h.hash);
  return out;
}

TEST(header_window, an_empty_window_has_no_headers) {
  const HeaderWindow window(4);
  EXPECT_EQ(window.head(), nullptr);
  EXPECT_EQ(window.bottom(), nullptr);
  EXPECT_EQ(window.find(0), nullptr);
  EXPECT_EQ(window.contains(0, "0xa0"), std::nullopt);
  EXPECT_THAT(window.confirmations(0, "0xa0"), IsEmpty());
}

TEST(header_window, is_extended_by_new_headers) {
  HeaderWindow window(8);
  ASSERT_TRUE(window.apply(run(5, 7)));
  const auto applied = window.apply(run(8, 9));
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->reorged_to, std::nullopt);
  EXPECT_EQ(window.head()->hash, "0xa9");
  EXPECT_EQ(window.bottom()->hash, "0xa5");
  EXPECT_EQ(window.find(6)->hash, "0xa6");
  EXPECT_EQ(window.find(4), nullptr);
  EXPECT_EQ(window.find(10), nullptr);
  EXPECT_EQ(window.contains(6, "0xa6"), true);
  EXPECT_EQ(window.contains(6, "0xb6"), false);
  EXPECT_EQ(window.contains(4, "0xa4"), std::nullopt);
  EXPECT_EQ(window.contains(10, "0xa10"), std::nullopt);
  EXPECT_THAT(hashes(window.confirmations(7, "0xa7")), ElementsAre("0xa7", "0xa8", "0xa9"));
  EXPECT_THAT(hashes(window.confirmations(9, "0xa9")), ElementsAre("0xa9"));
  EXPECT_THAT(window.confirmations(7, "0xb7"), IsEmpty());
  EXPECT_THAT(window.confirmations(4, "0xa4"), IsEmpty());
}

TEST(header_window, drops_the_oldest_when_full) {
  HeaderWindow window(3);
  ASSERT_TRUE(window.apply(run(1, 2)));
  ASSERT_TRUE(window.apply(run(3, 10)));
  EXPECT_EQ(window.size(), 3U);
  EXPECT_EQ(window.bottom()->number, 8);
  EXPECT_EQ(window.head()->number, 10);
}

TEST(header_window, a_branch_replaces_what_is_above_its_root) {
  HeaderWindow window(8);
  ASSERT_TRUE(window.apply(run(1, 6)));
  const auto applied = window.apply(run(4, 7, 'b', 'a'));
  ASSERT_TRUE(applied) << applied.error().to_string();
  EXPECT_EQ(applied->reorged_to, 3);
  EXPECT_EQ(window.head()->hash, "0xb7");
  EXPECT_EQ(window.contains(3, "0xa3"), true);
  EXPECT_EQ(window.contains(4, "0xa4"), false);
  EXPECT_EQ(window.size(), 7U);
}

TEST(header_window, a_shorter_branch_replaces_a_longer_one) {
  HeaderWindow window(8);
  ASSERT_TRUE(window.apply(run(1, 6)));
  EXPECT_EQ(window.apply(run(3, 3, 'b', 'a'))->reorged_to, 2);
  EXPECT_EQ(window.head()->hash, "0xb3");
  EXPECT_EQ(window.find(4), nullptr);
}

TEST(header_window, the_same_blocks_again_are_a_reorg_to_the_parent_of_the_first) {
  HeaderWindow window(8);
  ASSERT_TRUE(window.apply(run(1, 6)));
  EXPECT_EQ(window.apply(run(5, 6))->reorged_to, 4);
  EXPECT_EQ(window.head()->hash, "0xa6");
}

TEST(header_window, headers_that_do_not_link_are_refused_and_change_nothing) {
  HeaderWindow window(8);
  ASSERT_TRUE(window.apply(run(3, 6)));
  const std::vector<std::pair<std::string, std::vector<BlockHeader>>> cases{
      {"a gap", run(8, 9)},
      {"another branch", run(7, 8, 'b')},
      {"a root below the window", run(2, 9, 'b', 'a')},
      {"the bottom itself replaced", run(3, 9, 'b', 'a')},
      {"a break inside", {header(7), header(8, 'b')}},
      {"a number twice", {header(7), header(7)}},
      {"backwards", {header(8), header(7)}},
  };
  for (const auto& [name, headers] : cases) {
    SCOPED_TRACE(name);
    const auto applied = window.apply(headers);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code, "not_linked");
    EXPECT_EQ(window.head()->hash, "0xa6");
    EXPECT_EQ(window.size(), 4U);
  }
  EXPECT_TRUE(window.apply({}));
  EXPECT_EQ(window.size(), 4U);
}

TEST(header_window, older_headers_are_added_as_far_as_they_link) {
  HeaderWindow window(6);
  ASSERT_TRUE(window.apply(run(10, 11)));
  auto older = run(5, 9);
  older[1] = header(6, 'b');
  window.prepend(older);
  EXPECT_EQ(window.bottom()->number, 7);
  window.prepend(std::vector{header(5), header(6, 'c'), header(6), header(6, 'b')});
  EXPECT_EQ(window.bottom()->hash, "0xa6");
  window.prepend(run(1, 5));
  EXPECT_EQ(window.bottom()->number, 6);
  EXPECT_EQ(window.size(), 6U);
  HeaderWindow fresh(6);
  fresh.prepend(run(1, 2));
  EXPECT_TRUE(fresh.empty());
}

TEST(header_window, random_histories_match_a_plain_model) {
  // The model is a list of hashes by number; the window must agree with it wherever it answers.
  std::uint64_t seed = 42;
  const auto random = [&](std::uint64_t below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33U) % below;
  };
  HeaderWindow window(16);
  std::vector<BlockHeader> model{{0, "0xg", "", 0, std::nullopt}};
  ASSERT_TRUE(window.apply(model));
  for (int step = 0; step < 5'000; ++step) {
    const auto depth = random(4) == 0 ? random(std::min<std::size_t>(window.size(), 8)) : 0;
    const auto keep = model.size() - depth;
    std::vector<BlockHeader> fresh;
    auto parent = model[keep - 1];
    for (std::uint64_t i = 0; i <= random(5); ++i) {
      fresh.push_back({parent.number + 1, fmt::format("0x{}.{}", step, i), parent.hash, 0, std::nullopt});
      parent = fresh.back();
    }
    const auto applied = window.apply(fresh);
    ASSERT_TRUE(applied) << applied.error().to_string();
    ASSERT_EQ(applied->reorged_to.has_value(), depth > 0);
    if (depth > 0) ASSERT_EQ(*applied->reorged_to, model[keep - 1].number);
    model.resize(keep);
    model.insert(model.end(), fresh.begin(), fresh.end());
    ASSERT_EQ(*window.head(), model.back());
    ASSERT_LE(window.size(), 16U);
    for (const auto& expected : model) {
      if (const auto* found = window.find(expected.number)) ASSERT_EQ(*found, expected);
    }
    const auto pick = model[model.size() - 1 - random(std::min<std::size_t>(window.size(), model.size()))];
    const auto list = window.confirmations(pick.number, pick.hash);
    ASSERT_EQ(static_cast<std::int64_t>(list.size()), model.back().number - pick.number + 1);
    if (model.size() > 2'000) model.erase(model.begin(), model.end() - 100);
  }
}

}  // namespace
}  // namespace fencepost::evm
