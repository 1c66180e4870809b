// The settings of the delivery to NATS JetStream (docs/nats.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/secret.hpp"

namespace fencepost::outbox {

struct NatsOptions {
  std::vector<Secret> urls;  // empty: no delivery to NATS. Secret, because URLs may carry credentials
  std::string credentials_path;
  std::string tls_ca_path;
  std::string tls_certificate_path;
  std::string tls_key_path;
  std::string name = "default";  // the durable consumer is "nats/<name>"
  std::string stream = "FENCEPOST";
  std::string subject_prefix = "fencepost";
  // Of a stream that Fencepost creates. An existing stream is never changed.
  std::chrono::milliseconds max_age = std::chrono::days{7};  // 0: no limit
  std::int64_t replicas = 1;
  std::chrono::milliseconds timeout =
      std::chrono::seconds{5};  // for each server's connect, request and acknowledgement

  bool configured() const { return !urls.empty(); }
};

}  // namespace fencepost::outbox
