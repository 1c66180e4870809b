#include "timelock/service/timelock_service.hpp"

#include <fmt/format.h>

#include "runtime/on_loop.hpp"
#include "timelock/service/contract_probe.hpp"
#include "timelock/store/removal_store.hpp"

namespace fencepost::timelock {
namespace {

Error no_such_timelock() {
  return not_found("no_such_timelock", "This contract is not watched. POST /api/v1/timelocks watches it.");
}

// What import learns from the chain.
struct Found {
  Probe probe;
  ScanPoint head;
  std::int64_t from_block = 0;
};

// On the chain's loop. Asks the chain and not the follower, which may be a moment behind, or has only just started.
awaitable<Result<Found>> look_at(evm::Chain& chain, ImportRequest request) {
  const auto* followed = chain.follower().window().head();
  ProbeRequest wanted{.address = request.key.address,
                      .expected = request.standard,
                      .known_head = followed == nullptr ? 0 : followed->number};
  auto probe = co_await probe_contract(chain.connector(), std::move(wanted));
  if (!probe) co_return fail(probe.error());
  const auto newest = co_await chain.connector().block(evm::BlockTag::kLatest, probe->endpoint);
  if (!newest) co_return fail(newest.error());
  const auto& head = newest->header;
  if (request.from_block && *request.from_block > head.number) {
    co_return fail(invalid("bad_from_block", fmt::format("fromBlock: the chain's newest block is {}", head.number))
                       .with("field", "fromBlock"));
  }
  Found found{.probe = std::move(*probe), .head = {head.number, head.hash, head.timestamp}, .from_block = 0};
  if (request.from_block) {
    found.from_block = *request.from_block;
  } else {
    const auto deployed = co_await deployment_block(chain.connector(), request.key.address, head.number);
    if (!deployed) co_return fail(deployed.error());
    found.from_block = deployed->value_or(0);
  }
  co_return found;
}

Error history_announced() {
  return conflict(
             "history_announced",
             "fromBlock: changes of this contract were announced, and an earlier event could change the number of a "
             "generation among them. Remove the contract and import it with this fromBlock.")
      .with("field", "fromBlock");
}

}  // namespace

const TimelockService::ChainPart* TimelockService::part(std::int64_t chain_id) const {
  const auto found = chains_.find(chain_id);
  return found == chains_.end() ? nullptr : &found->second;
}

evm::Chain* TimelockService::find_chain(std::int64_t chain_id) const {
  const auto* found = part(chain_id);
  return found == nullptr ? nullptr : found->chain;
}

Verifier* TimelockService::find_verifier(std::int64_t chain_id) const {
  const auto* found = part(chain_id);
  return found == nullptr ? nullptr : found->verifier;
}

awaitable<Result<Timelock>> TimelockService::import(ImportRequest request) {
  const auto* chain = part(request.key.chain_id);
  if (chain == nullptr) {
    co_return fail(invalid("unknown_chain", "chainId: this chain is not configured").with("field", "chainId"));
  }
  const auto exists = [&] {
    return conflict("timelock_exists", "This contract is watched already.")
        .with("chainId", std::to_string(request.key.chain_id))
        .with("address", request.key.address);
  };
  if (co_await find_timelock(pool(), request.key)) co_return fail(exists());
  auto found =
      co_await on_loop(chain->chain->home(), [&evm = *chain->chain, request] { return look_at(evm, request); });
  if (!found) co_return fail(found.error());
  auto added = co_await insert_timelock(pool(),
                                        {.key = request.key,
                                         .standard = found->probe.standard,
                                         .remark = request.remark,
                                         .rules = found->probe.rules,
                                         .from_block = found->from_block,
                                         .created_by = request.created_by},
                                        found->head);
  if (!added) co_return fail(exists());
  chain->wake();
  co_return std::move(*added);
}

awaitable<Result<Timelock>> TimelockService::get(ContractKey key) {
  auto found = co_await find_timelock(pool(), std::move(key));
  if (!found) co_return fail(no_such_timelock());
  co_return std::move(*found);
}

awaitable<Result<Timelock>> TimelockService::change(ContractKey key, Changes changes) {
  const auto known = co_await find_timelock(pool(), key);
  if (!known) co_return fail(no_such_timelock());
  if (changes.from_block) {
    if (!co_await restart_history(pool(), key, *changes.from_block)) {
      if (*changes.from_block < known->from_block) co_return fail(history_announced());
      co_return fail(invalid("bad_from_block", "fromBlock: the chain was not scanned up to this block yet")
                         .with("field", "fromBlock"));
    }
    if (const auto* chain = part(key.chain_id)) chain->wake();
  }
  if (changes.remark && !co_await set_remark(pool(), key, *changes.remark)) co_return fail(no_such_timelock());
  co_return co_await get(std::move(key));
}

awaitable<Result<void>> TimelockService::remove(ContractKey key) {
  if (!co_await begin_removal(pool(), key)) co_return fail(no_such_timelock());
  co_await finish_removal(pool(), std::move(key));
  co_return Result<void>{};
}

}  // namespace fencepost::timelock
