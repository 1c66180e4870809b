#include "cli/tx/show.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "http/uri.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/tx/verbs.hpp"
#include "cli/tx/view.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

int get_tx(const TxFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_tx(api->get(tx_target(flags.tx_id)), flags.json);
}

int show_history(const TxFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->get(tx_target(flags.tx_id) + "/history"), flags.json, history_text);
}

int list_txs(const TxListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.page, [&](std::size_t limit, const std::string& cursor) {
    return list_target(flags, limit, cursor);
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no transactions", tx_table);
  return kExitDone;
}

}  // namespace

std::string list_target(const TxListFlags& flags, std::size_t limit, const std::string& cursor) {
  auto target = fmt::format("/api/v1/tx?limit={}", limit);
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) target += fmt::format("&{}={}", name, http::percent_encode(value));
  };
  add("chainId", flags.chain_id ? std::to_string(*flags.chain_id) : "");
  add("signer", flags.signer);
  auto state = flags.state;
  std::ranges::transform(state, state.begin(), [](unsigned char c) { return std::toupper(c); });
  add("state", state);
  add("cursor", cursor);
  return target;
}

void add_tx_show(CLI::App& tx, Run& run) {
  const auto get = add_verb<TxFlags>(tx, run, "get", "Show a transaction and its attempts", get_tx);
  add_tx_flags(get.command, *get.flags);

  const auto history =
      add_verb<TxFlags>(tx, run, "history", "Show every step of a transaction: when, by which node, why", show_history);
  add_tx_flags(history.command, *history.flags);

  auto [list, flags] = add_verb<TxListFlags>(tx, run, "list", "Show transactions, newest first", list_txs);
  list.add_option("--signer", flags->signer, "Only transactions of this signer");
  list.add_option("--state", flags->state, "Only transactions in this state, such as STUCK");
  list.add_option("--chain-id", flags->chain_id, "Only transactions on this chain");
  add_page_flags(list, flags->page);
  add_api_flags(list, flags->api);
  add_json_flag(list, flags->json);
}

}  // namespace fencepost::cli
