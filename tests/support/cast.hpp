// Foundry's command-line wallet: the judge of our keys, signatures and encodings, and a stranger who sends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fencepost::test {

// The native program that `npm ci` has brought, or the one in PATH. Throws when there is none.
std::filesystem::path cast_program();

// What it printed, without the line's end. Throws with what it said when it failed. It runs without the user's home.
std::string cast(std::vector<std::string> arguments);

}  // namespace fencepost::test
