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

std::string mined_text(const TxProgress& progress) {
  if (!progress.mined_block) return "mined";
  const bool by_tag = progress.required == "safe" || progress.required == "finalized";
  if (by_tag) return fmt::format("mined, not yet {}", progress.required);
  if (!progress.head || progress.required.empty()) return "mined";
  const auto on_top = std::max<std::int64_t>(0, *progress.head - *progress.mined_block);
  return fmt::format("mined {}/{}", on_top, progress.required);
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
      out.push_back({i == kMined ? mined_text(progress) : with_detail(kStages[i], progress.sub_state), When::kNow});
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

std::string progress_line(const TxProgress& progress, Paint paint) {
  std::string out;
  for (const auto& stage : stages_of(progress)) {
    if (!out.empty()) out += " ▸ ";
    out += painted(stage, paint);
  }
  return out;
}

std::string step_line(const json::value& step, Paint paint) {
  const auto at = text_at(step, "at");
  const auto to = text_at(step, "to");
  const auto sub_state = text_at(step, "subState");
  const auto state = sub_state.empty() ? to : fmt::format("{} ({})", to, sub_state);
  const auto token = text_at(step, "fencingToken");
  const auto who = fmt::format("{}{}", text_at(step, "node"), token.empty() ? "" : fmt::format(" #{}", token));
  const bool colored = paint == Paint::kColor;
  return fmt::format("{}  {}{:<24}{}  {}  {}{}{}", printable(at.size() >= 23 ? at.substr(11, 12) : at),
                     colored ? kBold : "", printable(state), colored ? kEnd : "", printable(text_at(step, "why")),
                     colored ? kDim : "", printable(who), colored ? kEnd : "");
}

}  // namespace fencepost::cli
