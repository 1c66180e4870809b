// Values that many rows of these tables have, each read in one place.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "pg/result.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/state.hpp"

namespace fencepost::tx {

SignerKey read_key(const pg::Row& row);                            // chain_id, signer
SignerLease read_lease(const pg::Row& row);                        // chain_id, signer, token
TxState read_state(const pg::Row& row);                            // state
std::optional<AnnouncedBlock> read_announced(const pg::Row& row);  // told_block, told_hash
// A column of seconds, as double precision.
std::optional<std::chrono::milliseconds> read_seconds(const pg::Row& row, std::string_view column);

}  // namespace fencepost::tx
