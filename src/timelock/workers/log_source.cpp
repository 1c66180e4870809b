#include "timelock/workers/log_source.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "evm/logs/bloom.hpp"
#include "evm/logs/log_refusal.hpp"
#include "timelock/model/event_decoder.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {
namespace {

// Only events that decode() knows: a contract may have others, and many of them.
evm::LogFilter filter_for(const Contracts& contracts) {
  evm::LogFilter filter;
  std::set<std::string> topics;
  for (const auto& [address, standard] : contracts) {
    filter.addresses.push_back(address);
    const auto decoded = topics_of(standard);
    topics.insert(decoded.begin(), decoded.end());
  }
  filter.topics.assign(topics.begin(), topics.end());
  return filter;
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

Error at_endpoint(Error error, const std::string& label) {
  const bool named = std::ranges::any_of(error.context, [](const auto& entry) { return entry.first == "endpoint"; });
  if (!named) error.with("endpoint", label);
  return error;
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
      choice_(chain.name()),
      block_logs_(chain, metrics),
      requests_total_(metrics.counter("timelock_log_requests_total", "Requests for logs", {{"chain", chain.name()}})),
      withheld_total_(metrics.counter("timelock_logs_withheld_total",
                                      "Answers without logs that another source showed to be wrong",
                                      {{"chain", chain.name()}})) {}

evm::LogSpan& LogSource::span_of(std::size_t endpoint) {
  return spans_.try_emplace(endpoint).first->second;
}

std::vector<evm::EndpointStatus> LogSource::endpoints() const {
  std::vector<evm::EndpointStatus> all;
  all.reserve(chain_.connector().endpoint_count());
  for (std::size_t i = 0; i < chain_.connector().endpoint_count(); ++i) {
    all.push_back(chain_.connector().endpoint_status(i));
  }
  return all;
}

template <class Read>
awaitable<Result<ScannedBlocks>> LogSource::from_any_endpoint(Read read) {
  const auto all = endpoints();
  std::optional<Error> failure;
  for (const auto endpoint : choice_.order(all)) {
    auto blocks = co_await read(endpoint);
    if (blocks) {
      choice_.answered(endpoint, all[endpoint].label, failure);
      co_return blocks;
    }
    if (blocks.error().code == "bad_log") co_return blocks;
    auto error = at_endpoint(std::move(blocks.error()), all[endpoint].label);
    failure = failure ? more_telling(*failure, error) : std::move(error);
  }
  if (!failure) failure = unavailable("rpc_unavailable", "Every endpoint is on another chain.");
  co_return fail(*failure);
}

awaitable<Result<ScannedBlocks>> LogSource::by_hash(std::vector<evm::BlockHeader> headers, Contracts contracts) {
  const auto read = [&](std::size_t endpoint) { return read_blocks(headers, contracts, endpoint); };
  co_return co_await from_any_endpoint(read);
}

awaitable<Result<ScannedBlocks>> LogSource::by_range(std::int64_t first, std::int64_t last, Contracts contracts,
                                                     std::string parent) {
  const auto read = [&](std::size_t endpoint) { return read_range(first, last, contracts, parent, endpoint); };
  co_return co_await from_any_endpoint(read);
}

awaitable<Result<ScannedBlocks>> LogSource::read_blocks(const std::vector<evm::BlockHeader>& headers,
                                                        const Contracts& contracts, std::size_t endpoint) {
  const auto filter = filter_for(contracts);
  const bool blooms = evm::bloom_covers_all_logs(chain_.id());
  std::vector<evm::Log> logs;
  for (const auto& header : headers) {
    if (blooms && !evm::may_log(header, filter)) continue;
    auto found = co_await block_logs_.read(header, filter, endpoint);
    if (!found) co_return fail(found.error());
    std::ranges::move(*found, std::back_inserter(logs));
  }
  const auto& last = headers.back();
  auto events = co_await complete(std::move(logs), contracts, last.timestamp, endpoint);
  if (!events) co_return fail(events.error());
  co_return ScannedBlocks{.through = {last.number, last.hash, last.timestamp}, .events = std::move(*events)};
}

awaitable<Result<ScannedBlocks>> LogSource::read_range(std::int64_t first, std::int64_t last,
                                                       const Contracts& contracts, const std::string& parent,
                                                       std::size_t endpoint) {
  if (const auto ours = co_await check_branch(chain_, endpoint); !ours) co_return fail(ours.error());
  if (const auto linked = co_await check_parent(first, parent, endpoint); !linked) co_return fail(linked.error());
  auto range = co_await logs_in_range(first, last, filter_for(contracts), endpoint);
  if (!range) co_return fail(range.error());
  const auto end = co_await chain_.connector().blocks(range->last, 1, endpoint);
  if (!end) co_return fail(end.error());
  if (end->empty()) {
    co_return fail(unavailable("endpoint_behind", "The endpoint does not have the last block of the range.")
                       .with("block", std::to_string(range->last)));
  }
  const auto& header = end->front().header;
  auto events = co_await complete(std::move(range->logs), contracts, header.timestamp, endpoint);
  if (!events) co_return fail(events.error());
  co_return ScannedBlocks{.through = {header.number, header.hash, header.timestamp}, .events = std::move(*events)};
}

awaitable<Result<void>> LogSource::check_parent(std::int64_t first, const std::string& parent, std::size_t endpoint) {
  if (parent.empty()) co_return Result<void>{};
  const auto blocks = co_await chain_.connector().blocks(first, 1, endpoint);
  if (!blocks) co_return fail(blocks.error());
  if (blocks->empty()) {
    co_return fail(unavailable("endpoint_behind", "The endpoint does not have the first block of the range.")
                       .with("block", std::to_string(first)));
  }
  if (blocks->front().header.parent_hash == parent) co_return Result<void>{};
  co_return fail(unavailable("chain_moved", "The endpoint is on another branch than the block before the range.")
                     .with("block", std::to_string(first)));
}

awaitable<Result<LogSource::Range>> LogSource::logs_in_range(std::int64_t first, std::int64_t last,
                                                             const evm::LogFilter& filter, std::size_t endpoint) {
  const auto head = co_await chain_.connector().head_number(endpoint);
  if (!head) co_return fail(head.error());
  auto& span = span_of(endpoint);
  while (true) {
    const auto end = std::min(last, first + span.blocks() - 1);
    if (head->number < end) {
      co_return fail(unavailable("endpoint_behind", "The endpoint has not reached the end of the range.")
                         .with("head", std::to_string(head->number))
                         .with("block", std::to_string(end)));
    }
    auto logs = co_await ask(first, end, filter, endpoint);
    if (logs) {
      span.succeeded(end - first + 1, logs->size());
      if (!logs->empty()) co_return Range{end, std::move(*logs)};
      const auto confirmed = co_await confirm_no_logs(first, end, filter, endpoint);
      if (!confirmed) co_return fail(confirmed.error());
      co_return Range{*confirmed, {}};
    }
    if (!evm::is_range_too_large(logs.error())) co_return fail(logs.error());
    const auto smaller = span.refused(end - first + 1, evm::suggested_span(logs.error()));
    if (!smaller) co_return co_await logs_in_one_block(first, filter, endpoint);
  }
}

awaitable<Result<LogSource::Range>> LogSource::logs_in_one_block(std::int64_t number, const evm::LogFilter& filter,
                                                                 std::size_t endpoint) {
  const auto blocks = co_await chain_.connector().blocks(number, 1, endpoint);
  if (!blocks) co_return fail(blocks.error());
  if (blocks->empty()) {
    co_return fail(unavailable("endpoint_behind", "The endpoint does not have a block below its head.")
                       .with("block", std::to_string(number)));
  }
  auto logs = co_await block_logs_.read(blocks->front().header, filter, endpoint);
  if (!logs) co_return fail(logs.error());
  co_return Range{number, std::move(*logs)};
}

// The first that answers and has the range decides. One that does not, or is on another branch, proves nothing. One
// that refuses the range as too large is asked for less.
awaitable<Result<std::int64_t>> LogSource::confirm_no_logs(std::int64_t first, std::int64_t last,
                                                           const evm::LogFilter& filter, std::size_t endpoint) {
  const auto all = endpoints();
  for (const auto other : choice_.order(all)) {
    if (other == endpoint || all[other].cooling_until) continue;
    const auto head = co_await chain_.connector().head_number(other);
    if (!head || head->number < last) continue;
    if (!co_await check_branch(chain_, other)) continue;
    auto& span = span_of(other);
    auto end = std::min(last, first + span.blocks() - 1);
    auto logs = co_await ask(first, end, filter, other);
    while (!logs && evm::is_range_too_large(logs.error()) &&
           span.refused(end - first + 1, evm::suggested_span(logs.error()))) {
      end = std::min(last, first + span.blocks() - 1);
      logs = co_await ask(first, end, filter, other);
    }
    const bool has_many = !logs && evm::is_range_too_large(logs.error());  // in a single block
    if (!logs && !has_many) continue;
    if (!has_many && logs->empty()) {
      span.succeeded(end - first + 1, 0);
      co_return end;
    }
    withheld_total_.Increment();
    co_return fail(unavailable("logs_withheld", "The endpoint returned no logs for a range in which another has some.")
                       .with("first", std::to_string(first))
                       .with("last", std::to_string(end))
                       .with("other", all[other].label));
  }
  co_return last;
}

awaitable<Result<std::vector<evm::Log>>> LogSource::ask(std::int64_t first, std::int64_t last,
                                                        const evm::LogFilter& filter, std::size_t endpoint) {
  std::vector<evm::Log> all;
  for (auto& part : parts_of(filter)) {
    requests_total_.Increment();
    auto found = co_await chain_.connector().logs_in_range(first, last, std::move(part), endpoint);
    if (!found) co_return fail(found.error());
    std::ranges::move(found->logs, std::back_inserter(all));
  }
  sort(all);
  co_return all;
}

awaitable<Result<std::vector<RawEvent>>> LogSource::complete(std::vector<evm::Log> logs, const Contracts& contracts,
                                                             std::int64_t newest, std::size_t endpoint) {
  std::vector<RawEvent> events;
  events.reserve(logs.size());
  for (auto& log : logs) {
    const auto standard = contracts.at(log.address);
    const auto claimed = log.block_timestamp.value_or(0);
    const auto timestamp = claimed <= newest ? claimed : 0;  // 0: asked for below
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

awaitable<Result<void>> LogSource::add_timestamps(std::vector<RawEvent>& events, std::size_t endpoint) {
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
    if (!*headers[i]) co_return fail(missing_at_endpoint("block", hashes[i]));
    times[hashes[i]] = (*headers[i])->timestamp;
  }
  for (auto& event : events) {
    if (event.block_timestamp == 0) event.block_timestamp = times.at(event.block_hash);
  }
  co_return Result<void>{};
}

awaitable<Result<void>> LogSource::add_senders(std::vector<RawEvent>& events, std::size_t endpoint) {
  std::set<std::string> transactions;
  for (const auto& event : events) transactions.insert(event.tx_hash);
  if (transactions.empty()) co_return Result<void>{};
  const std::vector<std::string> hashes(transactions.begin(), transactions.end());
  const auto found = co_await chain_.connector().transactions(hashes, endpoint);
  std::map<std::string, const evm::TransactionInfo*> senders;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (!found[i]) co_return fail(found[i].error());
    if (!*found[i]) co_return fail(missing_at_endpoint("transaction", hashes[i]));
    senders[hashes[i]] = &**found[i];
  }
  for (auto& event : events) {
    event.tx_from = senders.at(event.tx_hash)->from;
    event.tx_to = senders.at(event.tx_hash)->to;
  }
  co_return Result<void>{};
}

}  // namespace fencepost::timelock
