// Tests the finality rules with random events: a chain that reorgs and evicts, and a worker that crashes, lags, reads
// the wrong fork and misses answers.
#include <array>
#include <map>

#include <gtest/gtest.h>

#include "evm/finality_rule.hpp"
#include "tx/model/finality.hpp"
#include "tx/model/stub_chain_test_support.hpp"

namespace fencepost::tx {
namespace {

using stub::Dice;
using stub::Head;

struct Row {
  OpenTx tx;
  std::optional<Inclusion> ended;  // the inclusion it ended with
};

using Tally = std::map<std::pair<Verdict, bool>, std::size_t>;  // by verdict and whether for an external row

class Simulation {
 public:
  static constexpr std::int64_t kDepth = 4;
  static constexpr std::size_t kOpenAtMost = 5;

  Simulation(std::uint64_t seed, Tally& tally) : dice_(seed), chain_(dice_, kDepth), tally_(tally) {
    own_ = endpoint_ = chain_.head();
  }

  // One random event: on the chain, by another sender or an operator, or in the worker.
  void step() {
    static constexpr std::array<void (Simulation::*)(), 16> kEvents{
        &Simulation::chain_moves, &Simulation::chain_moves,    &Simulation::views_move,
        &Simulation::views_move,  &Simulation::create,         &Simulation::sign,
        &Simulation::sign,        &Simulation::send,           &Simulation::send,
        &Simulation::send,        &Simulation::mark_submitted, &Simulation::time_out,
        &Simulation::cancel,      &Simulation::interfere,      &Simulation::learn_of_others,
        &Simulation::operate,
    };
    for (int i = 0; i < 8; ++i) (this->*kEvents[dice_.below(kEvents.size())])();
    for (int i = 0; i < 3; ++i) {
      if (auto* row = any_open()) {
        if (dice_.chance(30)) name_taker(*row);
        apply(*row, gather(*row, 15, true));
      }
    }
  }

  // Without faults and with every answer: each nonce is taken, and each row ends.
  void settle() {
    for (auto& row : rows_) settle_row(row);
    for (int i = 0; i < 200 && chain_.head()->next_nonce < next_nonce(); ++i) chain_.mine();
    ASSERT_EQ(chain_.head()->next_nonce, next_nonce());
    for (int i = 0; i < kDepth; ++i) chain_.mine();
    own_ = endpoint_ = chain_.head();
    for (auto& row : rows_) {
      // STUCK by a false alarm, tracking, mined, ended: no row has more steps left.
      for (int i = 0; i < 5 && !kManagedTx.terminal(row.tx.state); ++i) {
        name_taker(row);
        apply(row, gather(row, 0, false));
      }
      EXPECT_TRUE(kManagedTx.terminal(row.tx.state)) << "nonce " << row.tx.nonce << " has not ended";
    }
  }

  // How many rows that ended with a receipt are undone in this view.
  std::size_t violations(const Head& view) const {
    const auto final_number = evm::final_by_depth(view->number, kDepth);
    return static_cast<std::size_t>(std::ranges::count_if(rows_, [&](const Row& row) {
      return row.ended && final_number && row.ended->block_number <= *final_number && is_on(view, *row.ended) == false;
    }));
  }

  stub::Chain& chain() { return chain_; }
  const Head& own() const { return own_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::int64_t next_nonce() const { return static_cast<std::int64_t>(rows_.size()); }
  std::string fresh_hash(char kind) { return kind + std::to_string(++hashes_made_); }

  Row* any_open() {
    std::vector<Row*> open;
    for (auto& row : rows_) {
      if (!kManagedTx.terminal(row.tx.state)) open.push_back(&row);
    }
    return open.empty() ? nullptr : open[dice_.below(open.size())];
  }

  void chain_moves() {
    if (dice_.chance(20)) {
      chain_.reorg(static_cast<std::int64_t>(dice_.below(kDepth + 1)));
    } else if (dice_.chance(10)) {
      chain_.evict_some();
    } else {
      chain_.mine();
    }
  }
  void views_move() {
    if (dice_.chance(60)) own_ = chain_.any_view();
    if (dice_.chance(60)) endpoint_ = chain_.any_view();
  }
  void create() {
    const auto open = std::ranges::count_if(rows_, [](const Row& row) { return !kManagedTx.terminal(row.tx.state); });
    if (static_cast<std::size_t>(open) >= kOpenAtMost) return;
    const bool external = dice_.chance(12);
    const auto state = dice_.chance(external ? 50 : 0) ? TxState::kTracking : TxState::kAllocated;
    rows_.push_back({{.state = state, .nonce = next_nonce(), .external = external}, {}});
  }
  void sign() {
    auto* row = any_open();
    if (row != nullptr && !row->tx.external && row->tx.attempts.empty()) add_attempt(*row, AttemptKind::kOriginal);
  }
  void send() {
    auto* row = any_open();
    if (row == nullptr || row->tx.mined || row->tx.attempts.empty()) return;
    broadcast(row->tx, row->tx.attempts[dice_.below(row->tx.attempts.size())].hash);
  }
  void mark_submitted() {
    auto* row = any_open();
    if (row == nullptr || row->tx.external || row->tx.attempts.empty()) return;
    if (row->tx.state == TxState::kAllocated) move(*row, TxState::kTracking);
  }
  void time_out() {
    auto* row = any_open();
    if (row == nullptr || row->tx.mined || !dice_.chance(30)) return;
    if (row->tx.state == TxState::kTracking || row->tx.state == TxState::kAllocated) move(*row, TxState::kStuck);
  }
  void operate() {
    auto* row = any_open();
    if (row == nullptr || row->tx.external || row->tx.taken_by_foreign) return;
    if (row->tx.state == TxState::kStuck && !row->tx.attempts.empty()) move(*row, TxState::kTracking);
  }
  void cancel() {
    auto* row = any_open();
    if (row == nullptr || row->tx.mined || !dice_.chance(30)) return;
    add_attempt(*row, AttemptKind::kCancel);
    broadcast(row->tx, row->tx.attempts.back().hash);
  }
  // Another sender uses one of our nonces, or the nonce of an external row.
  void interfere() {
    auto* row = any_open();
    if (row == nullptr || !dice_.chance(row->tx.external ? 90 : 25)) return;
    others_.push_back({fresh_hash('x'), row->tx.nonce});
    broadcast(row->tx, others_.back().hash);
  }
  // An operator records a hash: of our payload, broadcast elsewhere, or of another sender's transaction.
  void learn_of_others() {
    if (others_.empty() || !dice_.chance(40)) return;
    const auto other = others_[dice_.below(others_.size())];
    auto& row = rows_[static_cast<std::size_t>(other.nonce)];
    const auto known = std::ranges::find(row.tx.attempts, other.hash, &Attempt::hash) != row.tx.attempts.end();
    if (known || kManagedTx.terminal(row.tx.state)) return;
    const bool ours = !row.tx.external && dice_.chance(50);
    row.tx.attempts.push_back({other.hash, ours ? AttemptKind::kRecorded : AttemptKind::kExternal});
  }

  // The worker searches the own branch for the transaction that took the nonce.
  void name_taker(Row& row) {
    const auto place = stub::locate(own_, [&](const auto& one) { return one.nonce == row.tx.nonce; });
    if (place.block == nullptr) return;
    const auto& hash = place.transaction->hash;
    const bool known = std::ranges::find(row.tx.attempts, hash, &Attempt::hash) != row.tx.attempts.end();
    if (!known) row.tx.attempts.push_back({hash, AttemptKind::kExternal});
  }

  void add_attempt(Row& row, AttemptKind kind) {
    row.tx.attempts.push_back({fresh_hash(kAttemptKinds.name(kind)[0]), kind});
  }
  void broadcast(const OpenTx& tx, const std::string& hash) {
    const bool succeeds = std::hash<std::string>()(hash) % 4 != 0;
    chain_.broadcast({hash, tx.nonce, succeeds});
  }
  void settle_row(Row& row) {
    if (kManagedTx.terminal(row.tx.state)) return;
    if (row.tx.external) {
      broadcast(row.tx, fresh_hash('x'));
    } else if (row.tx.attempts.empty()) {
      add_attempt(row, AttemptKind::kOriginal);
    }
    for (const auto& attempt : row.tx.attempts) broadcast(row.tx, attempt.hash);
  }

  // The facts that a worker would gather; each part is missing with that chance. `racing`: the chain changes between
  // the requests.
  ChainFacts gather(const Row& row, std::size_t missing_percent, bool racing) {
    const auto known = [&] { return !dice_.chance(missing_percent); };
    const auto own = own_;
    ChainFacts facts{.head_number = own->number};
    if (known()) facts.final_number = evm::final_by_depth(own->number, kDepth);
    if (row.tx.mined && known()) facts.mined_is_canonical = is_on(own, *row.tx.mined);
    auto nonce = ask_counts(facts, own);
    moved_while_asking_ = racing && dice_.chance(30);
    if (moved_while_asking_) {
      for (auto moves = dice_.below(2 * kDepth); moves > 0; --moves) chain_moves();
      endpoint_ = chain_.any_view();
    }
    bool all_answered = true;
    // An endpoint may answer null for the receipts of transactions that it has in its blocks.
    withheld_ = racing && dice_.chance(20);
    for (const auto& attempt : row.tx.attempts) {
      if (attempt.kind == AttemptKind::kExternal) continue;
      const auto listed = stub::locate(own, [&](const auto& one) { return one.hash == attempt.hash; });
      if (listed.block != nullptr) facts.listed_block = listed.block->number;
    }
    for (const auto& attempt : row.tx.attempts) {
      if (withheld_) continue;
      if (!known()) {
        all_answered = false;
        continue;
      }
      const auto place = stub::locate(endpoint_, [&](const auto& one) { return one.hash == attempt.hash; });
      if (place.block == nullptr) continue;
      const Inclusion inclusion{attempt.hash, place.block->number, place.block->hash, place.transaction->succeeds};
      if (is_on(own, inclusion) == true) facts.found.push_back(inclusion);
      if (attempt.kind != AttemptKind::kExternal) ++nonce.own_mined;
    }
    if (nonce.at_final && !agree_at(*facts.final_number, own)) nonce.at_final.reset();
    if (all_answered && known()) facts.nonce = nonce;
    return facts;
  }

  NonceFacts ask_counts(const ChainFacts& facts, const Head& own) const {
    NonceFacts out{.at_head = endpoint_->next_nonce};
    if (facts.final_number && agree_at(*facts.final_number, own)) {
      out.at_final = stub::at(endpoint_, *facts.final_number)->next_nonce;
    }
    return out;
  }
  bool agree_at(std::int64_t number, const Head& own) const {
    return stub::at(endpoint_, number) != nullptr && stub::at(endpoint_, number) == stub::at(own, number);
  }
  static std::optional<bool> is_on(const Head& view, const Inclusion& inclusion) {
    const auto* block = stub::at(view, inclusion.block_number);
    if (block == nullptr) return std::nullopt;  // the view does not reach it
    return block->hash == inclusion.block_hash;
  }

  void move(Row& row, TxState to) {
    if (to == row.tx.state) return;
    EXPECT_TRUE(kManagedTx.allowed(row.tx.state, to))
        << kManagedTx.name(row.tx.state) << " to " << kManagedTx.name(to) << ", nonce " << row.tx.nonce;
    row.tx.state = to;
  }

  void apply(Row& row, const ChainFacts& facts) {
    const auto decision = decide(row.tx, facts);
    ++tally_[{decision.verdict, row.tx.external}];
    const auto to = state_after(row.tx.state, decision.verdict);
    if (kManagedTx.terminal(to)) check_end(row, decision);
    if (decision.verdict == Verdict::kStuckForeign && !moved_while_asking_ && !withheld_) check_alarm(row);
    move(row, to);
    row.tx.taken_by_foreign =
        decision.verdict == Verdict::kStuckForeign || (row.tx.taken_by_foreign && row.tx.state == TxState::kStuck);
    if (decision.verdict == Verdict::kMined || decision.verdict == Verdict::kMinedElsewhere) {
      ASSERT_TRUE(decision.inclusion);
      EXPECT_NE(row.tx.mined, decision.inclusion);
      EXPECT_TRUE(is_ours(row.tx, decision.inclusion->tx_hash)) << decision.inclusion->tx_hash;
      row.tx.mined = decision.inclusion;
    }
    if (decision.verdict == Verdict::kUnmined) row.tx.mined.reset();
    if (kManagedTx.terminal(to)) row.ended = decision.inclusion;
  }

  static bool is_ours(const OpenTx& tx, const std::string& hash) {
    const auto found = std::ranges::find(tx.attempts, hash, &Attempt::hash);
    return found != tx.attempts.end() && found->kind != AttemptKind::kExternal;
  }

  // A false alarm may be early but not unfounded: in the endpoint's view, another sender had taken the nonce.
  void check_alarm(const Row& row) const {
    const auto taker = stub::locate(endpoint_, [&](const auto& one) { return one.nonce == row.tx.nonce; });
    ASSERT_NE(taker.block, nullptr) << "stuck_foreign at a nonce that is free";
    EXPECT_FALSE(is_ours(row.tx, taker.transaction->hash)) << "stuck_foreign by " << taker.transaction->hash;
  }

  // The end must agree with the final chain, whatever the worker had seen.
  void check_end(const Row& row, const Decision& decision) {
    const auto truth = stub::locate(chain_.head(), [&](const auto& one) { return one.nonce == row.tx.nonce; });
    ASSERT_NE(truth.block, nullptr) << to_string(decision.verdict) << " of a nonce that no transaction took";
    EXPECT_LE(truth.block->number, chain_.final_number()) << to_string(decision.verdict) << " before it was final";
    const auto ours = std::ranges::find(row.tx.attempts, truth.transaction->hash, &Attempt::hash);
    auto expected = Verdict::kConsumedElsewhere;
    if (ours != row.tx.attempts.end() && ours->kind == AttemptKind::kCancel) expected = Verdict::kCancelled;
    if (ours != row.tx.attempts.end() &&
        (ours->kind == AttemptKind::kOriginal || ours->kind == AttemptKind::kRecorded)) {
      expected = truth.transaction->succeeds ? Verdict::kConfirmed : Verdict::kReverted;
    }
    EXPECT_EQ(to_string(decision.verdict), to_string(expected)) << truth.transaction->hash;
    if (decision.inclusion) {
      EXPECT_EQ(decision.inclusion->tx_hash, truth.transaction->hash);
      EXPECT_EQ(decision.inclusion->block_hash, truth.block->hash);
    }
  }

  Dice dice_;
  stub::Chain chain_;
  Tally& tally_;
  Head own_;
  Head endpoint_;
  bool moved_while_asking_ = false;
  bool withheld_ = false;
  std::vector<Row> rows_;
  std::vector<stub::Transaction> others_;
  std::size_t hashes_made_ = 0;
};

constexpr std::uint64_t kRuns = 150;
constexpr std::size_t kSteps = 400;

TEST(finality_property, every_end_agrees_with_the_final_chain) {
  Tally tally;
  std::size_t rows = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation(seed, tally);
    for (std::size_t i = 0; i < kSteps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      simulation.step();
      if (i % 20 == 0) EXPECT_EQ(simulation.violations(simulation.own()), 0U);
    }
    if (!testing::Test::HasFailure()) simulation.settle();
    if (testing::Test::HasFailure()) return;
    rows += simulation.rows().size();
  }
  EXPECT_GT(rows, 10 * kRuns);
  // A verdict that the run rarely reached would prove nothing.
  for (int i = 0; i <= static_cast<int>(Verdict::kTracking); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_GT((tally[{verdict, false}]), 50U) << to_string(verdict);
  }
  EXPECT_GT((tally[{Verdict::kTracking, true}]), 50U);
  EXPECT_GT((tally[{Verdict::kConsumedElsewhere, true}]), 50U);
}

TEST(finality_property, a_reorg_deeper_than_finality_is_detected) {
  Tally tally;
  std::size_t violated = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation(seed, tally);
    for (std::size_t i = 0; i < 150; ++i) simulation.step();
    simulation.settle();
    ASSERT_EQ(simulation.violations(simulation.chain().head()), 0U);
    const auto fork = simulation.chain().final_number() / 2;
    simulation.chain().reorg_to(fork);
    const auto undone = std::ranges::count_if(
        simulation.rows(), [&](const Row& row) { return row.ended && row.ended->block_number > fork; });
    EXPECT_EQ(simulation.violations(simulation.chain().head()), static_cast<std::size_t>(undone));
    violated += static_cast<std::size_t>(undone);
  }
  EXPECT_GT(violated, 100U);
}

}  // namespace
}  // namespace fencepost::tx
