#include "cli/timelock/import_follow.hpp"

#include <utility>

#include <boost/json/serialize.hpp>

#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/timelock/contract_view.hpp"

namespace fencepost::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstImportPause = 100ms;  // most histories are short
constexpr int kPercentPerLine = 10;

class ImportFollower {
 public:
  ImportFollower(const PollWorld& world, const std::string& target, const ImportFollowOptions& options)
      : world_(world), target_(target), options_(options), pause_(world, kFirstImportPause, options.timeout) {}

  Result<int> run() {
    const auto over = poll_until(world_, options_.timeout, [this] { return look(); });
    if (std::exchange(line_open_, false)) world_.print("\n");
    if (!over) return fail(over.error());
    if (options_.json) world_.print(boost::json::serialize(timelock_) + "\n");
    if (halted_) return kExitFailed;
    return *over ? kExitDone : kExitNotYet;
  }

 private:
  Result<bool> look() {
    pause_.rest();
    auto timelock = world_.api.get(target_, kPollAnswerTime);
    if (!timelock) return fail(timelock.error());
    timelock_ = std::move(*timelock);
    const auto history = history_of(timelock_);
    if (options_.live) {
      world_.print("\r\x1b[K" + history_bar(history, world_.columns()));
      line_open_ = true;
    } else if (!options_.json) {
      print_line(history);
    }
    halted_ = !history.halted_at.empty();
    if (halted_) close("halted at block " + history.halted_at + ": " + history.error);
    return history.complete || halted_;
  }

  void close(const std::string& line) {
    if (options_.json) return;
    world_.print((std::exchange(line_open_, false) ? "\n" : "") + printable(line) + "\n");
  }

  void print_line(const HistoryProgress& history) {
    const bool news = history.error != error_ && !history.error.empty();
    if (news && history.halted_at.empty()) world_.print("retrying: " + printable(history.error) + "\n");
    error_ = history.error;
    const auto step = history.percent / kPercentPerLine;
    if (!history.complete && step == step_) return;
    step_ = step;
    world_.print("history " + printable(history_progress_text(history)) + "\n");
  }

  const PollWorld& world_;
  std::string target_;
  ImportFollowOptions options_;
  GrowingPause pause_;
  boost::json::value timelock_;
  std::string error_;
  int step_ = -1;
  bool line_open_ = false;
  bool halted_ = false;
};

}  // namespace

Result<int> follow_import(const PollWorld& world, const std::string& target, const ImportFollowOptions& options) {
  return ImportFollower(world, target, options).run();
}

}  // namespace fencepost::cli
