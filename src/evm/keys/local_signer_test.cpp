#include "evm/keys/local_signer.hpp"

#include <gtest/gtest.h>

#include "evm/address.hpp"
#include "runtime/runtime_test_support.hpp"

namespace fencepost::evm {
namespace {

PrivateKey some_key() {
  return PrivateKey::from_bytes(Bytes(32, 0x46)).value();
}

Transaction transfer(std::uint64_t nonce) {
  return {.chain_id = 31'337,
          .nonce = nonce,
          .gas = 21'000,
          .to = address_bytes("0x3535353535353535353535353535353535353535"),
          .value = 1,
          .fees = DynamicFees{.max_fee_per_gas = 100, .max_priority_fee_per_gas = 1}};
}

class LocalSignerTest : public testing::Test {
 protected:
  LocalSignerTest() { runtime_.start(); }
  ~LocalSignerTest() override { runtime_.stop(); }

  Runtime runtime_{{.threads = 2, .cpu_threads = 2}};
  LocalSigner signer_{runtime_, some_key()};
};

TEST_F(LocalSignerTest, signs_for_its_address) {
  EXPECT_EQ(signer_.address(), "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f");
  const auto made = runtime_.run_on(0, signer_.sign(transfer(7)));
  ASSERT_TRUE(made) << made.error().to_string();
  const auto decoded = decode_transaction(made->raw).value();
  EXPECT_EQ(decoded.transaction, transfer(7));
  EXPECT_EQ(address_text(decoded.sender), signer_.address());
  EXPECT_EQ(decoded.hash, made->hash);
}

TEST_F(LocalSignerTest, signs_a_batch_in_order_and_one_bad_item_fails_alone) {
  std::vector<Transaction> batch;
  batch.reserve(50);
  for (std::uint64_t nonce = 0; nonce < 50; ++nonce) batch.push_back(transfer(nonce));
  batch[20].chain_id = 0;
  const auto made = runtime_.run_on(1, signer_.sign_all(batch));
  ASSERT_EQ(made.size(), batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (i == 20) {
      ASSERT_FALSE(made[i]);
      EXPECT_EQ(made[i].error().code, "bad_transaction");
      continue;
    }
    ASSERT_TRUE(made[i]);
    EXPECT_EQ(decode_transaction(made[i]->raw).value().transaction, batch[i]);
  }
  EXPECT_TRUE(runtime_.run_on(0, signer_.sign_all({})).empty());
}

awaitable<std::size_t> sign_many(LocalSigner& signer) {
  std::size_t good = 0;
  for (std::uint64_t nonce = 0; nonce < 50; ++nonce) {
    const auto made = co_await signer.sign(transfer(nonce));
    if (made && decode_transaction(made->raw).value().transaction.nonce == nonce) ++good;
  }
  co_return good;
}

TEST_F(LocalSignerTest, is_used_by_several_loops_at_once) {
  auto first = asio::co_spawn(runtime_.loop(0), sign_many(signer_), asio::use_future);
  auto second = asio::co_spawn(runtime_.loop(1), sign_many(signer_), asio::use_future);
  EXPECT_EQ(first.get(), 50u);
  EXPECT_EQ(second.get(), 50u);
}

}  // namespace
}  // namespace fencepost::evm
