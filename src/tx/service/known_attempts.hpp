// Whether an endpoint has a transaction that the endpoints have refused. A refusal is one endpoint's word; a nonce is
// given to another transaction, or cancelled without an operator, only if the endpoints also do not know what they
// refused. Relays (submit_urls) are not asked: many do not show what they have.
#pragma once

#include "base/uuid.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

// False only if every endpoint answers that it knows no attempt of the transaction. On the chain's
// loop. Throws what the database throws.
awaitable<bool> may_be_known(ChainContext& chain, Uuid tx_id);

}  // namespace fencepost::tx
