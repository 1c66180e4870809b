// `fencepost timelock import`
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/object.hpp>

#include "base/text.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/timelock/contract_view.hpp"
#include "cli/timelock/import_follow.hpp"
#include "cli/timelock/verbs.hpp"
#include "cli/verb.hpp"
#include "cli/watching.hpp"

namespace fencepost::cli {
namespace {

struct TimelockImportFlags {
  ApiFlags api;
  std::string address;
  std::int64_t chain_id = 0;
  std::string standard;
  std::string remark;
  std::optional<std::int64_t> from_block;
  bool wait = false;
  std::string timeout;
  bool json = false;
};

boost::json::object import_body(const TimelockImportFlags& flags) {
  boost::json::object body{{"chainId", flags.chain_id}, {"address", flags.address}};
  if (!flags.standard.empty()) body["standard"] = flags.standard;
  if (!flags.remark.empty()) body["remark"] = flags.remark;
  if (flags.from_block) body["fromBlock"] = *flags.from_block;
  return body;
}

int import_contract(const TimelockImportFlags& flags) {
  const auto timeout = read_timeout(flags.timeout);
  if (!timeout) return report(timeout.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto imported = api->post("/api/v1/timelocks", import_body(flags), false);
  if (!imported || !flags.wait) return show_answer(imported, flags.json, timelock_details);
  if (!flags.json) {
    fmt::print("watching {} on chain {}, {}\n", printable(text_at(*imported, "address")), flags.chain_id,
               printable(text_at(*imported, "standard")));
  }
  const ImportFollowOptions options{
      .timeout = *timeout, .json = flags.json, .live = !flags.json && ::isatty(STDOUT_FILENO) == 1};
  const Watching watching(
      "the scan",
      command_again(fmt::format("timelock show {} --chain {}", shell_word(flags.address), flags.chain_id), flags.api));
  const auto world = terminal_world(*api);
  const auto code = follow_import(world, timelock_target(flags.chain_id, flags.address), options);
  if (!code) return report(code.error());
  return *code == kExitNotYet ? watching.timed_out() : *code;
}

}  // namespace

void add_timelock_import(CLI::App& timelock, Run& run) {
  const auto [command, flags] = add_verb<TimelockImportFlags>(
      timelock, run, "import", "Watch a timelock contract: its history and everything after it", import_contract);
  command.add_option("address", flags->address, "Address of the contract")->required();
  command.add_option("--chain", flags->chain_id, "Chain id")->required();
  command.add_option("--standard", flags->standard, "Standard of the contract; default: asked from the contract")
      ->check(CLI::IsMember({"compound", "openzeppelin"}));
  command.add_option("--remark", flags->remark, "What the contract is for");
  command.add_option("--from-block", flags->from_block,
                     "First block of the history; default: the block in which the contract was created");
  auto* wait = command.add_flag("--wait", flags->wait,
                                "Wait until the history is scanned (exit code 0: complete, 1: halted, 4: timeout)");
  command.add_option("--timeout", flags->timeout, "Stop waiting after this time, such as 10m; the scan goes on")
      ->needs(wait);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace fencepost::cli
