// Parses answers to eth_getLogs and the logs in receipts, which can have megabytes, and checks that they answer the
// question.
//
// Errors, all kUnavailable `bad_rpc_result`: a malformed answer, a log that is pending or `removed`, a log of another
// contract or block than asked for, two logs with the same index in a block, two hashes for one block number. A log
// with another first topic than asked for is left out: some endpoints ignore topics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "evm/chain_connector.hpp"
#include "evm/reply/rpc_reply.hpp"

namespace fencepost::evm {

// The logs of one block, sorted by index.
Result<std::vector<Log>> parse_block_logs(const RpcValue& value, std::string_view block_hash, const LogFilter& filter);

// The logs of the blocks first … last, sorted by block and index.
Result<std::vector<Log>> parse_range_logs(const RpcValue& value, std::int64_t first, std::int64_t last,
                                          const LogFilter& filter);

// The logs in the receipts of one block, sorted by index. Logs of other contracts are left out and not checked.
Result<std::vector<Log>> parse_receipt_logs(const std::vector<Receipt>& receipts, const LogFilter& filter);

}  // namespace fencepost::evm
