#include "timelock/service/call_explainer.hpp"

#include <map>
#include <set>
#include <string>

#include "base/hex.hpp"
#include "timelock/store/abi_store.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::size_t kSelectorText = 10;  // 0x and eight digits

// The selector that a table is searched for; empty: none.
std::string selector_text(const Call& call) {
  if (call.signature.empty()) return call.data.size() < kSelectorText ? "" : call.data.substr(0, kSelectorText);
  const auto function = evm::parse_signature(call.signature);
  return function ? to_hex0x(evm::selector(function->signature())) : "";
}

}  // namespace

awaitable<std::vector<std::optional<ExplainedCall>>> explain_calls(pg::Pool& pool, std::int64_t chain_id,
                                                                   std::vector<Call> calls) {
  std::set<std::string> selectors, targets;
  for (const auto& call : calls) {
    selectors.insert(selector_text(call));
    targets.insert(call.target);
  }
  const auto uploaded =
      co_await find_functions(pool, chain_id, {selectors.begin(), selectors.end()}, {targets.begin(), targets.end()});
  std::map<std::string, FunctionTable> by_target;  // of the empty address: for any target
  for (const auto& [address, declaration] : uploaded) {
    by_target[address].add(evm::parse_function(declaration).value());
  }
  std::vector<std::optional<ExplainedCall>> out;
  out.reserve(calls.size());
  for (const auto& call : calls) out.push_back(explain_call(call, by_target[call.target], by_target[""]));
  co_return out;
}

}  // namespace fencepost::timelock
