// Whether an endpoint has a transaction that the endpoints have refused. A refusal is one endpoint's word; a nonce is
// given to another transaction, or cancelled without an operator, only if the endpoints also do not know what they
// refused. Relays (submit_urls) do not show what they have, so what was sent to a relay may always be known.
#pragma once

#include "base/uuid.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

// Both are false only if every endpoint answers that it knows no attempt of the transaction; may_be_known is also true
// if there are attempts and relays. On the chain's loop. Throw what the database throws.
awaitable<bool> may_be_shown(ChainContext& chain, Uuid tx_id);
awaitable<bool> may_be_known(ChainContext& chain, Uuid tx_id);

}  // namespace fencepost::tx
