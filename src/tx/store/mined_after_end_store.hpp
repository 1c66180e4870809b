// Transactions that had ended as never to be mined, and that a block lists after all: their end rested on endpoints
// that were wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kFindMinedAfterEnd;
extern const pg::Statement kReportMinedAfterEnd;
}  // namespace sql

// A transaction in a block of the node's own branch.
struct ListedTx {
  std::string tx_hash;
  std::int64_t block_number = 0;
  std::string block_hash;
};

// Those of the hashes that are attempts of a transaction that has ended without a receipt, or that gave its nonce back,
// and that was not reported yet. Attempts of other senders do not count.
awaitable<std::vector<std::string>> find_mined_after_end(pg::Pool& pool, std::int64_t chain_id,
                                                         std::vector<std::string> hashes);

struct MinedAfterEnd {
  Uuid tx_id;
  SignerKey key;
  std::optional<std::int64_t> nonce;
  std::string tx_hash;
  std::int64_t block = 0;
  std::optional<std::int64_t> fencing_token;  // of the write that ended it
};
// Announces each once, as TxMinedAfterEnd, with sub state `mined_after_end`; changes no state. Not fenced: a signer
// without open transactions may have no leader. Leaves out rows that another session has locked.
awaitable<std::vector<MinedAfterEnd>> report_mined_after_end(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                             std::vector<ListedTx> listed);

}  // namespace fencepost::tx
