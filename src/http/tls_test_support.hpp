// A self-signed certificate in a temporary folder, for tests of TLS.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost::http::testing {

class TestCertificate {
 public:
  // Valid for `dns_name` only, from now on for an hour.
  explicit TestCertificate(const std::string& dns_name, int key_type = EVP_PKEY_EC) {
    const Key key(key_type == EVP_PKEY_EC ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048));
    const Certificate certificate(X509_new());
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    auto* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(dns_name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(certificate.get(), name);
    add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    add_extension(certificate.get(), NID_subject_alt_name, "DNS:" + dns_name);
    if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) throw std::runtime_error("X509_sign failed");
    write(certificate_file(), [&](std::FILE* file) { return PEM_write_X509(file, certificate.get()); });
    write(key_file(), [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  std::string certificate_file() const { return folder_ / "cert.pem"; }
  std::string key_file() const { return folder_ / "key.pem"; }

 private:
  template <auto Free>
  struct Freer {
    template <class T>
    void operator()(T* object) const {
      Free(object);
    }
  };
  using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
  using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
  using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
  using File = std::unique_ptr<std::FILE, Freer<std::fclose>>;

  static void add_extension(X509* certificate, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    if (!extension) throw std::runtime_error("bad certificate extension " + value);
    X509_add_ext(certificate, extension.get(), -1);
  }

  template <class F>
  static void write(const std::string& path, F body) {
    const File file(std::fopen(path.c_str(), "w"));
    if (!file || body(file.get()) != 1) throw std::runtime_error("cannot write " + path);
  }

  test::TempDir folder_{"tls"};
};

}  // namespace fencepost::http::testing
