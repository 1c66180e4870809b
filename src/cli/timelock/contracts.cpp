// `fencepost timelock list|show|remove`
#include <fmt/format.h>

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/timelock/contract_view.hpp"
#include "cli/timelock/verbs.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

struct TimelockListFlags {
  ApiFlags api;
  ChainId chain_id;
  PageFlags page{.limit = 200};
  bool json = false;
};

// Of show and remove.
struct TimelockFlags {
  ApiFlags api;
  std::string address;
  ChainId chain_id;
  bool json = false;
};

int list_contracts(const TimelockListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.page, [&](std::size_t limit, const std::string& cursor) {
    auto target = fmt::format("/api/v1/timelocks?limit={}", limit);
    add_parameter(target, "chainId", flags.chain_id ? std::to_string(*flags.chain_id) : "");
    add_parameter(target, "cursor", cursor);
    return target;
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no timelocks are watched", timelock_table);
  return kExitDone;
}

int show_contract(const TimelockFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto target = find_timelock_target(*api, flags.address, flags.chain_id);
  if (!target) return report(target.error());
  return show_answer(api->get(*target), flags.json, timelock_details);
}

int remove_contract(const TimelockFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto target = find_timelock_target(*api, flags.address, flags.chain_id);
  if (!target) return report(target.error());
  const auto removed = api->remove(*target);
  if (!removed) return report(removed.error());
  if (flags.json) {
    print_json(boost::json::object{{"removed", true}});
  } else {
    fmt::print("no longer watched; its flows and events are deleted\n");
  }
  return kExitDone;
}

void add_contract_verb(CLI::App& timelock, Run& run, const std::string& name, const std::string& help,
                       int (*action)(const TimelockFlags&)) {
  const auto [command, flags] = add_verb<TimelockFlags>(timelock, run, name, help, action);
  command.add_option("address", flags->address, "Address of the contract")->required();
  command.add_option("--chain", flags->chain_id, "Chain id; needed if the address is watched on several chains");
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace

void add_timelock_contracts(CLI::App& timelock, Run& run) {
  const auto [list, flags] =
      add_verb<TimelockListFlags>(timelock, run, "list", "Show the watched contracts", list_contracts);
  list.add_option("--chain", flags->chain_id, "Only contracts on this chain");
  add_page_flags(list, flags->page);
  add_api_flags(list, flags->api);
  add_json_flag(list, flags->json);

  add_contract_verb(timelock, run, "show", "Show a watched contract and how far it is scanned", show_contract);
  add_contract_verb(timelock, run, "remove", "Stop watching a contract and delete its flows and events",
                    remove_contract);
}

}  // namespace fencepost::cli
