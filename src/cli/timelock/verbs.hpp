// The verbs of `fencepost timelock`, and what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"

#include "cli/api_client.hpp"
#include "cli/nouns.hpp"

namespace fencepost::cli {

// Each adds the verbs of its file to the noun.
void add_timelock_import(CLI::App& timelock, Run& run);
void add_timelock_contracts(CLI::App& timelock, Run& run);
void add_timelock_flows(CLI::App& timelock, Run& run);
void add_timelock_verify(CLI::App& timelock, Run& run);

using ChainId = std::optional<std::int64_t>;

// "/api/v1/timelocks/<chain>/<address>"
std::string timelock_target(std::int64_t chain_id, const std::string& address);

// The same for a contract that the user named without its chain. Errors: kNotFound `no_such_timelock`; kInvalid
// `several_chains` if the address is watched on more than one chain; those of Api::get.
Result<std::string> find_timelock_target(Api& api, const std::string& address, ChainId chain_id);

// Appends "&name=value", or "?name=value" if it is the first parameter; nothing for an empty value.
void add_parameter(std::string& target, std::string_view name, const std::string& value);

}  // namespace fencepost::cli
