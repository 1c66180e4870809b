// The events about a transfer, as consumers get them. The SQL of `economy` appends them; docs/events.md has their
// fields.
#pragma once

#include "base/name_table.hpp"
#include "outbox/feed/event_domain.hpp"

namespace fencepost::transfer {

enum class TransferEvent { kApproved, kCompleted, kDenied };

inline constexpr auto kTransferEvents = name_table<TransferEvent>({
    {TransferEvent::kApproved, "TransferApproved", "The checks of a pool transfer passed, and its amount is reserved."},
    {TransferEvent::kCompleted, "TransferCompleted", "The money has moved."},
    {TransferEvent::kDenied, "TransferDenied", "A pool transfer was rejected; nothing moved."},
});

// What the log's readers must know about these events.
outbox::EventDomain event_domain();

}  // namespace fencepost::transfer
