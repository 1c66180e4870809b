// The table of all configuration keys.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

#include "config/config.hpp"

namespace fencepost::config {

struct Key {
  std::string path;      // "http.port", "chains[0].name"
  std::string type;      // the expected values, in words
  std::string doc;       // what it does, in a sentence
  bool secret = false;   // masked when printed, and may be given by `<path>_file` instead
  bool list = false;     // takes several values; the environment separates them by commas
  std::string inherits;  // the key whose value is this one's default; empty: none

  // Parses the texts (exactly one unless `list`) into the configuration. The error gives the reason without the key.
  std::function<Result<void>(Config&, const std::vector<std::string>&)> set;
  // The value as texts that `set` accepts; secrets are masked.
  std::function<std::vector<std::string>(const Config&)> get;
};

// A list of maps, each element with the same keys.
struct ListSection {
  std::string path;  // "chains"
  std::size_t max_size;
  std::function<std::size_t(const Config&)> size;
  std::function<void(Config&, std::size_t)> resize;
  // The keys of one element, which must exist before `set` or `get` is called.
  std::function<std::vector<Key>(std::size_t index)> keys;
};

// Keys of the transaction manager (tx_keys.cpp). Requires, for a chain or a signer: its entry exists in the
// configuration.
std::vector<Key> tx_keys();
std::vector<Key> chain_keys(std::size_t index);
std::vector<Key> signer_keys(std::size_t index);

// Keys of the delivery to NATS (nats_keys.cpp).
std::vector<Key> nats_keys();

// Keys of mail (email_keys.cpp).
std::vector<Key> email_keys();

// Keys outside lists, in the order in which they are documented and printed.
const std::vector<Key>& keys();
const std::vector<ListSection>& list_sections();

// "chains[0].rpc_urls" is FENCEPOST_CHAINS_0_RPC_URLS.
std::string environment_name(std::string_view path);
inline constexpr std::string_view kEnvironmentPrefix = "FENCEPOST_";
inline constexpr std::string_view kFileSuffix = "_file";

}  // namespace fencepost::config
