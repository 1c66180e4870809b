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

awaitable<Result<void>> check_branch(evm::Chain& chain, std::size_t endpoint) {
  const auto bottom = *chain.follower().window().bottom();
  if (bottom.number == 0) co_return Result<void>{};
  const auto below = co_await chain.connector().blocks(bottom.number - 1, 1, endpoint);
  if (!below) co_return fail(below.error());
  if (below->empty()) {
    co_return fail(unavailable("endpoint_behind", "The endpoint does not have a block that is far below the head.")
                       .with("block", std::to_string(bottom.number - 1)));
  }
  if (below->front().header.hash == bottom.parent_hash) co_return Result<void>{};
  co_return fail(unavailable("chain_moved", "The endpoint is on another branch than the head.")
                     .with("block", std::to_string(bottom.number - 1)));
}

awaitable<bool> halted_contract(const ScannerParts& parts, const Error& error, std::int64_t first) {
  if (error.code != "bad_log") co_return false;
  log::error("a contract emitted an event that cannot be decoded: it is no longer scanned", error,
             {{"chain", parts.chain.name()}});
  co_await halt_contract(parts.database.pool(), parts.chain.id(), context_of(error, "contract"), first,
                         error.to_string());
  co_return true;
}

}  // namespace fencepost::timelock
