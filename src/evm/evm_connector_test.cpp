#include "evm/evm_connector.hpp"

#include <atomic>
#include <future>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/connector_test_support.hpp"
#include "evm/keccak.hpp"

namespace fencepost::evm {
namespace {

using testing::block;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::hash;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::json;
using testing::Node;
using testing::number;
using testing::receipt;
using testing::Refusal;
using testing::text;
using json = boost::json::value;

// Blocks 0 … head.
Node::Answer chain(std::int64_t head) {
  return [head](const std::string& method, const boost::json::array& params) -> json {
    if (method != "eth_getBlockByNumber") throw Refusal{-32601, "the method does not exist"};
    if (params.at(0) == "latest") return block(head);
    const auto wanted = number(params.at(0));
    return wanted <= head ? block(wanted) : json(nullptr);
  };
}

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> hashes;
  hashes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) hashes.push_back(hash(static_cast<std::int64_t>(i), 'c'));
  return hashes;
}

using EvmConnectorTest = testing::ConnectorTest;

TEST_F(EvmConnectorTest, a_tag_gives_a_block) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    EXPECT_EQ(method, "eth_getBlockByNumber");
    EXPECT_EQ(params.at(1), false);
    if (params.at(0) == "latest") return block(9);
    if (params.at(0) == "finalized") return block(5);
    return nullptr;
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().block(BlockTag::kLatest))->header.number, 9);
  EXPECT_EQ(run(chain_().block(BlockTag::kFinalized, 0))->header.hash, hash(5));
  const auto safe = run(chain_().block(BlockTag::kSafe));
  ASSERT_FALSE(safe);
  EXPECT_EQ(safe.error().code, "rpc_error");
  EXPECT_THAT(safe.error().message, HasSubstr("safe"));
}

TEST_F(EvmConnectorTest, blocks_come_in_order_up_to_the_endpoints_head) {
  Node node(chain(120));
  connect({node.url()});
  const auto all = run(chain_().blocks(1, 120));
  ASSERT_TRUE(all) << all.error().to_string();
  ASSERT_EQ(all->size(), 120U);
  for (std::size_t i = 0; i < 120; ++i) EXPECT_EQ((*all)[i].header.number, static_cast<std::int64_t>(i) + 1);
  EXPECT_EQ(node.take_requests().size(), 3U);
  EXPECT_EQ(run(chain_().blocks(118, 10))->size(), 3U);
  EXPECT_EQ(run(chain_().blocks(121, 10))->size(), 0U);
  EXPECT_EQ(run(chain_().blocks(121, 0))->size(), 0U);
  node.take_requests();
  EXPECT_EQ(run(chain_().blocks(7, 1))->front().transactions, std::vector{hash(7, 'c')});
  EXPECT_THAT(node.take_requests(), ElementsAre("eth_getBlockByNumber"));
}

TEST_F(EvmConnectorTest, a_block_with_another_number_is_refused) {
  Node node([](const std::string&, const boost::json::array& params) -> json {
    const auto wanted = number(params.at(0));
    if (wanted == 5) return block(6);
    if (wanted == 15) throw Refusal{-32000, "database is shut"};
    return block(wanted);
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().blocks(5, 3)).error().code, "bad_rpc_result");
  EXPECT_EQ(run(chain_().blocks(3, 5))->size(), 2U) << "the blocks before the wrong one are returned";
  EXPECT_EQ(run(chain_().blocks(15, 3)).error().code, "rpc_error");
  EXPECT_EQ(run(chain_().blocks(14, 3))->size(), 1U);
}

TEST_F(EvmConnectorTest, blocks_of_one_call_come_from_one_endpoint) {
  std::atomic<bool> well{true};
  Node first([&](const std::string& method, const boost::json::array& params) -> json {
    if (number(params.at(0)) >= 75) well = false;
    if (!well) throw Refusal{-32005, "rate limit"};
    return chain(200)(method, params);
  });
  Node second(chain(200));
  connect({first.url(), second.url()});
  const auto blocks = run(chain_().blocks(20, 100));
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->size(), 50U);
  for (const auto& block : *blocks) EXPECT_EQ(block.endpoint, blocks->front().endpoint);
  connect({first.url(), second.url()});
  EXPECT_FALSE(run(chain_().blocks(20, 3, 0))) << "a pinned call goes to no other endpoint";
  EXPECT_EQ(run(chain_().blocks(20, 3, 1))->size(), 3U);
}

TEST_F(EvmConnectorTest, a_block_by_hash_is_that_block) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    EXPECT_EQ(method, "eth_getBlockByHash");
    if (text(params.at(0)) == hash(1)) return block(1);
    if (text(params.at(0)) == hash(2)) return block(3);
    return nullptr;
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().block_by_hash(hash(1)))->value().header.number, 1);
  EXPECT_EQ(run(chain_().block_by_hash(hash(2))).error().code, "bad_rpc_result");
  EXPECT_FALSE(run(chain_().block_by_hash(hash(4)))->has_value());
}

// A node with receipts of the transactions c0, c1, … of which the odd ones are in block 2, the even ones in block 1.
Node::Answer receipts_node(bool block_receipts) {
  return [=](const std::string& method, const boost::json::array& params) -> json {
    const auto of = [](std::int64_t i) { return receipt(hash(i, 'c'), 1 + i % 2); };
    if (method == "eth_getTransactionReceipt") {
      const auto i = std::stoll(text(params.at(0)).substr(3), nullptr, 16);
      return i < 100 ? of(i) : json(nullptr);
    }
    if (method != "eth_getBlockReceipts" || !block_receipts) throw Refusal{-32601, "the method does not exist"};
    if (text(params.at(0)) != hash(1)) return nullptr;
    boost::json::array all;
    for (int i = 0; i < 100; i += 2) all.emplace_back(of(i));
    return all;
  };
}

TEST_F(EvmConnectorTest, few_receipts_are_asked_for_one_by_one) {
  Node node(receipts_node(true));
  connect({node.url()});
  const auto found = run(chain_().receipts_in_block(hash(1), {hash(0, 'c'), hash(1, 'c'), hash(200, 'c')}, 0));
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U) << "one is in another block, one is not mined";
  EXPECT_EQ(found->front().tx_hash, hash(0, 'c'));
  EXPECT_THAT(node.take_requests(),
              ElementsAre("eth_getTransactionReceipt eth_getTransactionReceipt eth_getTransactionReceipt"));
}

TEST_F(EvmConnectorTest, many_receipts_are_asked_for_by_block) {
  Node node(receipts_node(true));
  connect({node.url()});
  const auto found = run(chain_().receipts_in_block(hash(1), names(20), 0));
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(found->size(), 10U);
  EXPECT_THAT(*found, Each(::testing::Field(&Receipt::block_hash, hash(1))));
  EXPECT_THAT(node.take_requests(), ElementsAre("eth_getBlockReceipts"));
}

TEST_F(EvmConnectorTest, block_receipts_are_tried_once_at_an_endpoint_without_them) {
  Node node(receipts_node(false));
  connect({node.url()});
  EXPECT_EQ(run(chain_().receipts_in_block(hash(1), names(20), 0))->size(), 10U);
  EXPECT_EQ(node.take_requests().size(), 2U);
  EXPECT_EQ(run(chain_().receipts_in_block(hash(1), names(20), 0))->size(), 10U);
  const auto requests = node.take_requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_THAT(requests[0], HasSubstr("eth_getTransactionReceipt"));
}

TEST_F(EvmConnectorTest, a_block_that_is_gone_has_no_receipts) {
  Node node(receipts_node(true));
  connect({node.url()});
  EXPECT_THAT(*run(chain_().receipts_in_block(hash(9), names(20), 0)), IsEmpty());
}

TEST_F(EvmConnectorTest, receipts_come_from_another_endpoint_if_it_has_all_of_them) {
  std::string gone;
  {
    Node node(receipts_node(true));
    gone = node.url();
  }
  Node other(receipts_node(true));
  connect({gone, other.url()});
  const std::vector<std::string> even{hash(0, 'c'), hash(2, 'c')};
  const auto found = run(chain_().receipts_in_block(hash(1), even, 0));
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(found->size(), 2U);
  EXPECT_EQ(found->front().endpoint, 1U);
  const auto partly = run(chain_().receipts_in_block(hash(1), {hash(0, 'c'), hash(200, 'c')}, 0));
  ASSERT_FALSE(partly) << "the other endpoint may just lag";
  EXPECT_EQ(partly.error().code, "rpc_unavailable");
}

TEST_F(EvmConnectorTest, each_receipt_has_its_own_answer) {
  Node node([](const std::string&, const boost::json::array& params) -> json {
    if (text(params.at(0)) == hash(1, 'c')) return nullptr;
    if (text(params.at(0)) == hash(2, 'c')) throw Refusal{-32000, "oops"};
    if (text(params.at(0)) == hash(3, 'c')) return receipt(hash(4, 'c'), 1);
    return receipt(text(params.at(0)), 7);
  });
  connect({node.url()});
  const auto all = run(chain_().receipts(names(5)));
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0]->value().block_number, 7);
  EXPECT_FALSE(all[1]->has_value());
  EXPECT_EQ(all[2].error().code, "rpc_error");
  EXPECT_EQ(all[3].error().code, "bad_rpc_result");
  EXPECT_EQ(all[4]->value().tx_hash, hash(4, 'c'));
  EXPECT_THAT(run(chain_().receipts({})), IsEmpty());
}

TEST_F(EvmConnectorTest, a_transaction_is_read_by_its_hash) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    EXPECT_EQ(method, "eth_getTransactionByHash");
    if (text(params.at(0)) == hash(2)) return nullptr;
    return {
        {"hash", hash(1)}, {"from", "0x" + std::string(40, 'f')}, {"nonce", "0x3"}, {"value", "0x0"}, {"input", "0x"}};
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().transaction(hash(1)))->value().nonce, 3);
  EXPECT_FALSE(run(chain_().transaction(hash(2)))->has_value());
  EXPECT_EQ(run(chain_().transaction(hash(3))).error().code, "bad_rpc_result");
}

std::string own_hash(const std::string& raw) {
  return to_hex0x(keccak256(from_hex0x(raw).value()));
}

TEST_F(EvmConnectorTest, broadcasts_are_classified_each_on_its_own) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    EXPECT_EQ(method, "eth_sendRawTransaction");
    const auto raw = text(params.at(0));
    if (raw == "0x01") return json(boost::json::string(own_hash(raw)));
    if (raw == "0x02") throw Refusal{-32000, "already known"};
    if (raw == "0x03") throw Refusal{-32000, "replacement transaction underpriced"};
    if (raw == "0x04") throw Refusal{-32603, "Internal error"};
    if (raw == "0x05") return json(boost::json::string(own_hash("0x99")));
    return nullptr;
  });
  connect({node.url()});
  const auto results = run(chain_().send({"0x01", "0x02", "0x03", "0x04", "0x05", "0x06"}));
  ASSERT_EQ(results.size(), 6U);
  const auto is = [&](std::size_t i, SubmitClass outcome, Reach reach) {
    EXPECT_EQ(to_string(results[i].outcome), to_string(outcome)) << i;
    EXPECT_EQ(results[i].reach, reach) << i;
  };
  is(0, SubmitClass::kAccepted, Reach::kAnswered);
  is(1, SubmitClass::kKnownTransaction, Reach::kUnknown);
  is(2, SubmitClass::kUnderpriced, Reach::kAnswered);
  is(3, SubmitClass::kUnknown, Reach::kUnknown);
  is(4, SubmitClass::kUnknown, Reach::kUnknown);
  is(5, SubmitClass::kUnknown, Reach::kUnknown);
  EXPECT_EQ(results[0].message, "");
  EXPECT_EQ(results[2].message, "replacement transaction underpriced");
  EXPECT_EQ(node.take_requests().size(), 1U) << "one request for all";
  EXPECT_THAT(run(chain_().send({})), IsEmpty());
}

TEST_F(EvmConnectorTest, a_broadcast_that_reached_no_endpoint_has_reach_nowhere) {
  std::string gone;
  {
    Node node(chain(1));
    gone = node.url();
  }
  connect({gone});
  const auto results = run(chain_().send({"0x01", "0x02"}));
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].outcome, SubmitClass::kTransient);
  EXPECT_EQ(results[0].reach, Reach::kNowhere);
  EXPECT_FALSE(results[0].message.empty());
}

TEST_F(EvmConnectorTest, nonces_balances_and_gas_price_are_read) {
  const std::string who = "0x" + std::string(40, 'a');
  Node node([&](const std::string& method, const boost::json::array& params) -> json {
    if (method == "eth_gasPrice") return "0x3b9aca00";
    if (method == "eth_getBalance") return "0x10000000000000000000000";
    EXPECT_EQ(method, "eth_getTransactionCount");
    if (text(params.at(0)) != who) throw Refusal{-32000, "who?"};
    return params.at(1) == "pending" ? "0x5" : params.at(1) == "latest" ? "0x4" : "0x3";
  });
  connect({node.url()});
  const auto pending = run(chain_().nonces({who, "0x1"}, NonceTag::kPending));
  EXPECT_EQ(pending[0], 5);
  EXPECT_FALSE(pending[1]);
  EXPECT_EQ(run(chain_().nonces({who}, NonceTag::kLatest))[0], 4);
  EXPECT_EQ(run(chain_().nonce_at(who, 16)), 3);
  EXPECT_EQ(to_quantity(*run(chain_().balances({who}))[0]), "0x10000000000000000000000");
  EXPECT_EQ(run(chain_().gas_price()), Uint256(1'000'000'000));
}

TEST_F(EvmConnectorTest, calls_send_their_fields_and_report_why_they_failed) {
  CallRequest wanted{
      .from = "0x" + std::string(40, 'a'), .to = "0x" + std::string(40, 'b'), .value = 5, .data = "0x12"};
  Node node([&](const std::string& method, const boost::json::array& params) -> json {
    const auto& object = params.at(0).as_object();
    EXPECT_EQ(text(object.at("from")), wanted.from);
    EXPECT_EQ(object.at("value"), "0x5");
    if (object.at("data") == "0xff") throw Refusal{3, "execution reverted: no", "0x"};
    if (object.at("data") == "0xee") throw Refusal{-32003, "Insufficient funds for gas * price + value"};
    EXPECT_EQ(text(object.at("to")), *wanted.to);
    EXPECT_EQ(object.contains("gas"), wanted.gas.has_value());
    return method == "eth_call" ? "0xabcd" : "0x5208";
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().estimate_gas(wanted)), Uint256(21000));
  EXPECT_EQ(run(chain_().call(wanted)), (Bytes{0xab, 0xcd}));
  wanted.gas = 100'000;
  EXPECT_TRUE(run(chain_().call(wanted)));
  wanted.data = "0xff";
  EXPECT_EQ(run(chain_().estimate_gas(wanted)).error().code, "would_revert");
  EXPECT_EQ(run(chain_().call(wanted)).error().code, "would_revert");
  wanted.data = "0xee";
  EXPECT_EQ(run(chain_().estimate_gas(wanted)).error().code, "insufficient_funds");
}

TEST_F(EvmConnectorTest, the_fee_history_request_suits_every_node_software) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    EXPECT_EQ(method, "eth_feeHistory");
    EXPECT_EQ(params.at(0), "0xa");
    EXPECT_EQ(params.at(1), "latest");
    if (params.at(2).at(0).is_int64()) {
      EXPECT_EQ(params.at(2).at(0), 25);
    } else {
      EXPECT_EQ(params.at(2).at(0), 12.5);
    }
    return boost::json::parse(R"({"oldestBlock":"0x1","baseFeePerGas":["0x1","0x9"],"reward":[["0x2"]]})");
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().fee_history(10, 25))->next_base_fee, 9);
  EXPECT_EQ(run(chain_().fee_history(10, 12.5))->tips, std::vector<Uint256>{2});
}

TEST_F(EvmConnectorTest, the_price_comes_from_an_endpoint_that_knows_it) {
  Node without([](const std::string&, const boost::json::array&) -> json {
    throw Refusal{-32601, "the method does not exist"};
  });
  Node knows([](const std::string& method, const boost::json::array&) -> json {
    if (method == "eth_gasPrice") return "0x7";
    return boost::json::parse(R"({"oldestBlock":"0x1","baseFeePerGas":["0x1","0x9"],"reward":[["0x2"]]})");
  });
  connect({without.url(), knows.url()});
  EXPECT_EQ(run(chain_().fee_history(10, 25))->next_base_fee, 9);
  EXPECT_EQ(run(chain_().gas_price()), Uint256(7));
  EXPECT_EQ(run(chain_().gas_price(0)).error().code, "rpc_error") << "only this endpoint";
}

TEST_F(EvmConnectorTest, a_syncing_node_is_reported) {
  std::atomic<bool> busy{true};
  Node node([&](const std::string&, const boost::json::array&) -> json {
    return busy ? json{{"currentBlock", "0x1"}} : json(false);
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().syncing()), true);
  busy = false;
  EXPECT_EQ(run(chain_().syncing(0)), false);
}

// Accepts every transaction, or refuses each with an error.
Node::Answer accepting() {
  return [](const std::string&, const boost::json::array& params) -> json {
    return json(boost::json::string(own_hash(text(params.at(0)))));
  };
}
Node::Answer refusing(std::int64_t code, std::string message) {
  return [=](const std::string&, const boost::json::array&) -> json { throw Refusal{code, message}; };
}

TEST_F(EvmConnectorTest, a_broadcast_goes_to_all_healthy_endpoints_and_one_acceptance_counts) {
  Node poor(refusing(-32000, "insufficient funds for gas * price + value"));
  Node good(accepting());
  Node other(refusing(-32603, "Internal error"));
  connect({poor.url(), good.url(), other.url()});
  const auto results = run(chain_().send({"0x01", "0x02"}));
  ASSERT_EQ(results.size(), 2U);
  for (const auto& result : results) EXPECT_EQ(result.outcome, SubmitClass::kAccepted);
  for (auto* node : {&poor, &good, &other}) EXPECT_EQ(node->take_requests().size(), 1U);
}

TEST_F(EvmConnectorTest, a_broadcast_is_refused_only_if_every_endpoint_refuses) {
  Node poor(refusing(-32000, "insufficient funds for gas * price + value"));
  Node invalid(refusing(-32602, "rlp: expected List"));
  Node unsure(refusing(-32603, "Internal error"));
  std::string gone;
  {
    Node node(chain(1));
    gone = node.url();
  }
  connect({poor.url(), invalid.url(), gone});
  auto result = run(chain_().send({"0x01"})).front();
  EXPECT_EQ(result.outcome, SubmitClass::kInsufficientFunds) << "the cause that may end";
  EXPECT_EQ(result.reach, Reach::kAnswered);
  connect({poor.url(), invalid.url(), unsure.url()});
  result = run(chain_().send({"0x01"})).front();
  EXPECT_EQ(result.outcome, SubmitClass::kUnknown);
  EXPECT_EQ(result.reach, Reach::kUnknown);
}

TEST_F(EvmConnectorTest, an_accepted_broadcast_does_not_wait_for_an_endpoint_that_hangs) {
  std::atomic<bool> answered = false;
  std::promise<void> release;
  const auto released = release.get_future().share();
  Node slow([&](const std::string&, const boost::json::array& params) -> json {
    released.wait();
    answered = true;
    return json(boost::json::string(own_hash(text(params.at(0)))));
  });
  Node good(accepting());
  connect({slow.url(), good.url()});
  const auto send = [&]() -> awaitable<bool> {
    const auto results = co_await chain_().send({"0x01"});
    const bool early = !answered;
    release.set_value();
    co_return early&& results.front().outcome == SubmitClass::kAccepted;
  };
  EXPECT_TRUE(run(send()));
  EXPECT_TRUE(answered) << "it gets the transaction all the same";
}

TEST_F(EvmConnectorTest, an_endpoint_that_is_behind_gets_broadcasts_only_if_the_others_do_not_answer) {
  Node stalled(accepting());
  auto good = std::make_unique<Node>(accepting());
  auto second = std::make_unique<Node>(accepting());
  connect({stalled.url(), good->url(), second->url()});
  rpc_->compare_heads({5, 6, 6});
  rpc_->compare_heads({5, 7, 7});
  EXPECT_EQ(run(chain_().send({"0x01"})).front().outcome, SubmitClass::kAccepted);
  EXPECT_THAT(stalled.take_requests(), IsEmpty());
  good.reset();
  second.reset();
  EXPECT_EQ(run(chain_().send({"0x02"})).front().outcome, SubmitClass::kAccepted);
  EXPECT_EQ(stalled.take_requests().size(), 1U);
}

TEST_F(EvmConnectorTest, a_question_about_a_block_goes_to_an_endpoint_that_has_it) {
  const auto at = [](std::int64_t head) -> Node::Answer {
    return
        [head](const std::string&, const boost::json::array&) -> json { return fmt::format("0x{:x}", head).c_str(); };
  };
  Node behind(at(5));
  Node ahead(at(9));
  connect({behind.url(), ahead.url()});
  EXPECT_FALSE(chain_().endpoint_with(5)) << "none has reported yet";
  EXPECT_EQ(run(chain_().head_reaching(5))->endpoint, 0U);
  EXPECT_EQ(run(chain_().head_reaching(6))->endpoint, 1U);
  EXPECT_EQ(chain_().endpoint_with(5), 0U);
  EXPECT_EQ(chain_().endpoint_with(9), 1U);
  EXPECT_FALSE(chain_().endpoint_with(10));
  EXPECT_EQ(chain_().highest_head(), 9);
  const auto none = run(chain_().head_reaching(10));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, "endpoint_behind");
}

}  // namespace
}  // namespace fencepost::evm
