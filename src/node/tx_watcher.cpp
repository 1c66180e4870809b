#include "node/tx_watcher.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/duration_text.hpp"
#include "node/commands.hpp"
#include "node/tx_view.hpp"

namespace fencepost {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto kRound = 1s;        // at most between two looks
constexpr auto kPatience = 60s;    // with a server that does not answer
constexpr auto kAnswerTime = 10s;  // beyond what it was asked to wait

bool may_pass(const Error& error) {
  return error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kTimeout ||
         error.kind == ErrorKind::kRateLimited;
}

bool has_reached(const TxProgress& progress, WatchGoal goal) {
  if (progress.final()) return true;
  switch (goal) {
    case WatchGoal::kSubmitted:
      return progress.submitted;
    case WatchGoal::kMined:
      return progress.mined_block.has_value();
    case WatchGoal::kConfirmed:
      return false;
  }
  return false;
}

class Watcher {
 public:
  Watcher(const WatchWorld& world, const std::string& tx_id, const WatchOptions& options)
      : world_(world), target_("/api/v1/tx/" + tx_id), options_(options), began_(world.now()), answered_(began_) {}

  Result<int> run() {
    std::string wait;  // the first look does not wait
    while (true) {
      const auto looked = look(wait);
      if (looked) {
        answered_ = world_.now();
        if (has_reached(progress_, options_.goal)) return finish();
      } else if (!may_pass(looked.error()) || world_.now() - answered_ >= kPatience) {
        close_line();
        return fail(looked.error());
      } else {
        world_.sleep(kRound);
      }
      if (options_.timeout && world_.now() - began_ >= *options_.timeout) return give_up();
      wait = "?wait=" + next_stop() + "&timeout=" + duration_text(round_time());
    }
  }

 private:
  // Sees what is new, and shows it.
  Result<void> look(const std::string& wait) {
    auto tx = world_.api.get(target_ + wait, kRound + kAnswerTime);
    if (!tx) return fail(tx.error());
    const auto history = world_.api.get(target_ + "/history", kAnswerTime);
    if (!history) return fail(history.error());
    tx_ = std::move(*tx);
    progress_ = read_progress(tx_);
    if (progress_.mined_block && !progress_.final() && options_.live) {
      // Only a decoration: without it, the line lacks a number.
      const auto chains = world_.api.get("/api/v1/chains", kAnswerTime);
      if (chains) add_chain(progress_, *chains, int_at(tx_, "chainId").value_or(0));
    }
    show_steps(*history);
    if (options_.live) draw();
    return {};
  }

  void show_steps(const json::value& history) {
    const auto* object = history.if_object();
    const auto* items = object == nullptr ? nullptr : object->if_contains("items");
    if (items == nullptr || !items->is_array()) return;
    const auto& steps = items->get_array();
    for (; shown_ < steps.size(); ++shown_) {
      if (options_.json) {
        world_.print(json::serialize(json::object{{"step", steps[shown_]}}) + "\n");
      } else {
        world_.print((options_.live ? "\r\x1b[K" : "") + step_line(steps[shown_], options_.paint) + "\n");
      }
    }
  }

  void draw() {
    world_.print("\r\x1b[K" + progress_line(progress_, options_.paint));
    line_open_ = true;
  }
  void close_line() {
    if (std::exchange(line_open_, false)) world_.print("\n");
  }

  // What the server should wait for: the next thing that is to be seen.
  std::string next_stop() const {
    if (!progress_.submitted && progress_.state != "STUCK") return "submitted";
    return progress_.mined_block ? "confirmed" : "mined";
  }

  std::chrono::milliseconds round_time() const {
    const std::chrono::milliseconds round = kRound;
    if (!options_.timeout) return round;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(began_ + *options_.timeout - world_.now());
    return std::clamp(left, std::chrono::milliseconds(1), round);
  }

  int finish() {
    end_output();
    return progress_.state == "FAILED_FINAL" ? kExitTxFailed : kExitDone;
  }
  int give_up() {
    end_output();
    return kExitNotYet;
  }
  void end_output() {
    close_line();
    if (options_.json) world_.print(json::serialize(json::object{{"tx", tx_}}) + "\n");
  }

  const WatchWorld& world_;
  std::string target_;
  WatchOptions options_;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point answered_;
  json::value tx_;
  TxProgress progress_;
  std::size_t shown_ = 0;
  bool line_open_ = false;
};

}  // namespace

Result<int> watch_tx(const WatchWorld& world, const std::string& tx_id, const WatchOptions& options) {
  return Watcher(world, tx_id, options).run();
}

}  // namespace fencepost
