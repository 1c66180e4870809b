// The settings of the transaction manager. config/ fills them in.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tx/model/fees.hpp"

namespace fencepost::tx {

struct ConfirmationOptions {
  bool progress = false;  // announce every block, not only forks and the end
  std::chrono::milliseconds stale_receipt_timeout{60'000};
  std::size_t receipt_workers = 10;
};

enum class NonceQuery { kPending, kLatest };

struct NonceOptions {
  bool chain_query_enabled = true;
  NonceQuery chain_query_mode = NonceQuery::kPending;
  std::chrono::milliseconds nonce_state_timeout{30'000};
};

struct ResubmitOptions {
  bool enabled = true;
  std::chrono::milliseconds interval{60'000};
};

// What the chain refuses whatever a transaction pays. 0: no limit.
struct LimitOptions {
  std::uint64_t max_gas = 16'777'216;         // of one transaction (EIP-7825)
  std::uint64_t max_initcode_bytes = 49'152;  // of data that creates a contract (EIP-3860)
  std::uint64_t max_tx_bytes = 131'072;       // of a signed transaction; what nodes accept into their pools
};

struct SignerOptions {
  std::optional<std::int64_t> max_in_flight;  // nullopt: the chain's setting
  std::optional<bool> shared;
  FeeCeiling ceiling;  // in addition to the chain's: the lower one holds
};

// How the transactions of one chain are handled.
struct ChainOptions {
  ConfirmationOptions confirmations;
  NonceOptions nonce;
  ResubmitOptions resubmit;
  std::chrono::milliseconds stuck_after{600'000};
  FeeOptions fees;
  LimitOptions limits;
  std::int64_t max_in_flight = 1;
  bool shared = false;
  std::map<std::string, SignerOptions> signers;  // by address, lowercase

  std::int64_t window_of(const std::string& signer) const {
    const auto it = signers.find(signer);
    return it != signers.end() && it->second.max_in_flight ? *it->second.max_in_flight : max_in_flight;
  }
  FeeCeiling ceiling_of(const std::string& signer) const {
    const auto it = signers.find(signer);
    return it == signers.end() ? fees.ceiling : fees.ceiling.tightest(it->second.ceiling);
  }
  bool is_shared(const std::string& signer) const {
    const auto it = signers.find(signer);
    return it != signers.end() && it->second.shared ? *it->second.shared : shared;
  }
};

struct LeaseTimes {
  std::chrono::milliseconds duration{10'000};
  std::chrono::milliseconds clock_skew_allowance{1'000};
};

struct LeaseOptions {
  LeaseTimes times;
  std::chrono::milliseconds renew_interval{3'000};
  std::chrono::milliseconds idle_release{60'000};  // a lease without work is released after this
  std::size_t adopt_step = 64;                     // orphaned signers taken at a time
};

// The JSON-RPC endpoint, /rpc/{chainId}.
struct RpcOptions {
  std::chrono::milliseconds sign_wait{20'000};  // how long eth_sendTransaction waits for the hash
  std::size_t max_waiting = 10'000;             // sends that wait at once; more are refused
  // Signing with a node's own keys, operating a node, the cheats of development chains, and what only a node's operator
  // should pay for. A `*` at the end stands for any rest.
  std::vector<std::string> denied_methods{"admin_*",    "anvil_*",    "clique_*",     "debug_*",  "engine_*",
                                          "erigon_*",   "eth_sign*",  "eth_submit*",  "evm_*",    "ganache_*",
                                          "hardhat_*",  "miner_*",    "nethermind_*", "ots_*",    "parity_*",
                                          "personal_*", "tenderly_*", "trace_*",      "txpool_*", "wallet_*"};
};

struct TxOptions {
  bool request_id_required = true;
  bool forwarding = true;
  std::chrono::milliseconds forward_timeout{10'000};
  std::size_t writer_lanes = 2;
  std::size_t writer_batch = 256;
  std::uint32_t gas_margin_percent = 20;  // on top of an estimate
  RpcOptions rpc;
};

}  // namespace fencepost::tx
