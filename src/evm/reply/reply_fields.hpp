// Reads the fields of a node's answer out of simdjson's values. For the parsers of this folder only.
//
// The functions throw BadShape, and simdjson throws its own error; `parse` turns both into a Result. Hashes, addresses
// and data are returned in lowercase.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/uint256.hpp"

namespace fencepost::evm::reply {

namespace ondemand = simdjson::ondemand;

struct BadShape {
  std::string message;
};

// kUnavailable `bad_rpc_result`
Error bad_result(std::string message);

std::string_view text_of(ondemand::value value, std::string_view member);
std::string hash_of(ondemand::value value, std::string_view member);
std::string address_of(ondemand::value value, std::string_view member);
std::string data_of(ondemand::value value, std::string_view member);
Uint256 uint256_of(ondemand::value value, std::string_view member);
std::int64_t int64_of(ondemand::value value, std::string_view member);

// Checks that every required member was read, and none twice.
class Members {
 public:
  explicit Members(std::initializer_list<std::string_view> required) : missing_(required) {}
  void saw(std::string_view member);
  void check() const;

 private:
  std::vector<std::string_view> missing_;
  std::vector<std::string_view> seen_;
};

// Runs `read` on the parsed text. The copy gives simdjson the padding it reads beyond the end.
template <class Read>
auto parse(std::string_view text, std::string_view what, Read read)
    -> Result<decltype(read(std::declval<ondemand::document&>()))> {
  try {
    const simdjson::padded_string padded(text);
    ondemand::parser parser;
    auto document = parser.iterate(padded).value();
    auto result = read(document);
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      return fail(bad_result(fmt::format("{} has more text after its end", what)));
    }
    return result;
  } catch (const simdjson::simdjson_error& broken) {
    return fail(bad_result(fmt::format("{} is malformed: {}: {}", what, broken.what(), quote(text))));
  } catch (const BadShape& shape) {
    return fail(bad_result(fmt::format("{}: {}", what, shape.message)));
  }
}

}  // namespace fencepost::evm::reply
