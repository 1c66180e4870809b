#include "outbox/feed/event_domain.hpp"

#include <algorithm>

#include "base/uuid.hpp"

namespace fencepost::outbox {
namespace {

const EventDomain* find_domain(const std::vector<EventDomain>& domains, auto matches) {
  const auto found = std::ranges::find_if(domains, matches);
  return found == domains.end() ? nullptr : &*found;
}

}  // namespace

const EventDomain* EventCatalog::domain_of(std::string_view subject) const {
  const auto name = subject.substr(0, subject.find('/'));
  return find_domain(domains_, [&](const EventDomain& domain) { return domain.name == name; });
}

const EventDomain* EventCatalog::domain_of_type(std::string_view type) const {
  return find_domain(
      domains_, [&](const EventDomain& domain) { return std::ranges::find(domain.types, type) != domain.types.end(); });
}

const EventDomain* EventCatalog::domain_of_kind(std::string_view kind) const {
  return find_domain(domains_, [&](const EventDomain& domain) { return domain.kind == kind; });
}

Result<std::string> read_uuid_subject(std::string_view text) {
  const auto begin = text.find('/') + 1;
  const auto id = Uuid::parse(text.substr(begin));
  if (!id) return fail(id.error());
  return std::string(text.substr(0, begin)) + id->to_string();
}

}  // namespace fencepost::outbox
