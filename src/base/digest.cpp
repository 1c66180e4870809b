#include "base/digest.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/error.hpp"
#include "base/hex.hpp"

namespace fencepost {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

void require(bool worked) {
  if (!worked) throw Exception(internal("digest_failed", "OpenSSL could not compute a digest"));
}

// Looked up once: with EVP_sha256() OpenSSL 3 looks for an implementation in each call, which costs more than a short
// digest itself.
const EVP_MD* sha256_method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  require(method != nullptr);
  return method;
}

}  // namespace

Digest256 sha256(std::string_view data) {
  Digest256 out;
  unsigned int size = 0;
  require(EVP_Digest(data.data(), data.size(), out.data(), &size, sha256_method(), nullptr) == 1 && size == out.size());
  return out;
}

Digest256 hmac_sha256(std::string_view key, std::string_view data) {
  Digest256 out;
  unsigned int size = 0;
  require(key.size() <= 0x7fffffff);
  // OpenSSL takes a null pointer to mean "the previous key", so an empty key needs a pointer that is not null.
  const void* key_bytes = key.empty() ? "" : key.data();
  require(HMAC(sha256_method(), key_bytes, static_cast<int>(key.size()), bytes_of(data), data.size(), out.data(),
               &size) != nullptr &&
          size == out.size());
  return out;
}

std::string sha256_hex(std::string_view data) {
  return to_hex(sha256(data));
}

std::string hmac_sha256_hex(std::string_view key, std::string_view data) {
  return to_hex(hmac_sha256(key, data));
}

}  // namespace fencepost
