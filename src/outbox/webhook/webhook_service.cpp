#include "outbox/webhook/webhook_service.hpp"

#include <fmt/format.h>

#include "base/id_text.hpp"
#include "http/errors.hpp"
#include "http/request_reader.hpp"
#include "outbox/webhook/address_rules.hpp"
#include "outbox/webhook/signature.hpp"
#include "outbox/webhook/webhook_store.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDescription = 200;  // characters
constexpr std::size_t kListPage = 200;

Error no_such_webhook() {
  return not_found("no_such_webhook", "there is no such webhook, or the key may not see its events");
}

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// The members that create and change have in common. Absent members leave the webhook as it is.
void read_settings(const EventCatalog& catalog, const JsonReader& in, Webhook& webhook) {
  if (in.field("url").present()) webhook.url = in.field("url").string(kWebhookMaxUrlBytes);
  if (in.field("description").present()) {
    webhook.description = http::read_text(in.field("description"), kMaxDescription);
  }
  if (in.field("batch").present()) webhook.batch = in.field("batch").uint64(0, kWebhookMaxBatch);
  // A list that is given replaces the old one; the others stay.
  auto members = to_json(webhook.filter);
  for (const auto& member : event_filter_members(catalog)) {
    if (in.field(member).present()) members[member] = in.field(member).value();
  }
  const json::value merged(std::move(members));
  webhook.filter = read_event_filter(catalog, JsonReader(merged));
}

// After which event a new webhook begins.
Result<std::int64_t> read_start(const JsonReader& in, std::int64_t newest) {
  const auto from = in.field("from").optional_string(20).value_or("now");
  if (from == "now") return newest;
  if (from == "oldest") return 0;
  const auto seq = http::detail::parse_parameter<std::int64_t>(from);
  if (!seq || *seq < 0) in.field("from").reject("bad_request", "expected \"now\", \"oldest\" or the id of an event");
  if (*seq > newest) {
    return fail(invalid("unknown_event_id", "from is beyond the newest event").with("newest", std::to_string(newest)));
  }
  return *seq;
}

}  // namespace

awaitable<Result<void>> WebhookService::check_target(std::string url) {
  auto host = check_webhook_url(url, parts_.options);
  if (!host) co_return fail(host.error());
  co_return co_await check_webhook_host(std::move(*host), parts_.options);
}

awaitable<Result<CreatedWebhook>> WebhookService::create(http::Principal caller, json::value body) {
  const auto& catalog = parts_.feed.catalog();
  const JsonReader in(body);
  auto known = event_filter_members(catalog);
  for (const auto* member : {"url", "description", "batch", "from"}) known.emplace_back(member);
  in.reject_unknown(views(known));
  Webhook webhook{.id = parts_.ids.next(), .url = in.field("url").string(kWebhookMaxUrlBytes)};
  webhook.reader = event_reader(catalog, caller);
  read_settings(catalog, in, webhook);
  const EventVisibility visibility(catalog, webhook.reader);
  if (auto allowed = visibility.check(catalog, webhook.filter); !allowed) co_return fail(allowed.error());
  const auto position = read_start(in, parts_.feed.newest());
  if (!position) co_return fail(position.error());
  if (auto allowed = co_await check_target(webhook.url); !allowed) co_return fail(allowed.error());

  const auto key = make_webhook_key(parts_.random);
  if (!co_await insert_webhook(pool(), webhook, key, *position, parts_.options.limit)) {
    co_return fail(conflict("too_many_webhooks", fmt::format("there are {} webhooks already, as many as webhooks.limit "
                                                             "allows",
                                                             parts_.options.limit)));
  }
  auto stored = co_await find_webhook(pool(), catalog, webhook.id);
  if (!stored) co_return fail(no_such_webhook());  // removed in the same moment
  co_return CreatedWebhook{std::move(*stored), webhook_secret_text(key)};
}

awaitable<Result<Webhook>> WebhookService::get(http::Principal caller, Uuid id) {
  auto webhook = co_await find_webhook(pool(), parts_.feed.catalog(), id);
  if (!webhook || !covers(parts_.feed.catalog(), caller, webhook->reader)) co_return fail(no_such_webhook());
  co_return std::move(*webhook);
}

awaitable<std::vector<Webhook>> WebhookService::list(http::Principal caller, std::optional<Uuid> after,
                                                     std::size_t limit) {
  std::vector<Webhook> out;
  for (;;) {  // ends: there are at most `webhooks.limit` of them
    auto page = co_await list_webhooks(pool(), parts_.feed.catalog(), after, kListPage);
    const bool last = page.size() < kListPage;
    if (!page.empty()) after = page.back().id;
    for (auto& webhook : page) {
      if (out.size() <= limit && covers(parts_.feed.catalog(), caller, webhook.reader))
        out.push_back(std::move(webhook));
    }
    if (last || out.size() > limit) co_return out;
  }
}

awaitable<Result<Webhook>> WebhookService::change(http::Principal caller, Uuid id, json::value body) {
  const auto& catalog = parts_.feed.catalog();
  const JsonReader in(body);
  auto known = event_filter_members(catalog);
  for (const auto* member : {"url", "description", "batch", "paused"}) known.emplace_back(member);
  in.reject_unknown(views(known));
  const auto read_change = [&](Webhook& webhook) {
    read_settings(catalog, in, webhook);
    if (!in.field("paused").present()) return;
    webhook.state = in.field("paused").boolean() ? WebhookState::kPaused : WebhookState::kActive;
    webhook.disabled_reason.reset();
  };
  Webhook unused;
  read_change(unused);  // a malformed request is refused as such, whether or not there is such a webhook
  auto found = co_await get(caller, id);
  if (!found) co_return fail(found.error());
  auto webhook = *found;
  read_change(webhook);
  // The webhook's own rights decide, which are within the caller's: a change never shows more events.
  const EventVisibility visibility(catalog, webhook.reader);
  if (auto allowed = visibility.check(catalog, webhook.filter); !allowed) co_return fail(allowed.error());
  if (webhook.url != found->url) {
    if (auto allowed = co_await check_target(webhook.url); !allowed) co_return fail(allowed.error());
  }
  if (!co_await update_webhook(pool(), webhook)) {
    co_return fail(conflict("webhook_changed", "another request changed the webhook meanwhile; read it and try again"));
  }
  co_return co_await get(caller, id);
}

awaitable<Result<void>> WebhookService::remove(http::Principal caller, Uuid id) {
  if (auto found = co_await get(std::move(caller), id); !found) co_return fail(found.error());
  if (!co_await remove_webhook(pool(), id)) co_return fail(no_such_webhook());
  co_return Result<void>();
}

awaitable<Result<RotatedSecret>> WebhookService::rotate_secret(http::Principal caller, Uuid id) {
  if (auto found = co_await get(std::move(caller), id); !found) co_return fail(found.error());
  const auto key = make_webhook_key(parts_.random);
  const auto until = co_await rotate_webhook_key(pool(), id, key, parts_.options.secret_overlap);
  if (!until) co_return fail(no_such_webhook());
  co_return RotatedSecret{webhook_secret_text(key), *until};
}

awaitable<Result<Outcome>> WebhookService::test(http::Principal caller, Uuid id) {
  const auto found = co_await get(std::move(caller), id);
  if (!found) co_return fail(found.error());
  auto keys = co_await webhook_keys(pool(), id);
  const auto home = co_await this_executor();
  const auto at = parts_.clock.now();
  const auto sender = std::make_shared<WebhookSender>(home, found->url, std::move(keys), parts_.options, parts_.clock);
  auto envelope = webhook_test_envelope(id, at);
  const bool list = found->batch > 0;
  if (list) envelope = fmt::format("[{}]", envelope);
  auto message = fmt::format("{}_test-{}", id.to_string(), at.time_since_epoch().count());
  co_return co_await sender->send(std::move(message), std::move(envelope), list);
}

awaitable<Result<std::int64_t>> WebhookService::replay(http::Principal caller, Uuid id,
                                                       std::vector<std::int64_t> seqs) {
  if (auto found = co_await get(std::move(caller), id); !found) co_return fail(found.error());
  co_return co_await replay_dead_letters(pool(), id, std::move(seqs), parts_.options.backlog);
}

}  // namespace fencepost::outbox
