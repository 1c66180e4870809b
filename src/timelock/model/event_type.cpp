#include "timelock/model/event_type.hpp"

#include "evm/address.hpp"

namespace fencepost::timelock {

outbox::EventDomain event_domain() {
  outbox::EventDomain domain{.name = "timelock",
                             .read_scope = "timelock:read",
                             .kind = "contract",
                             .id_member = "contractAddress",
                             .read_id = evm::parse_address,
                             .types = {}};
  for (const auto& row : kTimelockEvents) domain.types.push_back(row.name);
  return domain;
}

}  // namespace fencepost::timelock
