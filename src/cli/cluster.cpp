// `fencepost chain list`, `fencepost node list` and `fencepost whoami`.
#include "cli/cluster.hpp"

#include <fmt/format.h>

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

struct ClusterFlags {
  ApiFlags api;
  bool json = false;
};

int show_list(const ClusterFlags& flags, const char* target, std::string_view none,
              std::string (*table)(const json::array&, std::size_t)) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->get(target), flags.json, [&](const json::value& answer, std::size_t width) {
    const auto& items = items_of(answer);
    return items.empty() ? fmt::format("{}\n", none) : table(items, width);
  });
}

int list_chains(const ClusterFlags& flags) {
  return show_list(flags, "/api/v1/chains", "no chains are configured", chain_table);
}

int list_nodes(const ClusterFlags& flags) {
  return show_list(flags, "/api/v1/nodes", "no nodes", node_table);
}

int show_caller(const ClusterFlags& flags) {
  auto access = find_api(flags.api, process_environment());
  if (!access) return report(access.error());
  const auto url = access->url;
  const auto from = access->from();
  ApiClient api(std::move(*access));
  auto caller = api.get("/api/v1/whoami");
  if (!caller) return report(caller.error());
  auto& facts = caller->as_object();
  facts["url"] = url;
  facts["from"] = from;
  return show_answer(caller, flags.json, caller_details);
}

void add_cluster_flags(CLI::App& command, ClusterFlags& flags) {
  add_api_flags(command, flags.api);
  add_json_flag(command, flags.json);
}

std::string list_text(const json::value& value, std::string_view path, std::string_view none) {
  const auto* list = find_at(value, path);
  if (list == nullptr || !list->is_array()) return std::string(none);
  std::string out;
  for (const auto& item : list->get_array()) {
    if (item.is_string()) out += (out.empty() ? "" : ", ") + std::string(item.get_string());
  }
  return out;
}

std::string endpoint_state(const json::value& endpoint) {
  if (text_at(endpoint, "wrongChain") == "true") return "wrong chain";
  if (text_at(endpoint, "healthy") == "true") return "ok";
  if (text_at(endpoint, "behind") == "true") return "behind";
  const auto failures = text_at(endpoint, "consecutiveFailures");
  return failures == "0" ? "not used" : fmt::format("failing ({})", failures);
}

std::string latency_text(const json::value& endpoint) {
  const auto* latency = find_at(endpoint, "latencyMs");
  boost::system::error_code none;
  const auto ms = latency == nullptr ? 0 : latency->to_number<double>(none);
  return ms > 0 ? fmt::format("{:.1f}", ms) : "";
}

}  // namespace

std::string chain_table(const json::array& chains, std::size_t width) {
  TextTable table({"CHAIN",
                   {"NAME", 2, 8},
                   "HEAD",
                   {"HEAD TIME (UTC)", 3},
                   "SYNCED",
                   {"FINAL AFTER", 4},
                   {"ENDPOINT", 0, 16},
                   {"USE", 6},
                   "STATE",
                   {"AT BLOCK", 5},
                   {"MS", 7}});
  for (const auto& chain : chains) {
    for (const auto& [list, use] : {std::pair{"endpoints", "read"}, {"submitEndpoints", "submit"}}) {
      const auto* endpoints = find_at(chain, list);
      if (endpoints == nullptr || !endpoints->is_array()) continue;
      for (const auto& endpoint : endpoints->get_array()) {
        table.add({text_at(chain, "chainId"), text_at(chain, "name"), text_at(chain, "head.number"),
                   when(chain, "head.time"), text_at(chain, "synced") == "true" ? "yes" : "no",
                   text_at(chain, "confirmationsRequired"), text_at(endpoint, "label"), use, endpoint_state(endpoint),
                   text_at(endpoint, "head"), latency_text(endpoint)});
      }
    }
  }
  return table.text(width);
}

std::string node_table(const json::array& nodes, std::size_t width) {
  TextTable table({{"NODE", 0, 16},
                   "ALIVE",
                   {"LEASES", 1},
                   {"VERSION", 4},
                   {"URL FOR OTHER NODES", 3, 16},
                   {"HEARTBEAT (UTC)", 2},
                   {"STARTED (UTC)", 5}});
  for (const auto& node : nodes) {
    const auto url = text_at(node, "advertiseUrl");
    table.add({text_at(node, "nodeId"), text_at(node, "alive") == "true" ? "yes" : "no", text_at(node, "leases"),
               text_at(node, "version"), url.empty() ? "none" : url, when(node, "heartbeatAt"),
               when(node, "startedAt")});
  }
  return table.text(width);
}

std::string caller_details(const json::value& caller, std::size_t width) {
  FactList facts;
  facts.add("node", text_at(caller, "url"));
  facts.add("from", text_at(caller, "from"));
  facts.add("key id", text_at(caller, "keyId"));
  facts.add("label", text_at(caller, "label"));
  facts.add("scopes", list_text(caller, "scopes", ""));
  facts.add("signers", list_text(caller, "signers", "every"));
  facts.add("guilds", list_text(caller, "guilds", "every"));
  facts.add("contracts", list_text(caller, "contracts", "every"));
  return facts.text(width);
}

void add_chain(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  const auto list = add_verb<ClusterFlags>(noun, run, "list", "Show each chain's head and endpoints", list_chains);
  add_cluster_flags(list.command, *list.flags);
}

void add_node(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  const auto list =
      add_verb<ClusterFlags>(noun, run, "list", "Show the nodes, and how many signers each leads", list_nodes);
  add_cluster_flags(list.command, *list.flags);
}

void add_whoami(CLI::App& noun, Run& run) {
  add_cluster_flags(noun, *on_parsed<ClusterFlags>(noun, run, show_caller));
}

}  // namespace fencepost::cli
