#include "timelock/workers/endpoint_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::timelock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(endpoint_choice, the_endpoint_that_gave_the_last_good_answer_is_the_first) {
  EndpointChoice choice("main");
  const std::vector<evm::EndpointStatus> endpoints(3);
  EXPECT_THAT(choice.order(endpoints), ElementsAre(0, 1, 2));
  choice.answered(2, "c", unavailable("endpoint_behind", "…"));
  EXPECT_THAT(choice.order(endpoints), ElementsAre(2, 0, 1));
  choice.answered(0, "a", std::nullopt);
  EXPECT_THAT(choice.order(endpoints), ElementsAre(0, 1, 2));
}

TEST(endpoint_choice, endpoints_in_cooldown_are_the_last_and_those_of_another_chain_are_not_asked) {
  EndpointChoice choice("main");
  choice.answered(1, "b", std::nullopt);
  std::vector<evm::EndpointStatus> endpoints(4);
  endpoints[0].cooling_until = TimePoint(std::chrono::seconds(9));
  endpoints[1].cooling_until = TimePoint(std::chrono::seconds(5));
  endpoints[2].wrong_chain = true;
  EXPECT_THAT(choice.order(endpoints), ElementsAre(3, 1, 0));
  endpoints.assign(2, {});
  for (auto& endpoint : endpoints) endpoint.wrong_chain = true;
  EXPECT_THAT(choice.order(endpoints), IsEmpty());
}

TEST(endpoint_choice, the_error_that_needs_an_operator_is_reported) {
  const auto error = [](std::string code) { return unavailable(std::move(code), "…"); };
  EXPECT_EQ(more_telling(error("rpc_unavailable"), error("logs_withheld")).code, "logs_withheld");
  EXPECT_EQ(more_telling(error("logs_withheld"), error("endpoint_behind")).code, "logs_withheld");
  EXPECT_EQ(more_telling(error("endpoint_behind"), error("bad_rpc_result")).code, "bad_rpc_result");
  EXPECT_EQ(more_telling(error("rpc_unavailable"), error("endpoint_behind")).code, "endpoint_behind");
  EXPECT_EQ(more_telling(error("one"), error("another")).code, "one");
}

}  // namespace
}  // namespace fencepost::timelock
