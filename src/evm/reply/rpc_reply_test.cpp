#include "evm/reply/rpc_reply.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

std::string ok(std::uint64_t id, std::string_view result) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})", id, result);
}

TEST(rpc_reply, a_result_is_returned_as_its_text) {
  for (const std::string_view result :
       {R"("0x1")", "null", "true", "17", R"({"a":[1,{"b":"}]"}]})", "[]", "{}", R"("a\"b\\")", "[ 1 , 2 ]"}) {
    SCOPED_TRACE(result);
    auto body = ok(7, result);
    const auto reply = parse_single_reply(body, 7);
    ASSERT_TRUE(reply) << reply.error().to_string();
    ASSERT_TRUE(*reply);
    EXPECT_EQ((*reply)->text(), result);
  }
}

TEST(rpc_reply, members_may_have_any_order_and_whitespace) {
  std::string body = " {\n \"result\" : {\"x\" : 1}  ,\t\"id\":3 , \"extra\": [1,2], \"jsonrpc\" : \"2.0\" } \n";
  const auto reply = parse_single_reply(body, 3);
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ((*reply)->text(), R"({"x" : 1})");
}

TEST(rpc_reply, an_error_message_is_made_safe_to_store) {
  auto body = fmt::format(R"({{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"no\u0000\nway{}"}}}})",
                          std::string(5'000, 'x'));
  const auto reply = parse_single_reply(body, 1);
  ASSERT_TRUE(reply);
  ASSERT_FALSE(*reply);
  EXPECT_TRUE(reply->error().message.starts_with("no  wayxx")) << reply->error().message;
  EXPECT_LE(reply->error().message.size(), 1024U);
}

TEST(rpc_reply, errors_keep_code_message_and_data) {
  std::string body =
      R"({"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}})";
  const auto reply = parse_single_reply(body, 1);
  ASSERT_TRUE(reply);
  ASSERT_FALSE(*reply);
  EXPECT_EQ(reply->error(), (RpcError{3, "execution reverted", R"("0x08c379a0")"}));
}

TEST(rpc_reply, a_null_result_beside_an_error_and_the_reverse_are_accepted) {
  std::string body = R"({"jsonrpc":"2.0","id":1,"result":"0x1","error":null})";
  EXPECT_TRUE(parse_single_reply(body, 1).value());
  body = R"({"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-32000,"message":"m"}})";
  EXPECT_FALSE(parse_single_reply(body, 1).value());
  body = R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}})";
  EXPECT_FALSE(parse_single_reply(body, 1).value());
}

TEST(rpc_reply, a_malformed_answer_is_an_error) {
  for (const std::string_view text : {"",
                                      "   ",
                                      "<html><body>502</body></html>",
                                      "nonsense",
                                      "\"text\"",
                                      "17",
                                      "null",
                                      "[]",
                                      "{}",
                                      "{",
                                      "[",
                                      R"({"jsonrpc":"2.0","id":1})",
                                      R"({"jsonrpc":"2.0","result":1})",
                                      R"({"jsonrpc":"2.0","id":2,"result":1})",
                                      R"({"jsonrpc":"2.0","id":"1","result":1})",
                                      R"({"jsonrpc":"2.0","id":1.5,"result":1})",
                                      R"({"jsonrpc":"2.0","id":-1,"result":1})",
                                      R"({"jsonrpc":"2.0","id":null,"result":1})",
                                      R"({"jsonrpc":"1.0","id":1,"result":1})",
                                      R"({"jsonrpc":2.0,"id":1,"result":1})",
                                      R"({"id":1,"result":1})",
                                      R"({"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}})",
                                      R"({"jsonrpc":"2.0","id":1,"result":1,"result":2})",
                                      R"({"jsonrpc":"2.0","id":1,"id":1,"result":2})",
                                      R"({"jsonrpc":"2.0","id":1,"error":"text"})",
                                      R"({"jsonrpc":"2.0","id":1,"error":{"message":"m"}})",
                                      R"({"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}})",
                                      R"({"jsonrpc":"2.0","id":1,"result":{"a":1})",
                                      R"({"jsonrpc":"2.0","id":1,"result":"unclosed})",
                                      R"({"jsonrpc":"2.0","id":1,"result":1}{})",
                                      R"({"jsonrpc":"2.0","id":1,"result":1} trailing)",
                                      R"({"jsonrpc":"2.0","id":1,"result":})",
                                      R"({"jsonrpc":"2.0","id":1 "result":1})",
                                      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xFF\"}",
                                      R"([{"jsonrpc":"2.0","id":1,"result":1}])"}) {
    SCOPED_TRACE(text);
    std::string body(text);
    const auto reply = parse_single_reply(body, 1);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, "bad_reply");
  }
}

TEST(rpc_reply, truncated_and_corrupt_replies_never_crash) {
  const std::string whole =
      fmt::format("[{},{}]", ok(1, R"({"logs":[{"a":"b"}],"n":null})"),
                  R"({"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"m","data":{"x":[1]}}})");
  std::string intact = whole;
  ASSERT_TRUE(parse_batch_reply(intact, 1, 2));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    auto body = whole.substr(0, cut);
    EXPECT_FALSE(parse_batch_reply(body, 1, 2)) << body;
    for (const char bent : {'\0', '"', '{', '}', '[', ']', ',', '\\', '\xFF'}) {
      body = whole;
      body[cut] = bent;
      std::ignore = parse_batch_reply(body, 1, 2);  // may succeed or fail, must return
    }
  }
}

TEST(rpc_reply, a_batch_is_sorted_by_id) {
  auto body = fmt::format("[{},{},{}]", ok(12, "\"c\""), ok(10, "\"a\""),
                          R"({"jsonrpc":"2.0","id":11,"error":{"code":-32000,"message":"nonce too low"}})");
  const auto reply = parse_batch_reply(body, 10, 3);
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ(reply->at(0)->text(), "\"a\"");
  EXPECT_EQ(reply->at(1).error().message, "nonce too low");
  EXPECT_EQ(reply->at(2)->text(), "\"c\"");
}

TEST(rpc_reply, a_batch_with_missing_or_unexpected_answers_is_an_error) {
  struct Case {
    std::string name, body, code;
  };
  for (const auto& [name, text, code] : std::vector<Case>{
           {"missing", fmt::format("[{}]", ok(1, "1")), "batch_truncated"},
           {"empty", "[]", "batch_truncated"},
           {"twice", fmt::format("[{},{},{}]", ok(1, "1"), ok(1, "1"), ok(2, "1")), "bad_reply"},
           {"unknown", fmt::format("[{},{},{}]", ok(1, "1"), ok(2, "1"), ok(3, "1")), "bad_reply"},
           {"below", fmt::format("[{},{}]", ok(0, "1"), ok(1, "1")), "bad_reply"},
           {"not objects", "[1,2]", "bad_reply"},
           {"nested", fmt::format("[[{},{}]]", ok(1, "1"), ok(2, "1")), "bad_reply"},
           {"one answer", ok(1, "1"), "bad_reply"},
           {"one error", R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}})",
            "batch_too_large"},
           {"no batches", R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}})",
            "batch_too_large"},
           {"a quota", R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"monthly quota"}})",
            "batch_refused"},
           {"another error", R"({"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}})",
            "batch_refused"}}) {
    SCOPED_TRACE(name);
    std::string body = text;
    const auto reply = parse_batch_reply(body, 1, 2);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, code);
  }
}

TEST(rpc_reply, values_are_read_strictly) {
  EXPECT_EQ(RpcValue(R"("0x1a")").as_quantity(), 26U);
  EXPECT_EQ(RpcValue(R"("0xffffffffffffffff")").as_quantity(), 0xffffffffffffffffU);
  for (const auto* bad : {"null", "26", R"("")", R"("0x")", R"("1a")", R"("0xg")", R"("0x1ffffffffffffffff")",
                          R"("0x-1")", R"("0x1 ")"}) {
    EXPECT_FALSE(RpcValue(bad).as_quantity()) << bad;
  }
  EXPECT_EQ(RpcValue(R"("a\nb")").as_string(), "a\nb");
  EXPECT_FALSE(RpcValue("{}").as_string());
  EXPECT_FALSE(RpcValue("{\"a\":}").as_json());
  EXPECT_EQ(RpcValue(R"({"a":[1]})").as_json()->at("a").at(0), 1);
  EXPECT_TRUE(RpcValue("null").is_null());
}

TEST(rpc_reply, errors_of_the_server_are_distinguished_from_errors_of_the_call) {
  for (const auto& sick : {RpcError{-32005, "limit exceeded", ""}, RpcError{-32005, "daily request count exceeded", ""},
                           RpcError{-32002, "resource unavailable", ""}, RpcError{429, "slow down", ""},
                           RpcError{-32000, "Rate limit reached", ""}, RpcError{-32603, "Too Many Requests", ""},
                           RpcError{-32000, "Your app has exceeded its compute units per second capacity", ""},
                           RpcError{-32000, "service temporarily unavailable, try again later", ""},
                           RpcError{-32000, "invalid api key", ""}}) {
    EXPECT_TRUE(means_sick_endpoint(sick)) << sick.message;
  }
  for (const auto& about_the_call :
       {RpcError{3, "execution reverted: quota", ""}, RpcError{-32000, "nonce too low", ""},
        RpcError{-32000, "already known", ""}, RpcError{-32000, "insufficient funds for gas * price + value", ""},
        RpcError{-32000, "exceeds block gas limit", ""}, RpcError{-32005, "query returned more than 10000 results", ""},
        RpcError{-32600, "eth_getLogs is limited to a 10,000 block range", ""},
        RpcError{-32601, "the method eth_foo does not exist", ""}, RpcError{-32602, "invalid argument 0", ""},
        RpcError{-32603, "Internal error", ""}}) {
    EXPECT_FALSE(means_sick_endpoint(about_the_call)) << about_the_call.message;
  }
}

TEST(rpc_reply, large_replies_pass) {
  std::string logs = "[";
  for (int i = 0; i < 50'000; ++i)
    logs += fmt::format("{}{{\"logIndex\":\"0x{:x}\",\"data\":\"0x00\"}}", i > 0 ? "," : "", i);
  logs += "]";
  auto body = fmt::format("[{},{}]", ok(2, "1"), ok(1, logs));
  const auto reply = parse_batch_reply(body, 1, 2);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->at(0)->text(), logs);
}

}  // namespace
}  // namespace fencepost::evm
