// Real timelock contracts on a test's chain: Compound's Timelock and OpenZeppelin's TimelockController, from the npm
// packages that carry their bytecode. Transactions are sent by anvil's own accounts, not by a node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hex.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {

// The standard encoding of arguments, as far as the contracts need it.
struct AbiPart {
  bool dynamic = false;
  Bytes data;
};
AbiPart word(std::uint64_t value);
AbiPart word(const std::string& hex);  // an address or 32 bytes
AbiPart blob(const Bytes& bytes);      // bytes or string
AbiPart text(const std::string& text);
AbiPart list(const std::vector<AbiPart>& items);
Bytes encode(const std::vector<AbiPart>& parts);
// Hex with the function's selector in front.
std::string call_data(const std::string& signature, const std::vector<AbiPart>& arguments = {});

struct TimelockCall {
  std::string target;
  std::uint64_t value = 0;
  std::string data = "0x";
};

class TimelockChain {
 public:
  explicit TimelockChain(const TxCluster& cluster) : cluster_(cluster) {}

  // Sends a transaction, and mines a block if anvil does not by itself. Returns its hash. Throws when it reverts.
  std::string send(const std::string& from, const std::string& to, const std::string& data, bool mine = true) const;
  std::string call(const std::string& to, const std::string& data) const;
  // Returns the address of the contract.
  std::string deploy(const std::string& from, const std::string& creation) const;

  // Moves the chain's clock and mines a block with exactly that timestamp.
  void set_time(std::int64_t timestamp) const;
  void pass(std::int64_t seconds) const { set_time(now() + seconds); }
  std::int64_t now() const;  // of the newest block

  const TxCluster& cluster() const { return cluster_; }

 private:
  const TxCluster& cluster_;
};

// Compound's Timelock with the given admin. Delays below two days are refused by the original.
class CompoundTimelock {
 public:
  CompoundTimelock(const TimelockChain& chain, std::string admin, std::int64_t delay = kDay * 2);
  static constexpr std::int64_t kDay = 86'400;
  static constexpr std::int64_t kGrace = 14 * kDay;

  const std::string& address() const { return address_; }
  // Each returns the hash of the transaction.
  std::string queue(const TimelockCall& call, const std::string& signature, std::int64_t eta) const;
  std::string execute(const TimelockCall& call, const std::string& signature, std::int64_t eta) const;
  std::string cancel(const TimelockCall& call, const std::string& signature, std::int64_t eta) const;
  static std::string id(const TimelockCall& call, const std::string& signature, std::int64_t eta);

 private:
  std::string act(const std::string& function, const TimelockCall& call, const std::string& signature,
                  std::int64_t eta) const;
  const TimelockChain& chain_;
  std::string admin_;
  std::string address_;
};

// A TimelockController whose proposer, canceller and executor is `admin`.
class OpenZeppelinTimelock {
 public:
  OpenZeppelinTimelock(const TimelockChain& chain, std::string admin, std::int64_t min_delay);

  const std::string& address() const { return address_; }
  std::string schedule(const TimelockCall& call, const std::string& salt, std::int64_t delay,
                       const std::string& predecessor = kZero) const;
  std::string execute(const TimelockCall& call, const std::string& salt, const std::string& predecessor = kZero) const;
  std::string schedule_batch(const std::vector<TimelockCall>& calls, const std::string& salt, std::int64_t delay) const;
  std::string execute_batch(const std::vector<TimelockCall>& calls, const std::string& salt) const;
  std::string cancel(const std::string& id) const;
  static std::string id(const TimelockCall& call, const std::string& salt, const std::string& predecessor = kZero);
  static std::string batch_id(const std::vector<TimelockCall>& calls, const std::string& salt);

  static const std::string kZero;  // 32 zero bytes

 private:
  const TimelockChain& chain_;
  std::string admin_;
  std::string address_;
};

// 32 bytes that differ by the number.
std::string salt(std::uint64_t number);

}  // namespace fencepost::test
