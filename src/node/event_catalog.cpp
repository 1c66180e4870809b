#include "node/event_catalog.hpp"

#include "timelock/model/event_type.hpp"
#include "transfer/event_type.hpp"
#include "tx/model/event_type.hpp"

namespace fencepost {

const outbox::EventCatalog& event_catalog() {
  static const outbox::EventCatalog catalog({tx::event_domain(), timelock::event_domain(), transfer::event_domain()});
  return catalog;
}

}  // namespace fencepost
