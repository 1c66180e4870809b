// The functions of a contract, from the JSON that compilers and block explorers write:
//
//   [{"type": "function", "name": "transfer", "inputs": [{"name": "to", "type": "address"}, …], …}, …]
//   {"abi": [ … ], …}                     as in the files that compilers write
//
// Events, errors, constructors and fallbacks are skipped. Of two functions with the same signature (an ABI merged from
// several files) the first one counts.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "evm/abi/abi_type.hpp"

namespace fencepost::evm {

inline constexpr std::size_t kAbiJsonMaxBytes = 1'000'000;
inline constexpr std::size_t kAbiJsonMaxEntries = 10'000;  // functions, events, errors
inline constexpr std::size_t kAbiJsonMaxFunctions = 2'000;

// From a document that is parsed already. Throws Exception kInvalid `bad_request`, with the place:
// `[3].inputs[0].type`, or `abi[3].inputs[0].type` in the second form.
std::vector<AbiFunction> read_abi(const JsonReader& in);

// Errors: as parse_json (base/json.hpp), and kInvalid `bad_request` with the place.
Result<std::vector<AbiFunction>> parse_abi_json(std::string_view text);

}  // namespace fencepost::evm
