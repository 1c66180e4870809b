#include "cli/tx/progress.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "cli/answer_text.hpp"
#include "cli/text_table.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kEnd = "\x1b[0m";
constexpr std::size_t kDetailColumns = 24;  // so that the line fits a terminal of 80

enum class When { kPast, kNow, kLater };

struct Stage {
  std::string text;
  When when;
  bool bad = false;
};

std::string painted(const Stage& stage, Paint paint) {
  if (paint == Paint::kPlain) return stage.when == When::kNow ? fmt::format("[{}]", stage.text) : stage.text;
  switch (stage.when) {
    case When::kPast:
      return fmt::format("{}{}{}", kGreen, stage.text, kEnd);
    case When::kNow:
      return fmt::format("{}{}{}{}", kBold, stage.bad ? kRed : kGreen, stage.text, kEnd);
    case When::kLater:
      return fmt::format("{}{}{}", kDim, stage.text, kEnd);
  }
  std::unreachable();
}

constexpr std::string_view kArrow = " ▸ ";
constexpr std::size_t kLeastStage = 8;  // columns of the narrowest stage

// With the brackets that Paint::kPlain adds: with colours the line is two columns shorter.
std::size_t width_of(const std::vector<Stage>& stages) {
  std::size_t out = columns_of(kArrow) * (stages.empty() ? 0 : stages.size() - 1);
  for (const auto& stage : stages) out += columns_of(stage.text) + (stage.when == When::kNow ? 2 : 0);
  return out;
}

std::string mined_text(const TxProgress& progress) {
  if (!progress.mined_block) return "mined";
  const auto* mined = progress.reverted ? "reverted" : "mined";
  const bool by_tag = progress.required == "safe" || progress.required == "finalized";
  if (by_tag) return fmt::format("{}, not yet {}", mined, progress.required);
  if (!progress.head || progress.required.empty()) return mined;
  const auto on_top = std::max<std::int64_t>(0, *progress.head - *progress.mined_block);
  return fmt::format("{} {}/{}", mined, on_top, progress.required);
}

std::string with_detail(const std::string& state, const std::string& detail) {
  return detail.empty() ? state : fmt::format("{} {}", state, shortened(printable(detail), kDetailColumns));
}

constexpr std::array kStages{"CREATED", "ALLOCATED", "TRACKING", "mined", "CONFIRMED"};
constexpr std::size_t kMined = 3;

bool is_aside(const TxProgress& progress) {
  return progress.state == "STUCK" || progress.state == "FAILED_FINAL";
}

// The stage that the transaction is in; for STUCK and FAILED_FINAL, the last stage before that.
std::size_t place_of(const TxProgress& progress) {
  if (progress.mined_block && progress.state != "CONFIRMED") return kMined;
  const auto state = !is_aside(progress) ? progress.state : progress.submitted ? "TRACKING" : "ALLOCATED";
  const auto found = std::ranges::find(kStages, state);
  return found == kStages.end() ? 0 : static_cast<std::size_t>(found - kStages.begin());
}

std::vector<Stage> stages_of(const TxProgress& progress) {
  const auto place = place_of(progress);
  const bool aside = is_aside(progress);
  std::vector<Stage> out;
  for (std::size_t i = place == 0 ? 0 : 1; i < kStages.size(); ++i) {
    if (i < place || (i == place && aside)) {
      out.push_back({kStages[i], When::kPast});
    } else if (i == place) {
      const bool mined = i == kMined;
      out.push_back({mined ? mined_text(progress) : with_detail(kStages[i], progress.sub_state), When::kNow,
                     mined && progress.reverted});
    } else if (!aside) {
      out.push_back({kStages[i], When::kLater});
    }
  }
  if (aside) out.push_back({with_detail(progress.state, progress.sub_state), When::kNow, true});
  return out;
}

}  // namespace

TxProgress read_progress(const json::value& tx) {
  TxProgress out;
  out.state = printable(text_at(tx, "state"));
  out.sub_state = text_at(tx, "subState");
  out.submitted = out.state == "TRACKING" || !text_at(tx, "firstSubmittedAt").empty();
  out.mined_block = int_at(tx, "receipt.blockNumber");
  out.reverted = int_at(tx, "receipt.status") == 0;
  return out;
}

void add_chain(TxProgress& progress, const json::value& chains, std::int64_t chain_id) {
  const auto* object = chains.if_object();
  const auto* items = object == nullptr ? nullptr : object->if_contains("items");
  if (items == nullptr || !items->is_array()) return;
  for (const auto& chain : items->get_array()) {
    if (int_at(chain, "chainId") != chain_id) continue;
    progress.head = int_at(chain, "head.number");
    progress.required = printable(text_at(chain, "confirmationsRequired"));
  }
}

std::string progress_line(const TxProgress& progress, Paint paint, std::size_t width) {
  auto stages = stages_of(progress);
  while (stages.size() > 1 && width_of(stages) > width) {
    stages.erase(stages.front().when == When::kPast ? stages.begin() : stages.end() - 1);
  }
  if (width_of(stages) > width) stages.front().text = shortened(stages.front().text, std::max(width, kLeastStage) - 2);
  std::string out;
  for (const auto& stage : stages) {
    if (!out.empty()) out += kArrow;
    out += painted(stage, paint);
  }
  return out;
}

std::string step_line(const json::value& step, Paint paint, std::size_t width) {
  const auto at = printable(text_at(step, "at"));
  const auto to = text_at(step, "to");
  const auto sub_state = text_at(step, "subState");
  const auto state = printable(sub_state.empty() ? to : fmt::format("{} ({})", to, sub_state));
  const auto token = text_at(step, "fencingToken");
  auto who = printable(fmt::format("{}{}", text_at(step, "node"), token.empty() ? "" : fmt::format(" #{}", token)));
  auto line = fmt::format("{}  {:<24}", at.size() >= 23 ? at.substr(11, 12) : at, state);
  const auto begin = columns_of(line) + 2;
  auto why = printable(text_at(step, "why"));
  if (begin + columns_of(why) + 2 + columns_of(who) > width) who = "";
  why = begin < width ? shortened(why, width - begin) : "";
  if (paint == Paint::kColor) {
    const auto state_at = line.find("  ") + 2;
    line = fmt::format("{}{}{}{}", line.substr(0, state_at), kBold, line.substr(state_at), kEnd);
    if (!who.empty()) who = fmt::format("{}{}{}", kDim, who, kEnd);
  }
  return fmt::format("{}  {}{}{}", line, why, who.empty() ? "" : "  ", who);
}

}  // namespace fencepost::cli
