// The folder of the sources, for tests that read what the repository holds: docs, alerts, node_modules.
#pragma once

#include <filesystem>

namespace fencepost::test {

// Absolute. Not a macro: only one object file then differs from clone to clone, and the compiler cache serves the rest.
std::filesystem::path source_dir();

}  // namespace fencepost::test
