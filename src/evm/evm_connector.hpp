// ChainConnector by Ethereum JSON-RPC, over the endpoints of a JsonRpcClient.
//
// How it asks:
//   blocks            contain transaction hashes only
//   receipts          of few transactions are requested one by one in a batch, of many by eth_getBlockReceipts where
//                     the endpoint has that method. When the endpoint of receipts_in_block does not answer, another
//                     one's receipts are used if it has all of them in that very block
//   logs              are waited for longer than other answers, so that a node's own time limit comes first. No logs
//                     in a block are believed of an endpoint only if it has the block
//   send              is one batch to each healthy endpoint, all at once; to the others what these do not answer or
//                     refuse for good. Servers mostly process a batch in order, but not always: a pool that refuses
//                     gaps may answer nonce_too_high for a transaction that has overtaken another
#pragma once

#include <cstdint>
#include <vector>

#include "evm/chain_connector.hpp"
#include "evm/json_rpc.hpp"
#include "runtime/task_group.hpp"

namespace fencepost::evm {

class EvmConnector final : public ChainConnector {
 public:
  // Keeps the references: they must outlive the connector. Broadcasts go to `submit` only, if it is given.
  EvmConnector(JsonRpcClient& rpc, std::int64_t chain_id, JsonRpcClient* submit = nullptr);
  // Ends the broadcasts that endpoints have not answered yet. Requires: no call is in flight or follows.
  awaitable<> stop() { return broadcasts_.stop(std::chrono::milliseconds(0)); }

  std::int64_t chain_id() const override { return chain_id_; }

  awaitable<Result<Block>> block(BlockTag tag, Endpoint endpoint) override;
  awaitable<Result<std::vector<Block>>> blocks(std::int64_t first, std::size_t count, Endpoint endpoint) override;
  awaitable<Result<std::optional<Block>>> block_by_hash(std::string hash, Endpoint endpoint) override;
  awaitable<std::vector<Result<std::optional<BlockHeader>>>> headers_by_hash(std::vector<std::string> hashes,
                                                                             Endpoint endpoint) override;
  awaitable<Result<HeadNumber>> head_number(Endpoint endpoint) override;
  awaitable<Result<std::vector<Log>>> logs_in_block(std::string block_hash, LogFilter filter,
                                                    Endpoint endpoint) override;
  awaitable<Result<Logs>> logs_in_range(std::int64_t first, std::int64_t last, LogFilter filter,
                                        Endpoint endpoint) override;
  awaitable<Result<std::vector<Receipt>>> receipts_in_block(std::string block_hash, std::vector<std::string> tx_hashes,
                                                            std::size_t endpoint) override;
  awaitable<std::vector<Result<std::optional<Receipt>>>> receipts(std::vector<std::string> tx_hashes,
                                                                  Endpoint endpoint) override;
  awaitable<Result<std::optional<TransactionInfo>>> transaction(std::string tx_hash, Endpoint endpoint) override;
  awaitable<std::vector<Result<std::optional<TransactionInfo>>>> transactions(std::vector<std::string> tx_hashes,
                                                                              Endpoint endpoint) override;
  awaitable<std::vector<SendResult>> send(std::vector<std::string> raw) override;
  awaitable<std::vector<Result<std::int64_t>>> nonces(std::vector<std::string> addresses, NonceTag tag,
                                                      Endpoint endpoint) override;
  awaitable<Result<std::int64_t>> nonce_at(std::string address, std::int64_t block_number, Endpoint endpoint) override;
  awaitable<std::vector<Result<Uint256>>> balances(std::vector<std::string> addresses) override;
  awaitable<Result<Uint256>> estimate_gas(CallRequest call) override;
  awaitable<Result<Bytes>> call(CallRequest call, std::optional<std::int64_t> block_number, Endpoint endpoint) override;
  awaitable<std::vector<Result<Bytes>>> calls(std::vector<CallRequest> wanted, std::optional<std::int64_t> block_number,
                                              Endpoint endpoint) override;
  awaitable<Result<Bytes>> code(std::string address, std::optional<std::int64_t> block_number,
                                Endpoint endpoint) override;
  awaitable<Result<FeeHistory>> fee_history(std::uint32_t block_count, double percentile, Endpoint endpoint) override;
  awaitable<Result<Uint256>> gas_price(Endpoint endpoint) override;
  awaitable<Result<bool>> syncing(Endpoint endpoint) override;

  awaitable<Result<HeadNumber>> head_reaching(std::int64_t number) override;
  Endpoint endpoint_with(std::int64_t number) const override;
  std::optional<std::int64_t> highest_head() const override { return rpc_.highest_head(); }

  std::size_t endpoint_count() const override { return rpc_.endpoint_count(); }
  bool has_relays() const override { return &submit_ != &rpc_; }
  EndpointStatus endpoint_status(std::size_t index) const override { return rpc_.endpoint_status(index); }

 private:
  struct Broadcast;

  awaitable<Result<RpcValue>> ask(std::string method, boost::json::array params, Endpoint endpoint);
  // Asks one endpoint after the other until one knows the answer: the method may be missing at some of them.
  awaitable<Result<RpcValue>> ask_any(std::string method, boost::json::array params);
  // eth_getLogs for the given blocks. Throws Exception `no_addresses`.
  awaitable<Result<RpcValue>> ask_logs(boost::json::object blocks, const LogFilter& filter, RpcCallOptions options);
  // A single call is not sent as a batch: not every server accepts batches.
  awaitable<std::vector<Result<RpcValue>>> ask_all(std::vector<RpcCall> calls, Endpoint endpoint);
  // One after the other until one answers, or that endpoint only.
  awaitable<std::vector<SendResult>> broadcast(std::vector<std::string> raw);
  awaitable<std::vector<SendResult>> send_to(std::vector<std::string> raw, Endpoint endpoint);
  // Returns when each transaction is accepted or all of these endpoints have answered.
  awaitable<std::vector<SendResult>> send_to_all(std::vector<std::string> raw, std::vector<std::size_t> endpoints);
  // Without a bloom on a chain whose blooms do not cover all logs.
  Result<std::optional<Block>> read_block(Result<RpcValue> answer) const;
  // Nothing when the endpoint does not have the method or does not find the block.
  awaitable<Result<std::optional<std::vector<Receipt>>>> block_receipts(const std::string& block_hash,
                                                                        const std::vector<std::string>& tx_hashes,
                                                                        std::size_t endpoint);
  // The receipts that the endpoint has; missing ones are left out.
  awaitable<Result<std::vector<Receipt>>> single_receipts(const std::vector<std::string>& tx_hashes, Endpoint endpoint);

  JsonRpcClient& rpc_;
  JsonRpcClient& submit_;
  std::int64_t chain_id_;
  TaskGroup broadcasts_;
  std::vector<bool> lacks_block_receipts_;  // by endpoint
};

}  // namespace fencepost::evm
