#include "cli/transfer/follow.hpp"

#include <utility>

#include <boost/json/serialize.hpp>

#include "cli/answer_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/transfer/view.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstPause = 50ms;  // most transfers are completed by then

class TransferFollower {
 public:
  TransferFollower(const PollWorld& world, std::string target, const TransferFollowOptions& options)
      : world_(world), target_(std::move(target)), options_(options), pause_(world, kFirstPause, options.timeout) {}

  Result<int> run() {
    const auto over = poll_until(world_, options_.timeout, [this] { return look(); });
    if (!over) return fail(over.error());
    if (!*over) return kExitNotYet;
    return text_at(transfer_, "status") == "completed" ? kExitDone : kExitFailedForGood;
  }

 private:
  Result<bool> look() {
    pause_.rest();
    auto transfer = world_.api.get(target_, kPollAnswerTime);
    if (!transfer) return fail(transfer.error());
    const bool changed = *transfer != transfer_;
    transfer_ = std::move(*transfer);
    if (changed) world_.print(line() + "\n");
    return is_terminal(transfer_);
  }

  std::string line() const {
    return options_.json ? json::serialize(transfer_) : shortened(transfer_line(transfer_), world_.columns());
  }

  const PollWorld& world_;
  std::string target_;
  TransferFollowOptions options_;
  GrowingPause pause_;
  json::value transfer_;
};

}  // namespace

Result<int> follow_transfer(const PollWorld& world, const std::string& target, const TransferFollowOptions& options) {
  return TransferFollower(world, target, options).run();
}

}  // namespace fencepost::cli
