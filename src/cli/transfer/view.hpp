// Transfers, statements and audits, as the API answers them, for a terminal. Pure; for absent members see
// answer_text.hpp.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

// True for a transfer that is completed or rejected: its status never changes again.
bool is_terminal(const boost::json::value& transfer);

// One transfer in full. The answer of a create has fewer members than that of a get.
std::string transfer_details(const boost::json::value& transfer, std::size_t width = kFullWidth);
// A table with one line per transfer.
std::string transfer_table(const boost::json::array& transfers, std::size_t width = kFullWidth);
// "19:45:18.123  checking   retry 2, next 2026-11-15 19:45:22 UTC; balance failed"; no line break.
std::string transfer_line(const boost::json::value& transfer);

std::string statement_table(const boost::json::array& entries, std::size_t width = kFullWidth);

// The result of a mint or a burn.
std::string issue_details(const boost::json::value& issue, std::size_t width = kFullWidth);

// An account with its limits.
std::string account_details(const boost::json::value& account, std::size_t width = kFullWidth);
std::string settings_details(const boost::json::value& settings, std::size_t width = kFullWidth);

// One line per check: "ok     supply_balances" or "WRONG  supply_balances  2, such as guild 7: 5".
std::string audit_lines(const boost::json::value& audit);

}  // namespace fencepost::cli
