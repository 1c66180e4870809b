#include "tx/rpc/rpc_reply_text.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "http/errors.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;

json::value refusal(const Error& error, RpcFailed what = RpcFailed::kRead) {
  const auto reply = rpc_refusal(error, what, "req-1");
  EXPECT_FALSE(reply.ok);
  return json::parse(reply.text);
}

TEST(rpc_reply_text, data_has_the_code_and_the_context) {
  const auto error = refusal(conflict("request_conflict", "used already").with("txId", "t1"));
  EXPECT_EQ(error, json::parse(R"({"code": -32000, "message": "used already",
                                   "data": {"code": "request_conflict", "txId": "t1"}})"));
}

TEST(rpc_reply_text, a_revert_has_the_form_that_clients_decode) {
  const auto error = refusal(http::unprocessable("would_revert", "the transaction would fail: no")
                                 .with("revertReason", "no")
                                 .with("revertData", "0x08c379a0"));
  EXPECT_EQ(error, json::parse(R"({"code": 3, "message": "execution reverted: no", "data": "0x08c379a0",
                                   "fencepost": {"code": "would_revert"}})"));
}

TEST(rpc_reply_text, an_error_of_the_chain_keeps_its_code_and_data) {
  const auto error = refusal(http::unprocessable("rpc_error", "exceeds block gas limit")
                                 .with("rpcCode", "-32015")
                                 .with("endpoint", "secret.example")
                                 .with("data", R"({"limit":30000000})"));
  EXPECT_EQ(error,
            json::parse(R"({"code": -32015, "message": "exceeds block gas limit", "data": {"limit": 30000000}})"));
}

TEST(rpc_reply_text, an_internal_error_shows_nothing_of_itself) {
  const auto reply =
      rpc_refusal(internal("secret_code", "secret message").with("file", "secret"), RpcFailed::kRead, "req-1");
  EXPECT_FALSE(reply.text.contains("secret")) << reply.text;
  EXPECT_EQ(json::parse(reply.text).at("data"), json::parse(R"({"code": "internal", "httpRequestId": "req-1"})"));
}

struct Coded {
  Error error;
  std::int64_t read;
  std::int64_t send;
};

// After -32603 some clients repeat the call by themselves, so no send is answered with it.
TEST(rpc_reply_text, codes) {
  const Coded cases[] = {
      {invalid("bad_json", ""), -32700, -32700},
      {invalid("bad_rpc_request", ""), -32600, -32600},
      {invalid("too_many_items", ""), -32600, -32600},
      {invalid("bad_address", ""), -32602, -32602},
      {invalid("unknown_signer", ""), -32000, -32000},
      {not_found("method_denied", ""), -32601, -32601},
      {not_found("no_subscriptions", ""), -32601, -32601},
      {http::insufficient_scope("tx:write"), 4100, 4100},
      {{ErrorKind::kUnauthenticated, "no_api_key", "", {}, {}}, 4100, 4100},
      {{ErrorKind::kRateLimited, "rate_limited", "", {}, {}}, -32005, -32005},
      {unavailable("busy", ""), -32005, -32005},
      {unavailable("rpc_unavailable", ""), -32603, -32000},
      {unavailable("outcome_unknown", ""), -32603, -32000},
      {internal("x", ""), -32603, -32000},
      {http::unprocessable("insufficient_funds", ""), -32000, -32000},
      {{ErrorKind::kTimeout, "sign_timeout", "", {}, {}}, -32000, -32000},
  };
  for (const auto& [error, read, send] : cases) {
    EXPECT_EQ(rpc_code_of(error, RpcFailed::kRead), read) << error.code;
    EXPECT_EQ(rpc_code_of(error, RpcFailed::kSend), send) << error.code;
  }
}

TEST(rpc_reply_text, clients_recognize_a_lack_of_funds_by_its_words) {
  const auto error = refusal(http::unprocessable("insufficient_funds", "the sender cannot pay"));
  EXPECT_EQ(error.at("message").as_string(), "insufficient funds: the sender cannot pay");
}

TEST(rpc_reply_text, an_answer_carries_the_id_and_the_text_unchanged) {
  std::string out;
  append_rpc_reply(out, R"("a")", RpcReply::result("123456789012345678901234567890"));
  EXPECT_EQ(out, R"({"jsonrpc":"2.0","id":"a","result":123456789012345678901234567890})");
  out.clear();
  append_rpc_reply(out, "null", RpcReply::error(R"({"code":1})"));
  EXPECT_EQ(out, R"({"jsonrpc":"2.0","id":null,"error":{"code":1}})");
}

}  // namespace
}  // namespace fencepost::tx
