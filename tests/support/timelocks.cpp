#include "tests/support/timelocks.hpp"

#include <fstream>
#include <iterator>

#include <boost/json/parse.hpp>

#include "base/error.hpp"
#include "evm/abi/abi.hpp"
#include "evm/keccak.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

Bytes from_hex_text(const std::string& hex) {
  auto bytes = from_hex0x(hex);
  if (!bytes) throw Exception(bytes.error());
  return std::move(*bytes);
}

void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::string bytecode(const std::string& path) {
  std::ifstream file(source_dir() / "tests/clients/node_modules" / path);
  if (!file) throw Exception(internal("no_artifact", path + " is missing: run ./fp setup"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto code = std::string(json::parse(text).at("bytecode").as_string());
  return code.starts_with("0x") ? code : "0x" + code;
}

std::vector<AbiPart> batch_arguments(const std::vector<TimelockCall>& calls) {
  std::vector<AbiPart> targets, values, data;
  for (const auto& call : calls) {
    targets.push_back(word(call.target));
    values.push_back(word(call.value));
    data.push_back(blob(from_hex_text(call.data)));
  }
  return {list(targets), list(values), list(data)};
}

std::string hash_of(const std::vector<AbiPart>& parts) {
  return to_hex0x(evm::keccak256(encode(parts)));
}

}  // namespace

AbiPart word(std::uint64_t value) {
  AbiPart part{.dynamic = false, .data = Bytes(32)};
  for (int i = 0; i < 8; ++i) part.data[31 - static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * i));
  return part;
}

AbiPart word(const std::string& hex) {
  const auto bytes = from_hex_text(hex);
  AbiPart part{.dynamic = false, .data = Bytes(32 - bytes.size())};
  append(part.data, bytes);
  return part;
}

AbiPart blob(const Bytes& bytes) {
  AbiPart part{.dynamic = true, .data = word(bytes.size()).data};
  append(part.data, bytes);
  part.data.resize((part.data.size() + 31) / 32 * 32);
  return part;
}

AbiPart text(const std::string& text) {
  return blob(Bytes(text.begin(), text.end()));
}

AbiPart list(const std::vector<AbiPart>& items) {
  AbiPart part{.dynamic = true, .data = word(items.size()).data};
  append(part.data, encode(items));
  return part;
}

Bytes encode(const std::vector<AbiPart>& parts) {
  std::size_t head = 0;
  for (const auto& part : parts) head += part.dynamic ? 32 : part.data.size();
  Bytes out;
  Bytes tail;
  for (const auto& part : parts) {
    append(out, part.dynamic ? word(head + tail.size()).data : part.data);
    if (part.dynamic) append(tail, part.data);
  }
  append(out, tail);
  return out;
}

std::string call_data(const std::string& signature, const std::vector<AbiPart>& arguments) {
  const auto selector = evm::selector(signature);
  return to_hex0x(selector) + to_hex(encode(arguments));
}

std::string salt(std::uint64_t number) {
  return to_hex0x(word(number).data);
}

std::string TimelockChain::send(const std::string& from, const std::string& to, const std::string& data,
                                bool mine) const {
  json::object transaction{{"from", from}, {"data", data}, {"gas", "0x7a1200"}};
  if (!to.empty()) transaction["to"] = to;
  const auto hash = std::string(cluster_.rpc("eth_sendTransaction", {transaction}).as_string());
  if (!mine) return hash;
  auto receipt = cluster_.rpc("eth_getTransactionReceipt", {hash});
  if (receipt.is_null()) {
    cluster_.mine(1);
    receipt = cluster_.rpc("eth_getTransactionReceipt", {hash});
  }
  if (receipt.is_null()) throw Exception(internal("not_mined", hash));
  if (receipt.at("status").as_string() != "0x1") throw Exception(internal("reverted", json::serialize(receipt)));
  return hash;
}

std::string TimelockChain::call(const std::string& to, const std::string& data) const {
  return std::string(cluster_.rpc("eth_call", {json::object{{"to", to}, {"data", data}}, "latest"}).as_string());
}

std::string TimelockChain::deploy(const std::string& from, const std::string& creation) const {
  const auto hash = send(from, "", creation);
  return std::string(cluster_.rpc("eth_getTransactionReceipt", {hash}).at("contractAddress").as_string());
}

std::int64_t TimelockChain::now() const {
  const auto block = cluster_.rpc("eth_getBlockByNumber", {"latest", false});
  return std::stoll(std::string(block.at("timestamp").as_string()), nullptr, 16);
}

void TimelockChain::set_time(std::int64_t timestamp) const {
  cluster_.rpc("evm_setNextBlockTimestamp", {timestamp});
  cluster_.mine(1);
}

CompoundTimelock::CompoundTimelock(const TimelockChain& chain, std::string admin, std::int64_t delay)
    : chain_(chain), admin_(std::move(admin)) {
  const auto arguments = encode({word(admin_), word(static_cast<std::uint64_t>(delay))});
  address_ = chain_.deploy(admin_, bytecode("@uniswap/governance/build/Timelock.json") + to_hex(arguments));
}

std::string CompoundTimelock::act(const std::string& function, const TimelockCall& call, const std::string& signature,
                                  std::int64_t eta) const {
  return chain_.send(admin_, address_,
                     call_data(function + "(address,uint256,string,bytes,uint256)",
                               {word(call.target), word(call.value), text(signature), blob(from_hex_text(call.data)),
                                word(static_cast<std::uint64_t>(eta))}));
}

std::string CompoundTimelock::queue(const TimelockCall& call, const std::string& signature, std::int64_t eta) const {
  return act("queueTransaction", call, signature, eta);
}
std::string CompoundTimelock::execute(const TimelockCall& call, const std::string& signature, std::int64_t eta) const {
  return act("executeTransaction", call, signature, eta);
}
std::string CompoundTimelock::cancel(const TimelockCall& call, const std::string& signature, std::int64_t eta) const {
  return act("cancelTransaction", call, signature, eta);
}

std::string CompoundTimelock::id(const TimelockCall& call, const std::string& signature, std::int64_t eta) {
  return hash_of({word(call.target), word(call.value), text(signature), blob(from_hex_text(call.data)),
                  word(static_cast<std::uint64_t>(eta))});
}

const std::string OpenZeppelinTimelock::kZero = "0x" + std::string(64, '0');

OpenZeppelinTimelock::OpenZeppelinTimelock(const TimelockChain& chain, std::string admin, std::int64_t min_delay)
    : chain_(chain), admin_(std::move(admin)) {
  const auto roles = list({word(admin_)});
  const auto arguments = encode({word(static_cast<std::uint64_t>(min_delay)), roles, roles, word(admin_)});
  address_ = chain_.deploy(
      admin_, bytecode("@openzeppelin/contracts/build/contracts/TimelockController.json") + to_hex(arguments));
}

std::string OpenZeppelinTimelock::schedule(const TimelockCall& call, const std::string& salt, std::int64_t delay,
                                           const std::string& predecessor) const {
  return chain_.send(admin_, address_,
                     call_data("schedule(address,uint256,bytes,bytes32,bytes32,uint256)",
                               {word(call.target), word(call.value), blob(from_hex_text(call.data)), word(predecessor),
                                word(salt), word(static_cast<std::uint64_t>(delay))}));
}

std::string OpenZeppelinTimelock::execute(const TimelockCall& call, const std::string& salt,
                                          const std::string& predecessor) const {
  return chain_.send(
      admin_, address_,
      call_data("execute(address,uint256,bytes,bytes32,bytes32)",
                {word(call.target), word(call.value), blob(from_hex_text(call.data)), word(predecessor), word(salt)}));
}

std::string OpenZeppelinTimelock::schedule_batch(const std::vector<TimelockCall>& calls, const std::string& salt,
                                                 std::int64_t delay) const {
  auto arguments = batch_arguments(calls);
  arguments.insert(arguments.end(), {word(kZero), word(salt), word(static_cast<std::uint64_t>(delay))});
  return chain_.send(admin_, address_,
                     call_data("scheduleBatch(address[],uint256[],bytes[],bytes32,bytes32,uint256)", arguments));
}

std::string OpenZeppelinTimelock::execute_batch(const std::vector<TimelockCall>& calls, const std::string& salt) const {
  auto arguments = batch_arguments(calls);
  arguments.insert(arguments.end(), {word(kZero), word(salt)});
  return chain_.send(admin_, address_,
                     call_data("executeBatch(address[],uint256[],bytes[],bytes32,bytes32)", arguments));
}

std::string OpenZeppelinTimelock::cancel(const std::string& id) const {
  return chain_.send(admin_, address_, call_data("cancel(bytes32)", {word(id)}));
}

std::string OpenZeppelinTimelock::id(const TimelockCall& call, const std::string& salt,
                                     const std::string& predecessor) {
  return hash_of({word(call.target), word(call.value), blob(from_hex_text(call.data)), word(predecessor), word(salt)});
}

std::string OpenZeppelinTimelock::batch_id(const std::vector<TimelockCall>& calls, const std::string& salt) {
  auto arguments = batch_arguments(calls);
  arguments.insert(arguments.end(), {word(kZero), word(salt)});
  return hash_of(arguments);
}

}  // namespace fencepost::test
