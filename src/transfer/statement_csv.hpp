// A statement as a file for a spreadsheet (RFC 4180). Pure: no I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transfer/transfer.hpp"

namespace fencepost::transfer {

// A header line and a line for each entry, in the order given, each ending with CRLF.
std::string statement_csv(std::span<const Entry> entries);

// Text from a caller as a CSV field: quoted if RFC 4180 requires it, and prefixed with an apostrophe if a spreadsheet
// would evaluate it as a formula.
std::string csv_text(std::string_view text);

}  // namespace fencepost::transfer
