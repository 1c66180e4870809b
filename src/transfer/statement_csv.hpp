// A statement as a file for a spreadsheet (RFC 4180). Pure: no I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transfer/transfer.hpp"

namespace fencepost::transfer {

// A header and a line for each entry, in the order given, each ended by CRLF.
std::string statement_csv(std::span<const Entry> entries);

// Somebody else's words as a field: in quotes where the format asks for it, and behind an apostrophe where a
// spreadsheet would take them for a formula.
std::string csv_text(std::string_view text);

}  // namespace fencepost::transfer
