// Keys of the delivery to NATS JetStream.
#include "config/key_builder.hpp"

namespace fencepost::config {

std::vector<Key> nats_keys() {
  using outbox::NatsOptions;
  const auto nats = [](auto member) { return at(&Config::nats, member); };
  return {
      key("nats.url", nats(&NatsOptions::urls), SecretUrls{"nats", "tls"},
          "Servers of one NATS cluster, such as nats://10.0.0.7:4222; events go to no broker if not set."),
      key("nats.credentials_path", nats(&NatsOptions::credentials_path), Text{4096},
          "File with the user's JWT and seed, as nsc writes it."),
      key("nats.tls_ca_path", nats(&NatsOptions::tls_ca_path), Text{4096},
          "Authorities that sign the servers' certificates, in PEM; the system's if not set. Turns TLS on."),
      key("nats.tls_certificate_path", nats(&NatsOptions::tls_certificate_path), Text{4096},
          "Client certificate in PEM, for servers that ask for one. Turns TLS on."),
      key("nats.tls_key_path", nats(&NatsOptions::tls_key_path), Text{4096}, "Key of the client certificate, in PEM."),
      key("nats.name", nats(&NatsOptions::name), Name{64},
          "Name of the position in the log: a new name starts at the newest event."),
      key("nats.stream", nats(&NatsOptions::stream), Name{64},
          "Stream that takes the events; created if it is missing. One stream for each Fencepost cluster."),
      key("nats.subject_prefix", nats(&NatsOptions::subject_prefix), Name{.max_bytes = 128, .dotted = true},
          "How subjects begin: <prefix>.<domain>.<type>."),
      key("nats.max_age", nats(&NatsOptions::max_age),
          Duration{std::chrono::milliseconds(0), std::chrono::days(10'000)},
          "How long a stream that Fencepost creates keeps events; 0 means no limit."),
      key("nats.replicas", nats(&NatsOptions::replicas), Number<std::int64_t>{1, 5},
          "Copies of a stream that Fencepost creates; 3 survive the loss of a server."),
      key("nats.timeout", nats(&NatsOptions::timeout),
          Duration{std::chrono::milliseconds(100), std::chrono::minutes(1)},
          "How long a server may take to accept a connection, to answer, or to acknowledge."),
  };
}

}  // namespace fencepost::config
