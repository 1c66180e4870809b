#include "timelock/workers/scanner_parts.hpp"

#include <algorithm>

#include "runtime/log.hpp"
#include "timelock/store/history_store.hpp"

namespace fencepost::timelock {
namespace {

std::string context_of(const Error& error, std::string_view key) {
  const auto found = std::ranges::find(error.context, key, &std::pair<std::string, std::string>::first);
  return found == error.context.end() ? "" : found->second;
}

}  // namespace

awaitable<bool> halted_contract(const ScannerParts& parts, const Error& error, std::int64_t first) {
  if (error.code != "bad_log") co_return false;
  log::error("a contract emitted an event that cannot be decoded: it is no longer scanned", error,
             {{"chain", parts.chain.name()}});
  co_await halt_contract(parts.database.pool(), parts.chain.id(), context_of(error, "contract"), first,
                         error.to_string());
  co_return true;
}

}  // namespace fencepost::timelock
