#include "tests/support/stub_chain_rpc.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/hex.hpp"
#include "evm/abi/abi.hpp"
#include "tests/support/stub_chain_json.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using evm::Address;
using evm::Hash32;

constexpr std::uint64_t kTip = 1'000'000'000;

// Becomes an error object in the answer.
struct RpcFailure {
  int code;
  std::string message;
  std::string data;  // JSON, or empty
};

RpcFailure bad_params(std::string message) {
  return {-32602, std::move(message), {}};
}

// Parameters by position. Throws RpcFailure for a missing or mistyped one; `answer_one` turns it into an answer.
class Params {
 public:
  explicit Params(const json::value* params) : array_(params == nullptr ? nullptr : params->if_array()) {}

  const json::value* at(std::size_t place) const {
    return array_ != nullptr && place < array_->size() ? &(*array_)[place] : nullptr;
  }
  std::string_view text(std::size_t place) const {
    const auto* value = at(place);
    const auto* text = value == nullptr ? nullptr : value->if_string();
    if (text == nullptr) throw bad_params(fmt::format("missing value for required argument {}", place));
    return *text;
  }
  template <class T>
  T fixed(std::size_t place) const {
    T out{};
    if (!decode_hex0x(text(place), out)) throw bad_params(fmt::format("invalid argument {}: not hex", place));
    return out;
  }
  Bytes bytes(std::size_t place) const {
    auto out = from_hex0x(text(place));
    if (!out) throw bad_params(fmt::format("invalid argument {}: {}", place, out.error().message));
    return std::move(*out);
  }

 private:
  const json::array* array_;
};

std::int64_t number_of(std::string_view quantity) {
  const auto number = parse_quantity(quantity);
  if (!number || *number > std::numeric_limits<std::int64_t>::max()) {
    throw bad_params(fmt::format("invalid block number or tag: {}", quantity));
  }
  return number->convert_to<std::int64_t>();
}

std::int64_t block_number(const StubChain& chain, std::string_view name) {
  if (name == "latest" || name == "pending") return chain.head()->number;
  if (name == "safe") return chain.safe_number();
  if (name == "finalized") return chain.finalized_number();
  if (name == "earliest") return 0;
  return number_of(name);
}

// By number, tag or hash; nullptr if there is no such block.
StubBlockPtr find_block(const StubChain& chain, std::string_view name) {
  constexpr std::size_t kHashLength = 66;
  if (name.size() != kHashLength) return chain.block(block_number(chain, name));
  Hash32 hash{};
  if (!decode_hex0x(name, hash)) throw bad_params("invalid block hash");
  return chain.block(hash);
}

std::string quantity(std::uint64_t number) {
  return fmt::format("\"0x{:x}\"", number);
}

std::string transaction_count(const StubChain& chain, const Params& params) {
  const auto address = params.fixed<Address>(0);
  const std::string_view at = params.at(1) == nullptr ? "latest" : params.text(1);
  if (at == "pending") return quantity(chain.pending_nonce(address));
  if (at == "latest") return quantity(chain.nonce(address));
  const auto block = find_block(chain, at);
  if (!block) throw RpcFailure{-32000, "header not found", {}};
  return quantity(chain.nonce_at(address, block->number));
}

std::string send_raw(StubChain& chain, const Params& params) {
  const auto hash = chain.send(params.bytes(0));
  if (!hash) throw RpcFailure{-32000, hash.error().message, {}};
  return fmt::format("\"{}\"", to_hex0x(*hash));
}

struct Call {
  Bytes data;
  bool creates = false;
};

Call call_of(const Params& params) {
  const auto* value = params.at(0);
  const auto* object = value == nullptr ? nullptr : value->if_object();
  if (object == nullptr) throw bad_params("missing value for required argument 0");
  Call call{.data = {}, .creates = !object->contains("to")};
  for (const std::string_view name : {"input", "data"}) {
    const auto* member = object->if_contains(name);
    const auto* text = member == nullptr ? nullptr : member->if_string();
    if (text == nullptr) continue;
    auto bytes = from_hex0x(*text);
    if (!bytes) throw bad_params(fmt::format("invalid argument 0: {}", bytes.error().message));
    call.data = std::move(*bytes);
    break;
  }
  if (stub_reverts(call.data)) {
    const auto data = evm::AbiWriter(evm::selector("Error(string)")).string("the stub says no").take();
    throw RpcFailure{3, "execution reverted: the stub says no", fmt::format("\"{}\"", to_hex0x(data))};
  }
  return call;
}

std::string fee_history(const StubChain& chain, const Params& params) {
  constexpr std::int64_t kMostBlocks = 1'024;
  const auto* count_value = params.at(0);
  if (count_value == nullptr) throw bad_params("missing value for required argument 0");
  const auto asked =
      count_value->is_string() ? number_of(count_value->get_string()) : count_value->to_number<std::int64_t>();
  const auto newest = block_number(chain, params.text(1));
  const auto count = std::min({asked, kMostBlocks, newest + 1});
  const auto* percentiles = params.at(2) == nullptr ? nullptr : params.at(2)->if_array();
  std::string fees, ratios, rewards;
  for (auto number = newest - count + 1; number <= newest; ++number) {
    const auto block = chain.block(number);
    if (!block) continue;  // too old
    fees += quantity(block->base_fee) + ",";
    ratios += fmt::format("{}{}", ratios.empty() ? "" : ",",
                          static_cast<double>(block->gas_used) / static_cast<double>(chain.gas_limit()));
    std::string tips;
    for (std::size_t i = 0; percentiles != nullptr && i < percentiles->size(); ++i) {
      tips += (tips.empty() ? "" : ",") + quantity(kTip);
    }
    rewards += fmt::format("{}[{}]", rewards.empty() ? "" : ",", tips);
  }
  return fmt::format(R"({{"oldestBlock":{},"baseFeePerGas":[{}{}],"gasUsedRatio":[{}],"reward":[{}]}})",
                     quantity(static_cast<std::uint64_t>(newest - count + 1)), fees, quantity(chain.base_fee()), ratios,
                     rewards);
}

std::string block_result(const StubChain& chain, const StubBlockPtr& block) {
  return block ? block_json(*block, chain.gas_limit()) : "null";
}

std::string receipt_of(const StubChain& chain, const Params& params) {
  const auto mined = chain.find_mined(params.fixed<Hash32>(0));
  return mined ? receipt_json(*mined->block, mined->index) : "null";
}

std::string block_receipts(const StubChain& chain, const Params& params) {
  const auto block = find_block(chain, params.text(0));
  if (!block) return "null";
  std::string out = "[";
  for (std::size_t i = 0; i < block->receipts.size(); ++i) {
    if (i > 0) out += ',';
    out += receipt_json(*block, i);
  }
  return out + "]";
}

std::string transaction_of(const StubChain& chain, const Params& params) {
  const auto hash = params.fixed<Hash32>(0);
  if (const auto mined = chain.find_mined(hash)) {
    return transaction_json(*mined->block->receipts[mined->index].transaction, mined->block.get(), mined->index);
  }
  const auto pooled = chain.find_pooled(hash);
  return pooled ? transaction_json(*pooled, nullptr, 0) : "null";
}

using Method = std::function<std::string(StubChain&, const Params&)>;

const std::map<std::string_view, Method>& methods() {
  static const std::map<std::string_view, Method> table{
      {"eth_chainId", [](StubChain& chain, const Params&) { return quantity(chain.chain_id()); }},
      {"eth_blockNumber",
       [](StubChain& chain, const Params&) { return quantity(static_cast<std::uint64_t>(chain.head()->number)); }},
      {"eth_getBlockByNumber",
       [](StubChain& chain, const Params& params) {
         return block_result(chain, chain.block(block_number(chain, params.text(0))));
       }},
      {"eth_getBlockByHash",
       [](StubChain& chain, const Params& params) {
         return block_result(chain, chain.block(params.fixed<Hash32>(0)));
       }},
      {"eth_getTransactionReceipt", receipt_of},
      {"eth_getBlockReceipts", block_receipts},
      {"eth_getTransactionByHash", transaction_of},
      {"eth_getTransactionCount", transaction_count},
      {"eth_getBalance",
       [](StubChain& chain, const Params& params) {
         return fmt::format("\"{}\"", to_quantity(chain.balance(params.fixed<Address>(0))));
       }},
      {"eth_sendRawTransaction", send_raw},
      {"eth_estimateGas",
       [](StubChain&, const Params& params) {
         const auto call = call_of(params);
         return quantity(evm::intrinsic_gas(call.creates, call.data));
       }},
      {"eth_call",
       [](StubChain&, const Params& params) {
         call_of(params);
         return std::string("\"0x\"");
       }},
      {"eth_feeHistory", fee_history},
      {"eth_gasPrice", [](StubChain& chain, const Params&) { return quantity(chain.base_fee() + kTip); }},
      {"eth_syncing", [](StubChain&, const Params&) { return std::string("false"); }},
  };
  return table;
}

std::string id_of(const json::value& request) {
  const auto* object = request.if_object();
  const auto* id = object == nullptr ? nullptr : object->if_contains("id");
  return id == nullptr ? "null" : json::serialize(*id);
}

void append_failure(std::string& out, const std::string& id, const RpcFailure& failure) {
  fmt::format_to(std::back_inserter(out), R"({{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":{}{}{}}}}})", id,
                 failure.code, json::serialize(json::string(failure.message)),
                 failure.data.empty() ? "" : R"(,"data":)", failure.data);
}

// Calls `each` for the request, or for every request of a batch.
std::string for_each_request(std::string_view body, const std::function<void(const json::value&, std::string&)>& each) {
  json::monotonic_resource memory;
  boost::system::error_code broken;
  const auto document = json::parse({body.data(), body.size()}, broken, &memory);
  std::string out;
  if (broken) {
    append_failure(out, "null", {-32700, "parse error", {}});
    return out;
  }
  const auto* batch = document.if_array();
  if (batch == nullptr) {
    each(document, out);
    return out;
  }
  if (batch->empty()) {
    append_failure(out, "null", {-32600, "empty batch", {}});
    return out;
  }
  out += '[';
  for (const auto& request : *batch) {
    if (out.size() > 1) out += ',';
    each(request, out);
  }
  out += ']';
  return out;
}

}  // namespace

std::string StubChainRpc::answer(std::string_view body) {
  return for_each_request(body, [this](const json::value& request, std::string& out) { answer_one(request, out); });
}

std::string StubChainRpc::refuse(std::string_view body) {
  return for_each_request(body, [](const json::value& request, std::string& out) {
    append_failure(out, id_of(request), {-32603, "internal error: database is closed", {}});
  });
}

void StubChainRpc::answer_one(const json::value& request, std::string& out) {
  const auto* object = request.if_object();
  const auto* method = object == nullptr ? nullptr : object->if_contains("method");
  if (method == nullptr || !method->is_string()) {
    append_failure(out, id_of(request), {-32600, "invalid request", {}});
    return;
  }
  const std::string_view name = method->get_string();
  count(name);
  const auto id = id_of(request);
  const auto found = methods().find(name);
  if (found == methods().end()) {
    append_failure(out, id, {-32601, fmt::format("the method {} does not exist/is not available", name), {}});
    return;
  }
  try {
    const auto result = found->second(chain_, Params(object->if_contains("params")));
    fmt::format_to(std::back_inserter(out), R"({{"jsonrpc":"2.0","id":{},"result":{}}})", id, result);
  } catch (const RpcFailure& failure) {
    append_failure(out, id, failure);
  }
}

void StubChainRpc::count(std::string_view method) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(method);
  if (found != calls_.end()) {
    ++found->second;
  } else {
    calls_.emplace(method, 1);
  }
}

std::uint64_t StubChainRpc::calls(const std::string& method) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(method);
  return found == calls_.end() ? 0 : found->second;
}

std::uint64_t StubChainRpc::calls() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(calls_.begin(), calls_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& entry) { return sum + entry.second; });
}

std::map<std::string, std::uint64_t> StubChainRpc::calls_by_method() const {
  const std::lock_guard lock(mutex_);
  return {calls_.begin(), calls_.end()};
}

void StubChainRpc::reset_calls() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
}

}  // namespace fencepost::test
