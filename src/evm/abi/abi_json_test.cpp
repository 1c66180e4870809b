#include "evm/abi/abi_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> declarations(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& function : parse_abi_json(text).value()) out.push_back(function.declaration());
  return out;
}

TEST(abi_json, reads_functions_and_skips_the_rest) {
  EXPECT_THAT(declarations(R"([
    {"type": "constructor", "inputs": [{"name": "admin_", "type": "address"}]},
    {"type": "event", "name": "Transfer", "inputs": [{"name": "from", "type": "address", "indexed": true}]},
    {"type": "error", "name": "Nope", "inputs": []},
    {"type": "receive", "stateMutability": "payable"},
    {"type": "function", "name": "transfer", "stateMutability": "nonpayable",
     "inputs": [{"name": "to", "type": "address", "internalType": "address"}, {"name": "amount", "type": "uint256"}],
     "outputs": [{"name": "", "type": "bool"}]},
    {"name": "pause", "inputs": []},
    {"type": "function", "name": "unpause"}
  ])"),
              ElementsAre("transfer(address to,uint256 amount)", "pause()", "unpause()"));
}

TEST(abi_json, reads_the_file_of_a_compiler) {
  EXPECT_THAT(declarations(R"({"contractName": "T", "abi": [{"type": "function", "name": "f", "inputs": []}],
                              "bytecode": "0x60"})"),
              ElementsAre("f()"));
}

TEST(abi_json, reads_tuples_by_their_components) {
  EXPECT_THAT(declarations(R"([{"type": "function", "name": "f", "inputs": [
    {"name": "orders", "type": "tuple[2][]", "components": [
      {"name": "maker", "type": "address"},
      {"name": "legs", "type": "tuple[]", "components": [{"name": "amount", "type": "uint256"}]}]}]}])"),
              ElementsAre("f((address,(uint256)[])[2][] orders)"));
}

TEST(abi_json, keeps_overloads_and_the_first_of_equal_signatures) {
  EXPECT_THAT(declarations(R"([
    {"type": "function", "name": "f", "inputs": [{"name": "a", "type": "uint256"}]},
    {"type": "function", "name": "f", "inputs": [{"name": "b", "type": "uint256"}]},
    {"type": "function", "name": "f", "inputs": [{"name": "c", "type": "uint8"}]}])"),
              ElementsAre("f(uint256 a)", "f(uint8 c)"));
}

TEST(abi_json, an_error_has_the_place) {
  const auto one = [](std::string_view input) {
    return fmt::format(R"([{{"type": "function", "name": "f", "inputs": [{}]}}])", input);
  };
  const struct {
    std::string text;
    std::string_view message;
  } cases[] = {
      {"{", "line 1"},
      {"5", "abi: expected an array, got number 5"},
      {"{}", "abi: is required"},
      {"[5]", "[0]: expected an object"},
      {R"([{"type": "function"}])", "[0].name: is required"},
      {R"([{"type": "function", "name": "a b"}])", "[0].name: expected a name"},
      {R"({"abi": [{"type": "function", "name": "f", "inputs": 5}]})", "abi[0].inputs: expected an array"},
      {one(R"({"name": "x"})"), "[0].inputs[0].type: is required"},
      {one(R"({"type": "uint"})"), "[0].inputs[0].type: expected a canonical type"},
      {one(R"({"type": "address,address"})"), "[0].inputs[0].type: expected one type"},
      {one(R"x({"type": "(address)"})x"), "[0].inputs[0].type: expected one type"},
      {one(R"({"type": "tuple"})"), "[0].inputs[0].components: is required"},
      {one(R"({"type": "tuple", "components": []})"), "[0].inputs[0].components: a tuple has no components"},
      {one(R"({"type": "tuple0", "components": [{"type": "bool"}]})"), "[0].inputs[0].type: expected `tuple`"},
      {one(R"({"type": "tuple[0]", "components": [{"type": "bool"}]})"), "[0].inputs[0].type: "},
      {one(R"({"type": "tuple", "components": [{"type": "bool"}, {"type": "Lib.Data storage"}]})"),
       "[0].inputs[0].components[1].type: expected a canonical type"},
      {one(R"({"type": "bool", "name": "x y"})"), "[0].inputs[0].name: expected a name"},
  };
  for (const auto& [text, message] : cases) {
    const auto functions = parse_abi_json(text);
    ASSERT_FALSE(functions) << text;
    EXPECT_THAT(functions.error().message, HasSubstr(message)) << text;
  }
}

TEST(abi_json, every_size_is_bounded) {
  const auto many = [](std::size_t count) {
    std::string out = "[";
    for (std::size_t i = 0; i < count; ++i) {
      out += fmt::format(R"({}{{"type":"function","name":"f{}","inputs":[]}})", i > 0 ? "," : "", i);
    }
    return out + "]";
  };
  EXPECT_EQ(parse_abi_json(many(kAbiJsonMaxFunctions)).value().size(), kAbiJsonMaxFunctions);
  EXPECT_FALSE(parse_abi_json(many(kAbiJsonMaxFunctions + 1)));
  EXPECT_EQ(parse_abi_json("[" + std::string(kAbiJsonMaxBytes, ' ') + "]").error().code, "json_too_large");

  std::string deep = R"({"type": "bool"})";
  for (std::size_t i = 0; i < 12; ++i) deep.insert(0, R"({"type": "tuple", "components": [)").append("]}");
  EXPECT_FALSE(parse_abi_json(R"([{"name": "f", "inputs": [)" + deep + "]}]"));

  std::string wide = R"({"type": "bool"})";
  for (std::size_t i = 1; i <= kAbiMaxTypes; ++i) wide += R"(,{"type": "bool"})";
  EXPECT_FALSE(parse_abi_json(R"([{"name": "f", "inputs": [)" + wide + "]}]"));
  // The types count with those inside of tuples.
  EXPECT_FALSE(parse_abi_json(R"([{"name": "f", "inputs": [{"type": "bool"}, {"type": "tuple", "components": [)" +
                              wide.substr(0, wide.rfind(',')) + "]}]}]"));
}

}  // namespace
}  // namespace fencepost::evm
