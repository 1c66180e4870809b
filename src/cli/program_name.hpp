// How the user starts this program, for commands that they can paste.
#pragma once

#include <string>

namespace fencepost::cli {

// "./fp" when started by it (which sets FENCEPOST_PROGRAM_NAME), otherwise as it was typed: "build/release/fencepost".
std::string program_name();

}  // namespace fencepost::cli
