#include "outbox/feed/event_domain.hpp"

#include <algorithm>

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

}  // namespace fencepost::outbox
