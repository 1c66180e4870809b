// Three nodes, eight signers, endpoints that lie, and clients that retry until they have an answer, while nodes are
// killed and paused, sessions are lost and the chain changes. The seed decides the faults
// (tests/support/fault_plan.hpp). When the faults stop, every accepted request is on the chain exactly once.
//
// FENCEPOST_FAULT_SEED and FENCEPOST_FAULT_SECONDS choose another run or a longer one; docs/correctness.md says how.
// With FENCEPOST_FAULT_LOGS, the nodes' logs are written to that directory at the end.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include "base/random.hpp"
#include "tests/support/lying_endpoint.hpp"
#include "tests/support/tx_cluster.hpp"
#include "tests/support/with_pool.hpp"
#include "tx/store/consistency.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kNodes = 3;
constexpr std::size_t kEndpoints = 3;  // of each node
constexpr std::size_t kSigners = 8;
constexpr std::size_t kClients = 4;
constexpr milliseconds kClientPause{120};
constexpr milliseconds kPatience{120'000};          // of a client for an answer, and for the end
constexpr milliseconds kLongestStandstill{60'000};  // without a transaction that is confirmed
constexpr std::uint64_t kDefaultSeconds = 20;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void pause(milliseconds time) {
  ::poll(nullptr, 0, static_cast<int>(time.count()));
}

TxClusterOptions cluster_options() {
  return {.nodes = kNodes,
          .settings = {.confirmations = "4",
                       .stale_receipt_timeout = 2s,
                       .resubmit_interval = 2s,
                       .stuck_after = 5s,
                       .nonce_state_timeout = 5s,
                       .idle_release = 20s},
          .start = false};
}

// The clients. Each request has a value of its own, which is looked for on the chain.
class Clients {
 public:
  Clients(const TxCluster& cluster, std::uint64_t seed) : cluster_(cluster) {
    for (std::size_t i = 0; i < kClients; ++i) threads_.emplace_back([this, seed, i] { work(seed * 100 + i); });
  }
  ~Clients() { finish(); }

  // Sends no more requests, and waits until all that were sent are answered.
  void finish() {
    stopping_ = true;
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  std::size_t accepted() const {
    const std::lock_guard lock(mutex_);
    return accepted_.size();
  }
  // After finish(): the txId of each accepted request, by its value.
  const std::map<std::int64_t, std::string>& by_value() const { return accepted_; }
  const std::map<std::string, std::size_t>& answers() const { return answers_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void work(std::uint64_t seed) {
    SeededRandom random(seed);
    while (!stopping_) {
      send(random, ++last_value_);
      pause(kClientPause);
    }
  }
  void send(Random& random, std::int64_t value) {
    const auto body = transfer(signer(static_cast<std::size_t>(value) % kSigners), fmt::format("run-{}", value), value);
    const auto deadline = Clock::now() + kPatience;
    while (Clock::now() < deadline) {
      const auto answer = ask_all({cluster_.create_ask(random.next() % kNodes, body)}, 10s).front();
      if (note(answer, value)) return;
      pause(100ms);
    }
    const std::lock_guard lock(mutex_);
    problems_.push_back(fmt::format("request {} got no answer", value));
  }
  // Whether the request is answered for good.
  bool note(const Answer& answer, std::int64_t value) {
    const std::lock_guard lock(mutex_);
    const auto code = answer.status == 200 || answer.status == 202 ? std::string() : " " + answer.code();
    ++answers_[fmt::format("{}{}", answer.status, code)];
    if (answer.status == 200 || answer.status == 202) {
      accepted_.emplace(value, std::string(answer.json().at("txId").as_string()));
      return true;
    }
    const bool passes = answer.status == 0 || answer.status == 503;
    if (!passes) problems_.push_back(fmt::format("request {} got {} {}", value, answer.status, answer.body));
    return !passes;
  }

  const TxCluster& cluster_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> last_value_{0};
  mutable std::mutex mutex_;  // guards all below
  std::map<std::int64_t, std::string> accepted_;
  std::map<std::string, std::size_t> answers_;
  std::vector<std::string> problems_;
  std::vector<std::thread> threads_;
};

class TxFaultRun : public testing::Test {
 protected:
  TxFaultRun()
      : seed_(from_environment("FENCEPOST_FAULT_SEED", 1)),
        lasts_(std::chrono::seconds(from_environment("FENCEPOST_FAULT_SECONDS", kDefaultSeconds))),
        cluster_(cluster_options()) {
    for (std::size_t i = 0; i < kNodes * kEndpoints; ++i) {
      endpoints_.push_back(std::make_unique<LyingEndpoint>(cluster_.anvil().url()));
    }
    cluster_.mine(10);  // as deep as a reorg may be
    for (std::size_t i = 0; i < kNodes; ++i) launch(i);
    for (std::size_t i = 0; i < kNodes; ++i) cluster_.node(i).await_ready();
  }
  ~TxFaultRun() override { write_logs(); }

  LyingEndpoint& endpoint(const PlannedFault& fault) { return *endpoints_[fault.node * kEndpoints + fault.endpoint]; }

  void launch(std::size_t node) {
    std::string urls;
    for (std::size_t i = 0; i < kEndpoints; ++i) urls += endpoints_[node * kEndpoints + i]->url() + ",";
    urls.pop_back();
    cluster_.node(node).launch({"FENCEPOST_CHAINS_0_RPC_URLS=" + urls});
  }

  void begin(const PlannedFault& fault) {
    ++counts_[fault.kind];
    fmt::print("{}\n", to_text(fault));
    std::fflush(stdout);
    if (is_lie(fault.kind)) return endpoint(fault).begin(fault, cluster_.head());
    auto& node = cluster_.node(fault.node);
    switch (fault.kind) {
      case FaultKind::kKill:
        return node.kill();
      case FaultKind::kPause:
        return node.signal(SIGSTOP);
      case FaultKind::kRestart:
        EXPECT_EQ(node.stop().code, 0) << "node " << fault.node << " did not stop in order";
        return launch(fault.node);
      case FaultKind::kLostSessions:
        told_[fault.kind] += std::stoull(cluster_.sql(
            fmt::format("SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                        "datname = current_database() AND application_name LIKE 'node{}/%'",
                        fault.node)));
        return;
      case FaultKind::kReorg:
        return reorganize(fault.amount);
      default:
        return drop_from_pool(static_cast<std::size_t>(fault.amount));
    }
  }

  void end(const PlannedFault& fault) {
    if (is_lie(fault.kind)) {
      told_[fault.kind] += endpoint(fault).end();
      return;
    }
    if (fault.kind == FaultKind::kKill) return launch(fault.node);
    cluster_.node(fault.node).resume();
  }

  // Not while anvil's clock mines a block: a chain had a hole after that once (missing_blocks). The block that is mined
  // here waits for one that is being mined.
  void reorganize(std::int64_t depth) {
    cluster_.rpc("evm_setIntervalMining", {0});
    cluster_.mine(1);
    cluster_.reorg(depth);
    cluster_.rpc("evm_setIntervalMining", {1});
  }

  // Blocks that the chain itself does not return: then a run says nothing about the nodes.
  std::vector<std::int64_t> missing_blocks() const {
    std::vector<std::int64_t> missing;
    for (std::int64_t number = 0, head = cluster_.head(); number < head; ++number) {
      if (cluster_.rpc("eth_getBlockByNumber", {fmt::format("0x{:x}", number), false}).is_null()) {
        missing.push_back(number);
      }
    }
    return missing;
  }

  void drop_from_pool(std::size_t most) {
    const auto pool = cluster_.rpc("txpool_content").at("pending");
    for (const auto& [account, by_nonce] : pool.as_object()) {
      for (const auto& [nonce, tx] : by_nonce.as_object()) {
        if (most == 0) return;
        cluster_.rpc("anvil_dropTransaction", {tx.at("hash")});
        --most;
      }
    }
  }

  // Carries the faults out at their times. All are over when it returns.
  void suffer(const std::vector<PlannedFault>& plan, const Clients& clients) {
    struct Change {
      const PlannedFault* fault;
      bool begins;
    };
    std::multimap<milliseconds, Change> changes;
    for (const auto& fault : plan) {
      changes.emplace(fault.at, Change{&fault, true});
      if (fault.lasts > 0ms) changes.emplace(fault.at + fault.lasts, Change{&fault, false});
    }
    const auto started = Clock::now();
    for (const auto& [at, change] : changes) {
      while (Clock::now() < started + at) {
        pause(
            std::min<milliseconds>(500ms, std::chrono::duration_cast<milliseconds>(started + at - Clock::now()) + 1ms));
        watch_progress(clients);
      }
      change.begins ? begin(*change.fault) : end(*change.fault);
      watch_progress(clients);
    }
  }

  // Notes how long no transaction was confirmed although some were accepted.
  void watch_progress(const Clients& clients) {
    const auto now = Clock::now();
    if (now - looked_at_ < 500ms) return;
    looked_at_ = now;
    const auto confirmed = std::stoull(cluster_.sql("SELECT count(*) FROM tx_ended WHERE state = 'CONFIRMED'"));
    if (confirmed != confirmed_ || clients.accepted() <= confirmed) progressed_at_ = now;
    confirmed_ = confirmed;
    longest_ = std::max(longest_, std::chrono::duration_cast<milliseconds>(now - progressed_at_));
  }

  // All that is accepted is confirmed at the end; STUCK transactions recover by themselves.
  bool all_end(const Clients& clients) {
    const auto deadline = Clock::now() + kPatience;
    while (Clock::now() < deadline) {
      watch_progress(clients);
      if (cluster_.sql("SELECT count(*) FROM tx_view WHERE state <> 'CONFIRMED'") == "0") return true;
      pause(200ms);
    }
    return false;
  }

  // Where the database says that each transaction is: hash, signer, nonce, number and hash of the block.
  std::map<std::string, std::string> places() const {
    std::map<std::string, std::string> out;
    std::istringstream rows(
        cluster_.sql("SELECT string_agg(format('%s=%s %s %s %s %s', tx_id, tx_hash, signer, nonce, receipt_block, "
                     "receipt_hash), E'\\n') FROM tx_view"));
    for (std::string row; std::getline(rows, row);)
      out.emplace(row.substr(0, row.find('=')), row.substr(row.find('=') + 1));
    return out;
  }

  // What the chain itself has: each accepted request exactly once, where its record says, and nothing else.
  void check_chain(const std::map<std::int64_t, std::string>& accepted) {
    const auto recorded = places();
    std::map<std::int64_t, int> by_value;
    std::map<std::string, std::set<std::int64_t>> nonces;
    std::size_t mined = 0;
    const auto read = [](const json::value& text) { return std::stoll(std::string(text.as_string()), nullptr, 16); };
    for (std::int64_t number = 1, head = cluster_.head(); number <= head; ++number) {
      const auto block = cluster_.rpc("eth_getBlockByNumber", {fmt::format("0x{:x}", number), true});
      for (const auto& tx : block.at("transactions").as_array()) {
        ++mined;
        ++by_value[read(tx.at("value"))];
        EXPECT_TRUE(nonces[std::string(tx.at("from").as_string())].insert(read(tx.at("nonce"))).second);
        EXPECT_EQ(tx.at("to").as_string(), recipient());
        const auto place = fmt::format("{} {} {} {} {}", tx.at("hash").as_string(), tx.at("from").as_string(),
                                       read(tx.at("nonce")), number, block.at("hash").as_string());
        const auto request = accepted.find(read(tx.at("value")));
        ASSERT_NE(request, accepted.end()) << place << " was not asked for";
        EXPECT_EQ(recorded.at(request->second), place) << request->second;
      }
    }
    EXPECT_EQ(mined, accepted.size());
    for (const auto& [value, id] : accepted) EXPECT_EQ(by_value[value], 1) << id << " has the value " << value;
    for (const auto& [from, used] : nonces) {
      EXPECT_EQ(*used.rbegin(), static_cast<std::int64_t>(used.size()) - 1) << from << " has a gap";
    }
  }

  // A run without a fault says nothing about it. A short run may tell a lie to a node that is down.
  void check_faults() {
    for (const auto& [kind, name, about] : kFaultKinds) {
      EXPECT_GT(counts_[kind], 0) << name;
      if (is_lie(kind) && lasts_ >= 5min) {
        EXPECT_GT(told_[kind], 0U) << name;
      }
    }
  }

  void check_database(const std::map<std::int64_t, std::string>& accepted) {
    const auto count = std::to_string(accepted.size());
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM tx_view"), count);
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM tx_view WHERE state = 'CONFIRMED'"), count);
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM event WHERE type IN ('TxFailed', 'TxFinalityViolated')"), "0");
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM operator_action"), "0");
    // A token in the history never decreases.
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM (SELECT e.fencing_token, max(e.fencing_token) OVER (PARTITION BY "
                           "m.chain_id, m.signer ORDER BY e.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS "
                           "before FROM event AS e JOIN managed_tx AS m ON e.subject = 'tx/' || m.tx_id WHERE "
                           "e.fencing_token IS NOT NULL) AS t WHERE fencing_token < before"),
              "0");
    EXPECT_EQ(cluster_.sql("SELECT count(*) FROM (SELECT signer FROM managed_tx GROUP BY signer HAVING max(nonce) + 1 "
                           "<> count(*)) AS t"),
              "0");
    with_pool(cluster_.dsn(), {}, [](pg::Pool& pool) -> awaitable<> {
      const auto work = co_await tx::check_work(pool);
      EXPECT_EQ(work.faults, std::vector<tx::Fault>{});
      EXPECT_EQ(co_await tx::check_records(pool), std::vector<tx::Fault>{});
    });
  }

  void summarize(const Clients& clients, std::size_t faults) {
    fmt::print("seed {}: {} accepted, {} confirmed, {} faults in {} s, longest time without progress {:.1f} s\n", seed_,
               clients.accepted(), cluster_.sql("SELECT count(*) FROM tx_view WHERE state = 'CONFIRMED'"), faults,
               std::chrono::duration_cast<std::chrono::seconds>(lasts_).count(),
               static_cast<double>(longest_.count()) / 1000);
    for (const auto& [kind, count] : counts_) {
      fmt::print("  {:5} {}{}\n", count, kFaultKinds.name(kind),
                 told_.contains(kind) ? fmt::format(", in effect {} times", told_[kind]) : "");
    }
    for (const auto& [answer, count] : clients.answers()) fmt::print("  {:5} answers {}\n", count, answer);
    fmt::print("  {} steps, {} to STUCK, {} takeovers, highest token {}\n",
               cluster_.sql("SELECT count(*) FROM event WHERE to_state IS NOT NULL"),
               cluster_.sql("SELECT count(*) FROM event WHERE type = 'TxStuck'"),
               cluster_.sql("SELECT sum(fencing_token - 1) FROM signer_lease"),
               cluster_.sql("SELECT max(fencing_token) FROM signer_lease"));
    std::fflush(stdout);
  }

  void write_logs() {
    const char* folder = std::getenv("FENCEPOST_FAULT_LOGS");
    if (folder == nullptr) return;
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::ofstream(std::filesystem::path(folder) / fmt::format("seed{}-node{}.log", seed_, i))
          << cluster_.node(i).output();
    }
  }

  std::uint64_t seed_;
  milliseconds lasts_;
  TxCluster cluster_;
  std::vector<std::unique_ptr<LyingEndpoint>> endpoints_;  // by node
  std::map<FaultKind, int> counts_;
  std::map<FaultKind, std::size_t> told_;  // answers that were changed, sessions that were ended
  std::size_t confirmed_ = 0;
  Clock::time_point looked_at_;
  Clock::time_point progressed_at_ = Clock::now();
  milliseconds longest_{0};
};

TEST_F(TxFaultRun, every_accepted_request_is_on_the_chain_exactly_once) {
  const auto plan = plan_faults({.seed = seed_,
                                 .lasts = lasts_,
                                 .nodes = kNodes,
                                 .endpoints = kEndpoints,
                                 .longest_lease = 2'200ms,
                                 .deepest_reorg = 3});
  SCOPED_TRACE(fmt::format("FENCEPOST_FAULT_SEED={} FENCEPOST_FAULT_SECONDS={}", seed_, lasts_.count() / 1000));
  Clients clients(cluster_, seed_);
  suffer(plan, clients);
  for (std::size_t i = 0; i < kNodes; ++i) EXPECT_TRUE(cluster_.node(i).running()) << "node " << i << " has ended";
  clients.finish();
  EXPECT_EQ(clients.problems(), std::vector<std::string>{});
  const bool ended = all_end(clients);
  summarize(clients, plan.size());
  ASSERT_EQ(missing_blocks(), std::vector<std::int64_t>{}) << "anvil has lost blocks";
  ASSERT_TRUE(ended) << cluster_.describe();
  EXPECT_LT(longest_, kLongestStandstill);
  if (lasts_ >= kDefaultSeconds * 1s) check_faults();
  check_chain(clients.by_value());
  check_database(clients.by_value());
}

}  // namespace
}  // namespace fencepost::test
