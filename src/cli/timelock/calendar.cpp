#include "cli/timelock/calendar.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/answer_text.hpp"
#include "cli/text_table.hpp"
#include "cli/timelock/flow_view.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kIndent = 2;  // of the rows of a day

struct Entry {
  std::time_t at = 0;
  std::string_view what;
  const json::value* flow = nullptr;  // in the order of the list
};

// "2026-11-15T19:45:18…Z", as the API writes times. nullopt: none, or beyond the year 9999.
std::optional<std::time_t> time_at(const json::value& flow, std::string_view path) {
  const auto text = text_at(flow, path);
  std::tm parts{};
  const auto* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || !text.ends_with('Z') || (*end != 'Z' && *end != '.')) return std::nullopt;
  return ::timegm(&parts);
}

std::string local(std::time_t at, const char* format) {
  std::tm parts{};
  ::localtime_r(&at, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

// "+02:00"
std::string offset_at(std::time_t at) {
  auto text = local(at, "%z");
  if (text.size() == 5) text.insert(3, ":");
  return text;
}

std::vector<std::string> cells(std::string first, std::string_view what, const json::value& flow) {
  return {std::move(first),
          std::string(what),
          flow_status_text(flow),
          text_at(flow, "standard"),
          text_at(flow, "chainId"),
          short_hex(text_at(flow, "contractAddress")),
          short_hex(text_at(flow, "initiatorAddress")),
          text_at(flow, "flowId")};
}

// A table without its line of headers: each day has its own title.
std::string day_text(const std::string& title, const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  // Time, what happens, status, standard, chain, contract, initiator, flow id: as `cells` returns them.
  TextTable table({"", "", {"", 2}, {"", 5}, {"", 4}, {"", 1}, {"", 3}, {"", 0, 20}});
  for (const auto& row : rows) table.add(row);
  const auto text = table.text(width - kIndent);
  std::string out = title + "\n";
  for (std::size_t at = text.find('\n') + 1; at < text.size();) {
    const auto end = text.find('\n', at) + 1;
    out += std::string(kIndent, ' ') + text.substr(at, end - at);
    at = end;
  }
  return out;
}

std::string days_text(std::vector<Entry> entries, std::size_t width) {
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.at, entry.flow); });
  std::string out;
  for (std::size_t begin = 0; begin < entries.size();) {
    const auto day = local(entries[begin].at, "%a %Y-%m-%d");
    std::vector<std::vector<std::string>> rows;
    for (; begin < entries.size() && local(entries[begin].at, "%a %Y-%m-%d") == day; ++begin) {
      const auto& entry = entries[begin];
      rows.push_back(cells(local(entry.at, "%H:%M:%S ") + offset_at(entry.at), entry.what, *entry.flow));
    }
    out += (out.empty() ? "" : "\n") + day_text(day, rows, width);
  }
  return out;
}

}  // namespace

std::string calendar_text(const json::array& flows, std::size_t width) {
  std::vector<Entry> entries;
  std::vector<std::vector<std::string>> ready;
  std::size_t never = 0;
  for (const auto& flow : flows) {
    const auto status = text_at(flow, "status");
    if (text_at(flow, "removed") == "true" || (status != "waiting" && status != "ready")) continue;
    if (status == "ready") ready.push_back(cells("now", "ready", flow));
    if (status == "waiting") {
      if (const auto due = time_at(flow, "dueAt")) {
        entries.push_back({*due, "becomes ready", &flow});
      } else {
        ++never;
      }
    }
    if (const auto expiry = time_at(flow, "expiredAt")) entries.push_back({*expiry, "expires after", &flow});
  }
  std::string out;
  if (!ready.empty()) out += day_text("Ready now", ready, width);
  if (!entries.empty()) out += (out.empty() ? "" : "\n") + days_text(std::move(entries), width);
  if (never > 0) {
    out += fmt::format("{}{} more: due at no time that a calendar has\n", out.empty() ? "" : "\n", never);
  }
  return out;
}

}  // namespace fencepost::cli
