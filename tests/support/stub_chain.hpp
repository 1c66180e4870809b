// A chain in memory that behaves like an EVM node's, without an EVM: accounts, a pool in nonce order, blocks, reorgs.
// It checks real signed transactions and recovers their senders, as a node does, and takes thousands per second.
//
//   StubChain chain;
//   chain.send(raw);
//   chain.mine();
//   chain.reorg(1, Fate::kBackToPool);
//
// A transaction fails if its data begins with 0xfe; all others succeed. There are no logs and no contracts.
// StubChainRpc speaks JSON-RPC for it, and StubChainServer listens on a port. This class is the logic alone: it has no
// network, and its only clock is the given one. Any thread may call any method.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/uint256.hpp"
#include "evm/transaction.hpp"

namespace fencepost::test {

struct StubChainOptions {
  std::uint64_t chain_id = 31337;
  std::uint64_t base_fee = 1'000'000'000;
  std::uint64_t gas_limit = 1'000'000'000;  // of a block
  std::int64_t safe_distance = 2;           // blocks behind the head
  std::int64_t finalized_distance = 4;
  std::size_t keep_blocks = 1'000;  // older blocks and their transactions are forgotten
  std::size_t max_pool = 1'000'000;
  bool keep_history = true;  // store the answers of `history` forever: 40 bytes per mined transaction
};

using StubTransaction = std::shared_ptr<const evm::DecodedTransaction>;

struct StubReceipt {
  StubTransaction transaction;
  bool succeeded = true;
  std::uint64_t gas_used = 0;
  std::uint64_t gas_so_far = 0;  // of the block up to and including this transaction
  Uint256 gas_price;
};

struct StubBlock {
  std::int64_t number = 0;
  evm::Hash32 hash{};
  evm::Hash32 parent{};
  std::int64_t timestamp = 0;
  std::uint64_t base_fee = 0;
  std::uint64_t gas_used = 0;
  std::vector<StubReceipt> receipts;
};
using StubBlockPtr = std::shared_ptr<const StubBlock>;

// What happens to the transactions of the blocks that a reorg undoes.
enum class Fate { kDropped, kBackToPool };

// Whether a call or a transaction with this data fails when it runs.
bool stub_reverts(std::span<const std::uint8_t> data);

class StubChain {
 public:
  // Starts with the genesis block. The clock gives the blocks their timestamps and must outlive the chain.
  explicit StubChain(StubChainOptions options = {}, const Clock& clock = system_clock());

  // --- what a node answers --------------------------------------------------------------------------------------

  std::uint64_t chain_id() const { return options_.chain_id; }
  std::uint64_t gas_limit() const { return options_.gas_limit; }
  // Adds a transaction to the pool. The error's message is geth's:
  //   bad_transaction     failed to decode signed transaction, invalid chain id, exceeds block gas limit
  //   already_known       the pool has the transaction
  //   nonce_too_low       the nonce is used, perhaps by this very transaction
  //   intrinsic_gas       intrinsic gas too low
  //   fee_too_low         max fee per gas less than block base fee
  //   underpriced         another transaction waits at this nonce, and the new one does not pay 10 % more
  //   insufficient_funds
  //   pool_full
  Result<evm::Hash32> send(std::span<const std::uint8_t> raw);

  StubBlockPtr head() const;
  // nullptr if the block is not on the current branch.
  StubBlockPtr block(std::int64_t number) const;
  StubBlockPtr block(const evm::Hash32& hash) const;
  std::int64_t safe_number() const;
  std::int64_t finalized_number() const;

  struct Mined {
    StubBlockPtr block;
    std::size_t index = 0;
  };
  std::optional<Mined> find_mined(const evm::Hash32& hash) const;
  StubTransaction find_pooled(const evm::Hash32& hash) const;  // nullptr if it is not in the pool

  std::uint64_t nonce(const evm::Address& address) const;
  // The nonce after that block. Correct for blocks that are not forgotten.
  std::uint64_t nonce_at(const evm::Address& address, std::int64_t number) const;
  // The nonce that follows the mined ones and the waiting ones behind them, without a gap.
  std::uint64_t pending_nonce(const evm::Address& address) const;
  // A million ether unless set otherwise.
  Uint256 balance(const evm::Address& address) const;
  std::uint64_t base_fee() const;  // of the next block
  std::size_t pool_size() const;

  // --- what only a test can do ----------------------------------------------------------------------------------

  // Mines blocks from the pool, each up to the gas limit. Returns the last block.
  StubBlockPtr mine(std::size_t blocks = 1);
  // Replaces the newest `depth` blocks (at most all stored ones but the oldest) by empty ones, by default one more than
  // before. The next `mine` mines the transactions that went back to the pool.
  void reorg(std::size_t depth, Fate fate, std::optional<std::size_t> new_blocks = std::nullopt);
  // Removes a transaction from the pool, as a node under load does. False if it is not in the pool.
  bool evict(const evm::Hash32& hash);
  void set_base_fee(std::uint64_t fee);
  void set_balance(const evm::Address& address, const Uint256& balance);
  void set_distances(std::int64_t safe, std::int64_t finalized);

  // All hashes that were ever mined at that nonce, on any branch, in order, each once.
  std::vector<evm::Hash32> history(const evm::Address& sender, std::uint64_t nonce) const;
  std::uint64_t mined_count() const;  // summed over all branches

 private:
  struct Account {
    evm::Address address{};
    std::uint64_t nonce = 0;
    Uint256 balance;
    std::map<std::uint64_t, StubTransaction> pool;
    bool ready = false;                                        // is in ready_
    std::deque<std::pair<std::int64_t, std::uint64_t>> steps;  // a block, and the nonce before that block
  };
  struct Hasher {
    std::size_t operator()(std::span<const std::uint8_t> bytes) const noexcept;
  };
  using Hash32 = evm::Hash32;

  static const Clock& system_clock();

  // All of these require the lock.
  Account& account(const evm::Address& address);
  const Account* find(const evm::Address& address) const;
  Result<void> check(const evm::DecodedTransaction& tx, const Account& sender) const;
  void pool(Account& sender, StubTransaction tx);
  void unpool(Account& sender, std::uint64_t nonce);
  void make_ready(Account& sender);
  void mine_one(bool empty);
  void run_pool_of(Account& sender, StubBlock& block, bool& full);
  void run(Account& sender, StubBlock& block, const StubTransaction& tx);
  void append(std::shared_ptr<StubBlock> block);
  void undo_head(Fate fate);
  void forget_oldest();

  const StubChainOptions options_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::uint64_t base_fee_;
  std::int64_t safe_distance_;
  std::int64_t finalized_distance_;
  std::uint64_t blocks_made_ = 0;  // makes the hashes of equal blocks on two branches differ
  std::uint64_t mined_count_ = 0;
  std::unordered_map<evm::Address, Account, Hasher> accounts_;
  std::deque<Account*> ready_;  // accounts whose next transaction can run, served in turn
  std::unordered_map<Hash32, StubTransaction, Hasher> pooled_;
  std::deque<StubBlockPtr> blocks_;  // the current branch, oldest first
  std::unordered_map<Hash32, StubBlockPtr, Hasher> by_hash_;
  std::unordered_map<Hash32, Mined, Hasher> mined_;
  std::unordered_map<evm::Address, std::vector<std::pair<std::uint64_t, Hash32>>, Hasher> history_;
};

}  // namespace fencepost::test
