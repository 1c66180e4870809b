#include "evm/json_rpc.hpp"

#include <atomic>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/write.hpp>
#include <boost/json/serialize.hpp>

#include "http/http_test_support.hpp"
#include "runtime/runtime_test_support.hpp"

namespace fencepost::evm {
namespace {

using http::testing::TestServer;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

// A node with scripted answers. `answer` gets the parsed request and returns status and body.
class ScriptedNode {
 public:
  using Answer = std::function<http::Response(const boost::json::value&)>;
  explicit ScriptedNode(Answer answer)
      : answer_(std::move(answer)), server_([this](http::Router& router) {
          router.add({http::Verb::kPost, "/", http::Access::open(),
                      [this](http::Request& request) { return serve(request); }});
        }) {}

  std::string url() const { return server_.url("/"); }
  std::string label() const { return fmt::format("127.0.0.1:{}", server_.port()); }
  int requests() const { return requests_; }

 private:
  awaitable<http::Response> serve(http::Request& request) {
    ++requests_;
    co_return answer_(request.json().value());
  }
  std::atomic<int> requests_{0};
  Answer answer_;
  TestServer server_;
};

boost::json::object result_for(const boost::json::value& call, boost::json::value result) {
  return {{"jsonrpc", "2.0"}, {"id", call.at("id")}, {"result", std::move(result)}};
}

boost::json::object error_for(const boost::json::value& call, int code, std::string_view message) {
  return {{"jsonrpc", "2.0"}, {"id", call.at("id")}, {"error", {{"code", code}, {"message", message}}}};
}

// Echoes each call's method, alone or in a batch (in reverse order, which JSON-RPC allows).
http::Response echo(const boost::json::value& request) {
  if (request.is_object()) return http::Response::json(200, result_for(request, request.at("method")));
  boost::json::array answers;
  for (const auto& call : request.as_array()) answers.insert(answers.begin(), result_for(call, call.at("method")));
  return http::Response::json(200, answers);
}

ScriptedNode::Answer says(unsigned status, std::string body, std::string type = "application/json") {
  return [=](const boost::json::value&) { return http::Response::text(status, body, type); };
}

ScriptedNode::Answer errors(int code, std::string message) {
  return [=](const boost::json::value& call) { return http::Response::json(200, error_for(call, code, message)); };
}

class JsonRpcTest : public ::testing::Test {
 protected:
  JsonRpcClient& connect(std::vector<std::string> urls, JsonRpcOptions options = {}) {
    rpc_.emplace(http_, std::move(urls), options, clock_, random_, metrics_);
    return *rpc_;
  }
  template <class T>
  T run(awaitable<T> task) {
    context_.restart();
    auto future = asio::co_spawn(context_, std::move(task), asio::use_future);
    context_.run();
    return future.get();
  }
  Result<RpcValue> call(std::string method, RpcCallOptions options = {}) {
    return run(rpc_->call({std::move(method), {}}, options));
  }
  std::vector<Result<RpcValue>> batch(std::initializer_list<std::string> methods, RpcCallOptions options = {}) {
    std::vector<RpcCall> calls;
    for (const auto& method : methods) calls.push_back({method, {}});
    return run(rpc_->batch(std::move(calls), options));
  }

  asio::io_context context_{1};
  http::Client http_{context_.get_executor(), {}};
  ManualClock clock_{TimePoint{std::chrono::hours(1)}};
  SeededRandom random_{7};
  Metrics metrics_;
  std::optional<JsonRpcClient> rpc_;
};

TEST_F(JsonRpcTest, a_call_is_asked_and_answered) {
  ScriptedNode node([](const boost::json::value& request) {
    EXPECT_EQ(request.at("jsonrpc"), "2.0");
    return http::Response::json(200, result_for(request, request.at("params")));
  });
  auto& rpc = connect({node.url()});
  const auto value = run(rpc.call({"eth_call", {{{"to", "0x1"}}, "latest"}}));
  ASSERT_TRUE(value) << value.error().to_string();
  EXPECT_EQ(value->text(), R"([{"to":"0x1"},"latest"])");
  EXPECT_EQ(value->endpoint(), 0U);
}

TEST_F(JsonRpcTest, a_batch_is_one_request_and_its_answers_may_have_any_order) {
  ScriptedNode node(echo);
  connect({node.url()});
  const auto values = batch({"a", "b", "c"});
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(values[0]->text(), "\"a\"");
  EXPECT_EQ(values[1]->text(), "\"b\"");
  EXPECT_EQ(values[2]->text(), "\"c\"");
  EXPECT_EQ(node.requests(), 1);
  EXPECT_TRUE(batch({}).empty());
  EXPECT_EQ(node.requests(), 1);
}

TEST_F(JsonRpcTest, a_large_batch_is_split) {
  ScriptedNode node(echo);
  connect({node.url()}, {.max_batch = 2});
  const auto values = batch({"a", "b", "c", "d", "e"});
  ASSERT_EQ(values.size(), 5U);
  EXPECT_EQ(values[4]->text(), "\"e\"");
  EXPECT_EQ(node.requests(), 3);
}

TEST_F(JsonRpcTest, each_item_of_a_batch_has_its_own_result) {
  ScriptedNode node([](const boost::json::value& calls) {
    return http::Response::json(
        200, boost::json::array{error_for(calls.at(1), 3, "execution reverted"), result_for(calls.at(0), "0x1")});
  });
  connect({node.url()});
  const auto values = batch({"a", "b"});
  EXPECT_TRUE(values[0]);
  ASSERT_FALSE(values[1]);
  EXPECT_EQ(values[1].error().code, "rpc_error");
  EXPECT_EQ(rpc_code(values[1].error()), 3);
}

TEST_F(JsonRpcTest, application_errors_are_answers_and_cause_no_failover) {
  for (const auto* message : {"execution reverted", "nonce too low", "already known", "insufficient funds for gas"}) {
    SCOPED_TRACE(message);
    ScriptedNode first(errors(-32000, message));
    ScriptedNode second(echo);
    connect({first.url(), second.url()});
    const auto value = call("eth_sendRawTransaction");
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, "rpc_error");
    EXPECT_EQ(value.error().message, message);
    EXPECT_EQ(rpc_code(value.error()), -32000);
    EXPECT_EQ(reach_of(value.error()), Reach::kAnswered);
    EXPECT_EQ(second.requests(), 0);
    EXPECT_EQ(rpc_->endpoint_status(0).consecutive_failures, 0U);
  }
}

TEST_F(JsonRpcTest, a_refused_range_is_an_answer_with_any_http_status) {
  for (const unsigned status : {200U, 400U, 403U, 413U, 429U, 500U, 503U}) {
    SCOPED_TRACE(status);
    ScriptedNode node([=](const boost::json::value& request) {
      return http::Response::json(status, error_for(request, -32005, "query returned more than 10000 results"));
    });
    ScriptedNode other(echo);
    connect({node.url(), other.url()});
    const auto value = call("eth_getLogs");
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, "rpc_error");
    EXPECT_EQ(value.error().message, "query returned more than 10000 results");
    EXPECT_EQ(reach_of(value.error()), Reach::kAnswered);
    EXPECT_EQ(rpc_->endpoint_status(0).consecutive_failures, 0U);
    EXPECT_EQ(other.requests(), 0);
  }
}

TEST_F(JsonRpcTest, a_quota_is_a_failure_with_any_http_status) {
  for (const unsigned status : {200U, 403U, 429U, 500U}) {
    SCOPED_TRACE(status);
    ScriptedNode node([=](const boost::json::value& request) {
      return http::Response::json(
          status, error_for(request, -32005, "daily request count exceeded for block range queries of 10000 results"));
    });
    ScriptedNode other(echo);
    connect({node.url(), other.url()});
    EXPECT_EQ(call("eth_getLogs")->endpoint(), 1U);
    EXPECT_EQ(rpc_->endpoint_status(0).consecutive_failures, 1U);
  }
}

TEST_F(JsonRpcTest, fails_over_from_failing_endpoints) {
  struct Case {
    std::string name;
    ScriptedNode::Answer answer;
    Reach reach;  // when there is no other endpoint
  };
  const std::vector<Case> cases{
      {"500", says(500, "oops"), Reach::kUnknown},
      {"502 with HTML", says(502, "<html>Bad Gateway</html>", "text/html"), Reach::kUnknown},
      {"429", says(429, ""), Reach::kNowhere},
      {"403", says(403, "no"), Reach::kNowhere},
      {"redirect", says(302, ""), Reach::kNowhere},
      {"HTML in 200", says(200, "<html>login</html>", "text/html"), Reach::kUnknown},
      {"empty", says(200, ""), Reach::kUnknown},
      {"garbage", says(200, "{{{{"), Reach::kUnknown},
      {"another id", says(200, R"({"jsonrpc":"2.0","id":999,"result":1})"), Reach::kUnknown},
      {"quota in 200", errors(-32005, "daily request count exceeded, request rate limited"), Reach::kNowhere},
      {"rate limit in 200", errors(-32000, "rate limit exceeded"), Reach::kNowhere},
      {"no id, overloaded", says(200, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"overloaded"}})"),
       Reach::kNowhere},
  };
  for (const auto& [name, answer, reach] : cases) {
    SCOPED_TRACE(name);
    ScriptedNode sick(answer);
    ScriptedNode well(echo);
    connect({sick.url(), well.url()});
    const auto value = call("eth_blockNumber");
    ASSERT_TRUE(value) << value.error().to_string();
    EXPECT_EQ(value->endpoint(), 1U);
    EXPECT_EQ(sick.requests(), 1);
    EXPECT_EQ(rpc_->endpoint_status(0).consecutive_failures, 1U);
    EXPECT_TRUE(call("eth_blockNumber"));
    EXPECT_EQ(sick.requests(), 1) << "not used during its cooldown";

    connect({sick.url()});
    const auto alone = call("eth_blockNumber");
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().code, "rpc_unavailable");
    EXPECT_EQ(reach_of(alone.error()), reach);
  }
}

TEST_F(JsonRpcTest, fails_over_from_failed_batches) {
  const std::vector<std::pair<std::string, ScriptedNode::Answer>> cases{
      {"one error for all", says(200, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}})")},
      {"answered twice",
       [](const boost::json::value& calls) {
         const auto answer = result_for(calls.at(0), 1);
         return http::Response::json(200, boost::json::array{answer, answer});
       }},
      {"one item rate limited", [](const boost::json::value& calls) {
         return http::Response::json(
             200, boost::json::array{result_for(calls.at(0), 1), error_for(calls.at(1), -32005, "limit exceeded")});
       }}};
  for (const auto& [name, answer] : cases) {
    SCOPED_TRACE(name);
    ScriptedNode sick(answer);
    ScriptedNode well(echo);
    connect({sick.url(), well.url()});
    const auto values = batch({"a", "b"});
    ASSERT_EQ(values.size(), 2U);
    for (const auto& value : values) {
      ASSERT_TRUE(value) << value.error().to_string();
      EXPECT_EQ(value->endpoint(), 1U);
    }
  }
}

TEST_F(JsonRpcTest, fails_over_from_an_unreachable_endpoint) {
  std::string nowhere;
  {
    ScriptedNode gone(echo);
    nowhere = gone.url();
  }
  ScriptedNode well(echo);
  connect({nowhere, well.url()});
  EXPECT_EQ(call("x")->endpoint(), 1U);
  connect({nowhere});
  const auto value = call("x");
  ASSERT_FALSE(value);
  EXPECT_EQ(reach_of(value.error()), Reach::kNowhere);
}

TEST_F(JsonRpcTest, an_endpoint_that_recovers_is_used_again) {
  std::atomic<bool> sick{true};
  ScriptedNode first([&](const boost::json::value& request) {
    return sick ? http::Response::text(503, "").with("Retry-After", "30") : echo(request);
  });
  ScriptedNode second(echo);
  connect({first.url(), second.url()});
  EXPECT_EQ(call("x")->endpoint(), 1U);
  EXPECT_EQ(rpc_->endpoint_status(0).cooling_until, clock_.now() + std::chrono::seconds(30));
  sick = false;
  EXPECT_EQ(call("x")->endpoint(), 1U);
  clock_.advance(std::chrono::seconds(31));
  EXPECT_EQ(call("x")->endpoint(), 0U);
}

// A TCP peer that accepts, reads and then sends fixed bytes, for behaviour that http::Server does not have.
class RawPeer {
 public:
  explicit RawPeer(std::string answer, bool close) : answer_(std::move(answer)), close_(close) {
    asio::co_spawn(context_, serve(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~RawPeer() {
    context_.stop();
    thread_.join();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/", port_); }

 private:
  awaitable<> serve() {
    for (;;) asio::co_spawn(context_, play(co_await acceptor_.async_accept(asio::use_awaitable)), asio::detached);
  }
  awaitable<> play(asio::ip::tcp::socket socket) {
    std::array<char, 4096> buffer{};
    co_await socket.async_read_some(asio::buffer(buffer), use_tuple);
    co_await asio::async_write(socket, asio::buffer(answer_), use_tuple);
    if (close_) co_return;
    boost::system::error_code end;
    while (!end) std::tie(end, std::ignore) = co_await socket.async_read_some(asio::buffer(buffer), use_tuple);
  }

  std::string answer_;
  bool close_;
  asio::io_context context_{1};
  asio::ip::tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::thread thread_;
};

TEST_F(JsonRpcTest, fails_over_from_silent_and_half_closed_endpoints) {
  RawPeer silent("", false);
  RawPeer half("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"", true);
  RawPeer closed("", true);
  ScriptedNode well(echo);
  connect({silent.url(), half.url(), closed.url(), well.url()}, {.timeout = milliseconds(100)});
  const auto value = call("x");
  ASSERT_TRUE(value) << value.error().to_string();
  EXPECT_EQ(value->endpoint(), 3U);
}

TEST_F(JsonRpcTest, calls_that_are_not_repeatable_are_sent_once) {
  RawPeer silent("", false);
  ScriptedNode well(echo);
  connect({silent.url(), well.url()}, {.timeout = milliseconds(100)});
  const auto value = call("x", {.repeatable = false});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, "rpc_unavailable");
  EXPECT_EQ(reach_of(value.error()), Reach::kUnknown);
  EXPECT_EQ(well.requests(), 0);
}

TEST_F(JsonRpcTest, an_error_after_an_attempt_without_an_answer_has_reach_unknown) {
  RawPeer silent("", false);
  ScriptedNode poor(errors(-32000, "insufficient funds for gas"));
  connect({silent.url(), poor.url()}, {.timeout = milliseconds(100)});
  const auto value = call("eth_sendRawTransaction");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, "rpc_error");
  EXPECT_EQ(reach_of(value.error()), Reach::kUnknown);
}

TEST_F(JsonRpcTest, a_pinned_call_goes_to_its_endpoint_alone) {
  ScriptedNode first(echo);
  ScriptedNode second(says(500, ""));
  connect({first.url(), second.url()});
  EXPECT_EQ(call("x", {.endpoint = 0})->endpoint(), 0U);
  EXPECT_FALSE(call("x", {.endpoint = 1}));
  EXPECT_EQ(first.requests(), 1);
  EXPECT_EQ(second.requests(), 1);
}

TEST_F(JsonRpcTest, a_reply_over_the_limit_is_a_failure) {
  http::ClientOptions small;
  small.max_body_bytes = 1000;
  http::Client client(context_.get_executor(), small);
  ScriptedNode node([](const boost::json::value& call) {
    return http::Response::json(200, result_for(call, boost::json::string(2000, 'x')));
  });
  JsonRpcClient rpc(client, {node.url()}, {}, clock_, random_, metrics_);
  const auto value = run(rpc.call({"x", {}}));
  ASSERT_FALSE(value);
  EXPECT_THAT(value.error().to_string(), HasSubstr("cause=response_too_large"));
}

TEST_F(JsonRpcTest, the_chain_id_is_checked_at_every_endpoint) {
  const auto on_chain = [](std::string id) {
    return [id](const boost::json::value& call) {
      return http::Response::json(200, result_for(call, boost::json::string(id)));
    };
  };
  ScriptedNode right(on_chain("0x7a69"));
  ScriptedNode wrong(on_chain("0x1"));
  ScriptedNode down(says(500, ""));
  connect({right.url(), down.url()});
  EXPECT_EQ(run(rpc_->chain_id()), 31337U);
  EXPECT_TRUE(run(rpc_->check_chain_id(31337)));

  connect({wrong.url(), right.url()});
  const auto checked = run(rpc_->check_chain_id(31337));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, "wrong_chain");
  EXPECT_THAT(checked.error().message, HasSubstr(wrong.label()));
  EXPECT_EQ(call("x")->endpoint(), 1U) << "the wrong one is not used";

  connect({wrong.url()});
  EXPECT_FALSE(run(rpc_->check_chain_id(31337)));
  EXPECT_EQ(call("x").error().code, "rpc_unavailable");

  connect({down.url()});
  EXPECT_EQ(run(rpc_->check_chain_id(31337)).error().code, "rpc_unavailable");
}

TEST_F(JsonRpcTest, logs_an_outage_once_when_it_begins_and_once_when_it_ends) {
  test::LogText log;
  std::atomic<bool> well = true;
  ScriptedNode node([&](const boost::json::value& request) {
    return well ? echo(request) : http::Response::text(503, "down for maintenance");
  });
  connect({node.url()}, {.chain = "local"});
  const auto series = [&](const char* metric) {
    return fmt::format(R"({}{{chain="local",endpoint="{}")", metric, node.label());
  };
  for (int outage = 0; outage < 2; ++outage) {
    well = true;
    ASSERT_TRUE(call("eth_blockNumber"));
    EXPECT_THAT(metrics_.scrape(), HasSubstr(series("rpc_endpoint_up") + "} 1"));
    well = false;
    for (int i = 0; i < 20; ++i) ASSERT_FALSE(call("eth_blockNumber"));
    EXPECT_THAT(metrics_.scrape(), HasSubstr(series("rpc_endpoint_up") + "} 0"));
    clock_.advance(std::chrono::minutes(1));
  }
  well = true;
  ASSERT_TRUE(call("eth_blockNumber"));
  EXPECT_THAT(metrics_.scrape(),
              HasSubstr(series("rpc_requests_total") + R"(,method="eth_blockNumber",result="failed"} 40)"));
  const auto text = log.take();
  const auto lines_with = [&](std::string_view words) {
    std::istringstream lines(text);
    int count = 0;
    for (std::string line; std::getline(lines, line);) count += line.contains(words) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(lines_with("RPC endpoint does not answer"), 2) << text;
  EXPECT_EQ(lines_with("HTTP status 503"), 2) << "each says why";
  EXPECT_EQ(lines_with("RPC endpoint answers again"), 2) << text;
  EXPECT_THAT(text, HasSubstr("failures=20"));
}

TEST_F(JsonRpcTest, an_endpoint_that_only_answers_for_its_chain_stays_down) {
  test::LogText log;
  std::atomic<bool> well = false;
  ScriptedNode node([&](const boost::json::value& call) {
    if (call.at("method") == "eth_chainId") return http::Response::json(200, result_for(call, "0x7a69"));
    return well ? echo(call) : http::Response::json(200, error_for(call, -32005, "daily request count exceeded"));
  });
  connect({node.url()}, {.chain_id = 31337});
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(call("eth_getBlockByNumber"));
    EXPECT_FALSE(rpc_->any_usable());
    clock_.advance(std::chrono::minutes(2));
  }
  EXPECT_EQ(rpc_->endpoint_status(0).consecutive_failures, 20U);
  well = true;
  ASSERT_TRUE(call("eth_getBlockByNumber"));
  EXPECT_TRUE(rpc_->any_usable());
  const auto text = log.take();
  const auto again = text.find("RPC endpoint answers again");
  EXPECT_NE(again, std::string::npos) << text;
  EXPECT_EQ(again, text.rfind("RPC endpoint answers again")) << "once, when it works: " << text;
  EXPECT_EQ(text.find("RPC endpoint does not answer"), text.rfind("RPC endpoint does not answer")) << text;
}

TEST_F(JsonRpcTest, counts_without_credentials) {
  ScriptedNode node(echo);
  auto url = node.url();
  url.insert(url.find("127"), "user:hunter2@");
  connect({url + "?key=hunter2"}, {.chain = "local"});
  ASSERT_TRUE(call("eth_blockNumber"));
  batch({"a", "a"});
  const auto text = metrics_.scrape();
  EXPECT_THAT(text, HasSubstr(fmt::format(
                        R"(rpc_requests_total{{chain="local",endpoint="{}",method="eth_blockNumber",result="ok"}} 1)",
                        node.label())));
  EXPECT_THAT(text, HasSubstr(R"(method="a",result="ok"} 2)"));
  EXPECT_THAT(text, HasSubstr(fmt::format(R"(rpc_request_duration_seconds_count{{chain="local",endpoint="{}"}} 2)",
                                          node.label())));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST_F(JsonRpcTest, forwards_calls_and_errors_as_they_came) {
  std::string seen;
  ScriptedNode node([&](const boost::json::value& request) {
    const auto id = boost::json::serialize(request.at("id"));
    seen = boost::json::serialize(request.at("params"));
    return http::Response::text(
        200, R"({"jsonrpc":"2.0","id":)" + id +
                 R"(,"error":{"code":3,"message":"no\u0007","data":{"n":123456789012345678901234567890},"more":1}})");
  });
  auto& rpc = connect({node.url()}, {.chain = "local"});
  std::vector<RpcCall> calls{
      {.method = "eth_x", .params = {}, .params_text = R"([ "0x1",{"a":1} ])", .label = "other"}};
  const auto answers = run(rpc.forward(std::move(calls)));
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_TRUE(answers[0]) << answers[0].error().to_string();
  ASSERT_FALSE(*answers[0]);
  EXPECT_EQ(answers[0]->error().text,
            R"({"code":3,"message":"no\u0007","data":{"n":123456789012345678901234567890},"more":1})");
  EXPECT_EQ(seen, R"(["0x1",{"a":1}])");
  EXPECT_THAT(metrics_.scrape(), HasSubstr(R"(method="other",result="error"} 1)"));
  EXPECT_THAT(metrics_.scrape(), Not(HasSubstr("eth_x")));
}

TEST_F(JsonRpcTest, a_forwarded_batch_fails_over_and_says_when_no_endpoint_answers) {
  ScriptedNode sick(says(503, "overloaded"));
  ScriptedNode node(echo);
  auto& rpc = connect({sick.url(), node.url()}, {.max_batch = 2});
  const auto forward = [&] {
    std::vector<RpcCall> calls{{"a", {}}, {"b", {}}, {"c", {}}};
    return run(rpc.forward(std::move(calls)));
  };
  const auto answers = forward();
  ASSERT_EQ(answers.size(), 3U);
  for (const auto& answer : answers) ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answers[2])->text(), "\"c\"");
  auto& alone = connect({sick.url()});
  std::vector<RpcCall> calls{{"a", {}}, {"b", {}}};
  const auto none = run(alone.forward(std::move(calls)));
  ASSERT_EQ(none.size(), 2U);
  EXPECT_EQ(none[1].error().code, "rpc_unavailable");
}

// Answers batches of up to `limit` calls, and others with `refusal`.
ScriptedNode::Answer limited(std::size_t limit, ScriptedNode::Answer refusal) {
  return [=](const boost::json::value& request) {
    return request.is_array() && request.as_array().size() > limit ? refusal(request) : echo(request);
  };
}

TEST_F(JsonRpcTest, a_batch_that_is_refused_or_cut_off_is_halved_and_the_limit_remembered) {
  const auto only_the_first = [](const boost::json::value& calls) {
    return http::Response::json(200, boost::json::array{result_for(calls.at(0), calls.at(0).at("method"))});
  };
  const auto last_too_large = [](const boost::json::value& calls) {
    boost::json::array answers;
    for (const auto& call : calls.as_array()) answers.push_back(error_for(call, -32003, "response too large"));
    answers[0] = result_for(calls.at(0), calls.at(0).at("method"));
    return http::Response::json(200, answers);
  };
  const std::vector<std::pair<std::string, ScriptedNode::Answer>> cases{
      {"413", says(413, "Request Entity Too Large", "text/plain")},
      {"error", says(200, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}})")},
      {"error with 400", says(400, R"({"jsonrpc":"2.0","error":{"code":-32010,"message":"Batch size exceeded"}})")},
      {"error with 429", says(429, R"({"error":"maximum batch size is 2"})")},
      {"truncated", only_the_first},
      {"too large a reply", last_too_large},
  };
  for (const auto& [name, refusal] : cases) {
    for (const std::size_t limit : {2U, 1U}) {
      SCOPED_TRACE(fmt::format("{}, {}", name, limit));
      ScriptedNode node(limited(limit, refusal));
      ScriptedNode other(echo);
      connect({node.url(), other.url()});
      for (int round = 0; round < 2; ++round) {
        const auto before = node.requests();
        const auto values = batch({"a", "b", "c", "d", "e", "f", "g"});
        ASSERT_EQ(values.size(), 7U);
        for (std::size_t i = 0; i < values.size(); ++i) {
          ASSERT_TRUE(values[i]) << values[i].error().to_string();
          EXPECT_EQ(values[i]->text(), fmt::format("\"{}\"", static_cast<char>('a' + i)));
          EXPECT_EQ(values[i]->endpoint(), 0U);
        }
        if (round == 1) EXPECT_LE(node.requests() - before, 7) << "nothing is refused any more";
      }
      EXPECT_LE(rpc_->endpoint_status(0).batch_limit, limit + 1);
      EXPECT_EQ(rpc_->endpoint_status(0).consecutive_failures, 0U) << "the endpoint is well";
      EXPECT_EQ(rpc_->endpoint_status(1).batch_limit, 100U);
      EXPECT_EQ(other.requests(), 0);
    }
  }
}

TEST_F(JsonRpcTest, a_refused_batch_that_is_not_repeatable_is_sent_again_only_if_no_call_was_executed) {
  ScriptedNode refusing(limited(1, says(413, "")));
  connect({refusing.url()});
  for (const auto& value : batch({"a", "b"}, {.repeatable = false})) EXPECT_TRUE(value);
  ScriptedNode truncating(limited(1, says(200, "[]")));
  connect({truncating.url()});
  for (const auto& value : batch({"a", "b"}, {.repeatable = false})) {
    ASSERT_FALSE(value);
    EXPECT_EQ(reach_of(value.error()), Reach::kUnknown);
  }
  EXPECT_EQ(truncating.requests(), 1);
}

TEST_F(JsonRpcTest, an_endpoint_is_asked_for_its_chain_before_it_is_used_again_after_a_failure) {
  std::atomic<bool> down = false;
  std::atomic<int> chain = 31337;
  ScriptedNode moved([&](const boost::json::value& call) {
    if (down) return http::Response::text(503, "");
    if (call.at("method") == "eth_chainId") {
      return http::Response::json(200, result_for(call, boost::json::string(fmt::format("0x{:x}", chain.load()))));
    }
    return echo(call);
  });
  ScriptedNode other([&](const boost::json::value& call) {
    return call.at("method") == "eth_chainId" ? http::Response::json(200, result_for(call, "0x7a69")) : echo(call);
  });
  connect({moved.url(), other.url()}, {.chain_id = 31337});
  EXPECT_EQ(call("x")->endpoint(), 0U);
  EXPECT_EQ(moved.requests(), 2) << "its chain, and the call";
  EXPECT_EQ(call("x")->endpoint(), 0U);
  EXPECT_EQ(moved.requests(), 3) << "the chain is known";

  // Another node answers at the same address now.
  down = true;
  EXPECT_EQ(call("x")->endpoint(), 1U);
  down = false;
  chain = 1;
  clock_.advance(std::chrono::minutes(2));
  EXPECT_EQ(call("x")->endpoint(), 1U);
  EXPECT_TRUE(rpc_->endpoint_status(0).wrong_chain);
  const auto pinned = call("x", {.endpoint = 0});
  ASSERT_FALSE(pinned);
  EXPECT_THAT(pinned.error().to_string(), HasSubstr("cause=wrong_chain"));
  EXPECT_EQ(reach_of(pinned.error()), Reach::kNowhere);

  chain = 31337;
  EXPECT_TRUE(run(rpc_->check_chain_id(31337)));
  EXPECT_EQ(call("x")->endpoint(), 0U);
}

TEST_F(JsonRpcTest, an_answer_over_a_new_connection_counts_only_if_the_node_is_on_the_chain) {
  std::atomic<int> chain = 31337;
  ScriptedNode node([&](const boost::json::value& call) {
    if (call.at("method") != "eth_chainId") return echo(call);
    return http::Response::json(200, result_for(call, boost::json::string(fmt::format("0x{:x}", chain.load()))));
  });
  http::Client forgetful(context_.get_executor(), {.max_idle_per_origin = 0});
  rpc_.emplace(forgetful, std::vector{node.url()}, JsonRpcOptions{.chain_id = 31337}, clock_, random_, metrics_);
  ASSERT_TRUE(call("x"));
  chain = 1;
  const auto elsewhere = call("x");
  ASSERT_FALSE(elsewhere);
  EXPECT_THAT(elsewhere.error().to_string(), HasSubstr("cause=wrong_chain"));
  EXPECT_EQ(reach_of(elsewhere.error()), Reach::kUnknown);
  rpc_.reset();
}

TEST_F(JsonRpcTest, a_relay_need_not_know_the_chain_id) {
  ScriptedNode node([](const boost::json::value& call) {
    if (call.at("method") == "eth_sendRawTransaction") return echo(call);
    return http::Response::json(200, error_for(call, -32600, "only transactions"));
  });
  connect({node.url()}, {.chain_id = 31337, .relays = true});
  EXPECT_TRUE(call("eth_sendRawTransaction"));
  connect({node.url()}, {.chain_id = 31337});
  EXPECT_FALSE(call("eth_sendRawTransaction")) << "an endpoint for reads must say which chain it is on";
}

}  // namespace
}  // namespace fencepost::evm
