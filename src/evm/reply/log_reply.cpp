#include "evm/reply/log_reply.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/reply/reply_fields.hpp"

namespace fencepost::evm {
namespace {

using reply::BadShape;

constexpr std::size_t kMaxTopics = 4;

// The members that a log must have, each once. Bits instead of reply::Members: an answer can have 100,000 logs.
constexpr std::array<std::string_view, 7> kLogMembers{"address",     "topics",          "data",    "blockHash",
                                                      "blockNumber", "transactionHash", "logIndex"};

class LogMembers {
 public:
  void saw(std::string_view member) {
    const auto place = std::ranges::find(kLogMembers, member) - kLogMembers.begin();
    const auto bit = 1U << place;
    if ((seen_ & bit) != 0) throw BadShape{fmt::format("{} is given twice", member)};
    seen_ |= bit;
  }
  void check() const {
    for (std::size_t i = 0; i < kLogMembers.size(); ++i) {
      if ((seen_ >> i & 1) == 0) throw BadShape{fmt::format("{} is missing", kLogMembers[i])};
    }
  }

 private:
  unsigned seen_ = 0;
};

void read_topics(reply::ondemand::value value, Log& log) {
  auto topics = value.get_array().value();
  for (auto topic : topics) {
    if (log.topics.size() == kMaxTopics) throw BadShape{"a log has more than four topics"};
    log.topics.push_back(reply::hash_of(topic.value(), "a topic"));
  }
}

void check_not_removed(reply::ondemand::value value) {
  bool removed = false;
  if (value.is_null()) return;
  if (value.get_bool().get(removed) != simdjson::SUCCESS) throw BadShape{"removed is not true or false"};
  if (removed) throw BadShape{"a log is of a block that a reorganisation removed"};
}

// An extra of newer nodes, in no standard: any other form than a quantity counts as absent, and the header has it.
std::optional<std::int64_t> timestamp_of(reply::ondemand::value value) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) return std::nullopt;
  const auto number = parse_quantity(text);
  if (!number || *number > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return number->convert_to<std::int64_t>();
}

Log read_log(reply::ondemand::object object) {
  Log log;
  LogMembers members;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key().value();
    reply::ondemand::value value = field.value();
    if (key == "removed") {
      check_not_removed(value);
      continue;
    }
    if (key == "blockTimestamp") {
      log.block_timestamp = timestamp_of(value);
      continue;
    }
    if (std::ranges::find(kLogMembers, key) == kLogMembers.end()) continue;
    members.saw(key);
    if (key == "address") {
      log.address = reply::address_of(value, key);
    } else if (key == "topics") {
      read_topics(value, log);
    } else if (key == "data") {
      log.data = reply::data_of(value, key);
    } else if (key == "blockHash") {
      log.block_hash = reply::hash_of(value, key);
    } else if (key == "blockNumber") {
      log.block_number = reply::int64_of(value, key);
    } else if (key == "transactionHash") {
      log.tx_hash = reply::hash_of(value, key);
    } else {
      log.log_index = reply::int64_of(value, key);
    }
  }
  members.check();
  return log;
}

std::string place_of(const Log& log) {
  return fmt::format("the log {} of block {} ({})", log.log_index, log.block_number, log.block_hash);
}

// Logs of one block number are neighbours after sorting, so comparing neighbours finds every contradiction.
std::vector<Log> sorted(std::vector<Log> logs) {
  std::ranges::sort(logs, {}, [](const Log& log) { return std::tuple(log.block_number, log.log_index); });
  for (std::size_t i = 1; i < logs.size(); ++i) {
    const auto& before = logs[i - 1];
    const auto& log = logs[i];
    if (before.block_number != log.block_number) continue;
    if (before.log_index == log.log_index) throw BadShape{fmt::format("{} is given twice", place_of(log))};
    if (before.block_hash != log.block_hash) {
      throw BadShape{
          fmt::format("block {} has the hashes {} and {}", log.block_number, before.block_hash, log.block_hash)};
    }
  }
  return logs;
}

using AddressSet = std::unordered_set<std::string>;

AddressSet contracts_in(const LogFilter& filter) {
  return {filter.addresses.begin(), filter.addresses.end()};
}

bool has_topic(const Log& log, const LogFilter& filter) {
  if (filter.topics.empty()) return true;
  return !log.topics.empty() && std::ranges::find(filter.topics, log.topics.front()) != filter.topics.end();
}

template <class CheckPlace>
Result<std::vector<Log>> parse_logs(const RpcValue& value, const LogFilter& filter, CheckPlace check_place) {
  const auto addresses = contracts_in(filter);
  return reply::parse(value.text(), "an answer with logs", [&](reply::ondemand::document& document) {
    std::vector<Log> logs;
    auto elements = document.get_array().value();
    for (auto element : elements) {
      auto log = read_log(element.get_object().value());
      if (!addresses.contains(log.address)) {
        throw BadShape{fmt::format("{} is of the contract {}, which was not asked for", place_of(log), log.address)};
      }
      check_place(log);
      if (has_topic(log, filter)) logs.push_back(std::move(log));
    }
    return sorted(std::move(logs));
  });
}

void read_receipt_logs(const Receipt& receipt, reply::ondemand::array elements, const LogFilter& filter,
                       const AddressSet& addresses, std::vector<Log>& logs) {
  for (auto element : elements) {
    auto object = element.get_object().value();
    if (!addresses.contains(reply::address_of(object.find_field_unordered("address").value(), "address"))) continue;
    object.reset().value();
    auto log = read_log(object);
    if (log.block_hash != receipt.block_hash || log.tx_hash != receipt.tx_hash) {
      throw BadShape{fmt::format("the receipt of {} has {} of {}", receipt.tx_hash, place_of(log), log.tx_hash)};
    }
    if (has_topic(log, filter)) logs.push_back(std::move(log));
  }
}

}  // namespace

Result<std::vector<Log>> parse_receipt_logs(const std::vector<Receipt>& receipts, const LogFilter& filter) {
  const auto addresses = contracts_in(filter);
  std::vector<Log> logs;
  for (const auto& receipt : receipts) {
    const auto read = reply::parse(receipt.json, "a receipt", [&](reply::ondemand::document& document) {
      bool has_logs = false;
      auto object = document.get_object().value();
      for (auto field : object) {
        const std::string_view key = field.unescaped_key().value();
        reply::ondemand::value value = field.value();
        if (key != "logs") continue;
        if (std::exchange(has_logs, true)) throw BadShape{"logs is given twice"};
        read_receipt_logs(receipt, value.get_array().value(), filter, addresses, logs);
      }
      if (!has_logs) throw BadShape{"logs is missing"};
      return true;
    });
    if (!read) return fail(read.error());
  }
  try {
    return sorted(std::move(logs));
  } catch (const BadShape& shape) {
    return fail(reply::bad_result(fmt::format("the receipts of a block: {}", shape.message)));
  }
}

Result<std::vector<Log>> parse_block_logs(const RpcValue& value, std::string_view block_hash, const LogFilter& filter) {
  return parse_logs(value, filter, [&](const Log& log) {
    if (log.block_hash == block_hash) return;
    throw BadShape{fmt::format("asked for the logs of block {}, got {}", block_hash, place_of(log))};
  });
}

Result<std::vector<Log>> parse_range_logs(const RpcValue& value, std::int64_t first, std::int64_t last,
                                          const LogFilter& filter) {
  return parse_logs(value, filter, [&](const Log& log) {
    if (log.block_number >= first && log.block_number <= last) return;
    throw BadShape{fmt::format("asked for the logs of the blocks {} to {}, got {}", first, last, place_of(log))};
  });
}

}  // namespace fencepost::evm
