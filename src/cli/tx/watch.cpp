// `fencepost tx watch`
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "base/text.hpp"
#include "http/uri.hpp"

#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/tx/follow.hpp"
#include "cli/tx/verbs.hpp"
#include "cli/verb.hpp"
#include "cli/watching.hpp"

namespace fencepost::cli {
namespace {

struct TxWatchFlags {
  TxFlags tx;
  std::string goal = "confirmed";
  std::string timeout;
};

const char* goal_name(TxGoal goal) {
  return goal == TxGoal::kSubmitted ? "submitted" : goal == TxGoal::kMined ? "mined" : "confirmed";
}

int watch_tx(const TxWatchFlags& flags) {
  const auto options = follow_options(flags.goal, flags.timeout, flags.tx.json);
  if (!options) return report(options.error());
  auto api = connect(flags.tx.api);
  if (!api) return report(api.error());
  return follow_on_terminal(*api, flags.tx.tx_id, *options, flags.tx.api);
}

}  // namespace

Result<TxFollowOptions> follow_options(const std::string& goal, const std::string& timeout, bool as_json) {
  TxFollowOptions options;
  options.goal = goal == "submitted" ? TxGoal::kSubmitted : goal == "mined" ? TxGoal::kMined : TxGoal::kConfirmed;
  auto limit = read_timeout(timeout);
  if (!limit) return fail(limit.error());
  options.timeout = *limit;
  options.json = as_json;
  options.live = !as_json && ::isatty(STDOUT_FILENO) == 1;
  const auto* no_color = std::getenv("NO_COLOR");
  const bool plain = !options.live || (no_color != nullptr && *no_color != '\0');
  options.paint = plain ? Paint::kPlain : Paint::kColor;
  return options;
}

int follow_on_terminal(Api& api, const std::string& tx_id, const TxFollowOptions& options, const ApiFlags& flags) {
  auto words = "tx watch " + shell_word(tx_id);
  if (options.goal != TxGoal::kConfirmed) words += fmt::format(" --until {}", goal_name(options.goal));
  const Watching watching("the transaction", command_again(words, flags));
  const auto world = terminal_world(api);
  const auto code = follow_tx(world, http::percent_encode(tx_id), options);
  if (!code) return report(code.error());
  return *code == kExitNotYet ? watching.timed_out() : *code;
}

void add_tx_watch(CLI::App& tx, Run& run) {
  auto [command, flags] = add_verb<TxWatchFlags>(
      tx, run, "watch", "Follow a transaction to its end (exit code 0: confirmed, 3: failed, 4: timeout)", watch_tx);
  add_tx_flags(command, flags->tx);
  command.add_option("--until", flags->goal, "Stop when the transaction is submitted, mined or confirmed")
      ->capture_default_str()
      ->check(CLI::IsMember({"submitted", "mined", "confirmed"}));
  command.add_option("--timeout", flags->timeout, "Stop watching after this time, such as 2m");
}

}  // namespace fencepost::cli
