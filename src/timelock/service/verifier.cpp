#include "timelock/service/verifier.hpp"

#include <algorithm>
#include <iterator>

#include "evm/abi/abi.hpp"
#include "timelock/store/raw_event_store.hpp"
#include "timelock/store/verify_store.hpp"

namespace fencepost::timelock {
namespace {

// One word, or why there is none.
std::expected<Uint256, std::string> word_of(const Result<Bytes>& answer) {
  if (!answer) return std::unexpected(answer.error().to_string());
  if (answer->size() != 32) return std::unexpected(std::string("the contract does not answer as a timelock"));
  return evm::AbiReader(*answer).uint256(0).value();
}

std::string unscanned(const ContractFacts& facts) {
  if (facts.halted_block) return "the scan of the contract was halted at block " + std::to_string(*facts.halted_block);
  return facts.history_done ? "" : "the history of the contract is not complete yet";
}

}  // namespace

awaitable<std::optional<Verifier::Snapshot>> Verifier::read(ContractKey contract, Standard standard,
                                                            std::string after) {
  const auto body = [&](pg::Transaction& tx) -> awaitable<std::optional<Snapshot>> {
    const auto keys = co_await flow_keys_after(tx, contract, standard, after, kPage);
    if (keys.empty()) co_return std::nullopt;
    const auto state = co_await read_scan(tx, contract.chain_id);
    const auto facts = co_await contract_facts(tx, contract.chain_id, keys);
    if (!state || facts.empty()) co_return std::nullopt;
    Snapshot out{.point = state->point, .unscanned = unscanned(facts.front()), .inputs = {}};
    for (const auto& key : keys) {
      out.inputs.emplace(key, FlowInput{.key = key,
                                        .events = {},
                                        .stored = {},
                                        .grace = facts.front().grace,
                                        .may_tell = facts.front().history_done});
    }
    for (auto& row : co_await read_flows(tx, keys)) {
      const auto key = row.key;
      out.inputs.at(key).stored.push_back(std::move(row));
    }
    for (auto& event : co_await load_events(tx, keys)) {
      out.inputs.at({standard, event.chain_id, event.contract, event.flow_id}).events.push_back(std::move(event));
    }
    co_return out;
  };
  co_return co_await pg::transaction(database_.pool(), body, pg::Isolation::kRepeatableRead);
}

awaitable<VerifiedPage> Verifier::page(ContractKey contract, Standard standard, std::string after) {
  VerifiedPage page;
  const auto snapshot = co_await read(contract, standard, std::move(after));
  if (!snapshot) co_return page;
  const ChainView view{
      .block = snapshot->point.number, .clock = snapshot->point.timestamp, .confirmations = confirmations_};
  for (const auto& [key, input] : snapshot->inputs) {
    ++page.flows;
    std::ranges::move(compare_with_events(input, view), std::back_inserter(page.differences));
    page.lagging += std::ranges::count_if(input.stored, [&](const auto& row) { return is_lagging(row, view.clock); });
  }
  if (snapshot->inputs.size() == kPage) page.next = snapshot->inputs.rbegin()->first.flow_id;
  co_await ask_contract(*snapshot, contract.address, page);
  co_return page;
}

awaitable<> Verifier::ask_contract(const Snapshot& snapshot, const std::string& address, VerifiedPage& page) {
  std::vector<const FlowInput*> flows;
  for (const auto& [key, input] : snapshot.inputs) {
    if (!input.stored.empty()) flows.push_back(&input);
  }
  if (flows.empty()) co_return;
  const auto give_up = [&](std::string reason) {
    page.compared = 0;
    page.not_checked = std::ssize(flows);
    page.reason = std::move(reason);
  };
  if (!snapshot.unscanned.empty()) co_return give_up(snapshot.unscanned);
  const auto& point = snapshot.point;
  const auto endpoint = co_await endpoint_with(point, {});
  if (!endpoint) co_return give_up(endpoint.error());
  const auto first = co_await ask(flows, address, point.number, *endpoint);
  page.not_checked = first.not_answered;
  page.reason = first.reason;
  page.compared = std::ssize(flows) - first.not_answered;
  if (first.differences.empty()) co_return;
  // An endpoint that is just adding a block, or leaving a branch, may answer from another state than that of the block
  // it was asked for. It is asked again, and then whether the block is still its own.
  const auto second = co_await ask(first.differing, address, point.number, *endpoint);
  const auto still = co_await endpoint_with(point, *endpoint);
  if (!still) co_return give_up(still.error());
  page.not_checked += second.not_answered;
  page.compared -= second.not_answered;
  if (second.not_answered > 0) page.reason = second.reason;
  std::ranges::copy_if(second.differences, std::back_inserter(page.differences), [&](const auto& difference) {
    return std::ranges::find(first.differences, difference) != first.differences.end();
  });
}

awaitable<Verifier::Asked> Verifier::ask(std::vector<const FlowInput*> flows, std::string address, std::int64_t block,
                                         std::size_t endpoint) {
  std::vector<evm::CallRequest> questions;
  questions.reserve(flows.size());
  for (const auto* flow : flows) {
    questions.push_back({.from = "", .to = address, .value = 0, .data = contract_question(flow->key), .gas = {}});
  }
  const auto answers = co_await chain_.connector().calls(std::move(questions), block, endpoint);
  Asked out;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto word = word_of(answers[i]);
    if (!word) {
      ++out.not_answered;
      out.reason = word.error();
    } else if (auto difference = compare_with_contract(flows[i]->stored, *word)) {
      out.differing.push_back(flows[i]);
      out.differences.push_back(std::move(*difference));
    }
  }
  co_return out;
}

awaitable<std::expected<std::size_t, std::string>> Verifier::endpoint_with(const ScanPoint& point,
                                                                           evm::Endpoint endpoint) {
  const auto blocks = co_await chain_.connector().blocks(point.number, 1, endpoint);
  if (!blocks) co_return std::unexpected(blocks.error().to_string());
  if (blocks->empty()) co_return std::unexpected(std::string("the endpoint does not have the scanned block"));
  if (blocks->front().header.hash != point.hash) {
    co_return std::unexpected(std::string("the chain is on another branch than the scanned block: a reorg"));
  }
  co_return blocks->front().endpoint;
}

}  // namespace fencepost::timelock
