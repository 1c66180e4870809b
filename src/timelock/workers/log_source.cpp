#include "timelock/workers/log_source.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/logs/log_refusal.hpp"
#include "evm/reply/rpc_reply.hpp"
#include "runtime/log.hpp"
#include "timelock/model/event_decoder.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::size_t kMaxAddresses = 100;  // in one filter; nodes refuse more than some hundred

std::vector<std::string> addresses_of(const Contracts& contracts) {
  std::vector<std::string> out;
  out.reserve(contracts.size());
  for (const auto& [address, standard] : contracts) out.push_back(address);
  return out;
}

std::vector<std::vector<std::string>> parts_of(const std::vector<std::string>& addresses) {
  std::vector<std::vector<std::string>> parts;
  for (std::size_t begin = 0; begin < addresses.size(); begin += kMaxAddresses) {
    const auto end = std::min(begin + kMaxAddresses, addresses.size());
    parts.emplace_back(addresses.begin() + static_cast<std::ptrdiff_t>(begin),
                       addresses.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return parts;
}

Error missing(std::string_view what, const std::string& hash) {
  return unavailable("rpc_incomplete", fmt::format("The endpoint has a log but not its {}.", what)).with("hash", hash);
}

// Whether a receipt has a log of one of the contracts.
bool has_log_of(const std::string& receipt, const std::vector<std::string>& addresses) {
  const auto document = evm::RpcValue(receipt).as_json();
  if (!document || !document->is_object()) return false;
  const auto* logs = document->get_object().if_contains("logs");
  if (logs == nullptr || !logs->is_array()) return false;
  return std::ranges::any_of(logs->get_array(), [&](const boost::json::value& log) {
    const auto* address = log.is_object() ? log.get_object().if_contains("address") : nullptr;
    return address != nullptr && address->is_string() &&
           std::ranges::find(addresses, lowercase(address->get_string())) != addresses.end();
  });
}

LogFields fields_of(evm::Log log) {
  return {.address = std::move(log.address),
          .topics = std::move(log.topics),
          .data = std::move(log.data),
          .tx_hash = std::move(log.tx_hash),
          .block_hash = std::move(log.block_hash),
          .block_number = log.block_number,
          .log_index = log.log_index};
}

void sort(std::vector<evm::Log>& logs) {
  std::ranges::sort(logs, {}, [](const evm::Log& log) { return std::pair(log.block_number, log.log_index); });
}

}  // namespace

ScannedBlocks take_part(ScannedBlocks& blocks) {
  auto& events = blocks.events;
  auto end = events.begin() + static_cast<std::ptrdiff_t>(kEventsAtOnce);
  const auto last = std::prev(end)->position.block_number;
  end = std::find_if(end, events.end(), [&](const RawEvent& event) { return event.position.block_number != last; });
  ScannedBlocks part;
  part.events.assign(std::make_move_iterator(events.begin()), std::make_move_iterator(end));
  events.erase(events.begin(), end);
  const auto& event = part.events.back();
  part.through = events.empty() ? blocks.through : ScanPoint{last, event.block_hash, event.block_timestamp};
  return part;
}

LogSource::LogSource(evm::Chain& chain, Metrics& metrics)
    : chain_(chain),
      requests_total_(metrics.counter("timelock_log_requests_total", "Requests for logs", {{"chain", chain.name()}})),
      withheld_total_(metrics.counter("timelock_logs_withheld_total",
                                      "Answers without logs that another source showed to be wrong",
                                      {{"chain", chain.name()}})) {}

evm::LogSpan& LogSource::span_of(std::size_t endpoint) {
  return spans_.try_emplace(endpoint).first->second;
}

awaitable<Result<ScannedBlocks>> LogSource::by_hash(std::vector<evm::BlockHeader> headers, Contracts contracts) {
  const auto addresses = addresses_of(contracts);
  const bool blooms = evm::bloom_covers_all_logs(chain_.id());
  std::vector<evm::Log> logs;
  for (const auto& header : headers) {
    if (blooms && !evm::may_log(header, addresses)) continue;
    auto found = co_await logs_in_block(header, addresses);
    if (!found) co_return fail(found.error());
    for (auto& log : *found) log.block_timestamp = header.timestamp;  // whatever the log says
    std::ranges::move(*found, std::back_inserter(logs));
  }
  auto events = co_await complete(std::move(logs), contracts, {});
  if (!events) co_return fail(events.error());
  const auto& last = headers.back();
  co_return ScannedBlocks{.through = {last.number, last.hash, last.timestamp}, .events = std::move(*events)};
}

awaitable<Result<std::vector<evm::Log>>> LogSource::logs_in_block(const evm::BlockHeader& header,
                                                                  std::vector<std::string> addresses) {
  std::vector<evm::Log> logs;
  for (auto& part : parts_of(addresses)) {
    requests_total_.Increment();
    auto found = co_await chain_.connector().logs_in_block(header.hash, std::move(part));
    if (!found) co_return fail(found.error());
    std::ranges::move(*found, std::back_inserter(logs));
  }
  if (logs.empty() && header.logs_bloom) {
    const auto lie = co_await withheld(header.hash, addresses);
    if (!lie) co_return fail(lie.error());
    if (*lie) {
      withheld_total_.Increment();
      co_return fail(unavailable("logs_withheld", "The endpoint returned no logs for a block whose receipts have some.")
                         .with("blockHash", header.hash));
    }
  }
  sort(logs);
  co_return logs;
}

awaitable<Result<bool>> LogSource::withheld(std::string block_hash, const std::vector<std::string>& addresses) {
  const auto block = co_await chain_.connector().block_by_hash(block_hash);
  if (!block) co_return fail(block.error());
  if (!*block) co_return fail(missing("block", block_hash));
  const auto receipts =
      co_await chain_.connector().receipts_in_block(block_hash, (*block)->transactions, (*block)->endpoint);
  if (!receipts) co_return fail(receipts.error());
  if (receipts->size() < (*block)->transactions.size()) co_return fail(missing("receipts", block_hash));
  co_return std::ranges::any_of(*receipts, [&](const auto& receipt) { return has_log_of(receipt.json, addresses); });
}

awaitable<Result<ScannedBlocks>> LogSource::by_range(std::int64_t first, std::int64_t last, Contracts contracts) {
  auto range = co_await logs_in_range(first, last, addresses_of(contracts));
  if (!range) co_return fail(range.error());
  const auto endpoint = range->logs.endpoint;
  const auto end = co_await chain_.connector().blocks(range->last, 1, endpoint);
  if (!end) co_return fail(end.error());
  if (end->empty()) {
    co_return fail(unavailable("endpoint_behind", "The endpoint does not have the last block of the range.")
                       .with("block", std::to_string(range->last)));
  }
  auto events = co_await complete(std::move(range->logs.logs), contracts, endpoint);
  if (!events) co_return fail(events.error());
  const auto& header = end->front().header;
  co_return ScannedBlocks{.through = {header.number, header.hash, header.timestamp}, .events = std::move(*events)};
}

awaitable<Result<LogSource::Range>> LogSource::logs_in_range(std::int64_t first, std::int64_t last,
                                                             std::vector<std::string> addresses) {
  const auto head = co_await chain_.connector().head_number();
  if (!head) co_return fail(head.error());
  auto& span = span_of(head->endpoint);
  while (true) {
    const auto end = std::min(last, first + span.blocks() - 1);
    if (head->number < end) {
      co_return fail(unavailable("endpoint_behind", "The endpoint has not reached the end of the range.")
                         .with("head", std::to_string(head->number))
                         .with("block", std::to_string(end)));
    }
    auto logs = co_await ask(first, end, addresses, head->endpoint);
    if (logs) {
      span.succeeded(end - first + 1, logs->logs.size());
      if (logs->logs.empty() && chain_.connector().endpoint_count() > 1) {
        const auto other = (head->endpoint + 1) % chain_.connector().endpoint_count();
        const auto other_head = co_await chain_.connector().head_number(other);
        if (other_head && other_head->number >= end) {
          // An endpoint that does not answer proves nothing.
          if (auto more = co_await ask(first, end, addresses, other); more && !more->logs.empty()) {
            withheld_total_.Increment();
            log::warn("an endpoint returned no logs where another has some",
                      {{"chain", chain_.name()}, {"first", first}, {"last", end}, {"endpoint", head->endpoint}});
            logs = std::move(more);
          }
        }
      }
      co_return Range{end, std::move(*logs)};
    }
    if (!evm::is_range_too_large(logs.error())) co_return fail(logs.error());
    if (auto smaller = span.refused(end - first + 1, evm::suggested_span(logs.error())); !smaller) {
      co_return fail(smaller.error());
    }
  }
}

awaitable<Result<evm::Logs>> LogSource::ask(std::int64_t first, std::int64_t last,
                                            const std::vector<std::string>& addresses, std::size_t endpoint) {
  evm::Logs all{.logs = {}, .endpoint = endpoint};
  for (auto& part : parts_of(addresses)) {
    requests_total_.Increment();
    auto found = co_await chain_.connector().logs_in_range(first, last, std::move(part), endpoint);
    if (!found) co_return fail(found.error());
    std::ranges::move(found->logs, std::back_inserter(all.logs));
  }
  sort(all.logs);
  co_return all;
}

awaitable<Result<std::vector<RawEvent>>> LogSource::complete(std::vector<evm::Log> logs, const Contracts& contracts,
                                                             evm::Endpoint endpoint) {
  std::vector<RawEvent> events;
  events.reserve(logs.size());
  for (auto& log : logs) {
    const auto standard = contracts.at(log.address);
    const auto timestamp = log.block_timestamp.value_or(0);  // 0: asked for below
    auto event = decode(standard, fields_of(std::move(log)));
    if (!event) co_return fail(event.error());
    if (!*event) continue;  // another event of the contract
    auto& added = events.emplace_back(std::move(**event));
    added.chain_id = chain_.id();
    added.block_timestamp = timestamp;
  }
  if (auto added = co_await add_timestamps(events, endpoint); !added) co_return fail(added.error());
  if (auto added = co_await add_senders(events, endpoint); !added) co_return fail(added.error());
  co_return events;
}

awaitable<Result<void>> LogSource::add_timestamps(std::vector<RawEvent>& events, evm::Endpoint endpoint) {
  std::set<std::string> blocks;
  for (const auto& event : events) {
    if (event.block_timestamp == 0) blocks.insert(event.block_hash);
  }
  if (blocks.empty()) co_return Result<void>{};
  const std::vector<std::string> hashes(blocks.begin(), blocks.end());
  const auto headers = co_await chain_.connector().headers_by_hash(hashes, endpoint);
  std::map<std::string, std::int64_t> times;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (!headers[i]) co_return fail(headers[i].error());
    if (!*headers[i]) co_return fail(missing("block", hashes[i]));
    times[hashes[i]] = (*headers[i])->timestamp;
  }
  for (auto& event : events) {
    if (event.block_timestamp == 0) event.block_timestamp = times.at(event.block_hash);
  }
  co_return Result<void>{};
}

awaitable<Result<void>> LogSource::add_senders(std::vector<RawEvent>& events, evm::Endpoint endpoint) {
  std::set<std::string> transactions;
  for (const auto& event : events) transactions.insert(event.tx_hash);
  if (transactions.empty()) co_return Result<void>{};
  const std::vector<std::string> hashes(transactions.begin(), transactions.end());
  const auto found = co_await chain_.connector().transactions(hashes, endpoint);
  std::map<std::string, const evm::TransactionInfo*> senders;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (!found[i]) co_return fail(found[i].error());
    if (!*found[i]) co_return fail(missing("transaction", hashes[i]));
    senders[hashes[i]] = &**found[i];
  }
  for (auto& event : events) {
    event.tx_from = senders.at(event.tx_hash)->from;
    event.tx_to = senders.at(event.tx_hash)->to;
  }
  co_return Result<void>{};
}

}  // namespace fencepost::timelock
