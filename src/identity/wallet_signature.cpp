#include "identity/wallet_signature.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "evm/abi/abi.hpp"
#include "evm/address.hpp"
#include "evm/keccak.hpp"
#include "evm/keys/ecdsa.hpp"
#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"

namespace fencepost::identity {
namespace {

constexpr std::string_view kIsValidSignature = "isValidSignature(bytes32,bytes)";

Error bad_signature(std::string message) {
  return unauthenticated("bad_login_signature", std::move(message));
}

evm::Chain* chain_with(const Chains& chains, std::int64_t id) {
  const auto found = std::ranges::find_if(chains, [&](const auto& chain) { return chain->id() == id; });
  return found == chains.end() ? nullptr : found->get();
}

// The contract answers with the function's own selector, in a word of its own.
bool says_yes(const Bytes& answer) {
  const auto wanted = evm::selector(kIsValidSignature);
  if (answer.size() != 32 || !std::equal(wanted.begin(), wanted.end(), answer.begin())) return false;
  return std::all_of(answer.begin() + 4, answer.end(), [](auto byte) { return byte == 0; });
}

constexpr std::uint64_t kMostGas = 3'000'000;  // a signature of dozens of owners takes less

awaitable<Result<Bytes>> ask(evm::Chain& chain, std::string contract, std::string data) {
  return on_loop(chain.home(), [&chain, contract = std::move(contract), data = std::move(data)] {
    return chain.connector().call({.from = "", .to = contract, .value = {}, .data = data, .gas = Uint256(kMostGas)});
  });
}

}  // namespace

evm::Hash32 personal_message_hash(std::string_view text) {
  return evm::keccak256(
      fmt::format("\x19"
                  "Ethereum Signed Message:\n{}{}",
                  text.size(), text));
}

bool signed_by_key(const evm::Hash32& hash, std::span<const std::uint8_t> bytes, std::string_view address) {
  if (bytes.size() != 65) return false;
  const auto v = bytes[64] >= 27 ? bytes[64] - 27 : bytes[64];
  if (v > 1) return false;
  evm::Signature signature{.r = {}, .s = {}, .y_parity = v == 1};
  std::ranges::copy(bytes.first(32), signature.r.begin());
  std::ranges::copy(bytes.subspan(32, 32), signature.s.begin());
  const auto signer = evm::recover_address(hash, signature);
  return signer && evm::address_text(*signer) == address;
}

awaitable<Result<void>> check_wallet_signature(const Chains& chains, std::int64_t chain_id, std::string address,
                                               std::string_view text, Bytes signature, ContractChecks& checks) {
  const auto hash = personal_message_hash(text);
  if (signed_by_key(hash, signature, address)) co_return Result<void>();
  auto* const chain = chain_with(chains, chain_id);
  if (chain == nullptr) {
    co_return fail(bad_signature(fmt::format(
        "The key of the address did not sign this message, and chain {}, where a contract could say that it "
        "did, is not configured here.",
        chain_id)));
  }
  const std::unique_ptr<ContractChecks, decltype([](ContractChecks* c) { --c->running; })> until_done(&checks);
  if (++checks.running > ContractChecks::kAtOnce) {
    Error busy{ErrorKind::kRateLimited, "rate_limited", "Too many contract wallets log in at this moment.", {}, {}};
    co_return fail(std::move(busy).after(std::chrono::seconds(1)));
  }
  const auto data = evm::AbiWriter(evm::selector(kIsValidSignature)).bytes32(hash).bytes(signature).take();
  const auto answer = co_await ask(*chain, address, to_hex0x(data));
  const bool refused =
      !answer && (answer.error().code == "would_revert" || evm::reach_of(answer.error()) == evm::Reach::kAnswered);
  if (!answer && !refused) {
    log::warn("a contract wallet could not be asked", answer.error(), {{"chain", chain->name()}, {"wallet", address}});
    co_return fail(unavailable("login_chain_unavailable", "The chain of this wallet cannot be asked now: try again.")
                       .after(std::chrono::seconds(5)));
  }
  if (answer && says_yes(*answer)) co_return Result<void>();
  co_return fail(bad_signature(fmt::format(
      "Neither the key of the address nor a contract at it on chain {} says that it signed this message.", chain_id)));
}

}  // namespace fencepost::identity
