#include "timelock/model/event_decoder.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/hex.hpp"
#include "base/text.hpp"
#include "evm/abi/abi.hpp"
#include "evm/address.hpp"
#include "evm/keccak.hpp"

namespace fencepost::timelock {
namespace {

// Reads a log's arguments: indexed ones from the topics (the first topic is the event itself, so they begin at 1), the
// others from the data. The first error is kept, and every later value is empty.
class Arguments {
 public:
  Arguments(std::span<const std::uint8_t> topics, std::span<const std::uint8_t> data) : topics_(topics), data_(data) {}

  std::string topic_hash(std::size_t place) { return to_hex0x(take(topics_.bytes32(place))); }
  std::string topic_address(std::size_t place) { return evm::address_text(take(topics_.address(place))); }
  Uint256 topic_number(std::size_t place) { return take(topics_.uint256(place)); }
  std::string hash(std::size_t place) { return to_hex0x(take(data_.bytes32(place))); }
  std::string address(std::size_t place) { return evm::address_text(take(data_.address(place))); }
  Uint256 number(std::size_t place) { return take(data_.uint256(place)); }
  std::string bytes(std::size_t place) { return to_hex0x(take(data_.bytes(place))); }
  std::string_view string(std::size_t place) { return take(data_.string(place)); }

  void refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }
  // Empty: everything was read.
  const std::string& reason() const { return reason_; }

 private:
  template <class T>
  T take(Result<T> value) {
    if (value) return std::move(*value);
    refuse(std::move(value).error().message);
    return T{};
  }

  evm::AbiReader topics_;
  evm::AbiReader data_;
  std::string reason_;
};

std::string fit_for_text(std::string_view bytes) {
  std::string out;
  for (const char c : repair_utf8(bytes)) {
    if (c == '\0') {
      out += "\xef\xbf\xbd";
    } else {
      out += c;
    }
  }
  return out;
}

void set_signature(Call& call, std::string_view bytes) {
  call.signature = fit_for_text(bytes);
  if (call.signature == bytes) return;
  call.signature_bytes = to_hex0x({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

void read_compound(Arguments& in, RawEvent& out) {
  out.flow_id = in.topic_hash(1);
  out.call.target = in.topic_address(2);
  out.call.value = in.number(0);
  set_signature(out.call, in.string(1));
  out.call.data = in.bytes(2);
  out.eta = in.number(3);
}

void read_call(Arguments& in, RawEvent& out) {
  out.flow_id = in.topic_hash(1);
  const auto index = in.topic_number(2);
  if (index > std::numeric_limits<std::int64_t>::max()) {
    in.refuse(fmt::format("the index {} is over 64 bits", to_quantity(index)));
  } else {
    out.call.index = static_cast<std::int64_t>(index);
  }
  out.call.target = in.address(0);
  out.call.value = in.number(1);
  out.call.data = in.bytes(2);
}

void read_scheduled(Arguments& in, RawEvent& out) {
  read_call(in, out);
  out.predecessor = in.hash(3);
  out.delay = in.number(4);
}

void read_salt(Arguments& in, RawEvent& out) {
  out.flow_id = in.topic_hash(1);
  out.salt = in.hash(0);
}

void read_cancelled(Arguments& in, RawEvent& out) {
  out.flow_id = in.topic_hash(1);
}

void read_new_admin(Arguments& in, RawEvent& out) {
  out.guard = {{"newAdmin", in.topic_address(1)}};
}

void read_new_pending_admin(Arguments& in, RawEvent& out) {
  out.guard = {{"newPendingAdmin", in.topic_address(1)}};
}

void read_new_delay(Arguments& in, RawEvent& out) {
  out.guard = {{"newDelay", to_decimal(in.topic_number(1))}};
}

void read_min_delay(Arguments& in, RawEvent& out) {
  out.guard = {{"oldDuration", to_decimal(in.number(0))}, {"newDuration", to_decimal(in.number(1))}};
}

// The role as the chain has it, and its name where the standard gives it one.
void add_role(RawEvent& out, const std::string& argument, std::string role) {
  struct Known {
    std::string hash;
    std::string_view name;
  };
  static const std::vector<Known> kRoles = [] {
    std::vector<Known> roles{{"0x" + std::string(64, '0'), "DEFAULT_ADMIN_ROLE"}};
    for (const std::string_view name : {"TIMELOCK_ADMIN_ROLE", "PROPOSER_ROLE", "EXECUTOR_ROLE", "CANCELLER_ROLE"}) {
      roles.push_back({to_hex0x(evm::keccak256(name)), name});
    }
    return roles;
  }();
  const auto known = std::ranges::find(kRoles, role, &Known::hash);
  out.guard.emplace_back(argument, std::move(role));
  if (known != kRoles.end()) out.guard.emplace_back(argument + "Name", known->name);
}

void read_role_change(Arguments& in, RawEvent& out) {
  add_role(out, "role", in.topic_hash(1));
  out.guard.emplace_back("account", in.topic_address(2));
  out.guard.emplace_back("sender", in.topic_address(3));
}

void read_role_admin(Arguments& in, RawEvent& out) {
  add_role(out, "role", in.topic_hash(1));
  add_role(out, "previousAdminRole", in.topic_hash(2));
  add_role(out, "newAdminRole", in.topic_hash(3));
}

struct EventRow {
  EventType type;
  Standard standard;
  std::string_view arguments;
  std::size_t topics;  // the event itself and the indexed arguments
  void (*read)(Arguments&, RawEvent&);
};

constexpr std::string_view kCompoundArguments = "(bytes32,address,uint256,string,bytes,uint256)";
constexpr std::string_view kRoleArguments = "(bytes32,address,address)";
constexpr auto kCompound = Standard::kCompound;
constexpr auto kOpenZeppelin = Standard::kOpenZeppelin;

constexpr EventRow kRows[] = {
    {EventType::kQueueTransaction, kCompound, kCompoundArguments, 3, read_compound},
    {EventType::kExecuteTransaction, kCompound, kCompoundArguments, 3, read_compound},
    {EventType::kCancelTransaction, kCompound, kCompoundArguments, 3, read_compound},
    {EventType::kCallScheduled, kOpenZeppelin, "(bytes32,uint256,address,uint256,bytes,bytes32,uint256)", 3,
     read_scheduled},
    {EventType::kCallExecuted, kOpenZeppelin, "(bytes32,uint256,address,uint256,bytes)", 3, read_call},
    {EventType::kCallSalt, kOpenZeppelin, "(bytes32,bytes32)", 2, read_salt},
    {EventType::kCancelled, kOpenZeppelin, "(bytes32)", 2, read_cancelled},
    {EventType::kNewAdmin, kCompound, "(address)", 2, read_new_admin},
    {EventType::kNewPendingAdmin, kCompound, "(address)", 2, read_new_pending_admin},
    {EventType::kNewDelay, kCompound, "(uint256)", 2, read_new_delay},
    {EventType::kMinDelayChange, kOpenZeppelin, "(uint256,uint256)", 1, read_min_delay},
    {EventType::kRoleGranted, kOpenZeppelin, kRoleArguments, 4, read_role_change},
    {EventType::kRoleRevoked, kOpenZeppelin, kRoleArguments, 4, read_role_change},
    {EventType::kRoleAdminChanged, kOpenZeppelin, "(bytes32,bytes32,bytes32)", 4, read_role_admin},
};
static_assert(std::size(kRows) == kEventTypes.size());

// The first topic of each row.
const std::vector<std::string>& row_topics() {
  static const std::vector<std::string> kTopics = [] {
    std::vector<std::string> topics;
    for (const auto& row : kRows) {
      topics.push_back(to_hex0x(evm::keccak256(fmt::format("{}{}", kEventTypes.name(row.type), row.arguments))));
    }
    return topics;
  }();
  return kTopics;
}

const EventRow* find_row(Standard standard, std::string_view topic) {
  const auto& topics = row_topics();
  const auto found = std::ranges::find(topics, topic);
  if (found == topics.end()) return nullptr;
  const auto& row = kRows[found - topics.begin()];
  return row.standard == standard ? &row : nullptr;
}

// Empty: the log is well-formed.
std::string flaw_of(const LogFields& log, const EventRow& row) {
  if (!is_address(log.address)) return "its address is not 0x and 40 lowercase hex digits";
  if (!is_hash32(log.tx_hash)) return "its transaction hash is not 0x and 64 lowercase hex digits";
  if (!is_hash32(log.block_hash)) return "its block hash is not 0x and 64 lowercase hex digits";
  if (log.block_number < 0 || log.log_index < 0) return "its block number or log index is negative";
  if (log.topics.size() != row.topics) return fmt::format("it has {} topics, not {}", log.topics.size(), row.topics);
  if (!std::ranges::all_of(log.topics, is_hash32)) return "a topic is not 0x and 64 lowercase hex digits";
  return {};
}

Error bad_log(const LogFields& log, const EventRow& row, std::string_view reason) {
  return invalid("bad_log", fmt::format("a log of {} cannot be decoded: {}", kEventTypes.name(row.type), reason))
      .with("contract", log.address)
      .with("block", std::to_string(log.block_number))
      .with("blockHash", log.block_hash)
      .with("logIndex", std::to_string(log.log_index))
      .with("tx", log.tx_hash);
}

}  // namespace

std::vector<std::string> topics_of(Standard standard) {
  std::vector<std::string> topics;
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].standard == standard) topics.push_back(row_topics()[i]);
  }
  return topics;
}

Result<std::optional<RawEvent>> decode(Standard standard, const LogFields& log) {
  const auto* row = log.topics.empty() ? nullptr : find_row(standard, log.topics.front());
  if (row == nullptr) return std::nullopt;
  if (const auto flaw = flaw_of(log, *row); !flaw.empty()) return fail(bad_log(log, *row, flaw));
  const auto data = from_hex0x(log.data);
  if (!data) return fail(bad_log(log, *row, data.error().message));
  Bytes topics;
  for (const auto& topic : log.topics) {
    const auto word = from_hex0x_fixed<32>(topic).value();
    topics.insert(topics.end(), word.begin(), word.end());
  }

  RawEvent event{.standard = standard,
                 .type = row->type,
                 .contract = log.address,
                 .position = {log.block_number, log.log_index},
                 .block_hash = log.block_hash,
                 .tx_hash = log.tx_hash};
  Arguments in(topics, *data);
  row->read(in, event);
  if (!in.reason().empty()) return fail(bad_log(log, *row, in.reason()));
  return event;
}

}  // namespace fencepost::timelock
