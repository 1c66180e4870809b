// The confirmations of a transaction as lists: out of the node's own window, and into JSON.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>

#include "base/uuid.hpp"
#include "evm/header_window.hpp"
#include "tx/model/block_ref.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/model/event_type.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

// From that block (first) to the head; empty when it is not on the branch. At most `limit` blocks.
std::vector<BlockRef> confirmation_list(const evm::HeaderWindow& window, std::int64_t number, std::string_view hash,
                                        std::size_t limit = static_cast<std::size_t>(-1));

boost::json::array to_json(std::span<const BlockRef> list);

// TxConfirmations, as type and data.
std::pair<TxEvent, std::string> confirmations_event(const SignerKey& key, const Uuid& tx_id,
                                                    const Announcement& announcement);

}  // namespace fencepost::tx
