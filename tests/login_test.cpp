// Logging in with a wallet, against a real node and a real chain: signatures by the libraries that wallets are made
// with, a real Safe, and what must be refused.
#include <future>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/hex.hpp"
#include "base/uint256.hpp"
#include "evm/keys/dev_accounts.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/npm_client.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using Headers = std::vector<std::pair<std::string, std::string>>;

const std::string kKey(evm::dev_accounts()[0].private_key);
const std::string kWallet(evm::dev_accounts()[0].address);

class Login : public ::testing::Test {
 protected:
  struct Signed {
    std::string address, message, signature;

    std::string body() const { return json::serialize(json::object{{"message", message}, {"signature", signature}}); }
  };

  std::string url(const std::string& path) { return cluster_.node(0).url(path); }
  json::value nonce() { return ask({.url = url("/api/v1/auth/nonce"), .key = "", .body = ""}).json(); }
  Signed sign(const std::string& library, const std::string& domain, const std::string& uri,
              const std::string& nonce_text, const std::string& key = kKey) {
    const auto made = run_client("login.mjs", {library, key, domain, uri, "31337", nonce_text, cluster_.anvil().url()});
    const auto text = [&](const char* name) { return std::string(made.at(name).as_string()); };
    return {text("address"), text("message"), text("signature")};
  }
  // For this server, with a fresh nonce.
  Signed sign(const std::string& library, const std::string& key = kKey) {
    const auto given = nonce();
    const auto text = [&](const char* name) { return std::string(given.at(name).as_string()); };
    return sign(library, text("domain"), text("uri"), text("nonce"), key);
  }
  Answer verify(const std::string& body, Headers headers = {}) {
    return ask({.method = "POST", .url = url("/api/v1/auth/verify"), .key = "", .body = body, .headers = headers});
  }
  static Headers cookies(const Answer& answer) {
    Headers out;
    for (const auto& [name, value] : answer.headers) {
      if (name == "Set-Cookie" || name == "set-cookie") out.emplace_back("Cookie", value.substr(0, value.find(';')));
    }
    return out;
  }
  std::string origin() { return std::string(nonce().at("uri").as_string()); }
  Answer call(const std::string& method, const std::string& path, Headers headers, const std::string& body = "") {
    return ask({.method = method, .url = url(path), .key = "", .body = body, .headers = std::move(headers)});
  }
  Headers log_in() {
    const auto answer = verify(sign("ethers").body());
    EXPECT_EQ(answer.status, 200U) << answer.body;
    return cookies(answer);
  }

  TxCluster cluster_;
};

TEST_F(Login, ethers_and_viem_log_in_with_one_cookie_each) {
  for (const auto* library : {"ethers", "viem"}) {
    const auto made = sign(library);
    const auto answer = verify(made.body(), {{"Origin", origin()}});
    ASSERT_EQ(answer.status, 200U) << library << answer.body << made.message;
    EXPECT_EQ(answer.json().at("address").as_string(), kWallet);
    ASSERT_EQ(cookies(answer).size(), 1U);
    const auto cookie = std::ranges::find_if(answer.headers, [](const auto& h) { return h.first == "Set-Cookie"; });
    EXPECT_TRUE(cookie->second.contains("HttpOnly; SameSite=Lax")) << cookie->second;
    const auto me = call("GET", "/api/v1/auth/me", cookies(answer));
    ASSERT_EQ(me.status, 200U) << me.body;
    EXPECT_EQ(me.json().at("kind").as_string(), "wallet");
    EXPECT_EQ(me.json().at("address").as_string(), kWallet);
    EXPECT_EQ(me.json().at("expiresAt"), answer.json().at("expiresAt"));
  }
  EXPECT_EQ(cluster_.sql("SELECT string_agg(wallet_address, ',') FROM users"), kWallet) << "one person";
  EXPECT_EQ(cluster_.sql("SELECT count(*) FROM session WHERE user_id IS NOT NULL"), "2");
}

TEST_F(Login, a_safe_logs_in_as_itself) {
  const auto made = sign("safe");
  const auto answer = verify(made.body());
  ASSERT_EQ(answer.status, 200U) << answer.body;
  EXPECT_NE(answer.json().at("address").as_string(), kWallet);
  EXPECT_EQ(cluster_.sql("SELECT wallet_address FROM users"), std::string(answer.json().at("address").as_string()));
  auto other = sign("safe");
  const auto at = other.signature.size() / 2;
  other.signature[at] = other.signature[at] == '0' ? '1' : '0';
  EXPECT_EQ(verify(other.body()).code(), "bad_login_signature") << "the Safe itself refuses";
  auto later = sign("safe");
  later.signature[at] = later.signature[at] == '0' ? '1' : '0';
  cluster_.anvil().kill();
  const auto away = verify(later.body());
  EXPECT_EQ(away.code(), "login_chain_unavailable") << away.body;
  EXPECT_FALSE(away.body.contains("127.0.0.1")) << "an endpoint is not for strangers: " << away.body;
}

TEST_F(Login, a_wallet_reads_timelocks_and_flows_and_nothing_else) {
  const auto session = log_in();
  for (const auto* path : {"/api/v1/timelocks", "/api/v1/flows", "/api/v1/flows.ics"}) {
    EXPECT_EQ(call("GET", path, session).status, 200U) << path;
  }
  for (const auto* path : {"/api/v1/tx", "/api/v1/signers", "/api/v1/webhooks", "/api/v1/log-level", "/api/v1/whoami",
                           "/api/v1/abis", "/api/v1/nodes", "/api/v1/chains", "/api/v1/guilds/1/accounts/1"}) {
    EXPECT_EQ(call("GET", path, session).status, 403U) << path;
  }
  auto from_here = session;
  from_here.emplace_back("Origin", origin());
  EXPECT_EQ(call("POST", "/api/v1/timelocks", from_here, "{}").code(), "insufficient_scope");
  EXPECT_EQ(call("POST", "/api/v1/timelocks/verify", from_here, "{}").code(), "api_key_required");
  EXPECT_EQ(call("GET", "/api/v1/events?type=TxConfirmed", session).code(), "insufficient_scope");
  EXPECT_EQ(call("POST", "/rpc/31337", from_here, R"({"jsonrpc":"2.0","id":1,"method":"eth_chainId"})").status, 403U);
}

// What a wallet's session sees of the log: everything about timelocks, and nothing else.
TEST_F(Login, a_wallet_streams_only_events_of_timelocks) {
  const auto session = log_in();
  const auto id = cluster_.create(0, transfer(signer(0), "one", 1));
  ASSERT_TRUE(cluster_.all_confirmed()) << cluster_.describe();
  EXPECT_TRUE(eventually([&] {  // what was committed is shown once it is settled
    const auto all = ask({.url = url("/api/v1/events?follow=false&lastEventId=0"), .key = cluster_.key(), .body = ""});
    return all.body.contains(id) && all.body.contains("TxConfirmed");
  }));
  const auto seen = call("GET", "/api/v1/events?follow=false&lastEventId=0", session);
  EXPECT_EQ(seen.status, 200U) << seen.body;
  EXPECT_FALSE(seen.body.contains("\"data\"")) << seen.body;
}

// On any node: the nonce is used up in the database.
TEST_F(Login, of_many_logins_with_one_nonce_at_once_one_succeeds) {
  const auto made = sign("ethers");
  std::vector<std::future<unsigned>> tries;
  for (int i = 0; i < 8; ++i) {
    tries.push_back(std::async(std::launch::async, [&] { return verify(made.body()).status; }));
  }
  std::map<unsigned, int> statuses;
  for (auto& one : tries) ++statuses[one.get()];
  EXPECT_EQ(statuses, (std::map<unsigned, int>{{200, 1}, {401, 7}}));
}

TEST_F(Login, a_page_of_another_origin_changes_nothing) {
  const auto session = log_in();
  const auto with = [&](const std::string& value) {
    auto headers = session;
    if (!value.empty()) headers.emplace_back("Origin", value);
    return call("POST", "/api/v1/auth/logout", headers);
  };
  for (const auto& elsewhere : {std::string(), std::string("null"), std::string("https://evil.example"),
                                origin() + ".evil.example", "https" + origin().substr(4)}) {
    EXPECT_EQ(with(elsewhere).code(), "wrong_origin") << elsewhere;
  }
  EXPECT_EQ(call("GET", "/api/v1/auth/me", session).status, 200U) << "still logged in";
  EXPECT_EQ(verify(sign("ethers").body(), {{"Origin", "https://evil.example"}}).code(), "wrong_origin");
  const auto out = with(origin());
  EXPECT_EQ(out.status, 204U) << out.body;
  EXPECT_EQ(cookies(out).size(), 1U);
  EXPECT_EQ(call("GET", "/api/v1/auth/me", session).code(), "no_session");
}

TEST_F(Login, everything_that_is_not_a_fresh_login_here_is_refused) {
  const auto given = nonce();
  const auto text = [&](const char* name) { return std::string(given.at(name).as_string()); };
  const auto code = [&](const std::string& domain, const std::string& uri, const std::string& nonce_text) {
    const auto answer = verify(sign("ethers", domain, uri, nonce_text).body());
    EXPECT_EQ(answer.status, 401U) << answer.body;
    EXPECT_TRUE(cookies(answer).empty());
    return answer.code();
  };
  EXPECT_EQ(code("evil.example", text("uri"), text("nonce")), "wrong_login_domain");
  EXPECT_EQ(code(text("domain"), "https://evil.example", text("nonce")), "wrong_login_domain");
  EXPECT_EQ(code(text("domain"), text("uri"), std::string(80, '0')), "bad_login_nonce");

  const auto good = sign("ethers");
  auto bent = good;
  bent.message += "\nRequest ID: more";
  EXPECT_EQ(verify(bent.body()).code(), "bad_login_signature");
  auto high = good;  // the twin of the signature, with s on the other side of the curve's order
  const auto number = [](std::string digits) {
    return parse_quantity("0x" + digits.erase(0, digits.find_first_not_of('0'))).value();
  };
  const auto order = number("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
  const auto twin = to_quantity(order - number(good.signature.substr(66, 64))).substr(2);
  high.signature =
      good.signature.substr(0, 66) + fmt::format("{:0>64}", twin) + (good.signature.ends_with("1c") ? "1b" : "1c");
  EXPECT_EQ(verify(high.body()).code(), "bad_login_signature");
  EXPECT_EQ(verify(R"({"message": "hello", "signature": "0x00"})").code(), "bad_login_message");
  EXPECT_EQ(verify(R"({"message": "hello", "signature": "zz"})").status, 400U);

  EXPECT_EQ(verify(good.body()).status, 200U);
  EXPECT_EQ(verify(good.body()).code(), "login_replayed");
  EXPECT_EQ(cluster_.sql("SELECT count(*) FROM session"), "1");
  EXPECT_EQ(call("GET", "/api/v1/auth/me", {{"Cookie", "fencepost_session=" + std::string(64, '0')}}).code(),
            "no_session");
}

TEST_F(Login, sessions_end_when_they_are_old_or_unused_and_everywhere_at_once) {
  const auto first = log_in(), second = log_in(), third = log_in();
  const auto state = [&](const Headers& session) { return call("GET", "/api/v1/auth/me", session).status; };
  cluster_.sql(
      "UPDATE session SET expires_at = clock_timestamp() WHERE created_at = (SELECT min(created_at) FROM session)");
  EXPECT_EQ(state(first), 401U);
  cluster_.sql("UPDATE session SET last_seen_at = clock_timestamp() - interval '2 minutes'");
  EXPECT_EQ(state(second), 200U);
  EXPECT_EQ(cluster_.sql("SELECT count(*) FROM session WHERE last_seen_at > clock_timestamp() - interval '1 minute'"),
            "1");
  cluster_.sql(
      "UPDATE session SET last_seen_at = clock_timestamp() - interval '25 hours' WHERE last_seen_at < "
      "clock_timestamp() - interval '1 minute'");
  EXPECT_EQ(state(third), 401U);
  const auto fourth = log_in();
  auto headers = fourth;
  headers.emplace_back("Origin", origin());
  EXPECT_EQ(call("POST", "/api/v1/auth/logout?everywhere=true", headers).status, 204U);
  EXPECT_EQ(state(second), 401U);
  EXPECT_EQ(state(fourth), 401U);
}

TEST_F(Login, a_session_of_an_api_key_ends_with_the_key) {
  const auto exchange = [&](const std::string& key) {
    return ask({.method = "POST",
                .url = url("/api/v1/auth/key"),
                .key = "",
                .body = json::serialize(json::object{{"apiKey", key}})});
  };
  EXPECT_EQ(exchange("fp_nothing").code(), "bad_api_key");
  const auto answer = exchange(cluster_.key());
  ASSERT_EQ(answer.status, 200U) << answer.body;
  auto session = cookies(answer);
  ASSERT_EQ(session.size(), 1U);
  EXPECT_EQ(call("GET", "/api/v1/signers", session).status, 200U) << "what the key may do";
  const auto me = call("GET", "/api/v1/auth/me", session).json();
  EXPECT_EQ(me.at("kind").as_string(), "key");
  EXPECT_TRUE(me.at("address").is_null());
  EXPECT_EQ(call("POST", "/api/v1/tx", session, "{}").code(), "wrong_origin");
  cluster_.sql("UPDATE api_key SET revoked_at = clock_timestamp(); SELECT pg_notify('fencepost_api_key', '')");
  EXPECT_TRUE(eventually([&] { return call("GET", "/api/v1/signers", session).code() == "api_key_revoked"; }));
}

}  // namespace
}  // namespace fencepost::test
