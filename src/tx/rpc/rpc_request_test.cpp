#include "tx/rpc/rpc_request.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

std::string parse_code(std::string_view body) {
  const auto request = parse_rpc_request(body);
  if (!request) return request.error().code;
  return request->calls.front().error ? request->calls.front().error->code : "";
}

TEST(rpc_request, keeps_id_and_params_as_they_came) {
  const auto request = parse_rpc_request(
      R"( {"jsonrpc":"2.0", "id" : 7 , "method":"eth_\u0063all","params": [ {"n": 123456789012345678901234567890 }, "a]\"}" ] } )");
  ASSERT_TRUE(request) << request.error().to_string();
  EXPECT_FALSE(request->batch);
  const auto& call = request->calls.at(0);
  EXPECT_FALSE(call.error) << call.error->message;
  EXPECT_EQ(call.id, "7");
  EXPECT_EQ(call.method, "eth_call");
  EXPECT_EQ(call.params, R"([ {"n": 123456789012345678901234567890 }, "a]\"}" ])");
}

TEST(rpc_request, echoes_every_kind_of_id) {
  for (const std::string id : {"0", "-1", "1.50", R"("abc")", R"("a\"b")", "null", "98765432109876543210"}) {
    const auto request = parse_rpc_request(fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"m"}})", id));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->calls[0].id, id);
    EXPECT_FALSE(request->calls[0].error) << id;
    EXPECT_EQ(request->calls[0].params, "[]");
  }
}

TEST(rpc_request, a_call_without_id_is_a_notification) {
  const auto request = parse_rpc_request(R"({"jsonrpc":"2.0","method":"m","params":{"a":[]}})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->calls[0].id, std::nullopt);
  EXPECT_EQ(request->calls[0].params, R"({"a":[]})");
}

TEST(rpc_request, a_bad_call_in_a_batch_fails_alone) {
  const auto request = parse_rpc_request(
      R"([1, {"jsonrpc":"2.0","id":"b","method":"m"}, {"id":3,"method":"m"}, {}, {"jsonrpc":"2.0","id":4,"method":5}])");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->batch);
  ASSERT_EQ(request->calls.size(), 5U);
  EXPECT_EQ(request->calls[0].error->code, "bad_rpc_request");
  EXPECT_EQ(request->calls[0].id, "null");
  EXPECT_FALSE(request->calls[1].error);
  EXPECT_EQ(request->calls[2].error->message, R"(jsonrpc: expected "2.0")");
  EXPECT_EQ(request->calls[2].id, "3");
  EXPECT_EQ(request->calls[3].id, "null") << "an invalid request is answered";
  EXPECT_EQ(request->calls[4].id, "4");
  EXPECT_TRUE(request->calls[4].error);
}

struct BadBody {
  std::string body;
  std::string code;
};

TEST(rpc_request, names_what_is_wrong) {
  const std::string deep(40, '[');
  const BadBody cases[] = {
      {"", "bad_json"},
      {"{", "bad_json"},
      {R"({"jsonrpc":"2.0","id":1,"method":"m","params":[tru]})", "bad_json"},
      {R"({"jsonrpc":"2.0","id":1,"method":"m"} x)", "bad_json"},
      {R"({"jsonrpc":"2.0","id":1,"method":"m","params":)" + deep + std::string(40, ']') + "}", "bad_json"},
      {"[]", "bad_rpc_request"},
      {"5", "bad_rpc_request"},
      {R"("text")", "bad_rpc_request"},
      {"null", "bad_rpc_request"},
      {R"({"jsonrpc":"1.0","id":1,"method":"m"})", "bad_rpc_request"},
      {R"({"jsonrpc":"2.0","id":1,"id":2,"method":"m"})", "bad_rpc_request"},
      {R"({"jsonrpc":"2.0","id":1,"method":"m","method":"n"})", "bad_rpc_request"},
      {R"({"jsonrpc":"2.0","id":{},"method":"m"})", "bad_rpc_request"},
      {R"({"jsonrpc":"2.0","id":true,"method":"m"})", "bad_rpc_request"},
      {R"({"jsonrpc":"2.0","id":1,"method":""})", "bad_rpc_request"},
      {R"({"jsonrpc":"2.0","id":1,"method":"m","params":5})", "bad_rpc_request"},
      {R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(200, 'm') + "\"}", "bad_rpc_request"},
  };
  for (const auto& [body, code] : cases) EXPECT_EQ(parse_code(body), code) << body;
  EXPECT_EQ(parse_code(R"({"jsonrpc":"2.0","id":1,"method":"m","params":null})"), "");
}

TEST(rpc_request, bounds_a_batch) {
  const auto batch = [](std::size_t size) {
    std::string body = "[";
    for (std::size_t i = 0; i < size; ++i) body += R"({"jsonrpc":"2.0","id":1,"method":"m"},)";
    body.back() = ']';
    return body;
  };
  EXPECT_EQ(parse_rpc_request(batch(kRpcMaxCalls))->calls.size(), kRpcMaxCalls);
  EXPECT_EQ(parse_code(batch(kRpcMaxCalls + 1)), "too_many_items");
}

}  // namespace
}  // namespace fencepost::tx
