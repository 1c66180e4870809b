// Transfers, statements and audits, as the API answers them, for a terminal. Pure; for absent members see
// answer_text.hpp.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace fencepost::cli {

// Completed or rejected: nothing more will happen to it.
bool is_terminal(const boost::json::value& transfer);

// One in full: of a create's answer what that has, of a get's all.
std::string transfer_details(const boost::json::value& transfer);
// Many, a line each.
std::string transfer_table(const boost::json::array& transfers);
// "19:45:18.123  checking   retry 2, next 2026-11-15 19:45:22 UTC; balance failed"; no line break.
std::string transfer_line(const boost::json::value& transfer);

std::string statement_table(const boost::json::array& entries);

// What a mint or a burn did.
std::string issue_details(const boost::json::value& issue);

// "ok     supply_balances" or "WRONG  supply_balances  2, such as guild 7: 5", a line for each check.
std::string audit_lines(const boost::json::value& audit);

}  // namespace fencepost::cli
