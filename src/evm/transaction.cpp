#include "evm/transaction.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "evm/keccak.hpp"
#include "evm/keys/ecdsa.hpp"
#include "evm/rlp.hpp"

namespace fencepost::evm {
namespace {

constexpr std::uint8_t kDynamicFeeType = 0x02;
constexpr std::uint8_t kFirstLegacyByte = 0xc0;  // a legacy transaction is a list; a type is under 0x80 (EIP-2718)

Error bad_transaction(std::string reason) {
  return invalid("bad_transaction", std::move(reason));
}

Error unsupported(std::string reason) {
  return invalid("unsupported_transaction", std::move(reason));
}

void append_call(Bytes& out, const Transaction& transaction) {
  if (transaction.to) {
    rlp::append_bytes(out, *transaction.to);
  } else {
    rlp::append_bytes(out, {});
  }
  rlp::append_integer(out, transaction.value);
  rlp::append_bytes(out, transaction.data);
}

Bytes legacy_fields(const Transaction& transaction, const LegacyFees& fees) {
  Bytes out;
  out.reserve(transaction.data.size() + 256);
  rlp::append_integer(out, transaction.nonce);
  rlp::append_integer(out, fees.gas_price);
  rlp::append_integer(out, transaction.gas);
  append_call(out, transaction);
  return out;
}

Bytes dynamic_fields(const Transaction& transaction, const DynamicFees& fees) {
  Bytes out;
  out.reserve(transaction.data.size() + 256);
  rlp::append_integer(out, transaction.chain_id);
  rlp::append_integer(out, transaction.nonce);
  rlp::append_integer(out, fees.max_priority_fee_per_gas);
  rlp::append_integer(out, fees.max_fee_per_gas);
  rlp::append_integer(out, transaction.gas);
  append_call(out, transaction);
  rlp::append_list(out, {});  // the access list
  return out;
}

Bytes typed(std::uint8_t type, std::span<const std::uint8_t> fields) {
  Bytes out{type};
  out.reserve(fields.size() + 10);
  rlp::append_list(out, fields);
  return out;
}

void append_r_and_s(Bytes& out, const Signature& signature) {
  rlp::append_integer(out, from_big_endian(signature.r));
  rlp::append_integer(out, from_big_endian(signature.s));
}

// Reads fields in order. Remembers the first error and returns zeros after it, so that the readers below need no error
// handling.
class Fields {
 public:
  explicit Fields(rlp::Reader reader) : reader_(reader) {}

  std::uint64_t uint64(const char* name) { return take<std::uint64_t>(name, reader_.uint64()); }
  Uint256 uint256(const char* name) { return take<Uint256>(name, reader_.uint256()); }
  std::span<const std::uint8_t> bytes(const char* name) {
    return take<std::span<const std::uint8_t>>(name, reader_.bytes());
  }
  std::optional<Address> to() {
    const auto found = bytes("to");
    if (found.empty()) return std::nullopt;
    Address address{};
    if (found.size() != address.size()) {
      reject(bad_transaction(fmt::format("to: expected 20 bytes or none, got {}", found.size())));
      return std::nullopt;
    }
    std::ranges::copy(found, address.begin());
    return address;
  }
  void empty_access_list() {
    const auto list = reader_.list();
    if (!list) {
      reject(bad_transaction("access list: " + list.error().message));
    } else if (!list->at_end()) {
      reject(unsupported("transactions with an access list are not supported"));
    }
  }
  void reject(Error error) {
    if (!error_) error_ = std::move(error);
  }
  Result<void> end() {
    if (error_) return fail(*std::move(error_));
    if (!reader_.at_end()) return fail(bad_transaction("the transaction has more fields than its type allows"));
    return {};
  }

 private:
  template <class T>
  T take(const char* name, Result<T> found) {
    if (found) return *std::move(found);
    reject(bad_transaction(fmt::format("{}: {}", name, found.error().message)));
    return T{};
  }

  rlp::Reader reader_;
  std::optional<Error> error_;
};

struct Parsed {
  Transaction transaction;
  Signature signature;
};

void read_call(Fields& in, Transaction& out) {
  out.to = in.to();
  out.value = in.uint256("value");
  const auto data = in.bytes("data");
  out.data.assign(data.begin(), data.end());
}

void read_r_and_s(Fields& in, Signature& out) {
  out.r = to_big_endian(in.uint256("r"));
  out.s = to_big_endian(in.uint256("s"));
}

// EIP-155: v = 35 + 2 × chain id + parity.
void read_v(Fields& in, Parsed& out) {
  const Uint256 v = in.uint256("v");
  if (v == 27 || v == 28) {
    in.reject(unsupported("a legacy transaction without a chain id (EIP-155) could be replayed on any chain"));
  } else if (v < 35) {
    in.reject(bad_transaction("v: expected 35 + 2 × chain id + parity, got " + to_decimal(v)));
  } else if ((v - 35) / 2 > std::numeric_limits<std::uint64_t>::max()) {
    in.reject(bad_transaction("v: the chain id is over 64 bits"));
  } else {
    out.transaction.chain_id = static_cast<std::uint64_t>((v - 35) / 2);
    out.signature.y_parity = (v - 35) % 2 != 0;
  }
}

void read_parity(Fields& in, Signature& out) {
  const auto parity = in.uint64("y parity");
  if (parity > 1) in.reject(bad_transaction(fmt::format("y parity: expected 0 or 1, got {}", parity)));
  out.y_parity = parity == 1;
}

Result<Parsed> finish(Fields& in, Parsed& parsed) {
  if (auto end = in.end(); !end) return fail(std::move(end).error());
  if (auto checked = check_transaction(parsed.transaction); !checked) return fail(std::move(checked).error());
  return std::move(parsed);
}

Result<Parsed> parse_legacy(rlp::Reader reader) {
  Fields in(reader);
  Parsed out;
  auto& transaction = out.transaction;
  transaction.nonce = in.uint64("nonce");
  transaction.fees = LegacyFees{in.uint256("gas price")};
  transaction.gas = in.uint64("gas");
  read_call(in, transaction);
  read_v(in, out);
  read_r_and_s(in, out.signature);
  return finish(in, out);
}

Result<Parsed> parse_dynamic(rlp::Reader reader) {
  Fields in(reader);
  Parsed out;
  auto& transaction = out.transaction;
  transaction.chain_id = in.uint64("chain id");
  transaction.nonce = in.uint64("nonce");
  DynamicFees fees;
  fees.max_priority_fee_per_gas = in.uint256("max priority fee per gas");
  fees.max_fee_per_gas = in.uint256("max fee per gas");
  transaction.fees = fees;
  transaction.gas = in.uint64("gas");
  read_call(in, transaction);
  in.empty_access_list();
  read_parity(in, out.signature);
  read_r_and_s(in, out.signature);
  return finish(in, out);
}

Result<Parsed> parse(std::span<const std::uint8_t> raw) {
  if (raw.empty()) return fail(bad_transaction("the transaction is empty"));
  const auto first = raw.front();
  const bool legacy = first >= kFirstLegacyByte;
  if (!legacy && first >= 0x80) return fail(bad_transaction("expected a list or a type, got a byte string"));
  if (!legacy && first != kDynamicFeeType) {
    return fail(unsupported(fmt::format("transactions of type {} are not supported", first)));
  }
  const auto body = legacy ? raw : raw.subspan(1);
  if (auto canonical = rlp::check(body); !canonical) return fail(std::move(canonical).error());
  auto fields = rlp::Reader(body).list();
  if (!fields) return fail(bad_transaction("expected a list of fields"));
  return legacy ? parse_legacy(*fields) : parse_dynamic(*fields);
}

}  // namespace

Result<void> check_transaction(const Transaction& transaction) {
  if (transaction.chain_id == 0) return fail(bad_transaction("chain id: must not be 0"));
  if (transaction.nonce == std::numeric_limits<std::uint64_t>::max()) {
    return fail(bad_transaction("nonce: must be under 2^64 - 1 (EIP-2681)"));
  }
  const auto* fees = std::get_if<DynamicFees>(&transaction.fees);
  if (fees != nullptr && fees->max_priority_fee_per_gas > fees->max_fee_per_gas) {
    return fail(bad_transaction("max priority fee per gas: must not be higher than max fee per gas"));
  }
  return {};
}

Hash32 signing_hash(const Transaction& transaction) {
  if (const auto* fees = std::get_if<LegacyFees>(&transaction.fees)) {
    auto fields = legacy_fields(transaction, *fees);
    rlp::append_integer(fields, transaction.chain_id);
    rlp::append_integer(fields, std::uint64_t{0});
    rlp::append_integer(fields, std::uint64_t{0});
    return keccak256(rlp::list(fields));
  }
  const auto& fees = std::get<DynamicFees>(transaction.fees);
  return keccak256(typed(kDynamicFeeType, dynamic_fields(transaction, fees)));
}

SignedTransaction assemble(const Transaction& transaction, const Signature& signature) {
  SignedTransaction out;
  if (const auto* legacy = std::get_if<LegacyFees>(&transaction.fees)) {
    auto fields = legacy_fields(transaction, *legacy);
    const Uint256 v = 35 + 2 * Uint256(transaction.chain_id) + (signature.y_parity ? 1 : 0);
    rlp::append_integer(fields, v);
    append_r_and_s(fields, signature);
    out.raw = rlp::list(fields);
  } else {
    auto fields = dynamic_fields(transaction, std::get<DynamicFees>(transaction.fees));
    rlp::append_integer(fields, std::uint64_t{signature.y_parity});
    append_r_and_s(fields, signature);
    out.raw = typed(kDynamicFeeType, fields);
  }
  out.hash = keccak256(out.raw);
  return out;
}

Result<DecodedTransaction> decode_transaction(std::span<const std::uint8_t> raw) {
  auto parsed = parse(raw);
  if (!parsed) return fail(std::move(parsed).error());
  const auto sender = recover_address(signing_hash(parsed->transaction), parsed->signature);
  if (!sender) return fail(sender.error());
  return DecodedTransaction{std::move(parsed->transaction), parsed->signature, *sender, keccak256(raw)};
}

std::uint64_t intrinsic_gas(bool creates, std::span<const std::uint8_t> data) {
  constexpr std::uint64_t kBase = 21'000;
  constexpr std::uint64_t kCreation = 32'000;
  constexpr std::uint64_t kPerInitCodeWord = 2;
  constexpr std::uint64_t kPerToken = 4;
  constexpr std::uint64_t kFloorPerToken = 10;
  const auto zeros = static_cast<std::uint64_t>(std::ranges::count(data, std::uint8_t{0}));
  const auto tokens = zeros + 4 * (data.size() - zeros);
  const auto creation = creates ? kCreation + kPerInitCodeWord * ((data.size() + 31) / 32) : 0;
  return kBase + std::max(kPerToken * tokens + creation, kFloorPerToken * tokens);
}

}  // namespace fencepost::evm
