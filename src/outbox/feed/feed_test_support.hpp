// For tests of the feed and of what delivers its events.
#pragma once

#include <string>
#include <string_view>

#include "outbox/feed/event_domain.hpp"
#include "outbox/feed/log_event.hpp"

namespace fencepost::outbox::testing {

inline Result<std::string> any_id(std::string_view text) {
  if (text.empty()) return fail(invalid("bad_request", "expected an id"));
  return std::string(text);
}

// Two domains that look like those of a node, without depending on any.
inline const EventCatalog& catalog() {
  static const EventCatalog kCatalog({
      {"tx", "tx:read", "signer", "signer", any_id, any_id, {"TxAccepted", "TxConfirmed"}},
      {"transfer", "transfer:read", "guild", "guildId", any_id, any_id, {"TransferCompleted"}},
  });
  return kCatalog;
}

inline LogEvent tx_event(std::int64_t seq, const std::string& type = "TxConfirmed", const std::string& signer = "0xa",
                         int chain = 1, const std::string& subject = "tx/1") {
  return make_log_event(catalog(), seq, type, subject, TimePoint{},
                        R"({"signer": ")" + signer + R"(", "chainId": )" + std::to_string(chain) + "}");
}

inline LogEvent transfer_event(std::int64_t seq, const std::string& guild) {
  return make_log_event(catalog(), seq, "TransferCompleted", "transfer/1", TimePoint{},
                        R"({"guildId": ")" + guild + R"("})");
}

}  // namespace fencepost::outbox::testing
