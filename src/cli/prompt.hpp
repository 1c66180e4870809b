// Reads secrets from a terminal, a file or a pipe.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "base/secret.hpp"

namespace fencepost::cli {

// Asks on the terminal, without echo, even if stdin and stdout are redirected. kInvalid `no_terminal` if there is none.
Result<Secret> ask_secret(std::string_view question);

// One line of a file, or of standard input for "-", without its line break. kInvalid `cannot_read_secret` with the
// reason: not there, empty, more than one line, over 64 KiB.
Result<Secret> read_secret_line(const std::string& file);

}  // namespace fencepost::cli
