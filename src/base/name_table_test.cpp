#include "base/name_table.hpp"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace fencepost {
namespace {

enum class Colour { kRed, kGreen };

constexpr auto kColours = name_table<Colour>({{Colour::kRed, "red", "Stop."}, {Colour::kGreen, "green", "Go."}});
static_assert(kColours.name(Colour::kGreen) == "green");
static_assert(kColours.find("red") == Colour::kRed);
static_assert(kColours.size() == 2);

TEST(name_table, finds_each_name_and_no_other) {
  for (const auto& row : kColours) EXPECT_EQ(kColours.find(row.name), row.value);
  EXPECT_EQ(kColours.find("Red"), std::nullopt);
  EXPECT_EQ(kColours.find(""), std::nullopt);
}

TEST(name_table, lists_its_rows_in_order) {
  std::string all;
  for (const auto& [value, name, meaning] : kColours) all.append(name).append(": ").append(meaning).append(" ");
  EXPECT_EQ(all, "red: Stop. green: Go. ");
}

TEST(name_table, refuses_rows_out_of_order_and_repeated_names) {
  EXPECT_THROW(name_table<Colour>({{Colour::kGreen, "green"}, {Colour::kRed, "red"}}), std::logic_error);
  EXPECT_THROW(name_table<Colour>({{Colour::kRed, "red"}, {Colour::kGreen, "red"}}), std::logic_error);
}

}  // namespace
}  // namespace fencepost
