// The domains whose events are delivered. A new domain adds its line here.
#pragma once

#include "outbox/feed/event_domain.hpp"

namespace fencepost {

const outbox::EventCatalog& event_catalog();

}  // namespace fencepost
