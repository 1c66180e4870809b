// Foundry's command-line wallet. Tests compare our keys, signatures and encodings with it, and use it as another
// sender.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fencepost::test {

// The path of the native program that `npm ci` installed, or of the one in PATH. Throws if there is none.
std::filesystem::path cast_program();

// Runs cast without the user's home directory. Returns its output without the last line break. Throws, with its output,
// if it fails.
std::string cast(std::vector<std::string> arguments);

}  // namespace fencepost::test
