// Transactions, their steps and signers, as the API tells them, for a terminal. Pure.
//
// All take JSON as it came: what is absent, null or of another kind is simply not shown, so that a newer server does
// not break an older command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace fencepost {

// A member as text; empty when it is not there or null. `path` may go down: "payload.to".
std::string text_at(const boost::json::value& value, std::string_view path);
// A member that is a whole number, or a text that is one, decimal or 0x.
std::optional<std::int64_t> int_at(const boost::json::value& value, std::string_view path);

// "TRACKING (mined)"
std::string state_text(const boost::json::value& tx);

// One transaction in full, with its attempts if they are there.
std::string tx_details(const boost::json::value& tx);
// Many, a line each.
std::string tx_table(const boost::json::array& txs);
std::string history_table(const boost::json::array& steps);
std::string signer_table(const boost::json::array& signers);

}  // namespace fencepost
