#include "cli/timelock/contract_view.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/duration_text.hpp"
#include "base/uint256.hpp"

#include "cli/answer_text.hpp"
#include "cli/text_table.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr int kBarColumns = 30;
constexpr std::size_t kBarErrorColumns = 79;
constexpr std::size_t kRemarkColumns = 40;

double number_at(const json::value& value, std::string_view path) {
  const auto* found = find_at(value, path);
  boost::system::error_code none;
  const auto number = found == nullptr ? 0 : found->to_number<double>(none);
  return none ? 0 : number;
}

std::string scan_text(const json::value& timelock) {
  const auto block = text_at(timelock, "scan.block");
  if (block.empty()) return "";
  const bool stalled = text_at(timelock, "scan.clockStalled") == "true";
  return fmt::format("block {}, chain time {}{}", block, when_utc(timelock, "scan.clock"),
                     stalled ? " (the chain's clock stands still)" : "");
}

}  // namespace

HistoryProgress history_of(const json::value& timelock) {
  HistoryProgress out;
  out.complete = text_at(timelock, "history.complete") == "true";
  const auto percent = static_cast<int>(std::clamp(number_at(timelock, "history.progress"), 0.0, 1.0) * 100);
  out.percent = out.complete ? 100 : std::min(percent, 99);
  out.from_block = text_at(timelock, "history.fromBlock");
  out.next_block = text_at(timelock, "history.nextBlock");
  out.to_block = text_at(timelock, "history.toBlock");
  out.error = text_at(timelock, "history.error");
  out.halted_at = text_at(timelock, "haltedAtBlock");
  return out;
}

std::string history_bar(const HistoryProgress& history, std::size_t width) {
  const auto done = static_cast<std::size_t>(history.percent * kBarColumns / 100);
  const auto rest = static_cast<std::size_t>(kBarColumns) - done;
  const auto bar = fmt::format("[{}{}] {:3}%  block {} of {}", std::string(done, '#'), std::string(rest, '.'),
                               history.percent, history.next_block, history.to_block);
  return shortened(printable(history.error.empty() ? bar : fmt::format("{}  {}", bar, history.error)),
                   std::min(width, kBarErrorColumns));
}

std::string history_progress_text(const HistoryProgress& history) {
  if (history.complete) return fmt::format("complete, blocks {} to {}", history.from_block, history.to_block);
  return fmt::format("{}%, block {} of {}", history.percent, history.next_block, history.to_block);
}

std::string seconds_text(const std::string& seconds) {
  if (seconds.empty()) return "";
  const auto number = parse_uint256(seconds);
  constexpr auto kMost = std::chrono::seconds(std::chrono::hours(24 * 10'000)).count();
  if (!number || *number > kMost) return seconds + " s";
  const auto text = duration_text(std::chrono::seconds(number->convert_to<std::int64_t>()));
  return text == seconds + "s" ? seconds + " s" : fmt::format("{} s ({})", seconds, text);
}

std::string timelock_details(const json::value& timelock, std::size_t width) {
  const auto history = history_of(timelock);
  FactList facts;
  facts.add("contract", text_at(timelock, "address"));
  facts.add("chain", text_at(timelock, "chainId"));
  facts.add("standard", text_at(timelock, "standard"));
  facts.add("remark", text_at(timelock, "remark"));
  facts.add("delay", seconds_text(text_at(timelock, "delay")));
  facts.add("grace period", seconds_text(text_at(timelock, "gracePeriod")));
  facts.add("admin", text_at(timelock, "admin"));
  facts.add("pending admin", text_at(timelock, "pendingAdmin"));
  facts.add("history", history_progress_text(history));
  facts.add("halted at block", history.halted_at);
  facts.add("history error", history.error);
  facts.add("scanned", scan_text(timelock));
  facts.add("failing since", when_utc(timelock, "scan.failingSince"));
  facts.add("scan error", text_at(timelock, "scan.error"));
  facts.add("watched since", when_utc(timelock, "createdAt"));
  return facts.text(width);
}

std::string timelock_table(const json::array& timelocks, std::size_t width) {
  TextTable table({"CONTRACT",
                   {"CHAIN", 1},
                   {"STANDARD", 3},
                   {"DELAY", 4},
                   "HISTORY",
                   {"SCANNED", 5},
                   {"REMARK", 6, 10},
                   {"ERROR", 2, 12}});
  for (const auto& timelock : timelocks) {
    const auto history = history_of(timelock);
    const auto error = history.error.empty() ? text_at(timelock, "scan.error") : history.error;
    table.add({text_at(timelock, "address"), text_at(timelock, "chainId"), text_at(timelock, "standard"),
               seconds_text(text_at(timelock, "delay")),
               history.complete ? "complete" : fmt::format("{}%", history.percent), text_at(timelock, "scan.block"),
               shortened(text_at(timelock, "remark"), kRemarkColumns), shortened(error, kRemarkColumns)});
  }
  return table.text(width);
}

}  // namespace fencepost::cli
