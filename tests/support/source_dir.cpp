#include "tests/support/source_dir.hpp"

namespace fencepost::test {

std::filesystem::path source_dir() {
  return FENCEPOST_SOURCE_DIR;
}

}  // namespace fencepost::test
