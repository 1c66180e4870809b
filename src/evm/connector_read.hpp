// What the files of EvmConnector share: parameters of calls, and answers turned into results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evm/reply/rpc_reply.hpp"

namespace fencepost::evm::detail {

inline Error mismatched_result(std::string message) {
  return unavailable("bad_rpc_result", std::move(message));
}

inline std::string hex(std::int64_t number) {
  return fmt::format("0x{:x}", number);
}

// The parameter that names a block; none: the latest.
inline std::string block_parameter(std::optional<std::int64_t> number) {
  return number ? hex(*number) : "latest";
}

// Parses a successful answer with `parse`; passes an error on unchanged.
template <class Parse>
auto read(Result<RpcValue> answer, Parse parse) -> decltype(parse(*answer)) {
  if (!answer) return fail(std::move(answer.error()));
  return parse(*answer);
}

template <class Parse>
auto read_all(std::vector<Result<RpcValue>> answers, Parse parse) {
  std::vector<decltype(parse(*answers.front()))> results;
  results.reserve(answers.size());
  for (auto& answer : answers) results.push_back(read(std::move(answer), parse));
  return results;
}

// Replaces each result that is not of the hash that was asked for by an error.
template <class T, class HashOf>
void require_hashes(std::vector<Result<std::optional<T>>>& results, const std::vector<std::string>& asked,
                    std::string_view what, HashOf hash_of) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto& result = results[i];
    if (!result || !*result || hash_of(**result) == asked[i]) continue;
    result = fail(mismatched_result(fmt::format("asked for {} {}, got {}", what, asked[i], hash_of(**result))));
  }
}

}  // namespace fencepost::evm::detail
