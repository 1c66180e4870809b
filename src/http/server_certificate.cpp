#include "http/server_certificate.hpp"

#include <ctime>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "runtime/log.hpp"

namespace fencepost::http {
namespace {

using Context = asio::ssl::context;

// Changes when a file is written, replaced, given other permissions, or reached through another symbolic link.
std::string state_of(const std::string& path) {
  struct stat at{};
  if (::stat(path.c_str(), &at) != 0) return "absent";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", at.st_dev, at.st_ino, at.st_size, at.st_mtim.tv_sec, at.st_mtim.tv_nsec,
                     at.st_ctim.tv_sec, at.st_ctim.tv_nsec);
}

std::string state_of(const CertificateFiles& files) {
  return state_of(files.certificate_path) + " " + state_of(files.key_path);
}

Error cannot_use(std::string_view what, const std::string& path, const boost::system::error_code& why) {
  return invalid("bad_certificate", fmt::format("cannot use {} as the server's {}: {}", path, what, why.message()));
}

Result<std::shared_ptr<Context>> read(const CertificateFiles& files) {
  auto context = std::make_shared<Context>(Context::tls_server);
  context->set_options(Context::default_workarounds | Context::no_tlsv1 | Context::no_tlsv1_1);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION);
  // Without it OpenSSL asks for the key's password at the terminal.
  context->set_password_callback([](std::size_t, Context::password_purpose) { return std::string(); });
  boost::system::error_code ec;
  context->use_certificate_chain_file(files.certificate_path, ec);
  if (ec) return fail(cannot_use("certificate", files.certificate_path, ec));
  context->use_private_key_file(files.key_path, Context::pem, ec);
  if (ec) return fail(cannot_use("key", files.key_path, ec));
  // OpenSSL has a place for each type of key, so a key of another type is taken beside the certificate.
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    ERR_clear_error();
    return fail(invalid("bad_certificate", fmt::format("cannot use {} as the server's key: it does not belong to {}",
                                                       files.key_path, files.certificate_path)));
  }
  return context;
}

std::time_t expiry_of(Context& context) {
  std::tm parts{};
  const auto* const certificate = SSL_CTX_get0_certificate(context.native_handle());
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) != 1) return 0;
  return ::timegm(&parts);
}

constexpr auto kReloads = "http_tls_loads_total";
constexpr auto kReloadsHelp = "Times that the server's certificate was loaded, by result";

}  // namespace

CertificateMetrics::CertificateMetrics(Metrics& metrics)
    : expiry(metrics.gauge("http_tls_certificate_expiry_timestamp_seconds",
                           "When the server's certificate expires, in Unix time; 0 without TLS")),
      loaded_total(metrics.counter(kReloads, kReloadsHelp, {{"result", "ok"}})),
      failed_total(metrics.counter(kReloads, kReloadsHelp, {{"result", "failed"}})) {}

ServerCertificate::ServerCertificate(Executor executor, CertificateFiles files, Metrics& metrics,
                                     std::chrono::milliseconds check_interval)
    : files_(std::move(files)),
      metrics_(metrics),
      watch_(executor, {.name = "http_certificate", .interval = check_interval}, [this] { return look(); }, metrics) {}

Result<void> ServerCertificate::load() {
  seen_ = state_of(files_);  // before reading: a file that changes meanwhile is read again
  auto context = read(files_);
  if (!context) {
    metrics_.failed_total.Increment();
    return fail(std::move(context).error());
  }
  metrics_.loaded_total.Increment();
  metrics_.expiry.Set(static_cast<double>(expiry_of(**context)));
  const std::lock_guard lock(mutex_);
  context_ = std::move(*context);
  return {};
}

std::shared_ptr<Context> ServerCertificate::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

awaitable<Worker::Next> ServerCertificate::look() {
  if (state_of(files_) == seen_) co_return Worker::Next::kRest;
  if (const auto loaded = load(); !loaded) {
    log::error("the server's new certificate cannot be used; connections get the old one", loaded.error());
  } else {
    log::info("the server's certificate was loaded again", {{"file", files_.certificate_path}});
  }
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::http
