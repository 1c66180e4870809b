#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/anvil.hpp"
#include "tests/support/tcp_proxy.hpp"

#include "doctor/chain.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

ChainConfig chain_at(std::vector<std::string> urls, std::int64_t chain_id = 31337) {
  ChainConfig chain;
  chain.name = "dev";
  chain.chain_id = chain_id;
  for (const auto& url : urls) chain.rpc_urls.emplace_back(url);
  return chain;
}

TEST(doctor_chain_real, a_running_node_passes_and_its_path_stays_private) {
  const test::Anvil anvil;
  const auto findings = check_chain(chain_at({anvil.url() + "/?key=geheim"}), 5s);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kOk) << findings[0].detail;
  EXPECT_TRUE(findings[0].detail.starts_with(anvil.url() + ", chain id 31337, block 0, ")) << findings[0].detail;
  EXPECT_EQ(findings[0].detail.find("geheim"), std::string::npos);
}

TEST(doctor_chain_real, a_node_on_another_chain_fails) {
  const test::Anvil anvil;
  const auto findings = check_chain(chain_at({anvil.url()}, 1), 5s);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0],
            failed("chain dev", anvil.url() + " is on chain 31337, not 1", "correct chain_id or the URL in rpc_urls"));
}

TEST(doctor_chain_real, endpoints_are_judged_one_by_one) {
  test::Anvil anvil;
  test::TcpProxy refusing("127.0.0.1", anvil.port());
  refusing.refuse();
  test::TcpProxy silent("127.0.0.1", anvil.port());
  silent.blackhole();
  const auto at = [](std::uint16_t port) { return fmt::format("http://me:geheim@127.0.0.1:{}/geheim", port); };
  const std::vector urls{at(refusing.port()), at(silent.port()), anvil.url()};

  auto findings = check_chain(chain_at(urls), 500ms);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].status, Status::kWarn);
  EXPECT_NE(findings[0].detail.find("refused"), std::string::npos) << findings[0].detail;
  EXPECT_EQ(findings[1].status, Status::kWarn);
  EXPECT_NE(findings[1].detail.find("in time"), std::string::npos) << findings[1].detail;
  EXPECT_EQ(findings[2].status, Status::kOk) << findings[2].detail;

  anvil.kill();
  const auto started = std::chrono::steady_clock::now();
  findings = check_chain(chain_at(urls), 500ms);
  EXPECT_LT(std::chrono::steady_clock::now() - started, 5s);
  for (const auto& finding : findings) {
    EXPECT_EQ(finding.status, Status::kFail);
    EXPECT_EQ(finding.detail.find("geheim"), std::string::npos) << finding.detail;
  }
}

}  // namespace
}  // namespace fencepost::doctor
