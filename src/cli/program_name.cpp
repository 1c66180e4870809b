#include "cli/program_name.hpp"

#include <cerrno>
#include <cstdlib>

namespace fencepost::cli {

std::string program_name() {
  const char* given = std::getenv("FENCEPOST_PROGRAM_NAME");
  return given != nullptr && *given != '\0' ? given : program_invocation_name;
}

}  // namespace fencepost::cli
