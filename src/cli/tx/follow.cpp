#include "cli/tx/follow.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/duration_text.hpp"

#include "cli/answer_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/tx/view.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

bool has_reached(const TxProgress& progress, TxGoal goal) {
  if (progress.final()) return true;
  switch (goal) {
    case TxGoal::kSubmitted:
      return progress.submitted;
    case TxGoal::kMined:
      return progress.mined_block.has_value();
    case TxGoal::kConfirmed:
      return false;
  }
  return false;
}

class TxFollower {
 public:
  TxFollower(const PollWorld& world, const std::string& tx_id, const TxFollowOptions& options)
      : world_(world), target_("/api/v1/tx/" + tx_id), options_(options), began_(world.now()) {}

  Result<int> run() {
    const auto reached = poll_until(world_, options_.timeout, [this] { return look(); });
    close_line();
    if (!reached) return fail(reached.error());
    if (options_.json) world_.print(json::serialize(json::object{{"tx", tx_}}) + "\n");
    if (!*reached) return kExitNotYet;
    const auto failure = failure_text();
    if (failure.empty()) return kExitDone;
    if (!options_.json) world_.print(failure + "\n");
    return kExitFailedForGood;
  }

 private:
  // Asks the API once and prints the new steps.
  Result<bool> look() {
    auto tx = world_.api.get(target_ + wait(), kPollInterval + kPollAnswerTime);
    if (!tx) return fail(tx.error());
    const auto history = world_.api.get(target_ + "/history", kPollAnswerTime);
    if (!history) return fail(history.error());
    tx_ = std::move(*tx);
    progress_ = read_progress(tx_);
    if (progress_.mined_block && !progress_.final() && options_.live) {
      // The chain's head is optional: without it, the progress line lacks a number.
      const auto chains = world_.api.get("/api/v1/chains", kPollAnswerTime);
      if (chains) add_chain(progress_, *chains, int_at(tx_, "chainId").value_or(0));
    }
    show_steps(items_of(*history));
    if (options_.live) draw();
    return has_reached(progress_, options_.goal);
  }

  // The query that makes the server wait for the next stop. The first request does not wait.
  std::string wait() {
    if (!std::exchange(looked_, true)) return "";
    return "?wait=" + next_stop() + "&timeout=" + duration_text(round_time());
  }

  // How the transaction failed and why; empty: it did not. A revert counts as soon as it is mined.
  std::string failure_text() const {
    const auto error = printable(text_at(tx_, "error"));
    const auto reason = error.empty() ? "" : ": " + error;
    if (progress_.state == "FAILED_FINAL") return printable(state_text(tx_)) + reason;
    const bool reverted = options_.goal == TxGoal::kMined && progress_.mined_block && progress_.reverted;
    return reverted ? fmt::format("reverted in block {}{}", *progress_.mined_block, reason) : "";
  }

  void show_steps(const json::array& steps) {
    for (; shown_ < steps.size(); ++shown_) {
      if (options_.json) {
        world_.print(json::serialize(json::object{{"step", steps[shown_]}}) + "\n");
      } else {
        world_.print((options_.live ? "\r\x1b[K" : "") + step_line(steps[shown_], options_.paint, world_.columns()) +
                     "\n");
      }
    }
  }

  void draw() {
    world_.print("\r\x1b[K" + progress_line(progress_, options_.paint, world_.columns()));
    line_open_ = true;
  }
  void close_line() {
    if (std::exchange(line_open_, false)) world_.print("\n");
  }

  // The next state worth waiting for.
  std::string next_stop() const {
    if (!progress_.submitted && progress_.state != "STUCK") return "submitted";
    return progress_.mined_block ? "confirmed" : "mined";
  }

  std::chrono::milliseconds round_time() const {
    if (!options_.timeout) return kPollInterval;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(began_ + *options_.timeout - world_.now());
    return std::clamp(left, std::chrono::milliseconds(1), kPollInterval);
  }

  const PollWorld& world_;
  std::string target_;
  TxFollowOptions options_;
  std::chrono::steady_clock::time_point began_;
  json::value tx_;
  TxProgress progress_;
  std::size_t shown_ = 0;
  bool looked_ = false;
  bool line_open_ = false;
};

}  // namespace

Result<int> follow_tx(const PollWorld& world, const std::string& tx_id, const TxFollowOptions& options) {
  return TxFollower(world, tx_id, options).run();
}

}  // namespace fencepost::cli
