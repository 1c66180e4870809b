#include "base/secret.hpp"

#include <algorithm>
#include <utility>

#include <openssl/crypto.h>

namespace fencepost {

bool constant_time_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Secret::Secret(std::string_view text) : text_(std::make_unique<char[]>(text.size())), size_(text.size()) {
  std::ranges::copy(text, text_.get());
}

Secret Secret::take(std::string&& text) {
  Secret secret{std::string_view(text)};
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
  return secret;
}

Secret::Secret(Secret&& other) noexcept : text_(std::move(other.text_)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) *this = Secret(other);
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe();
    text_ = std::move(other.text_);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Secret::~Secret() {
  wipe();
}

void Secret::wipe() noexcept {
  if (text_) OPENSSL_cleanse(text_.get(), size_);
  size_ = 0;
}

}  // namespace fencepost
