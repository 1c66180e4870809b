#include "cli/tx/view.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/uint256.hpp"

#include "cli/amount.hpp"
#include "cli/answer_text.hpp"
#include "cli/text_table.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kReasonColumns = 60;
constexpr std::size_t kRequestIdColumns = 24;

std::string amount_at(const json::value& value, std::string_view path) {
  const auto text = text_at(value, path);
  const auto wei = parse_uint256(text);
  return wei ? amount_text(*wei) : text;
}

std::string data_text(const std::string& data) {
  constexpr std::size_t kWhole = 2 + 2 * 68;  // a selector and two words
  if (data.size() <= kWhole) return data;
  return fmt::format("{}… ({} bytes)", data.substr(0, 2 + 2 * 36), (data.size() - 2) / 2);
}

std::string receipt_text(const json::value& tx) {
  const auto block = int_at(tx, "receipt.blockNumber");
  if (!block) return "";
  const bool reverted = int_at(tx, "receipt.status") == 0;
  return fmt::format("{}{}", *block, reverted ? " (reverted)" : "");
}

// A hash is shown whole where it fits: a part of it cannot be looked up.
std::string attempts_table(const json::array& attempts, std::size_t width) {
  const auto table_with = [&](std::string (*hash_text)(std::string_view)) {
    TextTable table({"ATTEMPT", {"KIND", 3}, {"HASH", 2}, "OUTCOME", {"SIGNED (UTC)", 4}, {"MESSAGE", 1, 20}});
    for (const auto& attempt : attempts) {
      table.add({text_at(attempt, "attempt"), text_at(attempt, "kind"), hash_text(text_at(attempt, "txHash")),
                 text_at(attempt, "outcome"), when(attempt, "createdAt"),
                 shortened(text_at(attempt, "message"), kReasonColumns)});
    }
    return table;
  };
  const auto whole = table_with([](std::string_view hash) { return std::string(hash); });
  return whole.full_width() <= width ? whole.text() : table_with(short_hex).text(width);
}

}  // namespace

std::string state_text(const json::value& tx) {
  const auto state = text_at(tx, "state");
  const auto sub_state = text_at(tx, "subState");
  return sub_state.empty() ? state : fmt::format("{} ({})", state, sub_state);
}

std::string tx_details(const json::value& tx, std::size_t width) {
  FactList facts;
  facts.add("transaction", text_at(tx, "txId"));
  facts.add("state", state_text(tx));
  facts.add("error", text_at(tx, "error"));
  facts.add("blocked by", text_at(tx, "blockedBy"));
  facts.add("request id", text_at(tx, "requestId"));
  facts.add("chain", text_at(tx, "chainId"));
  facts.add("signer", text_at(tx, "signer"));
  facts.add("nonce", text_at(tx, "nonce"));
  facts.add("to", text_at(tx, "payload.to"));
  facts.add("value", amount_at(tx, "payload.value"));
  facts.add("data", data_text(text_at(tx, "payload.data")));
  facts.add("gas", text_at(tx, "gas"));
  facts.add("hash", text_at(tx, "txHash"));
  facts.add("block", receipt_text(tx));
  facts.add("created", when_utc(tx, "createdAt"));
  facts.add("submitted", when_utc(tx, "firstSubmittedAt"));
  const auto state = text_at(tx, "state");
  const bool on_its_way = (state == "TRACKING" || state == "STUCK") && receipt_text(tx).empty();
  if (on_its_way) facts.add("next resubmit", when_utc(tx, "nextResubmitAt"));
  facts.add("confirmed", when_utc(tx, "confirmedAt"));
  auto out = facts.text(width);
  const auto* attempts = find_at(tx, "attempts");
  if (attempts != nullptr && attempts->is_array() && !attempts->get_array().empty()) {
    out += "\n" + attempts_table(attempts->get_array(), width);
  }
  return out;
}

std::string tx_table(const json::array& txs, std::size_t width) {
  TextTable table({"TX ID",
                   "STATE",
                   {"CHAIN", 7},
                   {"NONCE", 3},
                   {"SIGNER", 6},
                   {"TO", 5},
                   {"VALUE", 2},
                   {"REQUEST ID", 4, 12},
                   {"CREATED (UTC)", 1}});
  for (const auto& tx : txs) {
    table.add({text_at(tx, "txId"), state_text(tx), text_at(tx, "chainId"), text_at(tx, "nonce"),
               short_hex(text_at(tx, "signer")), short_hex(text_at(tx, "payload.to")), amount_at(tx, "payload.value"),
               shortened(text_at(tx, "requestId"), kRequestIdColumns), when(tx, "createdAt")});
  }
  return table.text(width);
}

std::string history_table(const json::array& steps, std::size_t width) {
  // FROM is the TO of the line before, so even that goes before a reason is cut.
  TextTable table({"AT (UTC)", {"FROM", 1}, "TO", {"NODE", 2, 12}, {"TOKEN", 3}, {"WHY", 0, kReasonColumns}});
  for (const auto& step : steps) {
    const auto sub_state = text_at(step, "subState");
    const auto to = text_at(step, "to");
    table.add({when(step, "at", kToMilliseconds), text_at(step, "from"),
               sub_state.empty() ? to : fmt::format("{} ({})", to, sub_state), text_at(step, "node"),
               text_at(step, "fencingToken"), text_at(step, "why")});
  }
  return table.text(width);
}

std::string history_text(const json::value& history, std::size_t width) {
  const bool truncated = text_at(history, "truncated") == "true";
  return (truncated ? "Earlier steps are gone: they are older than events.retention.\n" : "") +
         history_table(items_of(history), width);
}

}  // namespace fencepost::cli
