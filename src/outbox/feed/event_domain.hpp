// What the log's readers must know about a domain that appends to it. Each domain describes itself; `node/` collects
// the descriptions into one catalog. This module does not interpret types, kinds or ids.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace fencepost::outbox {

struct EventDomain {
  std::string_view name;        // the subject's prefix: "tx" for subjects "tx/<txId>"
  std::string_view read_scope;  // what a caller needs to see its events: "tx:read"
  std::string_view kind;        // of the restriction that limits a caller: "signer"
  std::string_view id_member;   // the member of `data` that has the id of that kind: "signer"
  Result<std::string> (*read_id)(
      std::string_view text);  // the form in which `data` has ids; the error says what is wrong
  Result<std::string> (*read_subject)(std::string_view text);  // the form in which its events have subjects; likewise
  std::vector<std::string_view> types;
};

class EventCatalog {
 public:
  explicit EventCatalog(std::vector<EventDomain> domains) : domains_(std::move(domains)) {}

  const std::vector<EventDomain>& domains() const { return domains_; }
  // The domain of a subject. nullptr: the subject is of no domain in this catalog.
  const EventDomain* domain_of(std::string_view subject) const;
  // The domain that appends events of this type. nullptr: no domain does.
  const EventDomain* domain_of_type(std::string_view type) const;
  // The domain that restricts callers by this kind. nullptr: no domain does.
  const EventDomain* domain_of_kind(std::string_view kind) const;

 private:
  std::vector<EventDomain> domains_;
};

// For domains whose subjects are "name/<UUID>".
Result<std::string> read_uuid_subject(std::string_view text);

}  // namespace fencepost::outbox
