#include "base/lifecycle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

enum class Parcel { kPacked, kSent, kLost, kDelivered, kCancelled };

constexpr auto kParcel = lifecycle<Parcel>(
    "parcel", {
                  {Parcel::kPacked, "PACKED", {{Parcel::kSent, "picked up"}, Parcel::kCancelled}},
                  {Parcel::kSent, "SENT", {{Parcel::kLost, "no scan for 7 days"}, Parcel::kDelivered}},
                  {Parcel::kLost, "LOST", {Parcel::kSent, Parcel::kLost, Parcel::kDelivered}},
                  {Parcel::kDelivered, "DELIVERED", {}},
                  {Parcel::kCancelled, "CANCELLED", {}},
              });

static_assert(kParcel.size() == 5);
static_assert(kParcel.initial() == Parcel::kPacked);
static_assert(kParcel.allowed(Parcel::kPacked, Parcel::kSent));
static_assert(kParcel.allowed(Parcel::kLost, Parcel::kLost));
static_assert(!kParcel.allowed(Parcel::kPacked, Parcel::kPacked));
static_assert(!kParcel.allowed(Parcel::kDelivered, Parcel::kSent));
static_assert(kParcel.terminal(Parcel::kDelivered) && kParcel.terminal(Parcel::kCancelled));
static_assert(!kParcel.terminal(Parcel::kLost));
static_assert(kParcel.name(Parcel::kLost) == "LOST");
static_assert(kParcel.find("SENT") == Parcel::kSent);
static_assert(!kParcel.find("sent"));

constexpr auto kShop = lifecycle<Parcel>(
    "shop",
    {{Parcel::kPacked, "OPEN", {Parcel::kSent}}, {Parcel::kSent, "SHUT", {{Parcel::kPacked, "", ExitKind::kReopens}}}});
static_assert(kShop.terminal(Parcel::kSent));
static_assert(!kShop.allowed(Parcel::kSent, Parcel::kPacked));
static_assert(kShop.reopens(Parcel::kSent, Parcel::kPacked) && !kShop.reopens(Parcel::kPacked, Parcel::kSent));

constexpr auto kMoment = lifecycle<Parcel>("moment", {{Parcel::kPacked, "ONLY", {}}});
static_assert(kMoment.terminal(kMoment.initial()));

TEST(lifecycle, lists_the_states_that_may_precede_one) {
  EXPECT_THAT(kParcel.from_states(Parcel::kDelivered), ElementsAre("SENT", "LOST"));
  EXPECT_THAT(kParcel.from_states(Parcel::kSent), ElementsAre("PACKED", "LOST"));
  EXPECT_THAT(kParcel.from_states(Parcel::kPacked), IsEmpty());
}

TEST(lifecycle, every_pair_agrees_with_the_list) {
  for (std::size_t f = 0; f < kParcel.size(); ++f) {
    for (std::size_t t = 0; t < kParcel.size(); ++t) {
      const auto from = static_cast<Parcel>(f);
      const auto to = static_cast<Parcel>(t);
      const auto list = kParcel.from_states(to);
      EXPECT_EQ(kParcel.allowed(from, to), std::ranges::find(list, kParcel.name(from)) != list.end())
          << kParcel.name(from) << " to " << kParcel.name(to);
    }
  }
}

TEST(lifecycle, lists_all_states_and_the_terminal_ones) {
  EXPECT_THAT(kParcel.terminal_states(), ElementsAre("DELIVERED", "CANCELLED"));
  EXPECT_THAT(kParcel.names(), ElementsAre("PACKED", "SENT", "LOST", "DELIVERED", "CANCELLED"));
}

TEST(lifecycle, draws_itself) {
  EXPECT_EQ(kParcel.machine(), "parcel");
  EXPECT_EQ(kParcel.mermaid(),
            "stateDiagram-v2\n"
            "    [*] --> PACKED\n"
            "    PACKED --> SENT : picked up\n"
            "    PACKED --> CANCELLED\n"
            "    SENT --> LOST : no scan for 7 days\n"
            "    SENT --> DELIVERED\n"
            "    LOST --> SENT\n"
            "    LOST --> LOST\n"
            "    LOST --> DELIVERED\n"
            "    DELIVERED --> [*]\n"
            "    CANCELLED --> [*]\n");
}

using enum Parcel;

std::string broken_rule(std::initializer_list<LifecycleRow<Parcel>> rows) {
  try {
    if (rows.size() == 1) {
      lifecycle<Parcel>("t", {rows.begin()[0]});
    } else if (rows.size() == 2) {
      lifecycle<Parcel>("t", {rows.begin()[0], rows.begin()[1]});
    } else {
      lifecycle<Parcel>("t", {rows.begin()[0], rows.begin()[1], rows.begin()[2]});
    }
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return "";
}

TEST(lifecycle, refuses_a_table_that_breaks_a_rule) {
  EXPECT_EQ(broken_rule({{kPacked, "A", {kSent}}, {kSent, "B", {}}}), "");
  EXPECT_EQ(broken_rule({{kSent, "A", {kPacked}}, {kPacked, "B", {}}}),
            "rows must come in the order of the enumerators");
  EXPECT_EQ(broken_rule({{kPacked, "A,B", {}}}), "names must be letters digits and underscores");
  EXPECT_EQ(broken_rule({{kPacked, "", {}}}), "names must be letters digits and underscores");
  EXPECT_EQ(broken_rule({{kPacked, "A", {kSent}}, {kSent, "A", {}}}), "names must differ");
  EXPECT_EQ(broken_rule({{kPacked, "A", {kSent, kLost}}, {kSent, "B", {}}}), "exits must lead to states of the table");
  EXPECT_EQ(broken_rule({{kPacked, "A", {kSent, kSent}}, {kSent, "B", {}}}), "exits of a state must differ");
  EXPECT_EQ(broken_rule({{kPacked, "A", {kSent}}, {kSent, "B", {}}, {kLost, "C", {kSent}}}),
            "every state must be reachable from the first");
  EXPECT_EQ(broken_rule({{kPacked, "A", {kSent, kLost}}, {kSent, "B", {kSent}}, {kLost, "C", {}}}),
            "every state must be able to reach a terminal one");
}

}  // namespace
}  // namespace fencepost
