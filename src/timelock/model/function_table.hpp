// Functions by their selector: the first four bytes of a call.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "evm/abi/abi_type.hpp"

namespace fencepost::timelock {

class FunctionTable {
 public:
  // Of two functions with the same signature, the first one stays.
  void add(evm::AbiFunction function);

  // All functions with that selector, usually one: different signatures may share a selector, by chance or on purpose.
  // Valid until the next add().
  std::span<const evm::AbiFunction> find(const evm::Selector& selector) const;

 private:
  std::map<evm::Selector, std::vector<evm::AbiFunction>> functions_;
};

// Common functions of tokens, owners, roles, proxies, timelocks and governors. Any thread may call.
const FunctionTable& builtin_functions();

}  // namespace fencepost::timelock
