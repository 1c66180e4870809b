#include "cli/timelock/flow_view.hpp"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/uint256.hpp"

#include "cli/amount.hpp"
#include "cli/answer_text.hpp"
#include "cli/text_table.hpp"
#include "cli/timelock/contract_view.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kArgumentColumns = 100;
constexpr std::size_t kDataColumns = 2 + 2 * 36;  // a selector and a word
constexpr std::size_t kWhyColumns = 60;

const json::array& list_at(const json::value& value, std::string_view path) {
  static const json::array kNone;
  const auto* found = find_at(value, path);
  return found != nullptr && found->is_array() ? found->get_array() : kNone;
}

// A time that no calendar has is the contract's own number.
std::string due_text(const json::value& flow) {
  auto due = when_utc(flow, "dueAt");
  const auto eta = text_at(flow, "eta");
  if (!due.empty() || eta.empty()) return due;
  return fmt::format("never ({} s)", shortened(eta, 24));
}

std::string value_text(const json::value& call) {
  const auto text = text_at(call, "value");
  const auto wei = parse_uint256(text);
  return wei ? amount_text(*wei) : text;
}

std::string argument_text(const json::value& argument) {
  const auto name = text_at(argument, "name");
  const auto type = text_at(argument, "type");
  return fmt::format("{} {} = {}", type, name.empty() ? "(unnamed)" : name,
                     shortened(text_at(argument, "value"), kArgumentColumns));
}

std::string call_text(const json::value& call, std::size_t width) {
  FactList facts;
  facts.add("call", text_at(call, "index"));
  facts.add("  target", text_at(call, "target"));
  facts.add("  value", value_text(call));
  const auto function = text_at(call, "explained.signature");
  facts.add("  function", function.empty() ? text_at(call, "signature") : function);
  facts.add("  known from", text_at(call, "explained.source"));
  for (const auto& argument : list_at(call, "explained.arguments")) facts.add("  argument", argument_text(argument));
  const auto data = text_at(call, "data");
  const bool whole = data.size() <= kDataColumns;
  facts.add("  data", whole ? data : fmt::format("{} ({} bytes)", shortened(data, kDataColumns), data.size() / 2 - 1));
  return "\n" + facts.text(width);
}

std::string steps_table(const json::array& steps, std::size_t width) {
  if (steps.empty()) return "";
  TextTable table({"AT (UTC)", {"FROM", 1}, "TO", {"NODE", 2, 12}, {"WHY", 0, 16}});
  for (const auto& step : steps) {
    table.add({when(step, "at"), text_at(step, "from"), text_at(step, "to"), text_at(step, "node"),
               shortened(text_at(step, "why"), kWhyColumns)});
  }
  return "\n" + table.text(width);
}

// Only of an id that was queued more than once.
std::string generations_table(const json::array& generations) {
  if (generations.size() < 2) return "";
  TextTable table({"GENERATION", "STATUS"});
  for (const auto& one : generations) table.add({text_at(one, "generation"), flow_status_text(one)});
  return "\n" + table.text();
}

}  // namespace

std::string flow_status_text(const json::value& flow) {
  auto status = text_at(flow, "status");
  if (text_at(flow, "removed") == "true") return status + " (removed by a reorg)";
  if (text_at(flow, "confirmed") == "false") return status + " (not confirmed)";
  if (!text_at(flow, "blockedBy").empty()) return status + " (blocked)";
  return status;
}

// The id is last: it is long, and `timelock flow` needs all of it.
std::string flow_table(const json::array& flows, std::size_t width) {
  TextTable table({"STATUS",
                   {"STANDARD", 6},
                   {"CHAIN", 5},
                   {"CONTRACT", 2},
                   {"INITIATOR", 4},
                   {"GEN", 8},
                   {"CALLS", 7},
                   {"DUE (UTC)", 1},
                   {"QUEUED (UTC)", 3},
                   "FLOW ID"});
  for (const auto& flow : flows) {
    const auto due = when(flow, "dueAt");
    table.add({flow_status_text(flow), text_at(flow, "standard"), text_at(flow, "chainId"),
               short_hex(text_at(flow, "contractAddress")), short_hex(text_at(flow, "initiatorAddress")),
               text_at(flow, "generation"), text_at(flow, "callCount"), due.empty() ? "never" : due,
               when(flow, "queuedAt"), text_at(flow, "flowId")});
  }
  return table.text(width);
}

std::string flow_details(const json::value& flow, std::size_t width) {
  FactList facts;
  facts.add("flow", text_at(flow, "flowId"));
  facts.add("generation", text_at(flow, "generation"));
  facts.add("status", flow_status_text(flow));
  facts.add("standard", text_at(flow, "standard"));
  facts.add("chain", text_at(flow, "chainId"));
  facts.add("contract", text_at(flow, "contractAddress"));
  facts.add("initiator", text_at(flow, "initiatorAddress"));
  facts.add("via", text_at(flow, "viaAddress"));
  facts.add("due", due_text(flow));
  facts.add("expires after", when_utc(flow, "expiredAt"));
  facts.add("delay", seconds_text(text_at(flow, "delay")));
  facts.add("predecessor", text_at(flow, "predecessor"));
  facts.add("blocked by", text_at(flow, "blockedBy"));
  facts.add("salt", text_at(flow, "salt"));
  facts.add("queued", when_utc(flow, "queuedAt"));
  facts.add("queued by", text_at(flow, "queueTxHash"));
  facts.add("executed", when_utc(flow, "executedAt"));
  facts.add("executed by", text_at(flow, "executeTxHash"));
  facts.add("cancelled", when_utc(flow, "cancelledAt"));
  facts.add("cancelled by", text_at(flow, "cancelTxHash"));
  auto out = facts.text(width);
  for (const auto& call : list_at(flow, "calls")) out += call_text(call, width);
  return out + steps_table(list_at(flow, "history"), width) + generations_table(list_at(flow, "generations"));
}

}  // namespace fencepost::cli
