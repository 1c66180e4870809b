// The interface to a chain, independent of the protocol.
//
// Hashes and addresses are lowercase with 0x, and are checked when they arrive. An answer names the endpoint that gave
// it where later calls must be consistent with it; passing an endpoint index sends the call to that endpoint only.
//
// Pinned to one loop. No method throws for an error or a missing answer of the chain: those are in the Result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/uint256.hpp"
#include "evm/json_rpc.hpp"
#include "evm/logs/bloom.hpp"
#include "evm/submit_class.hpp"
#include "runtime/async.hpp"

namespace fencepost::evm {

using Endpoint = std::optional<std::size_t>;  // none: the first endpoint that answers

struct BlockHeader {
  std::int64_t number = 0;
  std::string hash;
  std::string parent_hash;
  std::int64_t timestamp = 0;
  std::optional<Uint256> base_fee;          // none before EIP-1559
  std::shared_ptr<const Bloom> logs_bloom;  // null: unknown, as in a header out of the database
  std::optional<Uint256> gas_limit;         // none: unknown, as in a header out of the database

  // Ignores bloom and gas limit: the hash covers them, and they are not always there.
  friend bool operator==(const BlockHeader& a, const BlockHeader& b) {
    return std::tie(a.number, a.hash, a.parent_hash, a.timestamp, a.base_fee) ==
           std::tie(b.number, b.hash, b.parent_hash, b.timestamp, b.base_fee);
  }
};

struct Block {
  BlockHeader header;
  std::vector<std::string> transactions;  // hashes, in order
  std::size_t endpoint = 0;
};

struct Receipt {
  std::string tx_hash;
  std::string block_hash;
  std::int64_t block_number = 0;
  std::int64_t transaction_index = 0;
  bool succeeded = false;
  Uint256 gas_used;
  Uint256 effective_gas_price;
  std::optional<std::string> contract_address;
  std::string json;  // as the chain gave it
  std::size_t endpoint = 0;
};

struct Log {
  std::string address;
  std::vector<std::string> topics;  // at most four
  std::string data = "0x";
  std::string tx_hash;
  std::string block_hash;
  std::int64_t block_number = 0;
  std::int64_t log_index = 0;                   // within the block
  std::optional<std::int64_t> block_timestamp;  // not every node gives it

  friend bool operator==(const Log&, const Log&) = default;
};

// Which logs are asked for.
struct LogFilter {
  std::vector<std::string> addresses;  // at least one, in stored form; nodes refuse more than some hundred
  std::vector<std::string> topics;     // the log's first topic is one of these; empty: any
};

// The logs of a range of blocks, as one endpoint has them.
struct Logs {
  std::vector<Log> logs;  // sorted by block and index
  std::size_t endpoint = 0;
};

struct HeadNumber {
  std::int64_t number = 0;
  std::size_t endpoint = 0;
};

// An endpoint's view of a transaction, mined or not.
struct TransactionInfo {
  std::string hash;
  std::string from;
  std::int64_t nonce = 0;
  std::optional<std::string> to;  // none: creates a contract
  Uint256 value;
  std::string data = "0x";                // lowercase
  std::optional<Uint256> gas;             // its limit; none: the endpoint does not say
  std::optional<std::string> block_hash;  // none: pending
};

// A call or a transaction to be estimated.
struct CallRequest {
  std::string from;               // empty: not sent; the node then calls from the zero address
  std::optional<std::string> to;  // none: creates a contract
  Uint256 value;
  std::string data = "0x";
  std::optional<Uint256> gas;
};

struct FeeHistory {
  Uint256 next_base_fee;
  std::vector<Uint256> tips;  // each block's tip at the requested percentile, oldest first; none of empty blocks
};

enum class BlockTag { kLatest, kSafe, kFinalized };
enum class NonceTag { kLatest, kPending };

// The outcome of one broadcast.
struct SendResult {
  SubmitClass outcome = SubmitClass::kUnknown;
  std::string message;            // the endpoint's message; empty when accepted
  Reach reach = Reach::kUnknown;  // for other outcomes than kAccepted: whether an endpoint may have it
  bool no_answer = false;         // no endpoint answered
  std::size_t answers = 0;        // from that many endpoints
  bool all_answered = false;      // every configured endpoint did, also those that are behind or were failing
};

// The error when no endpoint has reached the block `wanted`.
Error endpoints_behind(std::int64_t wanted, std::int64_t reached);

class ChainConnector {
 public:
  virtual ~ChainConnector() = default;

  virtual std::int64_t chain_id() const = 0;

  // Errors, of every method: as JsonRpcClient::call, and kUnavailable `bad_rpc_result` for an answer that does not
  // match the call. A tag that the chain does not know (`safe` on a chain without it) is rpc_error.
  virtual awaitable<Result<Block>> block(BlockTag tag, Endpoint endpoint = {}) = 0;
  // The blocks first … first + count - 1; shorter when the endpoint does not have all of them.
  virtual awaitable<Result<std::vector<Block>>> blocks(std::int64_t first, std::size_t count,
                                                       Endpoint endpoint = {}) = 0;
  virtual awaitable<Result<std::optional<Block>>> block_by_hash(std::string hash, Endpoint endpoint = {}) = 0;
  // One answer for each hash, in order; nothing when the endpoint does not have the block.
  virtual awaitable<std::vector<Result<std::optional<BlockHeader>>>> headers_by_hash(std::vector<std::string> hashes,
                                                                                     Endpoint endpoint = {}) = 0;
  // The number of the newest block, and the endpoint that has it.
  virtual awaitable<Result<HeadNumber>> head_number(Endpoint endpoint = {}) = 0;

  // The logs in that very block, sorted by index. `bad_rpc_result` when the endpoint does not have the block: an empty
  // answer would look like a block without logs. Also for logs_in_range: a log of another contract is
  // `bad_rpc_result`, one with another first topic is left out, since some endpoints ignore topics.
  virtual awaitable<Result<std::vector<Log>>> logs_in_block(std::string block_hash, LogFilter filter,
                                                            Endpoint endpoint = {}) = 0;
  // The logs in the blocks first … last, by one request. An endpoint that has not reached `last`
  // answers with what it has and no error: call head_number first, and pass the endpoint that gave it. An error may
  // mean that the range is too large (evm/logs/log_refusal.hpp).
  virtual awaitable<Result<Logs>> logs_in_range(std::int64_t first, std::int64_t last, LogFilter filter,
                                                Endpoint endpoint = {}) = 0;

  // The receipts of the `tx_hashes` that are in the block, in any order; each is checked to name that block. A missing
  // receipt means that the endpoint does not see the transaction in that block, or no longer has the block.
  virtual awaitable<Result<std::vector<Receipt>>> receipts_in_block(std::string block_hash,
                                                                    std::vector<std::string> tx_hashes,
                                                                    std::size_t endpoint) = 0;
  // One answer for each hash, in order; nothing when the transaction is not mined as far as that endpoint knows.
  virtual awaitable<std::vector<Result<std::optional<Receipt>>>> receipts(std::vector<std::string> tx_hashes,
                                                                          Endpoint endpoint = {}) = 0;
  virtual awaitable<Result<std::optional<TransactionInfo>>> transaction(std::string tx_hash,
                                                                        Endpoint endpoint = {}) = 0;
  // One answer for each hash, in order; nothing when the endpoint does not know the transaction.
  virtual awaitable<std::vector<Result<std::optional<TransactionInfo>>>> transactions(
      std::vector<std::string> tx_hashes, Endpoint endpoint = {}) = 0;

  // Broadcasts signed transactions ("0x…") in this order; one result for each. Every healthy endpoint gets them, and
  // the first acceptance counts (evm/broadcast.hpp). What the healthy ones refuse for good, the other endpoints get
  // too.
  virtual awaitable<std::vector<SendResult>> send(std::vector<std::string> raw) = 0;

  // Transaction counts, one for each address.
  virtual awaitable<std::vector<Result<std::int64_t>>> nonces(std::vector<std::string> addresses, NonceTag tag,
                                                              Endpoint endpoint = {}) = 0;
  // The count as of that block.
  virtual awaitable<Result<std::int64_t>> nonce_at(std::string address, std::int64_t block_number,
                                                   Endpoint endpoint = {}) = 0;
  // In wei, one for each address.
  virtual awaitable<std::vector<Result<Uint256>>> balances(std::vector<std::string> addresses) = 0;

  // Errors: kUnprocessable `would_revert` with the decoded reason in the message and `revertReason`, `revertData` in
  // the context; kUnprocessable `insufficient_funds`; otherwise as JsonRpcClient::call.
  virtual awaitable<Result<Uint256>> estimate_gas(CallRequest call) = 0;
  // At the end of that block; none: of the latest block.
  virtual awaitable<Result<Bytes>> call(CallRequest call, std::optional<std::int64_t> block_number = {},
                                        Endpoint endpoint = {}) = 0;
  // One answer for each call, in order.
  virtual awaitable<std::vector<Result<Bytes>>> calls(std::vector<CallRequest> calls,
                                                      std::optional<std::int64_t> block_number = {},
                                                      Endpoint endpoint = {}) = 0;
  // The code of an account at the end of that block, or of the latest block; empty when it is not a contract.
  virtual awaitable<Result<Bytes>> code(std::string address, std::optional<std::int64_t> block_number = {},
                                        Endpoint endpoint = {}) = 0;

  // The last `block_count` blocks. Without an endpoint, this and gas_price ask each until one knows the answer.
  virtual awaitable<Result<FeeHistory>> fee_history(std::uint32_t block_count, double percentile,
                                                    Endpoint endpoint = {}) = 0;
  virtual awaitable<Result<Uint256>> gas_price(Endpoint endpoint = {}) = 0;

  // Whether the endpoint reports that it is still syncing. A connector that cannot know returns false.
  virtual awaitable<Result<bool>> syncing(Endpoint endpoint = {}) {
    static_cast<void>(endpoint);
    co_return false;
  }

  // The first endpoint whose newest block is at least `number`; all are asked now, in order. Errors: kUnavailable
  // `endpoint_behind` when those that answer have not reached it; otherwise as head_number.
  virtual awaitable<Result<HeadNumber>> head_reaching(std::int64_t number) {
    auto head = co_await head_number();
    if (head && head->number < number) co_return fail(endpoints_behind(number, head->number));
    co_return head;
  }
  // The first endpoint that has reported a block of at least that number; nothing when none has. Asks no endpoint.
  virtual Endpoint endpoint_with(std::int64_t number) const {
    static_cast<void>(number);
    return std::nullopt;
  }
  // The newest block that an endpoint has reported lately; nothing when none has.
  virtual std::optional<std::int64_t> highest_head() const { return std::nullopt; }

  virtual std::size_t endpoint_count() const = 0;
  // Whether broadcasts go to relays, which need not show what they have.
  virtual bool has_relays() const { return false; }
  virtual EndpointStatus endpoint_status(std::size_t index) const = 0;
};

}  // namespace fencepost::evm
