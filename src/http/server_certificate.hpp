// The certificate with which the server speaks TLS: two PEM files, read again when they change.
//
// New connections use the newest certificate that could be loaded; open ones keep theirs. Files that do not fit (a
// certificate that was replaced before its key) are reported once and read again when they change again.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "base/error.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::http {

struct CertificateFiles {
  std::string certificate_path;  // the server's certificate, then those of its authorities up to the root
  std::string key_path;          // without a password
};

// Exists without a certificate, too, so that the metrics are there on every node.
class CertificateMetrics {
 public:
  explicit CertificateMetrics(Metrics& metrics);

  Metrics::Gauge& expiry;
  Metrics::Counter& loaded_total;
  Metrics::Counter& failed_total;
};

class ServerCertificate {
 public:
  ServerCertificate(Executor executor, CertificateFiles files, Metrics& metrics,
                    std::chrono::milliseconds check_interval = std::chrono::seconds(5));

  // Before anything is served. Errors: `bad_certificate`.
  Result<void> load();
  // Looks for changed files from now on. On the executor's thread.
  void start() { watch_.start(); }
  awaitable<> stop() { return watch_.stop(); }

  // For the next connection. Requires: `load` has succeeded. Any thread may call.
  std::shared_ptr<asio::ssl::context> context() const;

 private:
  awaitable<Worker::Next> look();

  CertificateFiles files_;
  CertificateMetrics metrics_;
  std::string seen_;  // which files were tried last
  mutable std::mutex mutex_;
  std::shared_ptr<asio::ssl::context> context_;  // guarded by mutex_
  Worker watch_;
};

}  // namespace fencepost::http
