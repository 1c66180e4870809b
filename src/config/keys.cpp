#include "config/keys.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "config/key_builder.hpp"

namespace fencepost::config {
namespace {

constexpr Choice<ListenMode, 2> kListenMode{
    {{{"enabled", ListenMode::kEnabled}, {"poll_only", ListenMode::kPollOnly}}}};
constexpr Choice<log::Level, 5> kLogLevel{{{{"debug", log::Level::kDebug},
                                            {"info", log::Level::kInfo},
                                            {"warn", log::Level::kWarn},
                                            {"error", log::Level::kError},
                                            {"off", log::Level::kOff}}}};
constexpr Choice<log::Format, 2> kLogFormat{{{{"text", log::Format::kText}, {"json", log::Format::kJson}}}};
constexpr Url kHttpUrl{"http", "https"};

std::vector<Key> node_keys() {
  return {
      key("dev", at(&Config::dev), Boolean{}, "Allow plain private keys in the configuration: for development only."),

      key("node.name", at(&Config::node, &NodeConfig::name), Text{64},
          "Name of this node in leases, logs and the cluster list; the host's name if not set."),
      key("node.advertise_url", at(&Config::node, &NodeConfig::advertise_url), kHttpUrl,
          "Where other nodes reach this one, to forward requests to the leader of a signer."),

      key("database.dsn", at(&Config::database, &DatabaseConfig::dsn), SecretText{},
          "PostgreSQL connection URI or keyword string, as libpq takes it; several hosts are fine."),
      key("database.connect_timeout", at(&Config::database, &DatabaseConfig::connect_timeout), Duration{},
          "How long to wait for a connection to be made, for each host and in whole seconds, at least two."),
      key("database.statement_timeout", at(&Config::database, &DatabaseConfig::statement_timeout), Duration{},
          "How long the server may work on one statement."),
      key("database.shared_connections", at(&Config::database, &DatabaseConfig::shared_connections), Count{1, 64},
          "Pipelined connections for short statements, per event loop."),
      key("database.pool_size", at(&Config::database, &DatabaseConfig::pool_size), Count{1, 1000},
          "Exclusive connections for transactions, per event loop."),
      key("database.queue_limit", at(&Config::database, &DatabaseConfig::queue_limit), Count{1, 1'000'000},
          "How many requests may wait for a connection; further ones are refused with 503."),
      key("database.acquire_timeout", at(&Config::database, &DatabaseConfig::acquire_timeout), Duration{},
          "How long a request may wait for a connection."),
      key("database.listen", at(&Config::database, &DatabaseConfig::listen), kListenMode,
          "Use LISTEN to learn of work at once, or only poll (for a database behind a transaction pooler)."),

      key("http.host", at(&Config::http, &HttpConfig::host), Text{255}, "Address to listen on; 0.0.0.0 or :: for all."),
      key("http.port", at(&Config::http, &HttpConfig::port), Number<std::uint16_t>{0, 65535},
          "Port to listen on; 0 takes any free one."),
      key("http.public_url", at(&Config::http, &HttpConfig::public_url), kHttpUrl,
          "Where people reach this server: logins must name it, and sessions change things only for its pages. Where "
          "the "
          "server listens if not set."),
      key("http.max_header_bytes", at(&Config::http, &HttpConfig::max_header_bytes), Count{1024, 1 << 20},
          "Longest request line and headers; more is 431."),
      key("http.max_body_bytes", at(&Config::http, &HttpConfig::max_body_bytes), Count{1024, 1 << 30},
          "Longest request body; more is 413."),
      key("http.max_connections", at(&Config::http, &HttpConfig::max_connections), Count{1, 1'000'000},
          "Connections open at once."),
      key("http.idle_timeout", at(&Config::http, &HttpConfig::idle_timeout), Duration{},
          "How long a connection may wait for its next request."),
      key("http.read_timeout", at(&Config::http, &HttpConfig::read_timeout), Duration{},
          "How long a client may take to send one request."),
      key("http.write_timeout", at(&Config::http, &HttpConfig::write_timeout), Duration{},
          "How long a client may take to receive each 64 KiB of a response."),
      key("http.rate_limit_per_second", at(&Config::http, &HttpConfig::rate_limit_per_second), Uint32{1, 1'000'000'000},
          "Requests per second an API key may make."),
      key("http.rate_limit_burst", at(&Config::http, &HttpConfig::rate_limit_burst), Uint32{1, 1'000'000'000},
          "Requests an API key may make at once after a pause."),
      key("http.tls_certificate_path", at(&Config::http, &HttpConfig::tls_certificate_path), Text{4096},
          "Certificate of the server in PEM, with those of its authorities after it. Turns TLS on; read again when it "
          "changes."),
      key("http.tls_key_path", at(&Config::http, &HttpConfig::tls_key_path), Text{4096},
          "Key of that certificate in PEM, without a password."),

      key("metrics.listen", at(&Config::metrics, &MetricsConfig::listen), Optional(ListenAt{}),
          "Serve /metrics at this address only, and not beside the API; in both cases under TLS if the API is."),
      key("metrics.require_key", at(&Config::metrics, &MetricsConfig::require_key), Boolean{},
          "Serve /metrics only to API keys with the scope metrics:read."),

      key("runtime.threads", at(&Config::runtime, &RuntimeConfig::threads), Count{0, 1024},
          "Event loops; 0 makes one per core."),
      key("runtime.cpu_threads", at(&Config::runtime, &RuntimeConfig::cpu_threads), Count{1, 1024},
          "Threads for signing and other heavy work."),
      key("runtime.stop_timeout", at(&Config::runtime, &RuntimeConfig::stop_timeout), Duration{},
          "How long an orderly stop may take; remaining work is then aborted."),

      key("log.level", at(&Config::log, &LogConfig::level), kLogLevel, "The lowest level of the lines to write."),
      key("log.format", at(&Config::log, &LogConfig::format), kLogFormat, "Lines for people or for machines."),
      key("log.file", at(&Config::log, &LogConfig::file), Text{4096}, "File to append to; standard error if not set."),

      key("events.retention", at(&Config::events, &EventsConfig::retention),
          Duration{std::chrono::days(1), std::chrono::days(10'000)},
          "How long to keep history and events. Whole months are removed, so rows stay up to a month longer."),
  };
}

std::vector<Key> login_keys() {
  using identity::LoginOptions;
  return {
      key("auth.nonce_ttl", at(&Config::login, &LoginOptions::nonce_ttl),
          Duration{std::chrono::seconds(1), std::chrono::hours(24)}, "How long the nonce of a login may be used."),
      key("auth.session_idle", at(&Config::login, &LoginOptions::session_idle),
          Duration{std::chrono::minutes(5), std::chrono::days(365)},
          "A session that is not used for so long ends. Uses are noted to the minute."),
      key("auth.session_lifetime", at(&Config::login, &LoginOptions::session_lifetime),
          Duration{std::chrono::minutes(5), std::chrono::days(365)}, "A session ends after so long in any case."),
  };
}

std::vector<Key> webhook_keys() {
  using outbox::WebhookOptions;
  return {
      key("webhooks.allow_private", at(&Config::webhooks, &WebhookOptions::allow_private), Boolean{},
          "Let webhooks send to private, loopback and link-local addresses and to any port; `up` sets it."),
      key("webhooks.allow_http", at(&Config::webhooks, &WebhookOptions::allow_http), Boolean{},
          "Let webhooks have URLs without TLS; `up` sets it."),
      key("webhooks.timeout", at(&Config::webhooks, &WebhookOptions::timeout),
          Duration{std::chrono::milliseconds(10), std::chrono::minutes(1)}, "How long a receiver may take to answer."),
      key("webhooks.retry_initial", at(&Config::webhooks, &WebhookOptions::retry_initial),
          Duration{std::chrono::milliseconds(1), std::chrono::hours(1)},
          "How long to wait after the first failed delivery of an event; twice as long after each further one."),
      key("webhooks.retry_cap", at(&Config::webhooks, &WebhookOptions::retry_cap),
          Duration{std::chrono::milliseconds(1), std::chrono::days(1)}, "The longest wait between two tries."),
      key("webhooks.retry_for", at(&Config::webhooks, &WebhookOptions::retry_for),
          Duration{std::chrono::milliseconds(1), std::chrono::days(30)},
          "How long to retry an event before it becomes a dead letter."),
      key("webhooks.secret_overlap", at(&Config::webhooks, &WebhookOptions::secret_overlap),
          Duration{std::chrono::milliseconds(1), std::chrono::days(30)},
          "How long a replaced secret still signs beside the new one."),
      key("webhooks.connections", at(&Config::webhooks, &WebhookOptions::connections), Count{1, 256},
          "Requests in flight to the receiver of one webhook."),
      key("webhooks.backlog", at(&Config::webhooks, &WebhookOptions::backlog), Count{1, 100'000},
          "Events of one webhook that may wait for a retry; at that number no further events are taken."),
      key("webhooks.limit", at(&Config::webhooks, &WebhookOptions::limit), Count{1, 10'000},
          "How many webhooks there may be."),
  };
}

std::vector<Key> transfer_keys() {
  using transfer::TransferOptions;
  return {
      key("transfer.event_pool_enabled", at(&Config::transfer, &TransferOptions::event_pool_enabled), Boolean{},
          "Transfers that name no mode go to the pool; otherwise they are carried out at once. Also "
          "TRANSFER_EVENT_POOL_ENABLED."),
      key("transfer.batch", at(&Config::transfer, &TransferOptions::batch), Count{1, 10'000},
          "Most transfers in one transaction."),
      key("transfer.lanes", at(&Config::transfer, &TransferOptions::lanes), Count{1, 64},
          "How many transactions with transfers a node runs at the same time, in each mode. More than one helps if the "
          "database has idle processors while many wait."),
      key("transfer.sweep_interval", at(&Config::transfer, &TransferOptions::sweep_interval),
          Duration{std::chrono::milliseconds(10), std::chrono::hours(1)},
          "How often to look for due transfers without a notification."),
      key("transfer.expiry_interval", at(&Config::transfer, &TransferOptions::expiry_interval),
          Duration{std::chrono::milliseconds(10), std::chrono::hours(1)},
          "How often to reject transfers that have waited too long."),
      key("transfer.audit_interval", at(&Config::transfer, &TransferOptions::audit_interval),
          Duration{std::chrono::milliseconds(0), std::chrono::days(30)},
          "How often to prove that no money was created or lost, which reads every transfer; 0 means never."),
  };
}

std::vector<Key> make_keys() {
  auto out = node_keys();
  for (auto* more : {login_keys, webhook_keys, nats_keys, tx_keys, transfer_keys, email_keys}) {
    std::ranges::move(more(), std::back_inserter(out));
  }
  return out;
}

}  // namespace

const std::vector<Key>& keys() {
  static const auto table = make_keys();
  return table;
}

const std::vector<ListSection>& list_sections() {
  static const std::vector<ListSection> table{
      {.path = "chains",
       .max_size = 64,
       .size = [](const Config& config) { return config.chains.size(); },
       .resize =
           [](Config& config, std::size_t size) {
             ChainConfig chain;
             chain.tuning = config.chain_defaults;
             config.chains.resize(size, chain);
           },
       .keys = chain_keys},
      {.path = "signers",
       .max_size = 1000,
       .size = [](const Config& config) { return config.signers.size(); },
       .resize = [](Config& config, std::size_t size) { config.signers.resize(size); },
       .keys = signer_keys},
  };
  return table;
}

std::string environment_name(std::string_view path) {
  std::string out(kEnvironmentPrefix);
  for (const char c : path) {
    if (c == ']') continue;
    out += c == '.' || c == '[' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace fencepost::config
