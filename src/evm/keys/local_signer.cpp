#include "evm/keys/local_signer.hpp"

#include <utility>

#include "evm/address.hpp"

namespace fencepost::evm {
namespace {

Result<SignedTransaction> sign_checked(const PrivateKey& key, const Transaction& transaction) {
  if (auto checked = check_transaction(transaction); !checked) return fail(std::move(checked).error());
  return sign_transaction(key, transaction);
}

}  // namespace

LocalSigner::LocalSigner(Runtime& runtime, PrivateKey key)
    : runtime_(runtime),
      key_(std::make_shared<const PrivateKey>(std::move(key))),
      address_(address_text(key_->address())) {}

awaitable<Result<SignedTransaction>> LocalSigner::sign(Transaction transaction) {
  auto work = [key = key_, transaction = std::move(transaction)] { return sign_checked(*key, transaction); };
  co_return co_await runtime_.offload(std::move(work));
}

awaitable<std::vector<Result<SignedTransaction>>> LocalSigner::sign_all(std::vector<Transaction> transactions) {
  auto work = [key = key_, transactions = std::move(transactions)] {
    std::vector<Result<SignedTransaction>> out;
    out.reserve(transactions.size());
    for (const auto& transaction : transactions) out.push_back(sign_checked(*key, transaction));
    return out;
  };
  co_return co_await runtime_.offload(std::move(work));
}

}  // namespace fencepost::evm
