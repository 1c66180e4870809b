// Random batches and takeovers by three nodes over a few signers: every signer's invariants hold after each round.
#include <random>

#include "tx/store/create_store.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using interleaving::Answer;
using interleaving::commit;
using interleaving::opening;
using interleaving::Order;
using interleaving::Script;
using interleaving::script_of;
using interleaving::Session;
using interleaving::statement;
using interleaving::Theatre;

class CreateRandom : public ProtocolTest {
 protected:
  struct Node {
    std::string name;
    Session session;
    std::map<SignerKey, std::int64_t> tokens;  // the leases that the node believes to hold
  };

  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(engine); }

  std::vector<Allotment> believed(const Node& node) {
    std::vector<Allotment> out;
    for (const auto& [key, token] : node.tokens) {
      if (pick(2) > 0) out.push_back({{key, token}, windows.at(key)});
    }
    std::ranges::shuffle(out, engine);
    return out;
  }

  Script creating(Node& node) {
    const auto allotments = believed(node);
    if (allotments.empty()) return taking(node);
    std::vector<NewTx> items;
    for (int i = 1 + pick(6); i > 0; --i) {
      const auto& key = allotments[static_cast<std::size_t>(pick(static_cast<int>(allotments.size())))].lease.key;
      const bool named = pick(2) > 0;
      items.push_back(new_tx(key, named ? std::optional(fmt::format("r{}", pick(40))) : std::nullopt));
    }
    return script_of(create_statements(node.name, allotments, items), [this, &node, items](const Answer& answer) {
      ASSERT_TRUE(answer.ok()) << answer.message << theatre.trace();
      const auto got = outcomes(answer);
      for (std::size_t i = 0; i < got.size(); ++i) {
        ++tally[got[i]];
        if (got[i] == "fenced" && pick(3) > 0)
          node.tokens.erase(items[i].key);  // else it continues with the lost lease
      }
    });
  }

  Script promoting(Node& node) {
    const auto allotments = believed(node);
    if (allotments.empty()) return taking(node);
    return script_of(promote_statements(node.name, allotments), [this](const Answer& answer) {
      ASSERT_TRUE(answer.ok()) << answer.message << theatre.trace();
      tally["promoted"] += static_cast<int>(answer.rows.size());
    });
  }

  Script taking(Node& node) {
    std::vector<std::string> wanted;
    for (const auto& [key, window] : windows) {
      if (pick(2) > 0) wanted.push_back(key.signer);
    }
    return {opening(statement("acquire", sql::kAcquireLeases.sql, acquire_params(node.name, wanted),
                              [this, &node](const Answer& answer) {
                                ASSERT_TRUE(answer.ok()) << answer.message << theatre.trace();
                                for (const auto row : answer.rows) {
                                  node.tokens[{kChain, row.get<std::string>("signer")}] =
                                      row.get<std::int64_t>("fencing_token");
                                  tally["taken"] += row.get<bool>("taken");
                                }
                              })),
            commit()};
  }

  Script giving_up(Node& node) {
    std::vector<SignerLease> leases;
    leases.reserve(node.tokens.size());
    for (const auto& [key, token] : node.tokens) leases.push_back({key, token});
    return {statement("release", sql::kReleaseLeases.sql, lease_params(node.name, leases))};
  }

  Script renewing(Node& node) {
    std::vector<SignerLease> leases;
    leases.reserve(node.tokens.size());
    for (const auto& [key, token] : node.tokens) leases.push_back({key, token});
    return {statement("renew", sql::kRenewLeases.sql, renew_params(node.name, leases))};
  }

  Script any(Node& node) {
    const int what = pick(20);
    if (what < 12) return creating(node);
    if (what < 15) return promoting(node);
    if (what < 17) return renewing(node);
    if (what < 18 && pick(2) > 0) return giving_up(node);
    return taking(node);
  }

  // Events that no node causes: leases expire, and the chain mines.
  void pass_time() {
    for (const auto& [key, window] : windows) {
      if (pick(12) == 0) expire(key);
      if (pick(2) == 0) {
        admin.must(
            "UPDATE tx_open SET state = 'TRACKING', receipt_block = 1, receipt_hash = '0x', succeeded = true "
            "WHERE signer = $1 AND state = 'ALLOCATED' AND nonce % 3 <= $2",
            pg::Params::of(key.signer, pick(3)));
        const auto mined =
            admin.must("SELECT tx_id FROM tx_open WHERE signer = $1 AND succeeded ORDER BY nonce LIMIT $2",
                       pg::Params::of(key.signer, pick(4)));
        for (const auto row : mined) end(row.get<Uuid>("tx_id"));
      }
    }
  }

  std::mt19937 engine{20240607};
  Theatre theatre{db.dsn()};
  std::map<SignerKey, std::int64_t> windows;
  std::map<std::string, int> tally;
};

TEST_F(CreateRandom, every_signers_invariants_hold) {
  std::vector<Node> nodes;
  for (const std::string name : {"node-a", "node-b", "node-c"}) nodes.push_back({name, Session(db.dsn(), name), {}});
  for (const std::int64_t window : {0, 1, 2, 5, 0, 3}) windows[signer_of("nobody").key] = window;
  for (const auto& [key, window] : windows) expire(key);

  for (int round = 0; round < 150; ++round) {
    std::vector<interleaving::Part> parts;
    Order order;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      parts.push_back({nodes[i].session, any(nodes[i])});
      order.insert(order.end(), parts.back().script.size(), i);
    }
    std::ranges::shuffle(order, engine);
    theatre.play(parts, order);
    for (const auto& [key, window] : windows) {
      ASSERT_EQ(broken(key), "") << "round " << round << ", signer " << key.signer << theatre.trace();
    }
    pass_time();
  }
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM managed_tx"), tally["created"]);
  for (const auto* each : {"created", "existing", "fenced", "promoted", "taken"}) {
    EXPECT_GT(tally[each], 20) << each << ": too few for the test to be meaningful";
  }
}

}  // namespace
}  // namespace fencepost::tx
