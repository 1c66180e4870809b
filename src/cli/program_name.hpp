// The name by which the user starts this program, for printed commands that can be pasted.
#pragma once

#include <string>

namespace fencepost::cli {

// "./fp" if ./fp started the program (it sets FENCEPOST_PROGRAM_NAME), otherwise as typed: "build/release/fencepost".
std::string program_name();

}  // namespace fencepost::cli
