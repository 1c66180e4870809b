// Transactions and their steps as the API answers them, for a terminal. Pure; for absent members see answer_text.hpp.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

// "TRACKING (mined)"
std::string state_text(const boost::json::value& tx);

// One transaction in full, with its attempts if the answer has them.
std::string tx_details(const boost::json::value& tx, std::size_t width = kFullWidth);
// A table with one line per transaction.
std::string tx_table(const boost::json::array& txs, std::size_t width = kFullWidth);
std::string history_table(const boost::json::array& steps, std::size_t width = kFullWidth);
// The answer of /history: a note if its first steps are gone, then the table.
std::string history_text(const boost::json::value& history, std::size_t width = kFullWidth);

}  // namespace fencepost::cli
