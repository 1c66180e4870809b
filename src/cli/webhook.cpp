#include "cli/webhook.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/uuid.hpp"

#include "cli/answer_text.hpp"
#include "cli/api_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/text_table.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr auto kWebhooks = "/api/v1/webhooks";

// Which events. An empty list is not sent: the webhook gets all, or keeps what it has.
struct FilterFlags {
  std::vector<std::string> types, chains, signers, contracts, guilds, subjects;
};

struct WebhookCreateFlags {
  ApiFlags api;
  std::string url;
  std::string description;
  std::optional<std::uint64_t> batch;
  std::string from;
  FilterFlags filter;
  bool json = false;
};

struct WebhookUpdateFlags {
  ApiFlags api;
  std::string id;
  std::optional<std::string> url;
  std::optional<std::string> description;
  std::optional<std::uint64_t> batch;
  FilterFlags filter;
  bool json = false;
};

struct WebhookListFlags {
  ApiFlags api;
  PageFlags page;
  bool json = false;
};

// A verb for one webhook.
struct WebhookFlags {
  ApiFlags api;
  std::string verb;
  std::string id;
  PageFlags page;
  bool failed = false;
  std::vector<std::string> seqs;
  bool json = false;
};

void add_filter(const FilterFlags& filter, json::object& body) {
  const std::pair<const char*, const std::vector<std::string>*> lists[] = {
      {"types", &filter.types},         {"chains", &filter.chains}, {"signers", &filter.signers},
      {"contracts", &filter.contracts}, {"guilds", &filter.guilds}, {"subjects", &filter.subjects}};
  for (const auto& [name, values] : lists) {
    if (values->empty()) continue;
    json::array list;
    for (const auto& value : *values) list.emplace_back(value);
    body[name] = std::move(list);
  }
}

Result<std::string> path_of(const std::string& id, std::string_view rest = "") {
  const auto uuid = Uuid::parse(id);
  if (!uuid) return fail(invalid("bad_id", fmt::format("'{}' is not the id of a webhook", id)));
  return fmt::format("{}/{}{}", kWebhooks, uuid->to_string(), rest);
}

int create_webhook(const WebhookCreateFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  json::object body{{"url", flags.url}};
  if (!flags.description.empty()) body["description"] = flags.description;
  if (flags.batch) body["batch"] = *flags.batch;
  if (!flags.from.empty()) body["from"] = flags.from;
  add_filter(flags.filter, body);
  return show_answer(api->post(kWebhooks, body, false), flags.json, [](const json::value& answer, std::size_t width) {
    return webhook_details(answer, width) +
           "\nThe secret is shown only now. Receivers verify deliveries with it (docs/webhooks.md).\n";
  });
}

int list_webhooks_of_node(const WebhookListFlags& flags) {
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.page, [](std::size_t limit, const std::string& cursor) {
    return fmt::format("{}?limit={}{}", kWebhooks, limit, cursor.empty() ? "" : "&cursor=" + cursor);
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, "no webhooks", webhook_table);
  return kExitDone;
}

int update_webhook_settings(const WebhookUpdateFlags& flags) {
  const auto path = path_of(flags.id);
  if (!path) return report(path.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  json::object body;
  if (flags.url) body["url"] = *flags.url;
  if (flags.description) body["description"] = *flags.description;
  if (flags.batch) body["batch"] = *flags.batch;
  add_filter(flags.filter, body);
  return show_answer(api->patch(*path, body), flags.json, webhook_details);
}

int show_webhook(const WebhookFlags& flags) {
  const auto path = path_of(flags.id);
  if (!path) return report(path.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->get(*path), flags.json, webhook_details);
}

int pause_webhook(const WebhookFlags& flags) {
  const auto path = path_of(flags.id);
  if (!path) return report(path.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->patch(*path, json::object{{"paused", flags.verb == "pause"}}), flags.json, webhook_details);
}

int delete_webhook(const WebhookFlags& flags) {
  const auto path = path_of(flags.id);
  if (!path) return report(path.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  return show_answer(api->remove(*path), flags.json,
                     [&](const json::value&) { return fmt::format("{} is removed\n", flags.id); });
}

std::string test_text(const json::value& answer) {
  if (text_at(answer, "delivered") == "true") {
    return fmt::format("delivered: status {}, {} ms\n", text_at(answer, "status"), text_at(answer, "latencyMs"));
  }
  return fmt::format("not delivered after {} ms: {}\n", text_at(answer, "latencyMs"), text_at(answer, "error"));
}

std::string secret_text(const json::value& answer) {
  return fmt::format("secret  {}\n\nThe old secret is valid until {}.\n", text_at(answer, "secret"),
                     when_utc(answer, "oldSecretUntil"));
}

std::string replay_text(const json::value& answer) {
  return fmt::format("{} events wait for delivery\n", text_at(answer, "replayed"));
}

// test, rotate-secret, replay
int act_on_webhook(const WebhookFlags& flags) {
  const auto path = path_of(flags.id, flags.verb == "replay" ? "/dead-letters/replay" : "/" + flags.verb);
  if (!path) return report(path.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  json::object body;
  if (!flags.seqs.empty()) {
    json::array seqs;
    for (const auto& seq : flags.seqs) seqs.emplace_back(seq);
    body["seqs"] = std::move(seqs);
  }
  const auto text = flags.verb == "test" ? test_text : flags.verb == "replay" ? replay_text : secret_text;
  const auto answer = api->post(*path, body, false);
  const auto code = show_answer(answer, flags.json, text);
  if (answer && flags.verb == "test" && text_at(*answer, "delivered") != "true") return kExitFailed;
  return code;
}

int list_of_webhook(const WebhookFlags& flags) {
  const bool letters = flags.verb == "dead-letters";
  const auto path = path_of(flags.id, "/" + flags.verb);
  if (!path) return report(path.error());
  auto api = connect(flags.api);
  if (!api) return report(api.error());
  const auto list = read_pages(*api, flags.page, [&](std::size_t limit, const std::string& cursor) {
    return fmt::format("{}?limit={}{}{}", *path, limit, cursor.empty() ? "" : "&cursor=" + cursor,
                       flags.failed ? "&succeeded=false" : "");
  });
  if (!list) return report(list.error());
  print_list(*list, flags.json, letters ? "no dead letters" : "no deliveries",
             letters ? dead_letter_table : delivery_table);
  return kExitDone;
}

void add_filter_flags(CLI::App& command, FilterFlags& filter) {
  command.add_option("--type", filter.types, "Only events of this type; may be repeated");
  command.add_option("--chain", filter.chains, "Only events of this chain id; may be repeated");
  command.add_option("--signer", filter.signers, "Only events of this signer; may be repeated");
  command.add_option("--contract", filter.contracts, "Only events of this timelock contract; may be repeated");
  command.add_option("--guild", filter.guilds, "Only events of this guild; may be repeated");
  command.add_option("--subject", filter.subjects, "Only events of this subject; may be repeated");
}

void add_webhook_create(CLI::App& noun, Run& run) {
  const auto [command, flags] =
      add_verb<WebhookCreateFlags>(noun, run, "create", "Send events to a URL from now on", create_webhook);
  command.add_option("url", flags->url, "Where to send events")->required();
  command.add_option("--description", flags->description, "What it is for");
  command.add_option("--batch", flags->batch, "Send up to this many events in one request, as a list");
  command.add_option("--from", flags->from, "Begin after this event id, or at 'oldest'; default: now");
  add_filter_flags(command, flags->filter);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

void add_webhook_update(CLI::App& noun, Run& run) {
  const auto [command, flags] = add_verb<WebhookUpdateFlags>(
      noun, run, "update", "Change a webhook; lists that are given replace the old ones", update_webhook_settings);
  command.add_option("id", flags->id, "Id of the webhook")->required();
  command.add_option("--to", flags->url, "Where to send events");
  command.add_option("--description", flags->description, "What it is for");
  command.add_option("--batch", flags->batch, "Events in one request, as a list; 0: one event, not in a list");
  add_filter_flags(command, flags->filter);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

void add_webhook_list(CLI::App& noun, Run& run) {
  const auto [command, flags] = add_verb<WebhookListFlags>(noun, run, "list", "Show webhooks", list_webhooks_of_node);
  add_page_flags(command, flags->page);
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

void add_webhook_verb(CLI::App& noun, Run& run, const std::string& name, const std::string& help,
                      int (*action)(const WebhookFlags&)) {
  WebhookFlags initial;
  initial.verb = name;
  const auto [command, flags] = add_verb(noun, run, name, help, action, std::move(initial));
  command.add_option("id", flags->id, "Id of the webhook")->required();
  if (name == "deliveries") command.add_flag("--failed", flags->failed, "Only deliveries that failed");
  if (name == "deliveries")
    command.add_option("--limit", flags->page.limit, "Most rows to show")->check(CLI::Range(1, 200));
  if (name == "dead-letters") add_page_flags(command, flags->page);
  if (name == "replay") command.add_option("--seq", flags->seqs, "Only this event; may be repeated");
  add_api_flags(command, flags->api);
  add_json_flag(command, flags->json);
}

}  // namespace

std::string webhook_details(const json::value& webhook, std::size_t width) {
  FactList facts;
  facts.add("id", text_at(webhook, "id"));
  facts.add("url", text_at(webhook, "url"));
  facts.add("description", text_at(webhook, "description"));
  facts.add("state", text_at(webhook, "state"));
  facts.add("reason", text_at(webhook, "disabledReason"));
  for (const auto* list : {"types", "chains", "signers", "contracts", "guilds", "subjects"}) {
    std::string joined;
    if (const auto* values = find_at(webhook, list); values != nullptr && values->is_array()) {
      for (const auto& value : values->get_array()) {
        if (value.is_string()) joined += (joined.empty() ? "" : ", ") + std::string(value.get_string());
      }
    }
    facts.add(list, joined);
  }
  facts.add("batch", text_at(webhook, "batch") == "0" ? "" : text_at(webhook, "batch"));
  facts.add("position", text_at(webhook, "position"));
  facts.add("waiting", text_at(webhook, "waiting"));
  facts.add("dead letters", text_at(webhook, "deadLetters"));
  facts.add("failing since", when_utc(webhook, "failingSince"));
  facts.add("last error", text_at(webhook, "lastError"));
  facts.add("created", when_utc(webhook, "createdAt"));
  facts.add("secret", text_at(webhook, "secret"));
  return facts.text(width);
}

std::string webhook_table(const json::array& webhooks, std::size_t width) {
  TextTable table({"ID", "STATE", {"URL", 1, 20}, {"WAITING", 3}, {"DEAD", 2}, {"LAST ERROR", 4, 16}});
  for (const auto& webhook : webhooks) {
    table.add({text_at(webhook, "id"), text_at(webhook, "state"), shortened(text_at(webhook, "url"), 60),
               text_at(webhook, "waiting"), text_at(webhook, "deadLetters"),
               shortened(text_at(webhook, "lastError"), 60)});
  }
  return table.text(width);
}

std::string delivery_table(const json::array& deliveries, std::size_t width) {
  TextTable table(
      {"AT (UTC)", {"EVENT", 4}, {"TYPE", 3}, {"EVENTS", 7}, {"TRY", 5}, "STATUS", {"MS", 6}, {"ERROR", 1, 16}});
  for (const auto& delivery : deliveries) {
    table.add({when(delivery, "at", kToMilliseconds), text_at(delivery, "seq"), text_at(delivery, "type"),
               text_at(delivery, "events"), text_at(delivery, "attempt"), text_at(delivery, "status"),
               text_at(delivery, "latencyMs"), shortened(text_at(delivery, "error"), 60)});
  }
  return table.text(width);
}

std::string dead_letter_table(const json::array& letters, std::size_t width) {
  TextTable table({"EVENT",
                   {"TYPE", 1},
                   {"SUBJECT", 3, 12},
                   {"SINCE (UTC)", 2},
                   {"TRIES", 5},
                   {"STATUS", 4},
                   {"LAST ERROR", 0, 16}});
  for (const auto& letter : letters) {
    table.add({text_at(letter, "seq"), text_at(letter, "type"), text_at(letter, "subject"), when(letter, "parkedAt"),
               text_at(letter, "attempts"), text_at(letter, "lastStatus"),
               shortened(text_at(letter, "lastError"), 60)});
  }
  return table.text(width);
}

void add_webhook(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  add_webhook_create(noun, run);
  add_webhook_list(noun, run);
  add_webhook_verb(noun, run, "show", "Show a webhook", show_webhook);
  add_webhook_update(noun, run);
  add_webhook_verb(noun, run, "pause", "Stop sending; events are kept for later", pause_webhook);
  add_webhook_verb(noun, run, "resume", "Send again, also after it was disabled", pause_webhook);
  add_webhook_verb(noun, run, "delete", "Remove a webhook with everything that waits for it", delete_webhook);
  add_webhook_verb(noun, run, "test", "Send a test event now", act_on_webhook);
  add_webhook_verb(noun, run, "rotate-secret", "Replace the secret; the old one stays valid for a day", act_on_webhook);
  add_webhook_verb(noun, run, "deliveries", "Show the newest deliveries", list_of_webhook);
  add_webhook_verb(noun, run, "dead-letters", "Show events that were given up", list_of_webhook);
  add_webhook_verb(noun, run, "replay", "Deliver dead letters again", act_on_webhook);
}

}  // namespace fencepost::cli
