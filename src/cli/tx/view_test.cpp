#include "cli/tx/view.hpp"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr auto kTx = R"({
  "txId": "0193309a-0000-7000-8000-000000000001", "chainId": 31337, "requestId": "order-7", "nonce": 7,
  "signer": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "state": "TRACKING", "subState": "mined",
  "txHash": "0xabc", "payload": {"to": "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc", "value": "1500000000000000000"},
  "gas": "21000", "error": null, "receipt": {"blockNumber": "0x10", "status": "0x0"}, "blockedBy": null,
  "createdAt": "2026-11-15T19:45:18.123456Z", "firstSubmittedAt": "2026-11-15T19:45:19.000000Z",
  "nextResubmitAt": "2026-11-15T19:46:19.000000Z",
  "attempts": [{"txHash": "0xabc", "attempt": 1, "kind": "original", "outcome": "accepted", "message": null,
                "createdAt": "2026-11-15T19:45:18.500000Z"}]
})";

TEST(tx_view, one_transaction_is_shown_in_full) {
  EXPECT_EQ(tx_details(json::parse(kTx)),
            "transaction  0193309a-0000-7000-8000-000000000001\n"
            "state        TRACKING (mined)\n"
            "request id   order-7\n"
            "chain        31337\n"
            "signer       0x70997970c51812dc3a010c7d01b50e0d17dc79c8\n"
            "nonce        7\n"
            "to           0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc\n"
            "value        1.5 ether\n"
            "gas          21000\n"
            "hash         0xabc\n"
            "block        16 (reverted)\n"
            "created      2026-11-15 19:45:18 UTC\n"
            "submitted    2026-11-15 19:45:19 UTC\n"
            "\n"
            "ATTEMPT  KIND      HASH   OUTCOME   SIGNED (UTC)         MESSAGE\n"
            "1        original  0xabc  accepted  2026-11-15 19:45:18\n");
}

TEST(tx_view, a_pending_transaction_shows_its_next_resubmit) {
  const auto details = [](const char* state, json::value receipt) {
    return tx_details({{"state", state}, {"nextResubmitAt", "2026-11-15T19:46:19Z"}, {"receipt", std::move(receipt)}});
  };
  EXPECT_EQ(details("STUCK", nullptr), "state          STUCK\nnext resubmit  2026-11-15 19:46:19 UTC\n");
  EXPECT_EQ(details("TRACKING", {{"blockNumber", "0x10"}}), "state  TRACKING\nblock  16\n");
  EXPECT_EQ(details("CONFIRMED", nullptr), "state  CONFIRMED\n");
}

TEST(tx_view, long_data_is_cut_and_measured) {
  const auto data = "0x" + std::string(2000, 'a');
  const auto text = tx_details(json::value{{"payload", {{"data", data}}}});
  EXPECT_EQ(text, "data  0x" + std::string(72, 'a') + "… (1000 bytes)\n");
}

TEST(tx_view, a_list_has_one_line_per_item) {
  EXPECT_EQ(tx_table({json::parse(kTx), json::parse(R"({"txId": "t", "state": "CREATED", "payload": {}})")}),
            "TX ID                                 STATE             CHAIN  NONCE  SIGNER           TO               "
            "VALUE      REQUEST ID  CREATED (UTC)\n"
            "0193309a-0000-7000-8000-000000000001  TRACKING (mined)  31337  7      0x70997970…79c8  0x3c44cddd…93bc  "
            "1.5 ether  order-7     2026-11-15 19:45:18\n"
            "t                                     CREATED\n");
}

TEST(tx_view, history_is_in_order_with_the_acting_node) {
  const auto steps = json::parse(R"([
    {"at": "2026-11-15T19:45:18.123456Z", "from": null, "to": "ALLOCATED", "subState": null, "node": "a-1",
     "fencingToken": 3, "why": "accepted"},
    {"at": "2026-11-15T19:45:19.000000Z", "from": "ALLOCATED", "to": "TRACKING", "subState": "mined", "node": "a-1",
     "fencingToken": 3, "why": "in block\n5"}])");
  EXPECT_EQ(history_table(steps.as_array()),
            "AT (UTC)                 FROM       TO                NODE  TOKEN  WHY\n"
            "2026-11-15 19:45:18.123             ALLOCATED         a-1   3      accepted\n"
            "2026-11-15 19:45:19.000  ALLOCATED  TRACKING (mined)  a-1   3      in block 5\n");
}

TEST(tx_view, on_a_terminal_a_history_keeps_its_reasons_before_its_tokens) {
  const auto steps = json::parse(R"([
    {"at": "2026-11-15T19:45:18.123456Z", "from": "ALLOCATED", "to": "TRACKING", "subState": "mined", "node": "a-1",
     "fencingToken": 3, "why": "its block 12345 is no longer there"}])");
  EXPECT_EQ(history_table(steps.as_array(), 80),
            "AT (UTC)                 TO                WHY\n"
            "2026-11-15 19:45:18.123  TRACKING (mined)  its block 12345 is no longer there\n");
}

TEST(tx_view, a_history_whose_first_steps_are_gone_says_so) {
  const auto table = history_table({});
  EXPECT_EQ(history_text(json::parse(R"({"items": [], "nextCursor": null, "truncated": false})")), table);
  EXPECT_EQ(history_text(json::parse(R"({"items": [], "nextCursor": null, "truncated": true})")),
            "Earlier steps are gone: they are older than events.retention.\n" + table);
}

}  // namespace
}  // namespace fencepost::cli
