// What the unsubscribe link of a mail carries: an address and a contract, with a mark that only this installation can
// make. It does not expire: a link in an old mail must still work. Pure: no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/secret.hpp"

namespace fencepost::notify {

struct Unsubscribe {
  std::int64_t email_id = 0;
  std::int64_t chain_id = 0;
  std::string contract;

  friend bool operator==(const Unsubscribe&, const Unsubscribe&) = default;
};

// Fit for a path: digits, letters and dots.
std::string unsubscribe_token(const Secret& key, const Unsubscribe& what);
// nullopt: the token was not made with this key.
std::optional<Unsubscribe> read_unsubscribe_token(const Secret& key, std::string_view token);

}  // namespace fencepost::notify
