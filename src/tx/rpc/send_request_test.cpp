#include "tx/rpc/send_request.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace fencepost::tx {
namespace {

namespace json = boost::json;

constexpr std::string_view kSendFrom = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
constexpr std::string_view kSendTo = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

SendRequest read_tx(json::object changes) {
  json::object tx{{"from", kSendFrom}, {"to", kSendTo}};
  for (const auto& [name, value] : changes) tx[name] = value;
  return read_send_request(json::serialize(json::array{tx}), 31337);
}

std::string send_code(const std::string& params) {
  try {
    read_send_request(params, 31337);
    return "";
  } catch (const Exception& e) {
    return e.error().code;
  }
}

std::string send_code(json::object changes) {
  try {
    read_tx(std::move(changes));
    return "";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().kind, ErrorKind::kInvalid);
    return e.error().code;
  }
}

TEST(send_request, reads_what_cast_sends) {
  const auto request = read_tx({{"maxFeePerGas", "0x77359401"},
                                {"maxPriorityFeePerGas", "0x1"},
                                {"gas", "0x5208"},
                                {"value", "0x1"},
                                {"input", "0x"},
                                {"data", "0x"},
                                {"nonce", "0x0"},
                                {"chainId", "0x7a69"},
                                {"type", "0x2"},
                                {"accessList", json::array()}});
  EXPECT_EQ(request.from, kSendFrom);
  EXPECT_EQ(request.nonce, 0U);
  EXPECT_EQ(request.payload.canonical(),
            R"({"to":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","value":"1","data":"0x","gas":"21000",)"
            R"("maxFeePerGas":"2000000001","maxPriorityFeePerGas":"1"})");
}

TEST(send_request, keeps_256_bits) {
  const auto request = read_tx({{"value", "0x" + std::string(64, 'f')}, {"nonce", nullptr}});
  EXPECT_EQ(to_decimal(*request.payload.value),
            "115792089237316195423570985008687907853269984665640564039457584007913129639935");
  EXPECT_EQ(request.nonce, std::nullopt);
}

TEST(send_request, takes_data_under_either_name) {
  EXPECT_EQ(read_tx({{"data", "0xABcd"}}).payload.data, "0xabcd");
  EXPECT_EQ(read_tx({{"input", "0xabcd"}}).payload.data, "0xabcd");
  EXPECT_EQ(read_tx({{"input", "0xabcd"}, {"data", "0xABCD"}}).payload.data, "0xabcd");
  EXPECT_EQ(send_code({{"input", "0xabcd"}, {"data", "0xab"}}), "bad_request");
  EXPECT_EQ(read_tx({{"gasLimit", "0xc350"}}).payload.gas, 50000U);
  EXPECT_EQ(send_code({{"gasLimit", "0xc350"}, {"gas", "0xc351"}}), "bad_request");
}

TEST(send_request, a_contract_needs_no_receiver) {
  const auto request = read_tx({{"to", nullptr}, {"data", "0x6001"}});
  EXPECT_EQ(request.payload.to, std::nullopt);
  EXPECT_EQ(send_code({{"to", nullptr}}), "empty_payload");
}

TEST(send_request, quantities_are_strict) {
  for (const json::value& bad : {json::value("1"), json::value(1), json::value("0x"), json::value("0x01"),
                                 json::value("0xg"), json::value(""), json::value("0x1" + std::string(64, '0'))}) {
    for (const auto* name : {"value", "gas", "maxFeePerGas", "nonce", "chainId", "type"}) {
      EXPECT_EQ(send_code({{name, bad}}), "bad_request") << name << " " << json::serialize(bad);
    }
  }
  EXPECT_EQ(send_code({{"nonce", "0x10000000000000000"}}), "bad_request");
}

TEST(send_request, refuses_what_it_cannot_honour) {
  EXPECT_EQ(send_code({{"chainId", "0x1"}}), "wrong_chain_id");
  EXPECT_EQ(send_code({{"type", "0x1"}}), "unsupported_transaction");
  EXPECT_EQ(send_code({{"type", "0x3"}}), "unsupported_transaction");
  EXPECT_EQ(send_code({{"type", "0x0"}}), "unsupported_transaction");
  EXPECT_EQ(send_code({{"type", "0x0"}, {"gasPrice", "0x1"}}), "");
  EXPECT_EQ(send_code({{"type", "0x2"}, {"gasPrice", "0x1"}}), "unsupported_transaction");
  EXPECT_EQ(send_code({{"accessList", json::array{json::object{{"address", kSendTo}}}}}), "unsupported_transaction");
  EXPECT_EQ(send_code({{"gasPrice", "0x1"}, {"maxFeePerGas", "0x1"}}), "bad_fees");
  EXPECT_EQ(send_code({{"gas", "0x1"}}), "gas_too_low");
  EXPECT_EQ(send_code({{"blobs", json::array()}}), "bad_request");
  EXPECT_EQ(send_code({{"from", nullptr}}), "bad_request");
  EXPECT_EQ(send_code({{"from", "0x12"}}), "bad_address");
}

TEST(send_request, takes_one_transaction) {
  for (const auto* params : {"[]", "{}", "[{},{}]", "[5]", R"([{"from":"0x12","from":"0x12"}])"}) {
    EXPECT_EQ(send_code(std::string(params)), "bad_request") << params;
  }
}

}  // namespace
}  // namespace fencepost::tx
