// Transactions, their steps and signers, as the API tells them, for a terminal. Pure.
//
// All take JSON as it came: what is absent, null or of another kind is simply not shown, so that a newer server does
// not break an older command.
#pragma once

#include <string>

#include <boost/json/value.hpp>

#include "cli/answer_text.hpp"

namespace fencepost {

// "TRACKING (mined)"
std::string state_text(const boost::json::value& tx);

// One transaction in full, with its attempts if they are there.
std::string tx_details(const boost::json::value& tx);
// Many, a line each.
std::string tx_table(const boost::json::array& txs);
std::string history_table(const boost::json::array& steps);
std::string signer_table(const boost::json::array& signers);

}  // namespace fencepost
