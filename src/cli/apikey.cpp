// `fencepost apikey …`: manages API keys directly in the database.
#include <algorithm>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/clock.hpp"
#include "base/duration_text.hpp"
#include "base/random.hpp"
#include "base/uuid.hpp"
#include "evm/address.hpp"
#include "identity/api_key_store.hpp"
#include "identity/scopes.hpp"
#include "node/database_session.hpp"
#include "pg/time.hpp"

#include "cli/api_command.hpp"
#include "cli/database.hpp"
#include "cli/exit_code.hpp"
#include "cli/program_name.hpp"
#include "cli/text_table.hpp"
#include "cli/verb.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using identity::ApiKey;
using identity::ApiKeyStore;

struct KeyCreateFlags {
  ConfigFlags config;
  std::string label;
  std::vector<std::string> scopes;
  std::vector<std::string> signers;    // empty: every signer
  std::vector<std::string> guilds;     // empty: every guild
  std::vector<std::string> contracts;  // empty: every contract
  std::string expires_in;              // "30d"; empty: never
  bool json = false;
};

struct KeyListFlags {
  ConfigFlags config;
  bool json = false;
};

struct KeyRevokeFlags {
  ConfigFlags config;
  std::string key_id;
  bool json = false;
};

std::optional<std::vector<std::string>> unless_empty(const std::vector<std::string>& list) {
  return list.empty() ? std::nullopt : std::optional(list);
}

// Addresses in the form in which they are stored.
Result<std::vector<std::string>> stored_addresses(const std::vector<std::string>& written) {
  std::vector<std::string> out;
  for (const auto& text : written) {
    auto address = evm::parse_address(text);
    if (!address) return fail(address.error());
    out.push_back(std::move(*address));
  }
  return out;
}

std::string time_or(const std::optional<TimePoint>& time, std::string_view otherwise) {
  return time ? pg::format_timestamp(*time).substr(0, 16) : std::string(otherwise);
}

json::value time_json(const std::optional<TimePoint>& time) {
  return time ? json::value(to_rfc3339(*time)) : json::value(nullptr);
}

json::value list_json(const std::optional<std::vector<std::string>>& list) {
  return list ? json::value(json::array(list->begin(), list->end())) : json::value(nullptr);
}

json::object key_json(const ApiKey& key) {
  return {{"keyId", key.key_id.to_string()},        {"label", key.label},
          {"scopes", list_json(key.scopes)},        {"signers", list_json(key.signers)},
          {"guilds", list_json(key.guilds)},        {"contracts", list_json(key.contracts)},
          {"createdAt", time_json(key.created_at)}, {"expiresAt", time_json(key.expires_at)},
          {"revokedAt", time_json(key.revoked_at)}, {"lastUsedAt", time_json(key.last_used_at)}};
}

std::string status_of(const ApiKey& key, TimePoint now) {
  if (key.revoked_at) return "revoked";
  if (key.expires_at && *key.expires_at <= now) return "expired";
  return "active";
}

// "signers 0xf39fd6e5…2266; guilds 7, 8"; a long list is cut, and whole in --json.
std::string limits_of(const ApiKey& key) {
  constexpr std::size_t kMostNamed = 3;
  std::string out;
  for (const auto& [name, list] :
       {std::pair{"signers", &key.signers}, {"guilds", &key.guilds}, {"contracts", &key.contracts}}) {
    if (!*list) continue;
    out += fmt::format("{}{} ", out.empty() ? "" : "; ", name);
    const auto& ids = **list;
    for (std::size_t i = 0; i < std::min(ids.size(), kMostNamed); ++i) out += (i == 0 ? "" : ", ") + short_hex(ids[i]);
    if (ids.size() > kMostNamed) out += fmt::format(" and {} more", ids.size() - kMostNamed);
  }
  return out.empty() ? "none" : out;
}

void print_keys(const std::vector<ApiKey>& keys) {
  if (keys.empty()) {
    fmt::print("no keys yet: {} apikey create --label NAME --scope SCOPE\n", program_name());
    return;
  }
  const auto now = SystemClock().now();
  TextTable table({"KEY ID",
                   "STATUS",
                   {"LABEL", 1, 9},
                   {"LAST USED (UTC)", 4},
                   {"EXPIRES (UTC)", 3},
                   {"SCOPES", 2, 8},
                   {"LIMITS", 0, 9}});  // without it, a bound key would look unrestricted
  for (const auto& key : keys) {
    table.add({key.key_id.to_string(), status_of(key, now), key.label, time_or(key.last_used_at, "never"),
               time_or(key.expires_at, "never"), fmt::format("{}", fmt::join(key.scopes, " ")), limits_of(key)});
  }
  fmt::print("{}", table.text(terminal_columns()));
}

awaitable<TimePoint> insert_key(pg::Pool& pool, const ApiKey& key) {
  ApiKeyStore store(pool);
  co_return co_await store.insert(key);
}

awaitable<std::vector<ApiKey>> list_keys_in(pg::Pool& pool) {
  ApiKeyStore store(pool);
  co_return co_await store.list();
}

awaitable<bool> revoke_key_in(pg::Pool& pool, const Uuid& id) {
  ApiKeyStore store(pool);
  co_return co_await store.revoke(id);
}

int create_key(const KeyCreateFlags& flags) {
  const auto database = need_database(flags.config);
  if (!database) return report(database.error());
  const auto signers = stored_addresses(flags.signers);
  if (!signers) return report(signers.error());
  const auto contracts = stored_addresses(flags.contracts);
  if (!contracts) return report(contracts.error());
  SystemClock clock;
  SystemRandom random;
  identity::KeyRequest request{.label = flags.label,
                               .scopes = flags.scopes,
                               .signers = unless_empty(*signers),
                               .guilds = unless_empty(flags.guilds),
                               .contracts = unless_empty(*contracts),
                               .expires_at = std::nullopt};
  if (!flags.expires_in.empty()) {
    const auto life = parse_duration(flags.expires_in);
    if (!life) return report(life.error());
    request.expires_at = clock.now() + *life;
  }
  const auto made = identity::make_key(request, UuidGenerator(clock, random).next(), random);
  if (!made) return report(made.error());
  const auto inserted = at_database(*database, [&] {
    return with_database(database->config, [&](pg::Pool& pool) { return insert_key(pool, made->key); });
  });
  if (!inserted) return report(inserted.error());
  if (flags.json) {
    auto out = key_json(made->key);
    out["createdAt"] = time_json(*inserted);
    out["key"] = made->text.reveal();
    fmt::print("{}\n", json::serialize(out));
  } else {
    fmt::print("key id  {}\nkey     {}\n\nThe key is shown only once: store it safely.\n", made->key.key_id.to_string(),
               made->text.reveal());
  }
  return kExitDone;
}

int list_keys(const KeyListFlags& flags) {
  const auto database = need_database(flags.config);
  if (!database) return report(database.error());
  const auto keys = at_database(*database, [&] { return with_database(database->config, list_keys_in); });
  if (!keys) return report(keys.error());
  if (!flags.json) {
    print_keys(*keys);
    return kExitDone;
  }
  json::array items;
  for (const auto& key : *keys) items.push_back(key_json(key));
  print_json(json_list(std::move(items)));
  return kExitDone;
}

int revoke_key(const KeyRevokeFlags& flags) {
  const auto id = Uuid::parse(flags.key_id);
  if (!id) return report(id.error());
  const auto database = need_database(flags.config);
  if (!database) return report(database.error());
  const auto revoked = at_database(*database, [&] {
    return with_database(database->config, [&](pg::Pool& pool) { return revoke_key_in(pool, *id); });
  });
  if (!revoked) return report(revoked.error());
  if (!*revoked) return report(not_found("no_such_key", "no active key has this id"));
  if (flags.json) {
    print_json(json::object{{"keyId", id->to_string()}});
  } else {
    fmt::print("revoked {}\n", flags.key_id);
  }
  return kExitDone;
}

void add_key_create(CLI::App& apikey, Run& run) {
  const auto [command, flags] =
      add_verb<KeyCreateFlags>(apikey, run, "create", "Create a key and show it once", create_key);
  add_config_flags(command, flags->config);
  command.add_option("--label", flags->label, "What the key is for")->required();
  command
      .add_option("--scope", flags->scopes,
                  fmt::format("What the key may do; may be repeated: {}", fmt::join(identity::kScopes, ", ")))
      ->required();
  command.add_option("--signer", flags->signers, "Restrict the key to this signer; may be repeated");
  command.add_option("--guild", flags->guilds, "Restrict the key to this guild; may be repeated");
  command.add_option("--contract", flags->contracts, "Restrict the key to this timelock contract; may be repeated");
  command.add_option("--expires-in", flags->expires_in, "Lifetime, such as 12h or 30d; default: never expires");
  add_json_flag(command, flags->json);
}

}  // namespace

void add_apikey(CLI::App& noun, Run& run) {
  noun.require_subcommand(1);
  add_key_create(noun, run);

  const auto list = add_verb<KeyListFlags>(noun, run, "list", "Show all keys, without their secrets", list_keys);
  add_config_flags(list.command, list.flags->config);
  add_json_flag(list.command, list.flags->json);

  const auto revoke =
      add_verb<KeyRevokeFlags>(noun, run, "revoke", "Revoke a key, immediately and permanently", revoke_key);
  add_config_flags(revoke.command, revoke.flags->config);
  revoke.command.add_option("key-id", revoke.flags->key_id, "Id of the key, as shown by list")->required();
  add_json_flag(revoke.command, revoke.flags->json);
}

}  // namespace fencepost::cli
