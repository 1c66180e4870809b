// The keys of the transaction manager: its own, those of each chain, signers and their keys.
#include <limits>

#include <fmt/format.h>

#include "config/key_builder.hpp"

namespace fencepost::config {
namespace {

using namespace std::chrono_literals;
using tx::ChainOptions;
using tx::ConfirmationOptions;
using tx::FeeCeiling;
using tx::FeeOptions;
using tx::LeaseOptions;
using tx::LeaseTimes;
using tx::LimitOptions;
using tx::NonceOptions;
using tx::ResubmitOptions;
using tx::RpcOptions;
using tx::SignerOptions;
using tx::TxOptions;

constexpr Choice<tx::NonceQuery, 2> kNonceQuery{
    {{{"pending", tx::NonceQuery::kPending}, {"latest", tx::NonceQuery::kLatest}}}};
constexpr Choice<FeePolicyName, 2> kFeePolicy{
    {{{"dynamic", FeePolicyName::kDynamic}, {"fixed", FeePolicyName::kFixed}}}};
constexpr Choice<tx::FeeKind, 3> kFeeKind{
    {{{"auto", tx::FeeKind::kUnknown}, {"dynamic", tx::FeeKind::kDynamic}, {"legacy", tx::FeeKind::kLegacy}}}};
constexpr Number<std::int64_t> kWindow{0, 100'000};
constexpr Number<std::int64_t> kChainId{1, std::numeric_limits<std::int64_t>::max()};
constexpr Number<std::uint64_t> kLimit{0, std::numeric_limits<std::int64_t>::max()};
constexpr Duration kSomeTime{1ms, 30 * 24h};

// The keys of a chain's options, written once for both uses: for all chains together, and in each chain's entry, where
// the former are the defaults.
template <class TuningOf>
class TuningKeys {
 public:
  // With an empty prefix, for all chains.
  TuningKeys(std::string prefix, TuningOf tuning_of) : prefix_(std::move(prefix)), tuning_of_(std::move(tuning_of)) {}

  std::vector<Key> make() && {
    confirmations();
    nonces();
    sending();
    fees();
    limits();
    window();
    endpoints();
    scanner();
    return std::move(keys_);
  }

 private:
  void confirmations() {
    constexpr auto kSection = &ChainOptions::confirmations;
    add_tuning("confirmations.required", Finality{},
               "When a block is final: after this many blocks, or when the chain calls it safe or finalized.",
               &ChainTuning::finality);
    add("confirmations.progress", Boolean{}, "Announce every confirmation, not only forks and the last one.", kSection,
        &ConfirmationOptions::progress);
    add("confirmations.stale_receipt_timeout", kSomeTime,
        "Ask for the receipt of a transaction that no block has listed for this long.", kSection,
        &ConfirmationOptions::stale_receipt_timeout);
    add("confirmations.receipt_workers", Count{1, 1000}, "How many receipts to ask for at once.", kSection,
        &ConfirmationOptions::receipt_workers);
  }

  void nonces() {
    constexpr auto kSection = &ChainOptions::nonce;
    add("nonce.chain_query.enabled", Boolean{},
        "Compare a signer's next nonce with the chain's; if false, only the first nonce comes from the chain.",
        kSection, &NonceOptions::chain_query_enabled);
    add("nonce.chain_query.mode", kNonceQuery,
        "Which nonce to ask for: with (pending) or without (latest) the transactions in the chain's pool.", kSection,
        &NonceOptions::chain_query_mode);
    add("nonce.nonce_state_timeout", kSomeTime, "How long a nonce from the chain is used before it is asked for again.",
        kSection, &NonceOptions::nonce_state_timeout);
  }

  void sending() {
    add("resubmit.enabled", Boolean{}, "Rebroadcast transactions that are not mined: the same bytes.",
        &ChainOptions::resubmit, &ResubmitOptions::enabled);
    add("resubmit.interval", kSomeTime, "How long to wait before each rebroadcast.", &ChainOptions::resubmit,
        &ResubmitOptions::interval);
    add("stuck.after", kSomeTime,
        "A signer's transaction with the lowest open nonce becomes STUCK if it is not mined for this long.",
        &ChainOptions::stuck_after);
  }

  void fees() {
    constexpr auto kSection = &ChainOptions::fees;
    add_tuning("fees.policy", kFeePolicy, "Offer the market price (dynamic), or always the same price (fixed).",
               &ChainTuning::fee_policy);
    add("fees.base_fee_multiplier", Uint32{1, 1000},
        "Dynamic: the cap is this many base fees plus the tip; the unused part of a cap is not paid.", kSection,
        &FeeOptions::base_fee_multiplier);
    add("fees.min_tip", Wei{}, "Dynamic: the least tip per gas to offer.", kSection, &FeeOptions::min_tip);
    add("fees.max_tip", Wei{}, "Dynamic: the highest tip per gas to offer.", kSection, &FeeOptions::max_tip);
    add("fees.kind", kFeeKind,
        "Whether the chain has a base fee (dynamic) or not (legacy); auto learns it from the first block.", kSection,
        &FeeOptions::kind);
    add("fees.max_fee_per_gas", Optional{Wei{}},
        "The most to offer per gas. While the chain asks more, a transaction waits.", kSection, &FeeOptions::ceiling,
        &FeeCeiling::max_fee_per_gas);
    add("fees.max_total_fee", Optional{Wei{}},
        "The most that the fees of a transaction may cost: its gas limit times the offered fee per gas.", kSection,
        &FeeOptions::ceiling, &FeeCeiling::max_total_fee);
    add("fees.fill_rejected", Boolean{},
        "Cancel a transaction that can never be sent while later ones wait behind it, as an operator would.", kSection,
        &FeeOptions::fill_rejected);
    add_tuning("fees.fixed.gas_price", Optional{Wei{}}, "Fixed: price per gas, for legacy transactions.",
               &ChainTuning::fixed_fees, &FixedFees::gas_price);
    add_tuning("fees.fixed.max_fee_per_gas", Optional{Wei{}}, "Fixed: cap per gas, together with the tip.",
               &ChainTuning::fixed_fees, &FixedFees::max_fee_per_gas);
    add_tuning("fees.fixed.max_priority_fee_per_gas", Optional{Wei{}}, "Fixed: tip per gas, together with the cap.",
               &ChainTuning::fixed_fees, &FixedFees::max_priority_fee_per_gas);
  }

  void limits() {
    constexpr auto kSection = &ChainOptions::limits;
    add("limits.max_gas", kLimit, "Refuse transactions with more gas (EIP-7825); 0 is no limit.", kSection,
        &LimitOptions::max_gas);
    add("limits.max_initcode_bytes", kLimit,
        "Refuse transactions that create a contract with more data (EIP-3860); 0 is no limit.", kSection,
        &LimitOptions::max_initcode_bytes);
    add("limits.max_tx_bytes", kLimit,
        "Refuse transactions that are larger than what nodes accept into their pools; 0 is no limit.", kSection,
        &LimitOptions::max_tx_bytes);
  }

  void window() {
    const std::string section = prefix_.empty() ? "tx." : "";
    add(section + "max_in_flight", kWindow,
        "How many transactions of one signer may be sent and not yet mined; 0 is no limit.",
        &ChainOptions::max_in_flight);
    add(section + "shared", Boolean{},
        "Other programs use the signers' keys too, so they may use nonces without Fencepost.", &ChainOptions::shared);
  }

  void endpoints() {
    add_tuning("rpc.batch_size", Count{1, 10'000},
               "Most JSON-RPC calls in one request to an endpoint; one that refuses a batch gets smaller ones.",
               &ChainTuning::batch_size);
  }

  void scanner() {
    using timelock::ScannerOptions;
    constexpr auto kSection = &ChainTuning::scanner;
    add_tuning("scanner.confirmations", Number<std::int64_t>{0, 10'000},
               "How many blocks must follow the block of a timelock's event before a change is announced.", kSection,
               &ScannerOptions::confirmations);
    add_tuning("scanner.flow_refresh_interval", kSomeTime,
               "How often to look for flows that the chain's clock moves; every new block looks, too.", kSection,
               &ScannerOptions::flow_refresh_interval);
    add_tuning("scanner.flow_refresh_batch_size", Count{1, 10'000}, "How many flows to move in one transaction.",
               kSection, &ScannerOptions::flow_refresh_batch_size);
    add_tuning("scanner.remind_before_expiry", Duration{0ms, 365 * 24h},
               "Announce flows that expire within this time; 0 for never.", kSection,
               &ScannerOptions::remind_before_expiry);
    add_tuning("scanner.remind_ready_after", Duration{0ms, 365 * 24h},
               "Announce flows that have been ready for this long; 0 for never.", kSection,
               &ScannerOptions::remind_ready_after);
    add_tuning("scanner.verify_interval", Duration{0ms, 365 * 24h},
               "How often to compare flows with events and contracts; 0 for never.", kSection,
               &ScannerOptions::verify_interval);
  }

  template <class Kind, class... Members>
  void add(const std::string& name, Kind kind, std::string doc, Members... members) {
    add_tuning(name, kind, std::move(doc), &ChainTuning::options, members...);
  }
  template <class Kind, class... Members>
  void add_tuning(const std::string& name, Kind kind, std::string doc, Members... members) {
    const auto access = [tuning_of = tuning_of_, members...](auto& config) -> auto& {
      return follow(tuning_of(config), members...);
    };
    keys_.push_back(key(prefix_ + name, access, kind, std::move(doc)));
    if (prefix_.empty()) return;
    const bool top = name.find('.') == std::string::npos;
    keys_.back().inherits = top ? "tx." + name : name;
  }

  std::string prefix_;
  TuningOf tuning_of_;
  std::vector<Key> keys_;
};

std::vector<Key> own_keys() {
  return {
      key("tx.request_id_required", at(&Config::tx, &TxOptions::request_id_required), Boolean{},
          "Refuse a create without requestId, which could not be retried safely."),
      key("tx.forwarding", at(&Config::tx, &TxOptions::forwarding), Boolean{},
          "Forward a request to the node that leads its signer; if false, refuse it with 409."),
      key("tx.forward_timeout", at(&Config::tx, &TxOptions::forward_timeout), Duration{1ms, 10min},
          "How long a request may look for a leader of its signer and wait for its answer."),
      key("tx.writer_lanes", at(&Config::tx, &TxOptions::writer_lanes), Count{1, 64},
          "Most batches of creates that are written at the same time."),
      key("tx.writer_batch", at(&Config::tx, &TxOptions::writer_batch), Count{1, 10'000}, "Most creates in one batch."),
      key("tx.gas_margin_percent", at(&Config::tx, &TxOptions::gas_margin_percent), Uint32{0, 1000},
          "Percentage to add to a gas estimate."),

      key("rpc.sign_wait", at(&Config::tx, &TxOptions::rpc, &RpcOptions::sign_wait), Duration{1ms, 10min},
          "How long eth_sendTransaction waits for the hash before it answers with the txId."),
      key("rpc.max_waiting", at(&Config::tx, &TxOptions::rpc, &RpcOptions::max_waiting), Count{1, 1'000'000},
          "Most sends over JSON-RPC that wait for their hash at once; more are refused."),
      key("rpc.denied_methods", at(&Config::tx, &TxOptions::rpc, &RpcOptions::denied_methods), MethodPatterns{},
          "JSON-RPC methods that are never passed on to the chain."),

      key("lease.duration", at(&Config::lease, &LeaseOptions::times, &LeaseTimes::duration), Duration{100ms, 1h},
          "How long a node leads a signer without renewing: a dead node's signers are taken over after this."),
      key("lease.renew_interval", at(&Config::lease, &LeaseOptions::renew_interval), Duration{10ms, 30min},
          "How often a node renews its leases; less than half of lease.duration."),
      key("lease.clock_skew_allowance", at(&Config::lease, &LeaseOptions::times, &LeaseTimes::clock_skew_allowance),
          Duration{0ms, 10min}, "How long other nodes wait after a lease has expired before they take it over."),
      key("lease.idle_release", at(&Config::lease, &LeaseOptions::idle_release), kSomeTime,
          "A node releases the lease of a signer without work after this time."),
  };
}

std::vector<Key> keystore_keys() {
  return {
      key("keystore.directory", at(&Config::keystore, &KeystoreConfig::directory), Text{4096},
          "Directory of key files (keystore V3, as made by fencepost signer new, geth or cast)."),
      key("keystore.password", at(&Config::keystore, &KeystoreConfig::password), SecretText{},
          "Password of all key files in keystore.directory."),
      key("keystore.dev_keys", at(&Config::keystore, &KeystoreConfig::dev_keys), SecretKeys{},
          "Plain private keys; only with dev."),
  };
}

void append(std::vector<Key>& out, std::vector<Key> more) {
  for (auto& key : more) out.push_back(std::move(key));
}

}  // namespace

std::vector<Key> tx_keys() {
  auto out = own_keys();
  append(out, TuningKeys("", at(&Config::chain_defaults)).make());
  append(out, keystore_keys());
  return out;
}

std::vector<Key> chain_keys(std::size_t index) {
  const auto path = [&](std::string_view name) { return fmt::format("chains[{}].{}", index, name); };
  const auto chain = [&](auto member) { return [=](auto& config) -> auto& { return config.chains[index].*member; }; };
  std::vector<Key> out{
      key(path("name"), chain(&ChainConfig::name), Text{64}, "Name of the chain, for people."),
      key(path("chain_id"), chain(&ChainConfig::chain_id), kChainId, "EIP-155 chain id; every endpoint must agree."),
      key(path("rpc_urls"), chain(&ChainConfig::rpc_urls), SecretUrls{},
          "JSON-RPC endpoints, the preferred one first."),
      key(path("submit_urls"), chain(&ChainConfig::submit_urls), SecretUrls{},
          "Where to send transactions, such as private relays, in place of rpc_urls; everything else is read from "
          "rpc_urls."),
      key(path("poll_interval"), chain(&ChainConfig::poll_interval), Duration{10ms, 1h},
          "How often to ask for a new block."),
      key(path("explorer_url"), chain(&ChainConfig::explorer_url), Url{"http", "https"},
          "Block explorer of the chain, such as https://etherscan.io: mails link to it."),
  };
  append(out, TuningKeys(path(""), chain(&ChainConfig::tuning)).make());
  return out;
}

std::vector<Key> signer_keys(std::size_t index) {
  const auto path = [&](std::string_view name) { return fmt::format("signers[{}].{}", index, name); };
  const auto signer = [&](auto... members) {
    return [=](auto& config) -> auto& { return follow(config.signers[index], members...); };
  };
  return {
      key(path("address"), signer(&SignerConfig::address), EvmAddress{}, "Address of the signer."),
      key(path("chain_id"), signer(&SignerConfig::chain_id), Optional{kChainId},
          "The chain that this entry applies to; all chains if not set."),
      key(path("max_in_flight"), signer(&SignerConfig::options, &SignerOptions::max_in_flight), Optional{kWindow},
          "For this signer, in place of the chain's."),
      key(path("shared"), signer(&SignerConfig::options, &SignerOptions::shared), Optional{Boolean{}},
          "For this signer, in place of the chain's."),
      key(path("max_fee_per_gas"),
          signer(&SignerConfig::options, &SignerOptions::ceiling, &FeeCeiling::max_fee_per_gas), Optional{Wei{}},
          "For this signer, if it is below the chain's fees.max_fee_per_gas."),
      key(path("max_total_fee"), signer(&SignerConfig::options, &SignerOptions::ceiling, &FeeCeiling::max_total_fee),
          Optional{Wei{}}, "For this signer, if it is below the chain's fees.max_total_fee."),
  };
}

}  // namespace fencepost::config
