#include "evm/logs/log_refusal.hpp"

#include <gtest/gtest.h>

#include "evm/reply/rpc_reply.hpp"

namespace fencepost::evm {
namespace {

Error answer(std::int64_t code, std::string message, std::string data = {}) {
  Error error{ErrorKind::kUnprocessable, "rpc_error", std::move(message), {}, {}};
  error.with("rpcCode", std::to_string(code));
  if (!data.empty()) error.with("data", std::move(data));
  return error;
}

struct Refused {
  std::string source;
  std::int64_t code;
  std::string message;
  std::optional<std::int64_t> span = {};
  std::string data = {};
};

// The texts as the nodes and providers send them.
const std::vector<Refused> kRefused{
    {"geth", -32000, "exceed maximum block range: 10000", 10'000},
    {"geth, Infura, zkEVM", -32005, "query returned more than 10000 results"},
    {"erigon range", -32000, "query block range exceeds server limit, narrow your filter: 1000", 1'000},
    {"erigon logs", -32000, "query returns too many logs, narrow your filter: 20000"},
    {"cdk-erigon", -32005, "block range too large, max range: 1000", 1'000},
    {"Nethermind", -32005, "Too many logs requested. Max logs per response is 20000."},
    {"Besu", -32005, "Requested range exceeds maximum RPC range limit"},
    {"reth range", -32602, "query exceeds max block range 100000", 100'000},
    {"reth logs", -32602, "query exceeds max results 20000, retry with the range 24383075-24383096", 22},
    {"anvil", -32602, "block range too large, currently limited to 300", 300},
    {"Alchemy size", -32602,
     "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the "
     "response size, or you can request any block range with a cap of 10K logs in the response. Based on your "
     "parameters and the response size limit, this block range should work: [0xc5dc00, 0xc614a7]",
     14'504},
    {"Alchemy range", -32600,
     "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range "
     "should work: [0x123c9b2, 0x123cba5]",
     500},
    {"Alchemy time", -32000,
     "Query timeout exceeded. Consider reducing your block range. Based on your parameters and the response size "
     "limit, this block range should work: [0x42b950f, 0x435784f]",
     648'001},
    {"Alchemy without a range", -32602,
     "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the "
     "response size",
     2'000},
    {"Infura range", -32602, "range 1000000 exceeds limit of 10000", 10'000},
    {"Infura logs", -32005, "query returned more than 10000 results. Try with this block range [0x17A2B8F, 0x17A2BA1].",
     19},
    {"Infura time", -32005, "query timeout exceeded"},
    {"QuickNode", -32614, "eth_getLogs is limited to a 10,000 range", 10'000},
    {"QuickNode, longer", -32602, "eth_getLogs and eth_newFilter are limited to a 10,000 blocks range", 10'000},
    {"Ankr", -32600, "block range is too wide"},
    {"Ankr TAC", -32000, "maximum [from, to] blocks distance: 10000", 10'000},
    {"Cloudflare", -32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", 800},
    {"BSC", -32000, "exceed maximum block range: 5000", 5'000},
    {"PublicNode", -32701, "exceed maximum block range: 50000", 50'000},
    {"Polygon", -32000, "eth_getLogs block range too large, range: 99991, max: 3500", 3'500},
    {"Optimism size", -32020, "backend response too large"},
    {"Optimism range", -32000, "Block range is too large"},
    {"Base", -32614, "block range too large"},
    {"Arbitrum", -32000, "logs matched by query exceeds limit of 10000"},
    {"zkSync", -32602, "Query returned more than 10000 results. Try with this block range [0x1, 0x64].", 100},
    {"Avalanche", -32000, "requested too many blocks from 1 to 50000, maximum is set to 2048", 2'048},
    {"Scroll", -32000, "block range is bigger than maxBlockRange"},
    {"Morph", -32000, "block range is larger than max block range, block range = 5120, max block range = 5000", 5'000},
    {"Ink, X Layer", -32602, "block range greater than 100 max", 100},
    {"Moonbeam", -32603, "block range is too wide (maximum 1024)", 1'024},
    {"Moonbeam time", -32603, "query timeout of 10 seconds exceeded"},
    {"Candle", -32600, "block range too high"},
    {"thirdweb", -32602, "Maximum allowed number of requested blocks is 1000", 1'000},
    {"Coinbase", -32005, "please limit the query to at most 1000 blocks", 1'000},
    {"Chainstack", -32602, "Block range limit exceeded. See more details in the documentation"},
    {"dRPC", 35, "ranges over 10000 blocks are not supported on free plan", 10'000},
    {"1RPC", -32602, "eth_getLogs is limited to 0 - 50 blocks range", 50},
    {"1RPC size", -32602, "response size should not greater than 10000000 bytes"},
    {"BlockPI", -32602, "eth_getLogs is limited to 1024 block range", 1'024},
    {"Merkle", -32602, "eth_getLogs range is too large, max is 10k blocks", 10'000},
    {"Blast", -32000, "exceeds the range allowed for your plan (5000 > 3500)"},
    {"Somnia", -32000, "block range exceeds 1000", 1'000},
    {"Harmony", -32000, "query must be smaller than size 1024", 1'024},
    {"a plan", -32000, "Block range too large: maximum allowed is 50 blocks on your current plan.", 50},
    {"a cap with a hint", -32000,
     "query spans 100000 blocks (511978060 to 512078059), but only 30000 are allowed for this request; narrow the "
     "block range, or add an address filter",
     30'000},
    {"Tenderly, in the data", -32602, "invalid params", 2'000,
     R"({"error_id":"4ed94073","payload":"range 9009594 is bigger than range limit 2000"})"},
};

TEST(log_refusal, a_refused_range_is_recognised_and_its_suggestion_read) {
  for (const auto& refused : kRefused) {
    SCOPED_TRACE(refused.source);
    const auto error = answer(refused.code, refused.message, refused.data);
    EXPECT_TRUE(is_range_too_large(error));
    EXPECT_EQ(suggested_span(error), refused.span);
  }
}

TEST(log_refusal, a_refused_range_is_an_answer_whatever_its_code) {
  for (const auto& refused : kRefused) {
    for (const std::int64_t code : {refused.code, std::int64_t{-32005}, std::int64_t{429}}) {
      EXPECT_FALSE(means_sick_endpoint({code, refused.message, refused.data, ""})) << refused.source;
    }
  }
}

TEST(log_refusal, quotas_and_other_errors_are_not_about_the_range) {
  for (const auto& [code, message] : std::vector<std::pair<std::int64_t, std::string>>{
           {-32005, "daily request count exceeded, request rate limited"},
           {-32005, "Rate limit exceeded"},
           {-32005, "project ID request rate exceeded"},
           {429, "Your app has exceeded its compute units per second capacity"},
           {-32007, "50/second request limit reached - reduce calls per second or upgrade your account"},
           {-32000, "You have sent more than 100 requests per second, results are withheld"},
           {-32029, "Too Many Requests: block range queries are limited to 10 requests per minute"},
           {-32000, "monthly quota exceeded for block range queries"},
           {30, "Request timeout on the free tier, please upgrade your tier to the paid one"},
           {-32000, "execution timeout"},
           {-32000, "unknown block"},
           {-32602, "BlockOutOfRangeError: block height is 1 but requested was 5"},
           {-32000, "header not found"},
           {-32000, "invalid block range params"},
           {-32602, "block range extends beyond current head block"},
           {-32602, "invalid block range, ensure that to block is greater than from block"},
           {-32000, "requested block range is out of bounds"},
           {-32000, "exceed max addresses or topics per search position"},
           {-32602, "Archive requests require a personal token"},
           {-32601, "the method eth_getLogs does not exist"},
           {-32603, "Internal error"},
           {3, "execution reverted"},
           {-32000, ""}}) {
    EXPECT_FALSE(is_range_too_large(answer(code, message))) << message;
    EXPECT_EQ(suggested_span(answer(code, message)), std::nullopt) << message;
  }
}

// BSC's public nodes mean the range by it, EIP-1474 and others the quota.
TEST(log_refusal, a_limit_without_words_about_it_may_be_of_the_range) {
  for (const auto* message : {"limit exceeded", "Limit exceeded", "request exceeds defined limit", ""}) {
    EXPECT_TRUE(is_bare_limit(-32005, message)) << message;
    EXPECT_TRUE(is_range_too_large(answer(-32005, message))) << message;
    EXPECT_EQ(suggested_span(answer(-32005, message)), std::nullopt) << message;
    EXPECT_TRUE(means_sick_endpoint({-32005, message, "", ""})) << "to every other call it is a quota: " << message;
    EXPECT_FALSE(is_bare_limit(-32000, message)) << message;
    EXPECT_FALSE(is_range_too_large(answer(-32000, message))) << message;
  }
  for (const auto* message :
       {"daily request count exceeded, request rate limited", "Rate limit exceeded", "project ID request rate exceeded",
        "Too Many Requests", "request limit reached", "plan limit exceeded", "limit of 10 per second exceeded",
        "API key limit exceeded", "monthly limit exceeded", "not available", "out of credits, limit reached"}) {
    EXPECT_FALSE(is_bare_limit(-32005, message)) << message;
    EXPECT_FALSE(is_range_too_large(answer(-32005, message))) << message;
  }
}

TEST(log_refusal, quotas_mean_a_sick_endpoint_also_when_they_speak_of_ranges) {
  for (const auto* message :
       {"Too Many Requests: block range queries are limited to 10 requests per minute",
        "monthly quota exceeded for block range queries", "rate limit: no more than 100 results per second"}) {
    EXPECT_TRUE(means_sick_endpoint({-32000, message, "", ""})) << message;
  }
}

TEST(log_refusal, an_answer_over_the_clients_limit_is_too_large_and_a_silence_is_not) {
  const auto cause = [](std::string code) {
    return unavailable("rpc_unavailable", "no RPC endpoint answered; block range too large")
        .with("cause", std::move(code));
  };
  EXPECT_TRUE(is_range_too_large(cause("response_too_large")));
  EXPECT_FALSE(is_range_too_large(cause("timeout")));
  EXPECT_FALSE(is_range_too_large(cause("endpoint_sick")));
  EXPECT_FALSE(is_range_too_large(unavailable("bad_rpc_result", "block range too large")));
  EXPECT_EQ(suggested_span(cause("response_too_large")), std::nullopt);
}

TEST(log_refusal, numbers_that_make_no_sense_are_no_suggestion) {
  for (const auto* message :
       {"block range too large, try [0x5, 0x4]", "block range too large, try [0x5]", "block range too large, try [0x",
        "block range too large, try [0xffffffffffffffffff, 0x1]", "query exceeds max results, retry with the range 7",
        "query exceeds max results, retry with the range 7-", "query exceeds max results, retry with the range 9-7",
        "block range too large, max range: 0", "block range too large, max range: 99999999999999999999",
        "block range too large, max range: 9223372036854775807k", "block range too large, max range: ,000",
        "block range too large, max range: "}) {
    EXPECT_TRUE(is_range_too_large(answer(-32000, message))) << message;
    EXPECT_EQ(suggested_span(answer(-32000, message)), std::nullopt) << message;
  }
  EXPECT_EQ(suggested_span(answer(-32000, "block range too large, max range: 5,000, try less")), 5'000);
  EXPECT_EQ(suggested_span(answer(-32000, "block range too large, max range: 5,00")), 5);
}

TEST(log_refusal, any_text_is_read_safely) {
  for (const auto& refused : kRefused) {
    for (std::size_t cut = 0; cut <= refused.message.size(); ++cut) {
      const auto span = suggested_span(answer(0, refused.message.substr(0, cut)));
      EXPECT_GE(span.value_or(1), 1);
    }
  }
}

}  // namespace
}  // namespace fencepost::evm
