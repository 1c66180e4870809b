#include "tx/model/fees.hpp"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using evm::DynamicFees;
using evm::Fees;
using evm::LegacyFees;

const Uint256 kLargest = std::numeric_limits<Uint256>::max();
const FeeQuote kQuote{.next_base_fee = 100, .tip = 7};
const FeeQuote kLegacyQuote{.gas_price = 50};

TEST(fees, the_default_cap_is_four_base_fees_and_the_tip) {
  EXPECT_EQ(price({}, kQuote, {}), Fees(DynamicFees{407, 7}));
  EXPECT_EQ(price({}, kQuote, {.base_fee_multiplier = 2}), Fees(DynamicFees{207, 7}));
  EXPECT_EQ(price({}, {.next_base_fee = 0, .tip = 1}, {}), Fees(DynamicFees{1, 1}));
}

TEST(fees, a_chain_without_a_base_fee_has_a_gas_price) {
  EXPECT_EQ(price({}, kLegacyQuote, {}), Fees(LegacyFees{50}));
  const auto refused = price({.max_fee_per_gas = 9}, kLegacyQuote, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "no_dynamic_fees");
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnprocessable);
}

TEST(fees, fixed_fees_ignore_the_market) {
  const FeeOptions options{.fixed = DynamicFees{30, 3}};
  EXPECT_EQ(price({}, kQuote, options), Fees(DynamicFees{30, 3}));
  EXPECT_EQ(price({}, kLegacyQuote, {.fixed = LegacyFees{4}}), Fees(LegacyFees{4}));
}

TEST(fees, the_callers_own_fees_come_first) {
  for (const FeeOptions& options : {FeeOptions{}, FeeOptions{.fixed = DynamicFees{30, 3}}}) {
    EXPECT_EQ(price({.gas_price = 9}, kQuote, options), Fees(LegacyFees{9}));
    EXPECT_EQ(price({.gas_price = 9}, kLegacyQuote, options), Fees(LegacyFees{9}));
    EXPECT_EQ(price({.max_fee_per_gas = 90, .max_priority_fee_per_gas = 8}, kQuote, options), Fees(DynamicFees{90, 8}));
  }
}

TEST(fees, a_cap_without_a_tip_gets_the_quoted_one_as_far_as_it_allows) {
  EXPECT_EQ(price({.max_fee_per_gas = 90}, kQuote, {}), Fees(DynamicFees{90, 7}));
  EXPECT_EQ(price({.max_fee_per_gas = 5}, kQuote, {}), Fees(DynamicFees{5, 5}));
}

TEST(fees, a_ceiling_lowers_the_cap_as_far_as_the_next_block_allows) {
  EXPECT_EQ(price({}, kQuote, {}, Uint256(500)), Fees(DynamicFees{407, 7}));
  EXPECT_EQ(price({}, kQuote, {}, Uint256(150)), Fees(DynamicFees{150, 7}));
  EXPECT_EQ(price({}, kQuote, {}, Uint256(107)), Fees(DynamicFees{107, 7}));
  EXPECT_EQ(price({}, kLegacyQuote, {}, Uint256(50)), Fees(LegacyFees{50}));
}

TEST(fees, fees_above_the_ceiling_are_refused) {
  const auto refused = [](const Payload& payload, const FeeQuote& quote, const FeeOptions& options, int ceiling) {
    const auto fees = price(payload, quote, options, Uint256(ceiling));
    return fees ? "" : fees.error().code;
  };
  EXPECT_EQ(refused({}, kQuote, {}, 106), "fee_above_ceiling");
  EXPECT_EQ(refused({}, kLegacyQuote, {}, 49), "fee_above_ceiling");
  EXPECT_EQ(refused({}, kQuote, {.fixed = DynamicFees{30, 3}}, 29), "fee_above_ceiling");
  EXPECT_EQ(refused({.gas_price = 9}, kQuote, {}, 8), "fee_above_ceiling");
  EXPECT_EQ(refused({.max_fee_per_gas = 9}, kQuote, {}, 8), "fee_above_ceiling");
  EXPECT_EQ(refused({.max_fee_per_gas = 9}, kQuote, {}, 9), "");
}

TEST(fees, the_tightest_ceiling_holds) {
  const FeeCeiling chain{.max_fee_per_gas = 100, .max_total_fee = {}};
  const FeeCeiling signer{.max_fee_per_gas = 200, .max_total_fee = 1000};
  EXPECT_EQ(chain.tightest(signer), (FeeCeiling{.max_fee_per_gas = 100, .max_total_fee = 1000}));
  EXPECT_EQ(chain.tightest({}), chain);
  EXPECT_EQ(chain.per_gas(50), Uint256(100));
  EXPECT_EQ(chain.tightest(signer).per_gas(50), Uint256(20));
  EXPECT_EQ(chain.tightest(signer).per_gas(5), Uint256(100));
  EXPECT_EQ(FeeCeiling{}.per_gas(50), std::nullopt);
  EXPECT_EQ((FeeCeiling{.max_fee_per_gas = {}, .max_total_fee = kLargest}.per_gas(1)), kLargest);
}

TEST(fees, a_quote_that_overflows_is_refused) {
  const Uint256 quarter = kLargest / 4;
  EXPECT_EQ(price({}, {.next_base_fee = quarter, .tip = 3}, {}), Fees(DynamicFees{kLargest, 3}));
  for (const FeeQuote& quote :
       {FeeQuote{quarter, 4, {}}, FeeQuote{quarter + 1, 0, {}}, FeeQuote{kLargest, kLargest, {}}}) {
    const auto refused = price({}, quote, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "bad_fee_quote");
    EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  }
}

TEST(fees, the_tip_is_the_median_within_bounds) {
  const FeeOptions options{.min_tip = 2, .max_tip = 50};
  EXPECT_EQ(choose_tip({9, 3, 5}, options), 5);
  EXPECT_EQ(choose_tip({9, 3, 5, 7}, options), 7);
  EXPECT_EQ(choose_tip({4}, options), 4);
  EXPECT_EQ(choose_tip({}, options), 2);
  EXPECT_EQ(choose_tip({0, 0, 0}, options), 2);
  EXPECT_EQ(choose_tip({kLargest, kLargest, 1}, options), 50);
  EXPECT_EQ(choose_tip({5}, {.min_tip = 20, .max_tip = 10}), 10);
  EXPECT_EQ(choose_tip({0}, {}), 1);
}

TEST(fees, a_cancel_offers_a_tenth_more_or_the_current_fees) {
  struct Case {
    Fees old;
    Fees current;
    Fees cancel;
  };
  const Case cases[] = {
      {DynamicFees{100, 10}, DynamicFees{50, 5}, DynamicFees{110, 11}},
      {DynamicFees{101, 11}, DynamicFees{50, 5}, DynamicFees{112, 13}},
      {DynamicFees{109, 1}, DynamicFees{50, 0}, DynamicFees{120, 2}},
      {DynamicFees{100, 10}, DynamicFees{500, 5}, DynamicFees{500, 11}},
      {DynamicFees{100, 10}, DynamicFees{500, 60}, DynamicFees{500, 60}},
      {DynamicFees{100, 0}, DynamicFees{50, 0}, DynamicFees{110, 1}},
      {LegacyFees{100}, LegacyFees{50}, LegacyFees{110}},
      {LegacyFees{100}, LegacyFees{500}, LegacyFees{500}},
      {LegacyFees{0}, LegacyFees{0}, LegacyFees{1}},
      {LegacyFees{100}, DynamicFees{500, 5}, DynamicFees{500, 110}},
      {DynamicFees{100, 10}, LegacyFees{50}, LegacyFees{110}},
  };
  for (const auto& c : cases) EXPECT_EQ(cancel_price(c.old, c.current), c.cancel) << fees_json(c.cancel);
}

TEST(fees, a_cancel_is_accepted_as_a_replacement) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 10'000; ++i) {
    const auto any = [&] { return Uint256(random() >> (random() % 64)); };
    const auto offer = [&] {
      const auto tip = any();
      return DynamicFees{tip + any(), tip};
    };
    const auto old = offer();
    const auto current = offer();
    const auto cancel = std::get<DynamicFees>(cancel_price(old, current).value());
    const auto replaces = [](const Uint256& now, const Uint256& before) {
      return now * 100 >= before * 110 && now > before;
    };
    EXPECT_TRUE(replaces(cancel.max_fee_per_gas, old.max_fee_per_gas)) << i;
    EXPECT_TRUE(replaces(cancel.max_priority_fee_per_gas, old.max_priority_fee_per_gas)) << i;
    EXPECT_GE(cancel.max_fee_per_gas, current.max_fee_per_gas);
    EXPECT_GE(cancel.max_fee_per_gas, cancel.max_priority_fee_per_gas);
  }
}

TEST(fees, a_cancel_that_overflows_is_refused) {
  for (const Fees& old : {Fees(DynamicFees{kLargest, 1}), Fees(LegacyFees{kLargest - 1})}) {
    const auto refused = cancel_price(old, DynamicFees{1, 1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "fee_overflow");
  }
}

TEST(fees, stored_fees_are_read_back) {
  EXPECT_EQ(fees_json(LegacyFees{5}), R"({"gasPrice":"5"})");
  EXPECT_EQ(fees_json(DynamicFees{kLargest, 1}),
            R"({"maxFeePerGas":")" + to_decimal(kLargest) + R"(","maxPriorityFeePerGas":"1"})");
  for (const Fees& fees : {Fees(LegacyFees{5}), Fees(DynamicFees{kLargest, 1})}) {
    EXPECT_EQ(stored_fees(fees_json(fees)), fees);
  }
  for (const auto* text : {"", "{}", R"({"maxFeePerGas":"1"})", R"({"gasPrice":1})", R"({"gasPrice":"1","x":1})"}) {
    try {
      stored_fees(text);
      ADD_FAILURE() << text;
    } catch (const Exception& e) {
      EXPECT_EQ(e.error().code, "bad_stored_fees") << text;
    }
  }
}

}  // namespace
}  // namespace fencepost::tx
