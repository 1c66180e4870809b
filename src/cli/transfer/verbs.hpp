// The verbs of `fencepost transfer`, and what they share.
//
// Ids and amounts are strings of decimal digits, as in the API, so that no 64-bit value is rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

#include "base/error.hpp"

#include "cli/api_client.hpp"
#include "cli/nouns.hpp"
#include "cli/transfer/follow.hpp"

namespace CLI {
class Validator;
}

namespace fencepost::cli {

// Each adds the verbs of its file to the noun.
void add_transfer_send(CLI::App& transfer, Run& run);
void add_transfer_show(CLI::App& transfer, Run& run);
void add_transfer_account(CLI::App& transfer, Run& run);
void add_transfer_operate(CLI::App& transfer, Run& run);

// Accepts decimal digits up to 64 bits, without sign or leading zeros: CLI11 itself would read 010 as 8.
CLI::Validator whole_number(std::int64_t min);
// A required whole number.
void add_number(CLI::App& command, const std::string& name, std::string& value, const std::string& help,
                std::int64_t min = 1);
// --key
void add_key(CLI::App& command, std::string& key);

// "/api/v1/transfers/<id>"
std::string transfer_target(const std::string& transfer_id);
// "/api/v1/guilds/<id>/accounts/<id>"
std::string account_target(const std::string& guild, const std::string& member);

// The caller's key, or a new one. A new key is printed before it is used, so that a caller who loses the answer can
// retry without paying twice.
std::string key_or_new(const std::string& given);

// Follows the transfer on standard output; returns the exit code. Says how to look again if that ends early; `flags`
// choose the node.
int follow_on_terminal(Api& api, const std::string& transfer_id, const TransferFollowOptions& options,
                       const ApiFlags& flags);

}  // namespace fencepost::cli
