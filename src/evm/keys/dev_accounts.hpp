// The accounts of the mnemonic that every development chain uses: "test test test test test test test test test test
// test junk". Their keys are public: never use them on a real chain.
#pragma once

#include <span>
#include <string_view>

namespace fencepost::evm {

struct DevAccount {
  std::string_view address;  // stored form
  std::string_view private_key;
};

// The first ten, in the order in which anvil and hardhat list them.
std::span<const DevAccount> dev_accounts();

}  // namespace fencepost::evm
