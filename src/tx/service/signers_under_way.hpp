// The signers whose transactions are between being taken for signing and the stored outcome of their broadcast. While a
// signer is under way, a query does not show what to send next for it: its claimed transactions are not due, and they
// delay the higher nonces.
//
// Pinned to one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace fencepost::tx {

class SignersUnderWay {
 public:
  // `count` transactions of the signer were taken, up to this nonce.
  void begin(const std::string& signer, std::size_t count, std::int64_t nonce);
  bool contains(const std::string& signer) const { return signers_.contains(signer); }

  // A transaction of the signer was not accepted: those behind it must not be sent. Lasts until nothing of the signer
  // is under way.
  void hold(const std::string& signer);
  bool held(const std::string& signer) const;

  // The signer must be looked up as soon as nothing of it is under way.
  void look_later(const std::string& signer);

  // The signer's next transaction must be looked up, because it is held, or a look was requested.
  bool draining(const std::string& signer) const;

  // `count` transactions are done. True: they were the last ones, and the signer must be looked up now.
  // Requires: they have begun.
  [[nodiscard]] bool end(const std::string& signer, std::size_t count);

  using Nonces = std::unordered_map<std::string, std::int64_t>;  // by signer
  // The highest nonce of each signer that is under way.
  Nonces highest() const;

 private:
  struct Signer {
    std::size_t count = 0;
    std::int64_t highest = 0;
    bool held = false;
    bool look = false;
  };

  std::unordered_map<std::string, Signer> signers_;
};

}  // namespace fencepost::tx
