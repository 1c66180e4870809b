#include "evm/abi/abi_type.hpp"

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

TEST(abi_type, reads_what_it_writes) {
  for (const std::string_view text : {"address", "bool", "uint8", "uint256", "int128", "bytes", "bytes1", "bytes32",
                                      "string", "function", "uint256[]", "uint256[3]", "address[2][]",
                                      "(address,uint256)", "(address,uint256)[]", "((bytes,int8[2])[4],string)[][1]"}) {
    const auto types = parse_abi_types(text);
    ASSERT_TRUE(types) << text << ": " << types.error().message;
    ASSERT_EQ(types->size(), 1U) << text;
    EXPECT_EQ(types->front().text(), text);
  }
}

TEST(abi_type, knows_what_is_dynamic_and_how_much_room_it_takes) {
  const struct {
    std::string_view text;
    bool dynamic;
    std::size_t head;
  } cases[] = {
      {"uint256", false, 32},         {"bytes", true, 32},
      {"uint256[]", true, 32},        {"uint256[3]", false, 96},
      {"bytes[3]", true, 32},         {"(address,uint256)", false, 64},
      {"(address,string)", true, 32}, {"(address,uint256[2])[2]", false, 192},
  };
  for (const auto& [text, dynamic, head] : cases) {
    const auto type = parse_abi_types(text).value().front();
    EXPECT_EQ(type.dynamic, dynamic) << text;
    EXPECT_EQ(type.head, head) << text;
  }
}

TEST(abi_type, a_list_is_separated_by_commas) {
  EXPECT_EQ(parse_abi_types("").value().size(), 0U);
  EXPECT_EQ(parse_abi_types("address,(bool,bytes)[],string").value().size(), 3U);
}

TEST(abi_type, refuses_what_is_not_canonical) {
  for (const std::string_view text : {"uint",
                                      "int",
                                      "byte",
                                      "uint7",
                                      "uint264",
                                      "uint0",
                                      "uint08",
                                      "int1",
                                      "bytes0",
                                      "bytes33",
                                      "bytes01",
                                      "Address",
                                      "address ",
                                      " address",
                                      "address,",
                                      ",address",
                                      "uint256[0]",
                                      "uint256[01]",
                                      "()",
                                      "()[]",
                                      "(address",
                                      "address)",
                                      "uint256[",
                                      "uint256]",
                                      "[]",
                                      "tuple",
                                      "fixed128x18",
                                      "uint256[-1]",
                                      "uint256[99999999999999999999]",
                                      "(,)",
                                      "uint256[][",
                                      "address payable",
                                      "bytes32 id"}) {
    const auto types = parse_abi_types(text);
    ASSERT_FALSE(types) << text;
    EXPECT_EQ(types.error().code, "bad_abi") << text;
  }
  EXPECT_FALSE(parse_abi_types(std::string_view("address\0", 8)));
}

TEST(abi_type, every_size_is_bounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '(') + "bool" + std::string(depth, ')'); };
  EXPECT_TRUE(parse_abi_types(nested(kAbiMaxDepth)));
  EXPECT_FALSE(parse_abi_types(nested(kAbiMaxDepth + 1)));
  EXPECT_FALSE(parse_abi_types(nested(2000)));

  std::string arrays = "bool";
  for (std::size_t i = 0; i < kAbiMaxDepth; ++i) arrays += "[]";
  EXPECT_TRUE(parse_abi_types(arrays));
  EXPECT_FALSE(parse_abi_types(arrays + "[]"));
  EXPECT_FALSE(parse_abi_types("(" + arrays + ")"));

  std::string many = "bool";
  for (std::size_t i = 1; i < kAbiMaxTypes; ++i) many += ",bool";
  EXPECT_TRUE(parse_abi_types(many));
  EXPECT_FALSE(parse_abi_types(many + ",bool"));

  EXPECT_TRUE(parse_abi_types("uint256[1000000]"));
  EXPECT_FALSE(parse_abi_types("uint256[100000000]"));
  EXPECT_FALSE(parse_abi_types("uint256[1000000][1000000][1000000]"));
  EXPECT_FALSE(parse_abi_types("(uint256[1000000],uint256[1000000])"));
  EXPECT_FALSE(parse_abi_types(std::string(kAbiMaxText + 1, 'a')));
}

TEST(abi_type, reads_signatures) {
  const auto transfer = parse_signature("transfer(address,uint256)").value();
  EXPECT_EQ(transfer.name, "transfer");
  EXPECT_EQ(transfer.inputs.size(), 2U);
  EXPECT_EQ(transfer.signature(), "transfer(address,uint256)");
  EXPECT_EQ(parse_signature("_set$1()").value().signature(), "_set$1()");
}

TEST(abi_type, refuses_signatures_that_are_not_canonical) {
  for (const std::string_view text :
       {"", "transfer", "transfer(", "transfer)", "(address)", "transfer(address, uint256)", "transfer (address)",
        "transfer(address to)", "transfer(address,uint)", "transfer(address,uint256) ", "transfer(address,uint256)x",
        "1transfer()", "tra-nsfer()", "transfer()()", "transfer(,)", "transf\xc3\xa9r()"}) {
    EXPECT_FALSE(parse_signature(text)) << text;
  }
  EXPECT_FALSE(parse_signature(std::string(kAbiMaxName + 1, 'a') + "()"));
}

TEST(abi_type, a_declaration_has_the_names_of_parameters) {
  const std::string_view text = "schedule(address target,uint256,(bool,bytes)[] calls)";
  const auto function = parse_function(text).value();
  EXPECT_EQ(function.inputs[0].name, "target");
  EXPECT_EQ(function.inputs[1].name, "");
  EXPECT_EQ(function.declaration(), text);
  EXPECT_EQ(function.signature(), "schedule(address,uint256,(bool,bytes)[])");
  for (const std::string_view wrong : {"f(address  to)", "f(address to )", "f(address 1to)", "f((bool a) x)"}) {
    EXPECT_FALSE(parse_function(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace fencepost::evm
