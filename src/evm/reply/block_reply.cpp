#include "evm/reply/block_reply.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/reply/reply_fields.hpp"

namespace fencepost::evm {
namespace {

using reply::address_of;
using reply::bad_result;
using reply::BadShape;
using reply::data_of;
using reply::hash_of;
using reply::int64_of;
using reply::Members;
using reply::parse;
using reply::uint256_of;
namespace ondemand = simdjson::ondemand;

// Null when there is no bloom of 256 bytes, or when the node may not compute it: some chains send zeros for every
// block. Zeros are believed of a block without transactions only: one request too many is better than a missed log.
std::shared_ptr<const Bloom> bloom_of(std::string_view text, bool has_transactions) {
  auto bloom = std::make_shared<Bloom>();
  if (!decode_hex0x(text, *bloom)) return nullptr;
  const bool zeros = std::ranges::all_of(*bloom, [](std::uint8_t byte) { return byte == 0; });
  return zeros && has_transactions ? nullptr : bloom;
}

Block read_block(ondemand::object object) {
  Block block;
  auto& header = block.header;
  std::string_view bloom;
  Members members{"number", "hash", "parentHash", "timestamp", "transactions"};
  for (auto field : object) {
    const std::string_view key = field.unescaped_key().value();
    ondemand::value value = field.value();
    if (key == "number") {
      members.saw("number");
      header.number = int64_of(value, key);
    } else if (key == "hash") {
      members.saw("hash");
      header.hash = hash_of(value, key);
    } else if (key == "parentHash") {
      members.saw("parentHash");
      header.parent_hash = hash_of(value, key);
    } else if (key == "timestamp") {
      members.saw("timestamp");
      header.timestamp = int64_of(value, key);
    } else if (key == "baseFeePerGas") {
      members.saw("baseFeePerGas");
      if (!value.is_null()) header.base_fee = uint256_of(value, key);
    } else if (key == "gasLimit") {
      if (!value.is_null()) header.gas_limit = uint256_of(value, key);
    } else if (key == "logsBloom") {
      members.saw("logsBloom");
      if (value.get_string().get(bloom) != simdjson::SUCCESS) bloom = {};
    } else if (key == "transactions") {
      members.saw("transactions");
      auto hashes = value.get_array().value();
      for (auto hash : hashes) block.transactions.push_back(hash_of(hash.value(), "a transaction"));
    }
  }
  members.check();
  header.logs_bloom = bloom_of(bloom, !block.transactions.empty());
  return block;
}

Receipt read_receipt(ondemand::object object) {
  Receipt receipt;
  Members members{"transactionHash", "blockHash", "blockNumber", "transactionIndex", "status", "gasUsed"};
  for (auto field : object) {
    const std::string_view key = field.unescaped_key().value();
    ondemand::value value = field.value();
    if (key == "transactionHash") {
      members.saw("transactionHash");
      receipt.tx_hash = hash_of(value, key);
    } else if (key == "blockHash") {
      members.saw("blockHash");
      receipt.block_hash = hash_of(value, key);
    } else if (key == "blockNumber") {
      members.saw("blockNumber");
      receipt.block_number = int64_of(value, key);
    } else if (key == "transactionIndex") {
      members.saw("transactionIndex");
      receipt.transaction_index = int64_of(value, key);
    } else if (key == "status") {
      members.saw("status");
      const auto status = int64_of(value, key);
      if (status > 1) throw BadShape{fmt::format("status is {}", status)};
      receipt.succeeded = status == 1;
    } else if (key == "gasUsed") {
      members.saw("gasUsed");
      receipt.gas_used = uint256_of(value, key);
    } else if (key == "effectiveGasPrice") {
      members.saw("effectiveGasPrice");
      receipt.effective_gas_price = uint256_of(value, key);
    } else if (key == "contractAddress") {
      members.saw("contractAddress");
      if (!value.is_null()) receipt.contract_address = address_of(value, key);
    }
  }
  members.check();
  return receipt;
}

TransactionInfo read_transaction(ondemand::object object) {
  TransactionInfo info;
  Members members{"hash", "from", "nonce", "value", "input"};
  for (auto field : object) {
    const std::string_view key = field.unescaped_key().value();
    ondemand::value value = field.value();
    if (key == "hash") {
      members.saw("hash");
      info.hash = hash_of(value, key);
    } else if (key == "from") {
      members.saw("from");
      info.from = address_of(value, key);
    } else if (key == "nonce") {
      members.saw("nonce");
      info.nonce = int64_of(value, key);
    } else if (key == "to") {
      if (!value.is_null()) info.to = address_of(value, key);
    } else if (key == "value") {
      members.saw("value");
      info.value = uint256_of(value, key);
    } else if (key == "input") {
      members.saw("input");
      info.data = data_of(value, key);
    } else if (key == "gas") {
      info.gas = uint256_of(value, key);
    } else if (key == "blockHash") {
      members.saw("blockHash");
      if (!value.is_null()) info.block_hash = hash_of(value, key);
    }
  }
  members.check();
  return info;
}

Result<std::string> string_of(const RpcValue& value, std::string_view what) {
  auto text = value.as_string();
  if (!text) return fail(bad_result(fmt::format("expected {}, got {}", what, quote(value.text()))));
  return text;
}

}  // namespace

Result<std::optional<Block>> parse_block(const RpcValue& value) {
  if (value.is_null()) return std::nullopt;
  auto block = parse(value.text(), "a block",
                     [](ondemand::document& document) { return read_block(document.get_object().value()); });
  if (!block) return fail(std::move(block.error()));
  block->endpoint = value.endpoint();
  return std::optional(std::move(*block));
}

Result<std::optional<Receipt>> parse_receipt(const RpcValue& value) {
  if (value.is_null()) return std::nullopt;
  auto receipt = parse(value.text(), "a receipt",
                       [](ondemand::document& document) { return read_receipt(document.get_object().value()); });
  if (!receipt) return fail(std::move(receipt.error()));
  receipt->json = value.text();
  receipt->endpoint = value.endpoint();
  return std::optional(std::move(*receipt));
}

Result<std::optional<std::vector<Receipt>>> parse_block_receipts(const RpcValue& value,
                                                                 const std::unordered_set<std::string>& wanted) {
  if (value.is_null()) return std::nullopt;
  auto texts = parse(value.text(), "a block's receipts", [&](ondemand::document& document) {
    std::vector<std::string> found;
    auto elements = document.get_array().value();
    for (auto element : elements) {
      ondemand::object object = element.get_object().value();
      const auto hash = hash_of(object.find_field_unordered("transactionHash").value(), "transactionHash");
      object.reset().value();
      const std::string_view text = object.raw_json().value();
      if (wanted.contains(hash)) found.emplace_back(text.substr(0, text.find_last_of('}') + 1));
    }
    return found;
  });
  if (!texts) return fail(std::move(texts.error()));
  std::vector<Receipt> receipts;
  for (auto& text : *texts) {
    RpcValue one(std::move(text));
    one.set_endpoint(value.endpoint());
    auto receipt = parse_receipt(one);
    if (!receipt) return fail(std::move(receipt.error()));
    receipts.push_back(std::move(**receipt));
  }
  return std::optional(std::move(receipts));
}

Result<std::optional<TransactionInfo>> parse_transaction(const RpcValue& value) {
  if (value.is_null()) return std::nullopt;
  auto info = parse(value.text(), "a transaction",
                    [](ondemand::document& document) { return read_transaction(document.get_object().value()); });
  if (!info) return fail(std::move(info.error()));
  return std::optional(std::move(*info));
}

Result<FeeHistory> parse_fee_history(const RpcValue& value) {
  return parse(value.text(), "a fee history", [](ondemand::document& document) {
    FeeHistory history;
    Members members{"baseFeePerGas", "reward"};
    std::vector<bool> empty;  // blocks without transactions, where the endpoint says so
    auto fields = document.get_object().value();
    for (auto field : fields) {
      const std::string_view key = field.unescaped_key().value();
      ondemand::value member = field.value();
      if (key == "baseFeePerGas") {
        members.saw("baseFeePerGas");
        bool any = false;
        auto fees = member.get_array().value();
        for (auto fee : fees) {
          history.next_base_fee = uint256_of(fee.value(), "a base fee");
          any = true;
        }
        if (!any) throw BadShape{"baseFeePerGas is empty"};
      } else if (key == "gasUsedRatio") {
        if (member.is_null()) continue;
        auto ratios = member.get_array().value();
        for (auto ratio : ratios) {
          double used = 1;
          if (ratio.get_double().get(used) != simdjson::SUCCESS) used = 1;
          empty.push_back(used == 0);
        }
      } else if (key == "reward") {
        members.saw("reward");
        auto blocks = member.get_array().value();
        for (auto block : blocks) {
          std::optional<Uint256> tip;
          auto rewards = block.get_array().value();
          for (auto reward : rewards) {
            if (!tip) tip = uint256_of(reward.value(), "a reward");
          }
          if (!tip) throw BadShape{"a block has no reward"};
          history.tips.push_back(std::move(*tip));
        }
      }
    }
    members.check();
    // An empty block has a reward of 0, which says nothing about what the chain asks.
    std::size_t place = 0;
    std::erase_if(history.tips, [&](const Uint256& tip) {
      const bool in_empty = place < empty.size() && empty[place];
      ++place;
      return in_empty && tip == 0;
    });
    return history;
  });
}

Result<Uint256> parse_uint256_result(const RpcValue& value) {
  const auto text = string_of(value, "a quantity");
  if (!text) return fail(text.error());
  auto number = parse_quantity(*text);
  if (!number) return fail(bad_result(fmt::format("expected a quantity, got {}", quote(*text))));
  return number;
}

Result<std::int64_t> parse_int64_result(const RpcValue& value) {
  const auto number = parse_uint256_result(value);
  if (!number) return fail(number.error());
  if (*number > std::numeric_limits<std::int64_t>::max()) {
    return fail(bad_result(fmt::format("{} is too large", quote(value.text()))));
  }
  return number->convert_to<std::int64_t>();
}

Result<Bytes> parse_bytes_result(const RpcValue& value) {
  const auto text = string_of(value, "bytes");
  if (!text) return fail(text.error());
  auto bytes = from_hex0x(*text);
  if (!bytes) return fail(bad_result(fmt::format("expected bytes like \"0x1a2b\", got {}", quote(*text))));
  return bytes;
}

}  // namespace fencepost::evm
