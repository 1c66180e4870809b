// The verbs of `fencepost tx`, and what they share.
#pragma once

#include <string>

#include <boost/json/value.hpp>

#include "base/error.hpp"

#include "cli/api_access.hpp"
#include "cli/api_client.hpp"
#include "cli/nouns.hpp"
#include "cli/tx/follow.hpp"

namespace fencepost::cli {

// Each adds the verbs of its file to the noun.
void add_tx_send(CLI::App& tx, Run& run);
void add_tx_show(CLI::App& tx, Run& run);
void add_tx_watch(CLI::App& tx, Run& run);
void add_tx_operate(CLI::App& tx, Run& run);

// Flags of a verb about one transaction.
struct TxFlags {
  ApiFlags api;
  std::string tx_id;
  bool json = false;
};
void add_tx_flags(CLI::App& command, TxFlags& flags);

// "/api/v1/tx/<id>"
std::string tx_target(const std::string& tx_id);

// Prints the API's answer, one transaction in full; reports an error.
int show_tx(const Result<boost::json::value>& answer, bool as_json);

// Of `tx watch` and `tx send --wait`: "submitted", "mined" or "confirmed" and "2m". Errors: those of parse_duration.
Result<TxFollowOptions> follow_options(const std::string& goal, const std::string& timeout, bool as_json);
// Follows the transaction on standard output; returns the exit code. Says how to look again if that ends early; `flags`
// choose the node.
int follow_on_terminal(Api& api, const std::string& tx_id, const TxFollowOptions& options, const ApiFlags& flags);

}  // namespace fencepost::cli
