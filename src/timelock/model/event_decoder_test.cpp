#include "timelock/model/event_decoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "evm/abi/abi.hpp"
#include "timelock/model/event_test_support.hpp"

namespace fencepost::timelock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr auto kCompound = Standard::kCompound;
constexpr auto kOpenZeppelin = Standard::kOpenZeppelin;

// From the contracts' own documentation, not computed here.
constexpr std::string_view kQueue = "0x76e2796dc3a81d57b0e8504b647febcbeeb5f4af818e164f11eef8131a6a763f";
constexpr std::string_view kExecute = "0xa560e3198060a2f10670c1ec5b403077ea6ae93ca8de1c32b451dc1a943cd6e7";
constexpr std::string_view kCancel = "0x2fffc091a501fd91bfbff27141450d3acb40fb8e6d8382b243ec7a812a3aaf87";
constexpr std::string_view kNewAdmin = "0x71614071b88dee5e0b2ae578a9dd7b2ebbe9ae832ba419dc0242cd065a290b6c";
constexpr std::string_view kNewPendingAdmin = "0x69d78e38a01985fbb1462961809b4b2d65531bc93b2b94037f3334b82ca4a756";
constexpr std::string_view kNewDelay = "0x948b1f6a42ee138b7e34058ba85a37f716d55ff25ff05a763f15bed6a04c8d2c";
constexpr std::string_view kScheduled = "0x4cf4410cc57040e44862ef0f45f3dd5a5e02db8eb8add648d4b0e236f1d07dca";
constexpr std::string_view kCallExecuted = "0xc2617efa69bab66782fa219543714338489c4e9e178271560a91b82c3f612b58";
constexpr std::string_view kSalt = "0x20fda5fd27a1ea7bf5b9567f143ac5470bb059374a27e8f67cb44f946f6d0387";
constexpr std::string_view kCancelled = "0xbaa1eb22f2a492ba1a5fea61b8df4d27c6c8b5f3971e63bb58fa14ff72eedb70";
constexpr std::string_view kMinDelay = "0x11c24f4ead16507c69ac467fbd5e4eed5fb5c699626d2cc6d66421df253886d5";
constexpr std::string_view kGranted = "0x2f8788117e7eff1d82e926ec794901d17c78024a50270940304540a733656f0d";
constexpr std::string_view kRevoked = "0xf6391f5c32d9c69d2a47ea670b442974b53935d1edc7fd64eb21e047a839171b";
constexpr std::string_view kRoleAdmin = "0xbd79b86ffe0ab8e8776151514217cd7cacd52c909f66475c3af44e129f0b00ff";

const std::string kId = "0x" + std::string(64, 'a');
const std::string kZero = "0x" + std::string(64, '0');
const std::string kOne = "0x5b38da6a701c568545dcfcb03fcb875f56beddc4";
const std::string kTwo = "0xab8483f64d9c6d1ecf9b849ae677dd3315835cb2";

std::string topic_of(const std::string& address) {
  return "0x" + std::string(24, '0') + address.substr(2);
}

LogFields log_of(std::vector<std::string> topics, std::string data = "0x") {
  return {.address = "0x" + std::string(40, 'c'),
          .topics = std::move(topics),
          .data = std::move(data),
          .tx_hash = stub::hash_of("tx"),
          .block_hash = stub::hash_of("block"),
          .block_number = 17,
          .log_index = 4};
}
LogFields log_of(std::string_view event, std::vector<std::string> indexed, std::string data = "0x") {
  indexed.insert(indexed.begin(), std::string(event));
  return log_of(std::move(indexed), std::move(data));
}

RawEvent decoded(Standard standard, const LogFields& log) {
  const auto event = decode(standard, log);
  if (!event) throw Exception(event.error());
  return event->value();
}

// The data of QueueTransaction with this signature.
std::string queue_data(std::string_view signature) {
  return to_hex0x(evm::AbiWriter().uint256(0).string(signature).bytes({}).uint256(9).take());
}

TEST(event_decoder, asks_for_the_topics_of_the_contracts) {
  EXPECT_THAT(topics_of(kCompound), ElementsAre(kQueue, kExecute, kCancel, kNewAdmin, kNewPendingAdmin, kNewDelay));
  EXPECT_THAT(topics_of(kOpenZeppelin),
              ElementsAre(kScheduled, kCallExecuted, kSalt, kCancelled, kMinDelay, kGranted, kRevoked, kRoleAdmin));
}

// The data of these events is by ethers 6: Interface.encodeEventLog.
TEST(event_decoder, queue_transaction) {
  const auto event = decoded(kCompound, log_of(kQueue, {kId, topic_of(kOne)},
                                               "0x"
                                               "0000000000000000000000000000000000000000000000000000000000000007"
                                               "0000000000000000000000000000000000000000000000000000000000000080"
                                               "00000000000000000000000000000000000000000000000000000000000000c0"
                                               "8000000000000000000000000000000000000000000000000000000000000000"
                                               "0000000000000000000000000000000000000000000000000000000000000011"
                                               "73657444656c61792875696e7432353629000000000000000000000000000000"
                                               "0000000000000000000000000000000000000000000000000000000000000020"
                                               "000000000000000000000000000000000000000000000000000000000002a300"));
  EXPECT_EQ(event.type, EventType::kQueueTransaction);
  EXPECT_EQ(event.standard, kCompound);
  EXPECT_EQ(event.contract, "0x" + std::string(40, 'c'));
  EXPECT_EQ(event.flow_id, kId);
  EXPECT_EQ(event.position, (Position{17, 4}));
  EXPECT_EQ(event.block_hash, stub::hash_of("block"));
  EXPECT_EQ(event.tx_hash, stub::hash_of("tx"));
  EXPECT_EQ(event.call.target, kOne);
  EXPECT_EQ(event.call.value, 7);
  EXPECT_EQ(event.call.signature, "setDelay(uint256)");
  EXPECT_EQ(event.call.signature_bytes, "");
  EXPECT_EQ(event.call.data, "0x" + std::string(59, '0') + "2a300");
  EXPECT_EQ(event.eta, Uint256(1) << 255);
}

TEST(event_decoder, execute_and_cancel_have_the_arguments_of_queue) {
  for (const auto& [topic, type] :
       {std::pair(kExecute, EventType::kExecuteTransaction), std::pair(kCancel, EventType::kCancelTransaction)}) {
    const auto event = decoded(kCompound, log_of(topic, {kId, topic_of(kTwo)}, queue_data("f()")));
    EXPECT_EQ(event.type, type);
    EXPECT_EQ(event.flow_id, kId);
    EXPECT_EQ(event.call.target, kTwo);
    EXPECT_EQ(event.call.signature, "f()");
    EXPECT_EQ(event.eta, Uint256(9));
  }
}

TEST(event_decoder, call_scheduled) {
  const auto event = decoded(kOpenZeppelin, log_of(kScheduled, {kId, "0x" + std::string(63, '0') + "2"},
                                                   "0x"
                                                   "0000000000000000000000005b38da6a701c568545dcfcb03fcb875f56beddc4"
                                                   "0000000000000000000000000000000000000000000000000000000000000005"
                                                   "00000000000000000000000000000000000000000000000000000000000000a0"
                                                   "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
                                                   "0000000000000000000000000000000000000000000000010000000000000000"
                                                   "0000000000000000000000000000000000000000000000000000000000000004"
                                                   "deadbeef00000000000000000000000000000000000000000000000000000000"));
  EXPECT_EQ(event.type, EventType::kCallScheduled);
  EXPECT_EQ(event.flow_id, kId);
  EXPECT_EQ(event.call, (Call{.index = 2, .target = kOne, .value = 5, .data = "0xdeadbeef"}));
  EXPECT_EQ(event.predecessor, to_hex0x(Bytes(32, 0xcd)));
  EXPECT_EQ(event.delay, Uint256(1) << 64);
  EXPECT_EQ(event.eta, std::nullopt);
}

TEST(event_decoder, call_executed_salt_and_cancelled) {
  const auto executed =
      decoded(kOpenZeppelin, log_of(kCallExecuted, {kId, "0x" + std::string(63, '0') + "1"},
                                    "0x"
                                    "000000000000000000000000ab8483f64d9c6d1ecf9b849ae677dd3315835cb2"
                                    "0000000000000000000000000000000000000000000000000000000000000000"
                                    "0000000000000000000000000000000000000000000000000000000000000060"
                                    "0000000000000000000000000000000000000000000000000000000000000000"));
  EXPECT_EQ(executed.type, EventType::kCallExecuted);
  EXPECT_EQ(executed.call, (Call{.index = 1, .target = kTwo, .value = 0, .data = "0x"}));

  const auto salt = decoded(kOpenZeppelin, log_of(kSalt, {kId}, "0x" + to_hex(Bytes(32, 0xef))));
  EXPECT_EQ(salt.salt, "0x" + to_hex(Bytes(32, 0xef)));
  EXPECT_EQ(decoded(kOpenZeppelin, log_of(kCancelled, {kId})).flow_id, kId);
}

TEST(event_decoder, guard_events_have_their_arguments_by_name) {
  EXPECT_THAT(decoded(kCompound, log_of(kNewAdmin, {topic_of(kOne)})).guard, ElementsAre(Pair("newAdmin", kOne)));
  EXPECT_THAT(decoded(kCompound, log_of(kNewPendingAdmin, {topic_of(kTwo)})).guard,
              ElementsAre(Pair("newPendingAdmin", kTwo)));
  EXPECT_THAT(decoded(kCompound, log_of(kNewDelay, {"0x" + std::string(59, '0') + "2a300"})).guard,
              ElementsAre(Pair("newDelay", "172800")));
  const auto delays =
      decoded(kOpenZeppelin, log_of(kMinDelay, {},
                                    "0x"
                                    "0000000000000000000000000000000000000000000000000000000000015180"
                                    "0000000000000000000000000000000000000000000000000000000000000e10"));
  EXPECT_THAT(delays.guard, ElementsAre(Pair("oldDuration", "86400"), Pair("newDuration", "3600")));
  EXPECT_EQ(delays.flow_id, "");
}

TEST(event_decoder, known_roles_are_named) {
  const std::string proposer = "0xb09aa5aeb3702cfd50b6b62bc4532604938f21248a27a1d5ca736082b6819cc1";
  const std::string canceller = "0xfd643c72710c63c0180259aba6b2d05451e3591a24e58b62239378085726f783";
  const auto unknown = "0x" + std::string(64, '7');
  EXPECT_THAT(decoded(kOpenZeppelin, log_of(kGranted, {proposer, topic_of(kOne), topic_of(kTwo)})).guard,
              ElementsAre(Pair("role", proposer), Pair("roleName", "PROPOSER_ROLE"), Pair("account", kOne),
                          Pair("sender", kTwo)));
  EXPECT_THAT(decoded(kOpenZeppelin, log_of(kRevoked, {unknown, topic_of(kOne), topic_of(kTwo)})).guard,
              ElementsAre(Pair("role", unknown), Pair("account", kOne), Pair("sender", kTwo)));
  EXPECT_THAT(decoded(kOpenZeppelin, log_of(kRoleAdmin, {canceller, kZero, unknown})).guard,
              ElementsAre(Pair("role", canceller), Pair("roleName", "CANCELLER_ROLE"), Pair("previousAdminRole", kZero),
                          Pair("previousAdminRoleName", "DEFAULT_ADMIN_ROLE"), Pair("newAdminRole", unknown)));
}

TEST(event_decoder, other_events_are_nothing) {
  EXPECT_EQ(decode(kCompound, log_of({})), std::nullopt);
  EXPECT_EQ(decode(kCompound, log_of({stub::hash_of("Transfer(address,address,uint256)")})), std::nullopt);
  // An event of the other standard, with a generic signature.
  EXPECT_EQ(decode(kCompound, log_of(kCancelled, {kId})), std::nullopt);
  EXPECT_EQ(decode(kOpenZeppelin, log_of(kNewAdmin, {topic_of(kOne)})), std::nullopt);
}

TEST(event_decoder, an_event_of_ours_that_does_not_decode_is_an_error_with_its_place) {
  const auto good = queue_data("f()");
  const auto changed = [&](auto change) {
    auto log = log_of(kQueue, {kId, topic_of(kOne)}, good);
    change(log);
    return log;
  };
  const struct {
    LogFields log;
    std::string_view reason;
  } cases[] = {
      {changed([](auto& log) { log.data = "0x"; }), "there is no argument"},
      {changed([](auto& log) { log.data.resize(log.data.size() - 64 * 2); }),
       "a length of 3 bytes, but only 0 are left"},
      {changed([](auto& log) { log.data = "0xabc"; }), "even number"},
      {changed([](auto& log) { log.data = "zz"; }), "0x"},
      {changed([](auto& log) { log.topics.pop_back(); }), "2 topics, not 3"},
      {changed([](auto& log) { log.topics.push_back(kId); }), "4 topics, not 3"},
      {changed([](auto& log) { log.topics[1] = "0x12"; }), "a topic is not"},
      {changed([](auto& log) { log.topics[2] = kId; }), "more than 20 bytes"},
      {changed([](auto& log) { log.address = "0xC" + std::string(39, 'c'); }), "its address"},
      {changed([](auto& log) { log.tx_hash = ""; }), "its transaction hash"},
      {changed([](auto& log) { log.block_hash = "0x"; }), "its block hash"},
      {changed([](auto& log) { log.log_index = -1; }), "negative"},
  };
  for (const auto& [log, reason] : cases) {
    const auto event = decode(kCompound, log);
    ASSERT_FALSE(event) << reason;
    EXPECT_EQ(event.error().code, "bad_log");
    EXPECT_THAT(event.error().message, HasSubstr(reason));
    EXPECT_THAT(event.error().context, testing::Contains(Pair("block", "17")));
    EXPECT_THAT(event.error().context, testing::Contains(Pair("contract", log.address)));
  }
  const auto huge_index = log_of(kCallExecuted, {kId, "0x8" + std::string(63, '0')},
                                 to_hex0x(evm::AbiWriter().address({}).uint256(0).bytes({}).take()));
  EXPECT_FALSE(decode(kOpenZeppelin, huge_index));
}

TEST(event_decoder, a_signature_of_any_bytes_becomes_text_that_can_be_stored) {
  using std::string_view_literals::operator""sv;
  const struct {
    std::string_view bytes;
    std::string_view text;
    std::string_view hex;
  } cases[] = {
      {"", "", ""},
      {"transfer(address,uint256)", "transfer(address,uint256)", ""},
      {"überweise(uint256)", "überweise(uint256)", ""},
      {"f()\0"sv, "f()\xef\xbf\xbd", "0x66282900"},
      {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd", "0xfffe"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "0xeda080"},
      {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd", "0xc080"},
  };
  for (const auto& [bytes, text, hex] : cases) {
    const auto event = decoded(kCompound, log_of(kQueue, {kId, topic_of(kOne)}, queue_data(bytes)));
    EXPECT_EQ(event.call.signature, text);
    EXPECT_EQ(event.call.signature_bytes, hex) << text;
    EXPECT_TRUE(is_utf8(event.call.signature));
    EXPECT_FALSE(event.call.signature.contains('\0'));
  }
}

}  // namespace
}  // namespace fencepost::timelock
