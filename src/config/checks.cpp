// Checks rules between keys, after each key has its value.
#include <algorithm>

#include <fmt/format.h>

#include "base/duration_text.hpp"

#include "config/keys.hpp"
#include "config/settings.hpp"

namespace fencepost {
namespace config {
namespace {

class Checks {
 public:
  Checks(Config& config, const Settings& settings, Problems& problems)
      : config_(config), settings_(settings), problems_(problems) {}

  void run() {
    check_chains();
    check_signers();
    check_lease();
    check_fees();
    check_keystore();
    check_email();
    check_nats();
    check_listeners();
  }

 private:
  void add(const std::string& key, std::string_view reason) { problems_.add(settings_.origin(key), key, reason); }

  void needs(const std::string& key, const std::string& other) {
    if (settings_.is_set(key) && !settings_.is_mentioned(other))
      add(key, fmt::format("requires {} to be set too", other));
  }

  void require_in(const std::string& element, std::initializer_list<std::string_view> names) {
    const auto found = settings_.elements.find(element);
    const auto where = found == settings_.elements.end() ? Origin{} : found->second;
    for (const auto name : names) check_required(fmt::format("{}.{}", element, name), where, settings_, problems_);
  }

  void check_chains() {
    for (std::size_t i = 0; i < config_.chains.size(); ++i) {
      const auto element = fmt::format("chains[{}]", i);
      require_in(element, {"name", "chain_id", "rpc_urls"});
      for (std::size_t j = 0; j < i; ++j) {
        const auto& a = config_.chains[j];
        const auto& b = config_.chains[i];
        const auto repeats = fmt::format("must be unique, but chains[{}] has the same value", j);
        if (b.chain_id != 0 && a.chain_id == b.chain_id) add(element + ".chain_id", repeats);
        if (!b.name.empty() && a.name == b.name) add(element + ".name", repeats);
      }
    }
  }

  void check_signers() {
    for (std::size_t i = 0; i < config_.signers.size(); ++i) {
      const auto element = fmt::format("signers[{}]", i);
      require_in(element, {"address"});
      const auto& signer = config_.signers[i];
      const auto is_its = [&](const ChainConfig& chain) { return chain.chain_id == signer.chain_id; };
      if (signer.chain_id && std::ranges::none_of(config_.chains, is_its)) {
        add(element + ".chain_id", fmt::format("no entry of chains has the chain_id {}", *signer.chain_id));
      }
      for (std::size_t j = 0; j < i && !signer.address.empty(); ++j) {
        const auto& other = config_.signers[j];
        if (other.address == signer.address && other.chain_id == signer.chain_id) {
          add(element + ".address",
              fmt::format("must be unique per chain, but signers[{}] has the same address for the same chain", j));
        }
      }
    }
  }

  // With two renewals within a lease, one may fail without losing the lease.
  void check_lease() {
    const auto& lease = config_.lease;
    if (lease.renew_interval * 2 < lease.times.duration) return;
    const bool by_interval = settings_.is_set("lease.renew_interval");
    add(by_interval ? "lease.renew_interval" : "lease.duration",
        fmt::format("renewing every {} is not often enough for a lease of {}: lease.renew_interval must be less than "
                    "half of lease.duration",
                    duration_text(lease.renew_interval), duration_text(lease.times.duration)));
  }

  void check_fees() {
    check_fees_of(config_.chain_defaults, "");
    bool any_fixed = config_.chain_defaults.fee_policy == FeePolicyName::kFixed;
    for (std::size_t i = 0; i < config_.chains.size(); ++i) {
      auto& tuning = config_.chains[i].tuning;
      const auto prefix = fmt::format("chains[{}].", i);
      settle_kind(tuning.fixed_fees, prefix);
      check_fees_of(tuning, prefix);
      if (tuning.fee_policy == FeePolicyName::kDynamic) {
        check_unused(prefix);
        tuning.fixed_fees = {};  // inherited, but the policy `dynamic` does not use them
      }
      any_fixed = any_fixed || tuning.fee_policy == FeePolicyName::kFixed;
    }
    if (!any_fixed) check_unused("");
  }

  // A chain with its own gas price does not inherit cap and tip, and a chain with its own cap or tip inherits no price.
  void settle_kind(FixedFees& fees, const std::string& prefix) const {
    const bool own_price = settings_.is_set(prefix + kGasPrice);
    const bool own_cap = settings_.is_set(prefix + kCap) || settings_.is_set(prefix + kTip);
    if (own_cap && !own_price) fees.gas_price.reset();
    if (own_price && !own_cap)
      fees = {.gas_price = fees.gas_price, .max_fee_per_gas = {}, .max_priority_fee_per_gas = {}};
  }

  void check_fees_of(const ChainTuning& tuning, const std::string& prefix) {
    const auto blamed = [&](const char* name) {  // the chain's own key, or the key it inherits from
      return settings_.is_set(prefix + name) ? prefix + name : std::string(name);
    };
    const auto own = [&](std::initializer_list<const char*> names) {
      return prefix.empty() || std::ranges::any_of(names, [&](auto* name) { return settings_.is_set(prefix + name); });
    };
    const auto& market = tuning.options.fees;
    if (market.min_tip > market.max_tip && own({kMinTip, kMaxTip})) {
      add(settings_.is_set(prefix + kMinTip) ? prefix + kMinTip : blamed(kMaxTip),
          "fees.min_tip is above fees.max_tip");
    }
    if (tuning.fee_policy != FeePolicyName::kFixed || !own({kPolicy, kGasPrice, kCap, kTip})) return;
    const auto& fees = tuning.fixed_fees;
    const bool dynamic = fees.max_fee_per_gas && fees.max_priority_fee_per_gas;
    const bool half = fees.max_fee_per_gas.has_value() != fees.max_priority_fee_per_gas.has_value();
    if (half || dynamic == fees.gas_price.has_value()) {
      add(blamed(kPolicy),
          "fixed needs either fees.fixed.gas_price, or fees.fixed.max_fee_per_gas and "
          "fees.fixed.max_priority_fee_per_gas");
    } else if (dynamic && *fees.max_priority_fee_per_gas > *fees.max_fee_per_gas) {
      add(blamed(kTip), "is above fees.fixed.max_fee_per_gas");
    }
  }

  void check_unused(const std::string& prefix) {
    for (const auto* name : {kGasPrice, kCap, kTip}) {
      if (settings_.is_set(prefix + name)) add(prefix + name, "has no effect: needs fees.policy: fixed");
    }
  }

  void check_keystore() {
    if (config_.dev || config_.keystore.dev_keys.empty()) return;
    add("keystore.dev_keys", "needs dev: true; plain keys are for development only, store other keys in key files");
  }

  void check_listeners() {
    needs("http.tls_certificate_path", "http.tls_key_path");
    needs("http.tls_key_path", "http.tls_certificate_path");
    const auto& http = config_.http;
    const bool tls = settings_.is_set("http.tls_certificate_path");
    if (tls && config_.node.advertise_url.starts_with("http://")) {
      add("node.advertise_url", "begins with http://, but the node speaks TLS: other nodes could not reach it");
    }
    const auto& listen = config_.metrics.listen;
    const auto any = [](const std::string& host) { return host == "0.0.0.0" || host == "::"; };
    if (listen && listen->port != 0 && listen->port == http.port &&
        (listen->host == http.host || any(listen->host) || any(http.host))) {
      add("metrics.listen", "is where the API listens (http.host, http.port); leave it out to have /metrics there");
    }
  }

  void check_email() {
    auto& email = config_.email;
    if (!settings_.is_set(kTransport) && !email.smtp_url.empty()) email.transport = notify::TransportKind::kSmtp;
    const bool by_transport = settings_.is_set(kTransport);
    const auto require = [&](const char* key) {
      if (settings_.is_mentioned(key)) return;
      add(by_transport ? kTransport : "email.smtp_url", fmt::format("requires {} to be set too", key));
    };
    if (email.configured()) require("email.from");
    if (email.transport == notify::TransportKind::kSmtp) require("email.smtp_url");
    if (email.transport == notify::TransportKind::kFile) require("email.directory");
    for (const auto* key : {"email.username", "email.password", "email.tls_ca_path"}) needs(key, "email.smtp_url");
    for (const auto* key : {"email.from", "email.operators"}) {
      if (!settings_.is_set(key) || settings_.is_mentioned("email.smtp_url") || settings_.is_mentioned(kTransport))
        continue;
      add(key, "requires email.smtp_url or email.transport to be set too");
    }
    needs("email.username", "email.password");
    needs("email.password", "email.username");
  }

  void check_nats() {
    for (const auto* key : {"nats.credentials_path", "nats.tls_ca_path", "nats.tls_certificate_path"}) {
      needs(key, "nats.url");
    }
    needs("nats.tls_certificate_path", "nats.tls_key_path");
    needs("nats.tls_key_path", "nats.tls_certificate_path");
  }

  static constexpr const char* kTransport = "email.transport";
  static constexpr const char* kPolicy = "fees.policy";
  static constexpr const char* kMinTip = "fees.min_tip";
  static constexpr const char* kMaxTip = "fees.max_tip";
  static constexpr const char* kGasPrice = "fees.fixed.gas_price";
  static constexpr const char* kCap = "fees.fixed.max_fee_per_gas";
  static constexpr const char* kTip = "fees.fixed.max_priority_fee_per_gas";

  Config& config_;
  const Settings& settings_;
  Problems& problems_;
};

}  // namespace

void settle(Config& config, const Settings& settings, Problems& problems) {
  Checks(config, settings, problems).run();
}

void check_required(const std::string& path, const Origin& where, const Settings& settings, Problems& problems) {
  if (settings.is_mentioned(path)) return;
  problems.add(where, path, fmt::format("is required; set it in the file or as {}", environment_name(path)));
}

void check_password(const Config& config, const Settings& settings, Problems& problems) {
  const std::string password = "keystore.password";
  if (config.keystore.directory.empty() || settings.is_mentioned(password)) return;
  problems.add(settings.origin("keystore.directory"), "keystore.directory",
               fmt::format("needs the password of its key files: set {}{}, or {}", password, kFileSuffix,
                           environment_name(password)));
}

}  // namespace config

tx::ChainOptions chain_options(const Config& config, const ChainConfig& chain) {
  auto out = chain.tuning.options;
  if (const auto& fees = chain.tuning.fixed_fees; chain.tuning.fee_policy == FeePolicyName::kFixed) {
    if (fees.gas_price) {
      out.fees.fixed = evm::LegacyFees{*fees.gas_price};
    } else {
      out.fees.fixed = evm::DynamicFees{fees.max_fee_per_gas.value(), fees.max_priority_fee_per_gas.value()};
    }
  }
  for (const auto& signer : config.signers) {
    if (signer.chain_id && *signer.chain_id != chain.chain_id) continue;
    auto& options = out.signers[signer.address];
    const auto take = [&](auto& own, const auto& other) {
      if (other && (signer.chain_id || !own)) own = other;
    };
    take(options.max_in_flight, signer.options.max_in_flight);
    take(options.shared, signer.options.shared);
    options.ceiling = options.ceiling.tightest(signer.options.ceiling);
  }
  return out;
}

}  // namespace fencepost
