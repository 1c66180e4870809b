#include "cli/tx_commands.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/object.hpp>

#include "http/uri.hpp"

#include "cli/amount.hpp"
#include "cli/api_command.hpp"
#include "cli/commands.hpp"
#include "cli/tx_view.hpp"
#include "cli/tx_watcher.hpp"

namespace fencepost {
namespace {

namespace json = boost::json;

std::string tx_target(const std::string& tx_id) {
  return "/api/v1/tx/" + http::percent_encode(tx_id);
}

Result<WatchOptions> watch_options(const std::string& goal, const std::string& timeout, bool as_json) {
  WatchOptions options;
  options.goal = goal == "submitted" ? WatchGoal::kSubmitted
                 : goal == "mined"   ? WatchGoal::kMined
                                     : WatchGoal::kConfirmed;
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

int watch(Api& api, const std::string& tx_id, const WatchOptions& options) {
  const auto world = terminal_world(api);
  const auto code = watch_tx(world, http::percent_encode(tx_id), options);
  return code ? *code : report(code.error());
}

}  // namespace

Result<json::value> create_body(const TxSendFlags& flags, const std::string& request_id) {
  json::object payload;
  const auto put_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) payload[name] = text;
  };
  put_text("to", flags.to);
  put_text("data", flags.data);
  put_text("gas", flags.gas);
  struct Amount {
    const char* flag;
    const char* name;
    const std::string& text;
  };
  for (const auto& [flag, name, text] : {Amount{"--value", "value", flags.value},
                                         {"--gas-price", "gasPrice", flags.gas_price},
                                         {"--max-fee", "maxFeePerGas", flags.max_fee},
                                         {"--max-priority-fee", "maxPriorityFeePerGas", flags.max_priority_fee}}) {
    if (text.empty()) continue;
    auto wei = parse_amount(text);
    if (!wei) return fail(std::move(wei.error()).with("flag", flag));
    payload[name] = to_decimal(*wei);
  }
  json::object body{{"signer", flags.signer}, {"requestId", request_id}, {"payload", std::move(payload)}};
  if (flags.chain_id) body["chainId"] = *flags.chain_id;
  if (flags.preflight) body["preflight"] = true;
  return body;
}

int tx_send_command(const TxSendFlags& flags) {
  const auto options = watch_options(flags.wait, flags.timeout, flags.json);
  if (!options) return report(options.error());
  const bool made = flags.request_id.empty();
  const auto request_id = made ? new_request_id() : flags.request_id;
  const auto body = create_body(flags, request_id);
  if (!body) return report(body.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  // Before it is sent: whoever loses the answer can ask again without paying twice.
  if (made) fmt::print(stderr, "request id {}: repeat with --request-id to retry safely\n", request_id);
  const auto tx = api->post("/api/v1/tx", *body, true);
  if (!tx) return report(tx.error());
  if (flags.wait.empty()) {
    if (flags.json) print_json(*tx);
    if (!flags.json) fmt::print("{}", tx_details(*tx));
    return kExitDone;
  }
  if (!flags.json) fmt::print("transaction {}\n", text_at(*tx, "txId"));
  return watch(*api, text_at(*tx, "txId"), *options);
}

int tx_get_command(const TxFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto tx = api->get(tx_target(flags.tx_id));
  if (!tx) return report(tx.error());
  if (flags.json) print_json(*tx);
  if (!flags.json) fmt::print("{}", tx_details(*tx));
  return kExitDone;
}

int tx_history_command(const TxFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto history = api->get(tx_target(flags.tx_id) + "/history");
  if (!history) return report(history.error());
  if (flags.json) print_json(*history);
  if (!flags.json) fmt::print("{}", history_table(items_of(*history)));
  return kExitDone;
}

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

int tx_list_command(const TxListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.limit, [&](std::size_t limit, const std::string& cursor) {
    return list_target(flags, limit, cursor);
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no transactions", tx_table);
  return kExitDone;
}

int tx_watch_command(const TxWatchFlags& flags) {
  const auto options = watch_options(flags.goal, flags.timeout, flags.tx.json);
  if (!options) return report(options.error());
  auto api = connect(flags.tx.api);
  if (!api) return report(api.error());
  return watch(*api, flags.tx.tx_id, *options);
}

int tx_act_command(const TxActFlags& flags) {
  auto api = connect(flags.tx.api);
  if (!api) return report(api.error());
  json::object body{{"reason", flags.reason}};
  if (!flags.tx_hash.empty()) body["txHash"] = flags.tx_hash;
  const auto tx = api->post(fmt::format("{}/{}", tx_target(flags.tx.tx_id), flags.verb), body, false);
  if (!tx) return report(tx.error());
  if (flags.tx.json) print_json(*tx);
  if (!flags.tx.json) fmt::print("{}", tx_details(*tx));
  return kExitDone;
}

}  // namespace fencepost
