#include "tests/support/stub_chain.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "evm/keccak.hpp"

namespace fencepost::test {
namespace {

using evm::Address;
using evm::DecodedTransaction;

const Uint256& wealth() {
  static const Uint256 million_ether = Uint256(1'000'000) * Uint256(1'000'000'000'000'000'000);
  return million_ether;
}

// The highest price per gas that a transaction pays, and its tip on top of the base fee.
Uint256 fee_cap(const evm::Fees& fees) {
  if (const auto* legacy = std::get_if<evm::LegacyFees>(&fees)) return legacy->gas_price;
  return std::get<evm::DynamicFees>(fees).max_fee_per_gas;
}

Uint256 tip_cap(const evm::Fees& fees) {
  if (const auto* legacy = std::get_if<evm::LegacyFees>(&fees)) return legacy->gas_price;
  return std::get<evm::DynamicFees>(fees).max_priority_fee_per_gas;
}

Uint256 effective_price(const evm::Fees& fees, std::uint64_t base_fee) {
  return std::min<Uint256>(fee_cap(fees), base_fee + tip_cap(fees));
}

// Ten percent more, rounded up, as geth's pool requires.
bool replaces(const evm::Fees& newer, const evm::Fees& older) {
  const auto enough = [](const Uint256& now, const Uint256& before) { return now * 10 >= before * 11; };
  return enough(fee_cap(newer), fee_cap(older)) && enough(tip_cap(newer), tip_cap(older));
}

// Wide enough for any amount that a sender can claim to pay.
using Wide = boost::multiprecision::uint512_t;

Wide cost_of(const evm::Transaction& tx) {
  return Wide(fee_cap(tx.fees)) * tx.gas + Wide(tx.value);
}

std::uint64_t gas_of(const evm::Transaction& tx) {
  return evm::intrinsic_gas(!tx.to.has_value(), tx.data);
}

void append_number(Bytes& out, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(number >> shift));
}

evm::Hash32 hash_of(const StubBlock& block, std::uint64_t salt) {
  Bytes text(block.parent.begin(), block.parent.end());
  append_number(text, static_cast<std::uint64_t>(block.number));
  append_number(text, salt);
  for (const auto& receipt : block.receipts) {
    const auto& hash = receipt.transaction->hash;
    text.insert(text.end(), hash.begin(), hash.end());
  }
  return evm::keccak256(text);
}

}  // namespace

bool stub_reverts(std::span<const std::uint8_t> data) {
  return !data.empty() && data.front() == 0xfe;
}

// Hashes and addresses are evenly distributed already.
std::size_t StubChain::Hasher::operator()(std::span<const std::uint8_t> bytes) const noexcept {
  std::size_t out = 0;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

const Clock& StubChain::system_clock() {
  static const SystemClock clock;
  return clock;
}

StubChain::StubChain(StubChainOptions options, const Clock& clock)
    : options_(options),
      clock_(clock),
      base_fee_(options.base_fee),
      safe_distance_(options.safe_distance),
      finalized_distance_(options.finalized_distance) {
  mine_one(true);
}

StubChain::Account& StubChain::account(const Address& address) {
  const auto [place, is_new] = accounts_.try_emplace(address);
  if (is_new) {
    place->second.address = address;
    place->second.balance = wealth();
  }
  return place->second;
}

const StubChain::Account* StubChain::find(const Address& address) const {
  const auto found = accounts_.find(address);
  return found == accounts_.end() ? nullptr : &found->second;
}

// --- the pool ---------------------------------------------------------------------------------------------------

Result<evm::Hash32> StubChain::send(std::span<const std::uint8_t> raw) {
  auto decoded = evm::decode_transaction(raw);  // before the lock: recovering the sender takes most of the time
  if (!decoded) {
    return fail(invalid("bad_transaction", "failed to decode signed transaction: " + decoded.error().message));
  }
  auto tx = std::make_shared<const DecodedTransaction>(std::move(*decoded));
  const std::lock_guard lock(mutex_);
  auto& sender = account(tx->sender);
  if (auto checked = check(*tx, sender); !checked) return fail(std::move(checked.error()));
  const auto hash = tx->hash;
  unpool(sender, tx->transaction.nonce);  // the transaction that it replaces
  pool(sender, std::move(tx));
  return hash;
}

Result<void> StubChain::check(const DecodedTransaction& tx, const Account& sender) const {
  const auto& t = tx.transaction;
  if (t.chain_id != options_.chain_id) {
    return fail(invalid("bad_transaction",
                        fmt::format("invalid chain id for signer: have {} want {}", t.chain_id, options_.chain_id)));
  }
  if (pooled_.contains(tx.hash)) return fail(conflict("already_known", "already known"));
  if (t.nonce < sender.nonce) {
    return fail(
        conflict("nonce_too_low", fmt::format("nonce too low: next nonce {}, tx nonce {}", sender.nonce, t.nonce)));
  }
  if (t.gas > options_.gas_limit) return fail(invalid("bad_transaction", "exceeds block gas limit"));
  if (const auto needed = gas_of(t); t.gas < needed) {
    return fail(
        invalid("intrinsic_gas", fmt::format("intrinsic gas too low: gas {}, minimum needed {}", t.gas, needed)));
  }
  const auto cap = fee_cap(t.fees);
  if (cap < base_fee_) {
    return fail(conflict("fee_too_low", fmt::format("max fee per gas less than block base fee: address {}, "
                                                    "maxFeePerGas: {}, baseFee: {}",
                                                    to_hex0x(tx.sender), to_decimal(cap), base_fee_)));
  }
  if (const auto cost = cost_of(t); cost > Wide(sender.balance)) {
    return fail(conflict("insufficient_funds",
                         fmt::format("insufficient funds for gas * price + value: balance {}, tx cost {}, overshot {}",
                                     to_decimal(sender.balance), cost.str(), Wide(cost - sender.balance).str())));
  }
  const auto waiting = sender.pool.find(t.nonce);
  if (waiting != sender.pool.end() && !replaces(t.fees, waiting->second->transaction.fees)) {
    return fail(conflict("underpriced", "replacement transaction underpriced"));
  }
  if (waiting == sender.pool.end() && pooled_.size() >= options_.max_pool) {
    return fail(unavailable("pool_full", "txpool is full"));
  }
  return {};
}

void StubChain::pool(Account& sender, StubTransaction tx) {
  pooled_.emplace(tx->hash, tx);
  sender.pool.emplace(tx->transaction.nonce, std::move(tx));
  make_ready(sender);
}

void StubChain::unpool(Account& sender, std::uint64_t nonce) {
  const auto found = sender.pool.find(nonce);
  if (found == sender.pool.end()) return;
  pooled_.erase(found->second->hash);
  sender.pool.erase(found);
}

void StubChain::make_ready(Account& sender) {
  if (sender.ready || sender.pool.empty() || sender.pool.begin()->first != sender.nonce) return;
  sender.ready = true;
  ready_.push_back(&sender);
}

bool StubChain::evict(const Hash32& hash) {
  const std::lock_guard lock(mutex_);
  const auto found = pooled_.find(hash);
  if (found == pooled_.end()) return false;
  const auto tx = found->second;
  unpool(account(tx->sender), tx->transaction.nonce);
  return true;
}

// --- blocks -----------------------------------------------------------------------------------------------------

StubBlockPtr StubChain::mine(std::size_t blocks) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < blocks; ++i) mine_one(false);
  return blocks_.back();
}

void StubChain::mine_one(bool empty) {
  auto block = std::make_shared<StubBlock>();
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count();
  block->timestamp = now;
  block->base_fee = base_fee_;
  if (!blocks_.empty()) {
    block->number = blocks_.back()->number + 1;
    block->parent = blocks_.back()->hash;
    block->timestamp = std::max(now, blocks_.back()->timestamp);
  }
  bool full = empty;
  for (auto turns = ready_.size(); turns > 0 && !full; --turns) {
    auto& sender = *ready_.front();
    ready_.pop_front();
    sender.ready = false;
    run_pool_of(sender, *block, full);
    if (full) make_ready(sender);
  }
  block->hash = hash_of(*block, blocks_made_++);
  append(std::move(block));
}

void StubChain::run_pool_of(Account& sender, StubBlock& block, bool& full) {
  const auto before = sender.nonce;
  while (!sender.pool.empty() && sender.pool.begin()->first == sender.nonce) {
    const auto tx = sender.pool.begin()->second;
    const auto& t = tx->transaction;
    if (fee_cap(t.fees) < block.base_fee) break;  // the transaction waits for a lower base fee
    const bool cannot_pay = cost_of(t) > Wide(sender.balance);
    full = !cannot_pay && block.gas_used + gas_of(t) > options_.gas_limit;
    if (full) break;
    unpool(sender, t.nonce);
    if (cannot_pay) break;  // dropped when it would run, as a node does
    run(sender, block, tx);
  }
  if (sender.nonce != before) sender.steps.emplace_back(block.number, before);
}

void StubChain::run(Account& sender, StubBlock& block, const StubTransaction& tx) {
  const auto& t = tx->transaction;
  StubReceipt receipt{.transaction = tx,
                      .succeeded = !stub_reverts(t.data),
                      .gas_used = gas_of(t),
                      .gas_so_far = block.gas_used + gas_of(t),
                      .gas_price = effective_price(t.fees, block.base_fee)};
  sender.balance -= receipt.gas_price * receipt.gas_used;
  if (receipt.succeeded && t.to && t.value != 0) {
    sender.balance -= t.value;
    account(*t.to).balance += t.value;
  }
  ++sender.nonce;
  ++mined_count_;
  block.gas_used = receipt.gas_so_far;
  block.receipts.push_back(std::move(receipt));
}

void StubChain::append(std::shared_ptr<StubBlock> made) {
  const StubBlockPtr block = std::move(made);
  by_hash_.emplace(block->hash, block);
  for (std::size_t i = 0; i < block->receipts.size(); ++i) {
    const auto& tx = *block->receipts[i].transaction;
    mined_.insert_or_assign(tx.hash, Mined{block, i});
    if (options_.keep_history) history_[tx.sender].emplace_back(tx.transaction.nonce, tx.hash);
  }
  blocks_.push_back(block);
  if (blocks_.size() > options_.keep_blocks) forget_oldest();
}

void StubChain::forget_oldest() {
  const auto block = blocks_.front();
  blocks_.pop_front();
  by_hash_.erase(block->hash);
  for (const auto& receipt : block->receipts) {
    mined_.erase(receipt.transaction->hash);
    auto& steps = account(receipt.transaction->sender).steps;
    while (!steps.empty() && steps.front().first <= block->number) steps.pop_front();
  }
}

void StubChain::reorg(std::size_t depth, Fate fate, std::optional<std::size_t> new_blocks) {
  const std::lock_guard lock(mutex_);
  depth = std::min(depth, blocks_.size() - 1);
  for (std::size_t i = 0; i < depth; ++i) undo_head(fate);
  const auto made = new_blocks.value_or(depth + 1);
  for (std::size_t i = 0; i < made; ++i) mine_one(true);
}

void StubChain::undo_head(Fate fate) {
  const auto block = blocks_.back();
  blocks_.pop_back();
  by_hash_.erase(block->hash);
  for (auto at = block->receipts.rbegin(); at != block->receipts.rend(); ++at) {
    const auto& t = at->transaction->transaction;
    auto& sender = account(at->transaction->sender);
    sender.balance += at->gas_price * at->gas_used;
    if (at->succeeded && t.to && t.value != 0) {
      account(*t.to).balance -= t.value;
      sender.balance += t.value;
    }
    sender.nonce = t.nonce;
    if (!sender.steps.empty() && sender.steps.back().first == block->number) sender.steps.pop_back();
    mined_.erase(at->transaction->hash);
    if (fate == Fate::kBackToPool) {
      pool(sender, at->transaction);
    } else {
      make_ready(sender);
    }
  }
}

// --- queries ----------------------------------------------------------------------------------------------------

StubBlockPtr StubChain::head() const {
  const std::lock_guard lock(mutex_);
  return blocks_.back();
}

StubBlockPtr StubChain::block(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto oldest = blocks_.front()->number;
  if (number < oldest || number > blocks_.back()->number) return nullptr;
  return blocks_[static_cast<std::size_t>(number - oldest)];
}

StubBlockPtr StubChain::block(const Hash32& hash) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_hash_.find(hash);
  return found == by_hash_.end() ? nullptr : found->second;
}

std::int64_t StubChain::safe_number() const {
  const std::lock_guard lock(mutex_);
  return std::max<std::int64_t>(0, blocks_.back()->number - safe_distance_);
}

std::int64_t StubChain::finalized_number() const {
  const std::lock_guard lock(mutex_);
  return std::max<std::int64_t>(0, blocks_.back()->number - finalized_distance_);
}

std::optional<StubChain::Mined> StubChain::find_mined(const Hash32& hash) const {
  const std::lock_guard lock(mutex_);
  const auto found = mined_.find(hash);
  if (found == mined_.end()) return std::nullopt;
  return found->second;
}

StubTransaction StubChain::find_pooled(const Hash32& hash) const {
  const std::lock_guard lock(mutex_);
  const auto found = pooled_.find(hash);
  return found == pooled_.end() ? nullptr : found->second;
}

std::uint64_t StubChain::nonce(const Address& address) const {
  const std::lock_guard lock(mutex_);
  const auto* account = find(address);
  return account == nullptr ? 0 : account->nonce;
}

std::uint64_t StubChain::nonce_at(const Address& address, std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto* account = find(address);
  if (account == nullptr) return 0;
  const auto later = std::ranges::upper_bound(account->steps, number, {}, [](const auto& step) { return step.first; });
  return later == account->steps.end() ? account->nonce : later->second;
}

std::uint64_t StubChain::pending_nonce(const Address& address) const {
  const std::lock_guard lock(mutex_);
  const auto* account = find(address);
  if (account == nullptr) return 0;
  auto next = account->nonce;
  while (account->pool.contains(next)) ++next;
  return next;
}

Uint256 StubChain::balance(const Address& address) const {
  const std::lock_guard lock(mutex_);
  const auto* account = find(address);
  return account == nullptr ? wealth() : account->balance;
}

std::uint64_t StubChain::base_fee() const {
  const std::lock_guard lock(mutex_);
  return base_fee_;
}

std::size_t StubChain::pool_size() const {
  const std::lock_guard lock(mutex_);
  return pooled_.size();
}

void StubChain::set_base_fee(std::uint64_t fee) {
  const std::lock_guard lock(mutex_);
  base_fee_ = fee;
  for (auto& [address, account] : accounts_) make_ready(account);
}

void StubChain::set_balance(const Address& address, const Uint256& balance) {
  const std::lock_guard lock(mutex_);
  account(address).balance = balance;
}

void StubChain::set_distances(std::int64_t safe, std::int64_t finalized) {
  const std::lock_guard lock(mutex_);
  safe_distance_ = safe;
  finalized_distance_ = finalized;
}

std::vector<evm::Hash32> StubChain::history(const Address& sender, std::uint64_t nonce) const {
  const std::lock_guard lock(mutex_);
  std::vector<Hash32> out;
  const auto found = history_.find(sender);
  if (found == history_.end()) return out;
  for (const auto& [at, hash] : found->second) {
    if (at == nonce && std::ranges::find(out, hash) == out.end()) out.push_back(hash);
  }
  return out;
}

std::uint64_t StubChain::mined_count() const {
  const std::lock_guard lock(mutex_);
  return mined_count_;
}

}  // namespace fencepost::test
