#include "cli/timelock/flows.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "http/uri.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/timelock/calendar.hpp"
#include "cli/timelock/flow_view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

constexpr std::size_t kMostMatches = 200;

struct FlowFlags {
  ApiFlags api;
  FlowChoice flow;
  bool json = false;
};

Result<ItemList> read_flows(Api& api, const FlowListFlags& flags) {
  return read_pages(api, flags.page, [&](std::size_t limit, const std::string& cursor) {
    return flow_list_target(flags, limit, cursor);
  });
}

bool is_same_flow(const boost::json::value& a, const boost::json::value& b) {
  return std::ranges::all_of(std::array{"standard", "chainId", "contractAddress", "flowId", "generation"},
                             [&](const char* member) { return text_at(a, member) == text_at(b, member); });
}

// The waiting ones, the soonest first, and in the rest of the limit the ready ones, the newest first: an operation of
// OpenZeppelin's stays ready for ever, so old ones would leave no room for what comes next.
Result<ItemList> read_upcoming(Api& api, FlowListFlags flags) {
  const auto limit = flags.page.all ? kMostOfAll : flags.page.limit;
  flags.status = "waiting";
  flags.sort = "eta";
  auto list = read_flows(api, flags);
  if (!list || !list->next_cursor.empty()) return list;
  flags.status = "ready";
  flags.sort = "";
  flags.page = {.limit = std::max<std::size_t>(limit - list->items.size(), 1)};  // one: to see whether there are more
  const auto ready = read_flows(api, flags);
  if (!ready) return fail(ready.error());
  // One may have become ready since the first request.
  const auto is_ready = [&](const boost::json::value& flow) {
    return std::ranges::any_of(ready->items, [&](const auto& other) { return is_same_flow(flow, other); });
  };
  list->items.erase(std::remove_if(list->items.begin(), list->items.end(), is_ready), list->items.end());
  for (const auto& flow : ready->items) {
    if (list->items.size() < limit)
      list->items.push_back(flow);
    else
      list->more = true;
  }
  list->next_cursor = list->more ? "" : ready->next_cursor;
  return list;
}

int list_flows(const FlowListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  auto list = flags.upcoming ? read_upcoming(*api, flags) : read_flows(*api, flags);
  if (!list) return report(list.error());
  if (flags.upcoming) {
    // Its order is no list's of the API: --cursor does not lead beyond it.
    if (!list->next_cursor.empty()) {
      list->more = true;
      list->next_cursor.clear();
    }
    print_list(*list, flags.json, "no flow is waiting or ready", calendar_text);
  } else {
    print_list(*list, flags.json, "no flows", flow_table);
  }
  return kExitDone;
}

int show_flow(const FlowFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto target = find_flow_target(*api, flags.flow);
  if (!target) return report(target.error());
  return show_answer(api->get(*target), flags.json, flow_details);
}

}  // namespace

std::string flow_list_target(const FlowListFlags& flags, std::size_t limit, const std::string& cursor) {
  auto target = fmt::format("/api/v1/flows?limit={}", limit);
  add_parameter(target, "status", flags.status);
  add_parameter(target, "chainId", flags.chain_id ? std::to_string(*flags.chain_id) : "");
  add_parameter(target, "contract", flags.contract);
  add_parameter(target, "initiator", flags.initiator);
  add_parameter(target, "standard", flags.standard);
  add_parameter(target, "q", flags.q);
  add_parameter(target, "sort", flags.sort);
  add_parameter(target, "cursor", cursor);
  return target;
}

Result<std::string> find_flow_target(Api& api, const FlowChoice& choice) {
  FlowListFlags filter;
  filter.chain_id = choice.chain_id;
  filter.contract = choice.contract;
  filter.q = choice.flow_id;
  const auto list = read_pages(api, {.limit = kMostMatches}, [&](std::size_t limit, const std::string& cursor) {
    return flow_list_target(filter, limit, cursor) + "&removed=true";
  });
  if (!list) return fail(list.error());
  auto wanted = choice.flow_id;
  std::ranges::transform(wanted, wanted.begin(), [](unsigned char c) { return std::tolower(c); });
  std::vector<std::string> targets;
  for (const auto& flow : list->items) {
    if (text_at(flow, "flowId") != wanted) continue;
    auto target = fmt::format("/api/v1/flows/{}/{}/{}/{}", http::percent_encode(text_at(flow, "standard")),
                              http::percent_encode(text_at(flow, "chainId")),
                              http::percent_encode(text_at(flow, "contractAddress")), wanted);
    if (std::ranges::find(targets, target) == targets.end()) targets.push_back(std::move(target));
  }
  if (targets.empty()) {
    return fail(not_found("no_such_flow", fmt::format("There is no flow {}. An id is 0x and 64 hex digits, as shown by "
                                                      "'timelock flows'.",
                                                      choice.flow_id)));
  }
  if (targets.size() > 1) {
    return fail(invalid("several_flows",
                        "The id is queued on several contracts: name one with --chain and --contract. 'timelock flows "
                        "--query ID' shows them."));
  }
  return targets.front();
}

void add_flow_choice(CLI::App& command, FlowChoice& flow) {
  command.add_option("--chain", flow.chain_id, "Chain id; needed if the id is queued on several chains");
  command.add_option("--contract", flow.contract, "Contract; needed if the id is queued on several contracts");
}

void add_timelock_flows(CLI::App& timelock, Run& run) {
  const auto [list, flags] = add_verb<FlowListFlags>(
      timelock, run, "flows", "Show queued operations, newest first; --upcoming: as a calendar", list_flows);
  auto* status =
      list.add_option("--status", flags->status, "Only flows in these statuses, such as waiting,ready or executed");
  list.add_option("--chain", flags->chain_id, "Only flows on this chain");
  list.add_option("--contract", flags->contract, "Only flows of this contract");
  list.add_option("--initiator", flags->initiator, "Only flows that this address queued");
  list.add_option("--standard", flags->standard, "Only flows of this standard")
      ->check(CLI::IsMember({"compound", "openzeppelin"}));
  list.add_option("--query", flags->q, "Only flows with this id, transaction hash or address");
  auto* upcoming =
      list.add_flag(
              "--upcoming", flags->upcoming,
              "What becomes ready and what expires, by day in local time, soonest first; within the limit, what is "
              "waiting comes before what is ready")
          ->excludes(status);
  add_page_flags(list, flags->page);
  upcoming->excludes(list.get_option("--cursor"));
  add_api_flags(list, flags->api);
  add_json_flag(list, flags->json);

  const auto one = add_verb<FlowFlags>(timelock, run, "flow", "Show a flow, its calls and its steps", show_flow);
  one.command.add_option("flow-id", one.flags->flow.flow_id, "Id of the flow, as shown by flows")->required();
  add_flow_choice(one.command, one.flags->flow);
  add_api_flags(one.command, one.flags->api);
  add_json_flag(one.command, one.flags->json);
}

}  // namespace fencepost::cli
