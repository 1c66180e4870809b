// Where a node listens, as an operator configures it: TLS with a certificate of openssl, and /metrics elsewhere or for
// keys.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "runtime/read_file.hpp"
#include "tests/support/event_listener.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Listeners : public testing::Test {
 protected:
  void start(const std::string& more, const std::string& of_http = {}) {
    std::ofstream(config_) << "database:\n  dsn: \"" << db_.dsn() << "\"\nhttp:\n  port: " << port_ << "\n"
                           << of_http << more;
    ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
    node_.emplace(std::vector<std::string>{"serve", "--config", config_.string()}, dir_ / "output");
  }
  std::string plain(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  std::string secure(const std::string& path) const { return "https://localhost:" + std::to_string(port_) + path; }
  bool becomes_ready(const std::string& url) {
    return eventually([&] { return ask({.url = url}).status == 200; }, 30s);
  }
  std::string key(const std::string& scope) {
    const auto made =
        fencepost({"apikey", "create", "--config", config_.string(), "--json", "--label", "t", "--scope", scope});
    EXPECT_EQ(made.status.code, 0) << made.err;
    return std::string(boost::json::parse(made.out).at("key").as_string());
  }

  TestDatabase db_;
  TempDir dir_{"listeners"};
  std::filesystem::path config_ = dir_ / "fencepost.yaml";
  std::uint16_t port_ = free_port();
  std::optional<RunningFencepost> node_;
};

// The command of docs/tls.md that makes a certificate.
std::string documented_openssl() {
  const auto page = read_file(source_dir() / "docs/tls.md");
  const auto begin = page.find("openssl req");
  return page.substr(begin, page.find("\nFENCEPOST_HTTP_TLS", begin) - begin);
}

class ListenersTls : public Listeners {
 protected:
  ListenersTls() { ::setenv("SSL_CERT_FILE", trusted().c_str(), 1); }
  ~ListenersTls() override { ::unsetenv("SSL_CERT_FILE"); }

  void SetUp() override {
    make_certificate();
    trust_the_certificate();
    start("", "  tls_certificate_path: " + certificate().string() + "\n  tls_key_path: " + (dir_ / "key.pem").string() +
                  "\n");
    ASSERT_TRUE(becomes_ready(secure("/readyz"))) << node_->output();
  }

  void make_certificate() {
    const auto made = run_command({"sh", "-c", "cd '" + dir_.path().string() + "' && " + documented_openssl()});
    ASSERT_EQ(made.status.code, 0) << made.err;
  }
  // What the clients of this test, and the command line, trust.
  void trust_the_certificate() {
    std::filesystem::copy_file(certificate(), trusted(), std::filesystem::copy_options::overwrite_existing);
  }
  std::filesystem::path certificate() const { return dir_ / "cert.pem"; }
  std::filesystem::path trusted() const { return dir_ / "trusted.pem"; }
  double loads(const std::string& result) const {
    return metric_of(secure(""), "http_tls_loads_total{result=\"" + result + "\"}");
  }
  Answer post(const std::string& path, const std::string& body) {
    return ask({"POST", secure("/api/v1" + path), admin_, body});
  }

  std::string admin_;
};

TEST_F(ListenersTls, serves_rest_events_and_the_command_line_to_clients_that_verify) {
  admin_ = key("admin");
  EXPECT_EQ(ask({.url = plain("/livez")}).status, 0U) << "a plain request gets no answer";
  const EventListener events(secure("/api/v1/events"), admin_);
  ASSERT_TRUE(eventually([&] { return events.connected(); }));
  ASSERT_EQ(post("/guilds/7/accounts/1/mint", R"({"amount": "100", "reason": "prize"})").status, 201U);
  const auto transfer = R"({"guildId": "7", "initiatorId": "1", "targetId": "2", "amount": "40", "mode": "pool"})";
  ASSERT_EQ(post("/transfers", transfer).status, 202U);
  EXPECT_TRUE(eventually([&] { return events.events().size() >= 2; })) << "approved and completed, while it is open";
  EXPECT_FALSE(events.ended());

  const std::vector<std::string> environment{"FENCEPOST_URL=" + secure(""), "FENCEPOST_API_KEY=" + admin_};
  const auto listed = fencepost({"webhook", "list", "--json"}, environment);
  EXPECT_EQ(listed.status.code, 0) << listed.err;
  ::unsetenv("SSL_CERT_FILE");
  const auto distrusted = fencepost({"webhook", "list", "--json"}, environment);
  EXPECT_NE(distrusted.status.code, 0);
  EXPECT_THAT(distrusted.err, HasSubstr("self-signed certificate"));

  const auto ended = node_->interrupt();
  EXPECT_TRUE(ended.success()) << ended.to_string() << "\n" << node_->output();
}

TEST_F(ListenersTls, a_session_cookie_is_secure_and_logins_name_the_https_url) {
  const auto nonce = ask({.url = secure("/api/v1/auth/nonce")}).json();
  EXPECT_EQ(nonce.at("uri").as_string(), "https://127.0.0.1:" + std::to_string(port_));
  const auto begun = post("/auth/key", boost::json::serialize(boost::json::object{{"apiKey", key("tx:read")}}));
  ASSERT_EQ(begun.status, 200U) << begun.body;
  const auto cookie = begun.header("Set-Cookie");
  EXPECT_THAT(cookie, MatchesRegex("__Host-fencepost_session=[^;]+; Path=/; .*; Secure"));
  const auto session = cookie.substr(0, cookie.find(';'));
  EXPECT_EQ(ask({.url = secure("/api/v1/auth/me"), .headers = {{"Cookie", session}}}).status, 200U) << session;
  const auto insecure = session.substr(std::string_view("__Host-").size());
  EXPECT_EQ(ask({.url = secure("/api/v1/auth/me"), .headers = {{"Cookie", insecure}}}).status, 401U)
      << "a page over plain HTTP can set a cookie of that name";
}

TEST_F(ListenersTls, a_new_certificate_is_used_without_a_restart) {
  admin_ = key("admin");
  const EventListener before(secure("/api/v1/events"), admin_);
  ASSERT_TRUE(eventually([&] { return before.connected(); }));
  make_certificate();
  EXPECT_TRUE(eventually([&] { return ask({.url = secure("/livez")}).status == 0; }, 30s)) << "the old one is not sent";
  trust_the_certificate();
  EXPECT_EQ(ask({.url = secure("/livez")}).status, 200U) << node_->output();
  EXPECT_GE(loads("ok"), 2);
  EXPECT_FALSE(before.ended()) << "open connections go on";

  // openssl writes two files: the node may have read them when only one was new, or half written.
  const auto failed = loads("failed");
  std::ofstream(certificate()) << "broken\n";
  EXPECT_TRUE(eventually([&] { return loads("failed") > failed; }, 30s)) << node_->output();
  EXPECT_THAT(node_->output(), HasSubstr("connections get the old one"));
}

// The commands of docs/tls.md for one machine.
TEST(ListenersUp, serves_tls_and_its_commands_verify_it) {
  const TempDir dir("listeners-up");
  ASSERT_EQ(run_command({"sh", "-c", "cd '" + dir.path().string() + "' && " + documented_openssl()}).status.code, 0);
  const auto certificate = (dir / "cert.pem").string();
  const auto data_dir = dir / "var";
  RunningFencepost up({"up", "--data-dir", data_dir.string(), "--port", "0"}, dir / "output",
                      {"FENCEPOST_HTTP_TLS_CERTIFICATE_PATH=" + certificate,
                       "FENCEPOST_HTTP_TLS_KEY_PATH=" + (dir / "key.pem").string()});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(data_dir / "up.json"); }, 90s)) << up.output();
  EXPECT_THAT(read_file(data_dir / "up.json"), HasSubstr(R"("url":"https://127.0.0.1:)"));
  const auto listed = fencepost({"tx", "list", "--data-dir", data_dir.string()}, {"SSL_CERT_FILE=" + certificate});
  EXPECT_EQ(listed.status.code, 0) << listed.err;
  EXPECT_TRUE(up.interrupt().success()) << up.output();
}

TEST(ListenersCluster, forwards_between_nodes_under_tls) {
  const TempDir dir("listeners-cluster");
  ASSERT_EQ(run_command({"sh", "-c", "cd '" + dir.path().string() + "' && " + documented_openssl()}).status.code, 0);
  const auto certificate = (dir / "cert.pem").string();
  ::setenv("SSL_CERT_FILE", certificate.c_str(), 1);  // for the nodes, too
  {
    TxCluster cluster({.nodes = 2, .start = false});
    const auto secure = [&](std::size_t node, const std::string& path) {
      return "https" + cluster.node(node).url(path).substr(std::string_view("http").size());
    };
    for (const std::size_t node : {0, 1}) {
      cluster.node(node).launch({"FENCEPOST_HTTP_TLS_CERTIFICATE_PATH=" + certificate,
                                 "FENCEPOST_HTTP_TLS_KEY_PATH=" + (dir / "key.pem").string(),
                                 "FENCEPOST_NODE_ADVERTISE_URL=" + secure(node, "")});
      ASSERT_TRUE(eventually([&] { return ask({.url = secure(node, "/readyz")}).status == 200; }, 30s))
          << cluster.node(node).output();
    }
    for (const std::size_t node : {0, 1}) {
      const auto body = boost::json::serialize(transfer(signer(0), "to-" + std::to_string(node), 1));
      const auto made = ask({"POST", secure(node, "/api/v1/tx"), cluster.key(), body});
      EXPECT_EQ(made.status, 202U) << made.body << cluster.node(node).output();
    }
    EXPECT_EQ(cluster.leader_of(signer(0)), 0U);
    EXPECT_EQ(metric_of(secure(0, ""), R"(tx_create_total{result="created"})"), 2) << "the second came from node 1";
  }
  ::unsetenv("SSL_CERT_FILE");
}

TEST_F(Listeners, a_certificate_that_cannot_be_read_fails_the_start_with_its_name) {
  start("", "  tls_certificate_path: /nonexistent/cert.pem\n  tls_key_path: /nonexistent/key.pem\n");
  ASSERT_TRUE(eventually([&] { return !node_->running(); }, 30s)) << node_->output();
  EXPECT_THAT(node_->output(), HasSubstr("cannot use /nonexistent/cert.pem as the server's certificate"));
}

TEST_F(Listeners, metrics_may_have_an_address_of_their_own) {
  const auto other = std::to_string(free_port());
  start("metrics: {listen: \"127.0.0.1:" + other + "\"}\n");
  ASSERT_TRUE(becomes_ready(plain("/readyz"))) << node_->output();
  const auto metrics = ask({.url = "http://127.0.0.1:" + other + "/metrics"});
  EXPECT_EQ(metrics.status, 200U);
  EXPECT_THAT(metrics.body, HasSubstr("\nfencepost_build_info{"));
  EXPECT_EQ(ask({.url = plain("/metrics")}).code(), "no_such_path");
  EXPECT_THAT(ask({.url = plain("/")}).body, AllOf(HasSubstr("/readyz"), Not(HasSubstr("/metrics"))));
  EXPECT_EQ(ask({.url = "http://127.0.0.1:" + other + "/api/v1/version"}).code(), "no_such_path");
  EXPECT_EQ(ask({.url = "http://127.0.0.1:" + other + "/livez"}).code(), "no_such_path");
  const auto ended = node_->interrupt();
  EXPECT_TRUE(ended.success()) << ended.to_string() << "\n" << node_->output();
}

TEST_F(Listeners, metrics_may_be_for_keys_with_their_scope_only) {
  const auto other = std::to_string(free_port());
  const auto of_api = plain("/metrics");
  const auto of_own = "http://127.0.0.1:" + other + "/metrics";
  for (const auto& [settings, url] :
       {std::pair{std::string("metrics: {require_key: true}\n"), of_api},
        {"metrics: {require_key: true, listen: \"127.0.0.1:" + other + "\"}\n", of_own}}) {
    SCOPED_TRACE(settings);
    start(settings);
    ASSERT_TRUE(becomes_ready(plain("/readyz"))) << node_->output();
    EXPECT_EQ(ask({.url = url}).code(), "no_api_key");
    const auto refused = ask({.url = url, .key = key("tx:read")});
    EXPECT_EQ(refused.status, 403U);
    EXPECT_EQ(refused.code(), "insufficient_scope");
    for (const auto* scope : {"metrics:read", "admin"}) {
      EXPECT_THAT(ask({.url = url, .key = key(scope)}).body, HasSubstr("\nfencepost_build_info{")) << scope;
    }
    EXPECT_TRUE(node_->interrupt().success());
  }
}

}  // namespace
}  // namespace fencepost::test
