// The connector and the block follower against a real chain and a real database.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/block_follower.hpp"
#include "evm/evm_connector.hpp"
#include "evm/keys/dev_accounts.hpp"
#include "evm/keys/private_key.hpp"
#include "runtime/runtime_test_support.hpp"
#include "tests/support/anvil.hpp"
#include "tests/support/chain_link.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::evm {
namespace {

using test::ChainLink;
using test::comes_true;
using test::with_chain;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::uint64_t kGwei = 1'000'000'000;

std::string account(std::size_t index) {
  return std::string(dev_accounts()[index].address);
}

// A transfer of one wei from the first development account to the second by default.
struct Wanted {
  std::uint64_t nonce = 0;
  std::uint64_t gas = 21'000;
  Uint256 max_fee = 3 * kGwei;
  Uint256 value = 1;
  std::uint64_t chain_id = 31337;
};

SignedTransaction sign(const Wanted& wanted) {
  static const auto key = PrivateKey::from_hex(Secret(std::string(dev_accounts()[0].private_key))).value();
  Transaction transaction;
  transaction.chain_id = wanted.chain_id;
  transaction.nonce = wanted.nonce;
  transaction.gas = wanted.gas;
  transaction.to = from_hex0x_fixed<20>(account(1)).value();
  transaction.value = wanted.value;
  transaction.fees = DynamicFees{wanted.max_fee, std::min<Uint256>(wanted.max_fee, kGwei)};
  return sign_transaction(key, transaction);
}

std::string raw(const Wanted& wanted) {
  return to_hex0x(sign(wanted).raw);
}
std::string hash(const Wanted& wanted) {
  return to_hex0x(sign(wanted).hash);
}

awaitable<SubmitClass> submit(ChainLink& link, Wanted wanted) {
  std::vector<std::string> one{raw(wanted)};
  const auto results = co_await link.connector.send(std::move(one));
  co_return results.front().outcome;
}

TEST(evm_chain, anvils_submit_errors_are_classified) {
  const test::Anvil anvil({"--no-mining"});
  with_chain(anvil, [](ChainLink& link) -> awaitable<> {
    const auto says = [&](Wanted wanted, SubmitClass expected) -> awaitable<> {
      const auto outcome = co_await submit(link, wanted);
      EXPECT_EQ(to_string(outcome), to_string(expected));
    };
    co_await says({}, SubmitClass::kAccepted);
    co_await says({}, SubmitClass::kKnownTransaction);
    co_await says({.value = 2}, SubmitClass::kUnderpriced);
    co_await says({.nonce = 1, .max_fee = 1}, SubmitClass::kFeeTooLow);
    co_await says({.nonce = 1, .gas = 20'999}, SubmitClass::kIntrinsicGas);
    co_await says({.nonce = 1, .value = Uint256(1) << 100}, SubmitClass::kInsufficientFunds);
    co_await says({.nonce = 1, .gas = 1'000'000'000}, SubmitClass::kInvalid);
    co_await says({.nonce = 1, .chain_id = 1}, SubmitClass::kTransient);
    co_await link.ask("anvil_mine", {"0x1"});
    co_await says({}, SubmitClass::kNonceTooLow);
    std::vector<std::string> garbage{"0x02c0"};
    const auto refused = co_await link.connector.send(std::move(garbage));
    EXPECT_EQ(refused.front().outcome, SubmitClass::kInvalid);
    EXPECT_EQ(refused.front().reach, Reach::kAnswered);
  });
}

TEST(evm_chain, a_batch_of_transactions_is_followed_to_its_receipts) {
  const test::Anvil anvil({"--no-mining"});
  with_chain(anvil, [](ChainLink& link) -> awaitable<> {
    auto& chain = link.connector;
    std::vector<std::string> raws;
    std::vector<std::string> hashes;
    for (std::uint64_t nonce = 0; nonce < 20; ++nonce) {
      raws.push_back(raw({.nonce = nonce}));
      hashes.push_back(hash({.nonce = nonce}));
    }
    for (const auto& result : co_await chain.send(raws)) EXPECT_EQ(result.outcome, SubmitClass::kAccepted);
    const std::vector<std::string> sender{account(0)};
    EXPECT_EQ((co_await chain.nonces(sender, NonceTag::kPending, std::nullopt))[0], 20);
    EXPECT_EQ((co_await chain.nonces(sender, NonceTag::kLatest, std::nullopt))[0], 0);
    const auto waiting = co_await chain.transaction(hashes[3], std::nullopt);
    EXPECT_EQ(waiting->value().nonce, 3);
    EXPECT_EQ(waiting->value().from, account(0));
    EXPECT_EQ(waiting->value().block_hash, std::nullopt);
    EXPECT_FALSE((co_await chain.receipts(hashes, std::nullopt))[0]->has_value());

    co_await link.ask("anvil_mine", {"0x2"});
    const auto mined = co_await chain.blocks(1, 5, std::nullopt);
    EXPECT_EQ(mined->size(), 2U);
    const auto block = mined->front();
    EXPECT_EQ(block.transactions, hashes);
    const auto by_hash = co_await chain.block_by_hash(block.header.hash, block.endpoint);
    EXPECT_EQ(by_hash->value().header, block.header);
    for (const std::size_t count : {std::size_t{3}, std::size_t{20}}) {
      std::vector<std::string> some(hashes.begin(), hashes.begin() + static_cast<std::ptrdiff_t>(count));
      const auto receipts = co_await chain.receipts_in_block(block.header.hash, some, block.endpoint);
      EXPECT_EQ(receipts->size(), count);
      for (const auto& receipt : *receipts) {
        EXPECT_TRUE(receipt.succeeded);
        EXPECT_EQ(receipt.gas_used, 21'000);
        EXPECT_GT(receipt.effective_gas_price, 0);
        EXPECT_THAT(receipt.json, HasSubstr(receipt.tx_hash));
      }
      EXPECT_TRUE((co_await chain.receipts_in_block((*mined)[1].header.hash, some, block.endpoint))->empty());
    }
    EXPECT_EQ(co_await chain.nonce_at(account(0), 0, std::nullopt), 0);
    EXPECT_EQ(co_await chain.nonce_at(account(0), 1, std::nullopt), 20);
    EXPECT_EQ((co_await chain.transaction(hashes[3], std::nullopt))->value().block_hash, block.header.hash);
  });
}

TEST(evm_chain, the_queries_of_a_node_are_answered) {
  const test::Anvil anvil;
  with_chain(anvil, [](ChainLink& link) -> awaitable<> {
    auto& chain = link.connector;
    co_await link.ask("anvil_mine", {"0x50"});
    EXPECT_EQ((co_await link.head()).header.number, 80);
    EXPECT_LT((co_await chain.block(BlockTag::kFinalized, std::nullopt))->header.number, 80);
    EXPECT_LT((co_await chain.block(BlockTag::kSafe, std::nullopt))->header.number, 80);
    EXPECT_EQ(to_decimal(*(co_await chain.balances({account(0)})).front()), "10000000000000000000000");
    EXPECT_GT(*co_await chain.gas_price(std::nullopt), 0);
    const auto fees = co_await chain.fee_history(10, 50, std::nullopt);
    EXPECT_TRUE(fees.has_value()) << fees.error().to_string();
    EXPECT_THAT(fees->tips, ::testing::IsEmpty()) << "empty blocks ask for no tip";
    EXPECT_EQ(co_await chain.syncing(std::nullopt), false);
    CallRequest transfer{.from = account(0), .to = account(1), .value = 1};
    EXPECT_EQ(co_await chain.estimate_gas(transfer), Uint256(21'000));
    EXPECT_EQ(co_await chain.call(transfer, std::nullopt, std::nullopt), Bytes{});
  });
}

TEST(evm_chain, a_real_revert_gives_its_reason) {
  const test::Anvil anvil;
  with_chain(anvil, [](ChainLink& link) -> awaitable<> {
    // Init code that reverts with the 100 bytes after it: Error("nope").
    const std::string error =
        "08c379a0"
        "0000000000000000000000000000000000000000000000000000000000000020"
        "0000000000000000000000000000000000000000000000000000000000000004"
        "6e6f706500000000000000000000000000000000000000000000000000000000";
    CallRequest creation{.from = account(0), .data = "0x6064600c60003960646000fd" + error};
    const auto estimate = co_await link.connector.estimate_gas(creation);
    EXPECT_EQ(estimate.error().code, "would_revert");
    EXPECT_THAT(estimate.error().to_string(), HasSubstr("revertReason=nope"));
    EXPECT_THAT(estimate.error().to_string(), HasSubstr("revertData=0x" + error));
    EXPECT_EQ((co_await link.connector.call(creation, std::nullopt, std::nullopt)).error().code, "would_revert");
    creation.data = "0xfe";
    EXPECT_EQ((co_await link.connector.estimate_gas(creation)).error().code, "would_revert");
    CallRequest beggar{.from = "0x" + std::string(40, '1'), .to = account(1), .value = Uint256(1) << 100};
    EXPECT_EQ((co_await link.connector.call(beggar, std::nullopt, std::nullopt)).error().code, "insufficient_funds");
  });
}

// Applies each update to its own copy of the chain and counts blocks that do not follow their parent.
struct Listener {
  awaitable<> hear(const ChainUpdate& update) {
    if (update.reorged_to) {
      reorgs.push_back(*update.reorged_to);
      std::erase_if(chain, [&](const auto& h) { return h.number > *update.reorged_to; });
    }
    for (const auto& block : update.blocks) {
      if (!chain.empty() && !follows(block.header, chain.back())) ++breaks;
      chain.push_back(block.header);
      transactions.insert(transactions.end(), block.transactions.begin(), block.transactions.end());
    }
    co_return;
  }

  std::vector<BlockHeader> chain;
  std::vector<std::string> transactions;
  std::vector<std::int64_t> reorgs;
  int breaks = 0;
};

class FollowedChain : public ::testing::Test {
 protected:
  using Body = std::function<awaitable<>(ChainLink&, BlockFollower&, Listener&)>;

  void follow(std::vector<std::string> urls, const Body& body) {
    test::with_pool(db_.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
      const auto executor = co_await this_executor();
      ChainLink link(executor, urls);
      PgHeaderStore store(pool);
      BlockFollower follower(executor, link.connector, store, link.clock,
                             {.poll_interval = 5ms, .window = 64, .believe_lower_after = 3, .ask_others_after = 5},
                             link.metrics);
      Listener listener;
      follower.subscribe("test", [&](const ChainUpdate& update) { return listener.hear(update); });
      follower.start();
      std::exception_ptr failure;
      try {
        co_await body(link, follower, listener);
      } catch (const std::exception&) {
        failure = std::current_exception();
      }
      co_await follower.stop();
      if (failure) std::rethrow_exception(failure);
    });
  }
  // Waits until the follower and its listener are at the chain's head; false if that takes too long.
  static awaitable<bool> arrives(ChainLink& link, BlockFollower& follower, Listener& listener) {
    const auto head = co_await link.head();
    co_return co_await comes_true([&] {
      return !follower.window().empty() && *follower.window().head() == head.header && !listener.chain.empty() &&
             listener.chain.back() == head.header;
    });
  }

  test::TestDatabase db_{test::Template::kMigrated};
};

TEST_F(FollowedChain, blocks_and_their_transactions_arrive) {
  const test::Anvil anvil;
  follow({anvil.url()}, [this](ChainLink& link, BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    for (std::uint64_t nonce = 0; nonce < 5; ++nonce) {
      EXPECT_EQ(co_await submit(link, {.nonce = nonce}), SubmitClass::kAccepted);
    }
    EXPECT_TRUE(co_await comes_true([&] { return listener.transactions.size() == 5; }));
    for (std::uint64_t nonce = 0; nonce < 5; ++nonce) EXPECT_EQ(listener.transactions[nonce], hash({.nonce = nonce}));
    co_await link.ask("anvil_mine", {"0x12c"});
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    EXPECT_TRUE(co_await comes_true([&] { return follower.synced(); }));
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_TRUE(listener.reorgs.empty());
    EXPECT_EQ(db_.exec("SELECT count(*) FROM chain_header WHERE chain_id = 31337"),
              std::to_string(listener.chain.size()));
  });
}

TEST_F(FollowedChain, a_reorg_is_followed) {
  const test::Anvil anvil;
  follow({anvil.url()}, [this](ChainLink& link, BlockFollower& follower, Listener& listener) -> awaitable<> {
    co_await link.ask("anvil_mine", {"0x14"});
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    const auto old_head = listener.chain.back();
    co_await link.ask("anvil_reorg", {5, boost::json::array{}});
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    EXPECT_EQ(listener.reorgs, std::vector<std::int64_t>{15});
    EXPECT_EQ(follower.window().contains(old_head.number, old_head.hash), false);
    EXPECT_EQ(listener.breaks, 0);
    EXPECT_EQ(db_.exec("SELECT count(*) FROM chain_header WHERE number = 20"), "2") << "both branches must be stored";
  });
}

TEST_F(FollowedChain, a_chain_that_is_reverted_to_a_snapshot_is_followed_when_it_grows_again) {
  const test::Anvil anvil;
  follow({anvil.url()}, [](ChainLink& link, BlockFollower& follower, Listener& listener) -> awaitable<> {
    co_await link.ask("anvil_mine", {"0xa"});
    const auto snapshot = co_await link.ask("evm_snapshot");
    co_await link.ask("anvil_mine", {"0xa"});
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    EXPECT_EQ(listener.chain.back().number, 20);
    co_await link.ask("evm_revert", {*snapshot.as_string()});
    EXPECT_EQ(co_await submit(link, {}), SubmitClass::kAccepted);
    EXPECT_TRUE(co_await comes_true([&] { return listener.chain.back().number == 11; }));
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    EXPECT_EQ(listener.reorgs, std::vector<std::int64_t>{10});
    EXPECT_EQ(listener.breaks, 0);
  });
}

TEST_F(FollowedChain, a_new_chain_at_the_second_endpoint_is_noticed_when_the_first_dies) {
  // Two chains started in the same second would have the same genesis.
  test::Anvil first({"--timestamp", "1800000000"});
  const test::Anvil second({"--timestamp", "1800000100"});
  follow({first.url(), second.url()}, [&](ChainLink& link, BlockFollower& follower, Listener& listener) -> awaitable<> {
    co_await link.ask("anvil_mine", {"0x5"});
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    first.kill();
    // The second endpoint has a lower chain with another genesis, like a development chain that was reset.
    EXPECT_TRUE(co_await comes_true([&] { return listener.chain.size() == 1; }));
    EXPECT_EQ(listener.reorgs, std::vector<std::int64_t>{-1});
    co_await link.ask("anvil_mine", {"0x3"});
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    EXPECT_EQ(listener.chain.size(), 4U);
    EXPECT_EQ(listener.breaks, 0);
  });
}

TEST_F(FollowedChain, a_restarted_follower_continues_at_the_stored_block) {
  const test::Anvil anvil;
  const auto mine = [&](const char* blocks) {
    with_chain(anvil, [blocks](ChainLink& link) -> awaitable<> { co_await link.ask("anvil_mine", {blocks}); });
  };
  mine("0x64");
  follow({anvil.url()}, [](ChainLink& link, BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    EXPECT_EQ(listener.chain.front().number, 37);
  });
  mine("0xc8");
  follow({anvil.url()}, [](ChainLink& link, BlockFollower& follower, Listener& listener) -> awaitable<> {
    EXPECT_TRUE(co_await arrives(link, follower, listener));
    EXPECT_EQ(listener.chain.front().number, 101) << "blocks mined between the runs are missing";
    EXPECT_EQ(listener.chain.back().number, 300);
    EXPECT_EQ(listener.breaks, 0);
  });
}

}  // namespace
}  // namespace fencepost::evm
