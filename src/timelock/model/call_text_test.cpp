#include "timelock/model/call_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "base/hex.hpp"
#include "evm/address.hpp"

namespace fencepost::timelock {
namespace {

const std::string kTo = "0x5b38da6a701c568545dcfcb03fcb875f56beddc4";

FunctionTable table_of(std::initializer_list<std::string_view> declarations) {
  FunctionTable out;
  for (const auto text : declarations) out.add(evm::parse_function(text).value());
  return out;
}

std::string word(const Uint256& value) {
  return to_hex(to_big_endian(value));
}

// A call with a selector, and one with a signature.
Call call_of(std::string_view signature, const std::string& arguments) {
  return {.target = kTo, .data = "0x" + to_hex(evm::selector(signature)) + arguments};
}
Call compound_call(std::string signature, const std::string& arguments) {
  return {.target = kTo, .signature = std::move(signature), .data = "0x" + arguments};
}

std::string text_of(const std::optional<ExplainedCall>& call) {
  if (!call) return "not explained";
  std::string out = call->function + "(";
  for (const auto& argument : call->arguments) {
    if (out.back() != '(') out += ", ";
    out += fmt::format("{} {}={}", argument.type, argument.name, boost::json::serialize(argument.value));
  }
  return fmt::format("{}) by {}", out, kCallSources.name(call->source));
}
std::string explained(const Call& call, const FunctionTable& of_target = {}, const FunctionTable& of_any = {}) {
  return text_of(explain_call(call, of_target, of_any));
}

TEST(call_text, a_builtin_function) {
  const auto call = call_of("transfer(address,uint256)", std::string(24, '0') + kTo.substr(2) + word(1000));
  EXPECT_EQ(explained(call), R"(transfer(address to=")" + kTo + R"(", uint256 value="1000") by builtin)");
  EXPECT_EQ(explained(call_of("pause()", "")), "pause() by builtin");
}

TEST(call_text, a_call_with_a_signature_is_read_by_it) {
  EXPECT_EQ(explained(compound_call("setDelay(uint256)", word(172'800))),
            R"(setDelay(uint256 delay="172800") by signature)");
  EXPECT_EQ(explained(compound_call("_unknown(bool)", word(1))), "_unknown(bool =true) by signature");
  EXPECT_EQ(explained(compound_call("_unknown(bool)", word(1)), table_of({"_unknown(bool on)"})),
            "_unknown(bool on=true) by signature");
  EXPECT_EQ(explained(compound_call("acceptAdmin()", "")), "acceptAdmin() by signature");
}

TEST(call_text, a_signature_that_is_not_canonical_or_not_text_explains_nothing) {
  for (const std::string signature :
       {"setDelay(uint)", "setDelay(uint256 delay)", "setDelay (uint256)", "setDelay", "?"}) {
    EXPECT_EQ(explained(compound_call(signature, word(1))), "not explained") << signature;
  }
  auto call = compound_call("setDelay(uint256)", word(1));
  call.signature_bytes = "0x00";
  EXPECT_EQ(explained(call), "not explained");
}

TEST(call_text, data_that_does_not_fit_exactly_stays_hex) {
  const std::string_view transfer = "transfer(address,uint256)";
  const auto to = std::string(24, '0') + kTo.substr(2);
  EXPECT_EQ(explained(call_of(transfer, to)), "not explained");
  EXPECT_EQ(explained(call_of(transfer, to + word(1) + "00")), "not explained");
  EXPECT_EQ(explained(call_of(transfer, to + word(1) + word(0))), "not explained");
  EXPECT_EQ(explained(call_of(transfer, std::string(64, 'f') + word(1))), "not explained");
  EXPECT_EQ(explained(call_of("pause()", "00")), "not explained");
  EXPECT_EQ(explained(compound_call("setDelay(uint256)", word(1) + "00")), "not explained");
  EXPECT_EQ(explained(compound_call("setDelay(uint256)", "")), "not explained");
}

TEST(call_text, an_unknown_selector_or_none_stays_hex) {
  EXPECT_EQ(explained(call_of("noSuchFunction(uint256)", word(1))), "not explained");
  EXPECT_EQ(explained({.data = "0x"}), "not explained");
  EXPECT_EQ(explained({.data = "0xa9059c"}), "not explained");
  EXPECT_EQ(explained({.data = "nonsense"}), "not explained");
}

TEST(call_text, uploaded_functions_come_before_the_builtin_ones) {
  const auto call = call_of("setDelay(uint256)", word(5));
  EXPECT_EQ(explained(call, {}, table_of({"setDelay(uint256 blocks)"})), R"(setDelay(uint256 blocks="5") by uploaded)");
  EXPECT_EQ(explained(call, table_of({"setDelay(uint256 mine)"}), table_of({"setDelay(uint256 blocks)"})),
            R"(setDelay(uint256 mine="5") by uploaded)");
  EXPECT_EQ(explained(call_of("mystery((bool,string)[])", word(32) + word(0)), {},
                      table_of({"mystery((bool,string)[] list)"})),
            "mystery((bool,string)[] list=[]) by uploaded");
}

// collate_propagate_storage(bytes16) has the selector of burn(uint256): 0x42966c68.
TEST(call_text, of_functions_with_one_selector_only_the_one_that_fits_counts) {
  constexpr std::string_view kTwin = "collate_propagate_storage(bytes16 x)";
  ASSERT_EQ(evm::selector("burn(uint256)"), evm::selector("collate_propagate_storage(bytes16)"));
  const auto small = call_of("burn(uint256)", word(7));
  const auto left = call_of("burn(uint256)", std::string(32, 'a') + std::string(32, '0'));
  // As bytes16, the number 7 has padding that is not zero.
  EXPECT_EQ(explained(small, {}, table_of({kTwin})), R"(burn(uint256 value="7") by builtin)");
  // Both functions fit.
  EXPECT_EQ(explained(left, {}, table_of({kTwin})), "not explained");
  EXPECT_EQ(explained(left, table_of({kTwin, "burn(uint256 value)"})), "not explained");
  // The target's own ABI decides, also when its function does not fit.
  EXPECT_EQ(explained(left, table_of({kTwin})),
            R"(collate_propagate_storage(bytes16 x="0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") by uploaded)");
  EXPECT_EQ(explained(small, table_of({kTwin})), "not explained");
}

TEST(call_text, as_json) {
  const auto call = explain_call(compound_call("f(uint8,bool)", word(1) + word(0)), table_of({"f(uint8 a,bool)"}), {});
  EXPECT_EQ(boost::json::serialize(to_json(call.value())),
            R"x({"function":"f","signature":"f(uint8,bool)","arguments":[{"name":"a","type":"uint8","value":"1"},)x"
            R"x({"type":"bool","value":false}],"source":"signature"})x");
}

TEST(call_text, a_hostile_call_is_refused_quickly) {
  // Each word says: an array of many arrays follows.
  std::string data;
  for (int i = 0; i < 4'000; ++i) data += word(i % 2 == 0 ? 32 : 0xffffffff);
  EXPECT_EQ(explained(compound_call("f(uint256[][][][][][][][])", data)), "not explained");
  EXPECT_EQ(explained(compound_call("f(bytes[])", data)), "not explained");
}

TEST(function_table, known_selectors) {
  const auto known = [](std::string_view digits) {
    evm::Selector selector;
    if (!decode_hex(digits, selector)) return std::string("not hex");
    const auto found = builtin_functions().find(selector);
    return found.size() == 1 ? found[0].signature() : std::string("none or several");
  };
  EXPECT_EQ(known("a9059cbb"), "transfer(address,uint256)");
  EXPECT_EQ(known("f2fde38b"), "transferOwnership(address)");
  EXPECT_EQ(known("79ba5097"), "acceptOwnership()");
  EXPECT_EQ(known("2f2ff15d"), "grantRole(bytes32,address)");
  EXPECT_EQ(known("8456cb59"), "pause()");
  EXPECT_EQ(known("3659cfe6"), "upgradeTo(address)");
  EXPECT_EQ(known("4f1ef286"), "upgradeToAndCall(address,bytes)");
  EXPECT_EQ(known("9623609d"), "upgradeAndCall(address,address,bytes)");
  EXPECT_EQ(known("e177246e"), "setDelay(uint256)");
  EXPECT_EQ(known("64d62353"), "updateDelay(uint256)");
  EXPECT_EQ(known("01d5062a"), "schedule(address,uint256,bytes,bytes32,bytes32,uint256)");
  EXPECT_EQ(known("a76b3fda"), "_supportMarket(address)");
  EXPECT_EQ(known("e4028eee"), "_setCollateralFactor(address,uint256)");
}

}  // namespace
}  // namespace fencepost::timelock
