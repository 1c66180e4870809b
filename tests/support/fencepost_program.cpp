// A file of its own: its text depends on where the program is built.
#include "tests/support/fencepost.hpp"

namespace fencepost::test {

std::string fencepost_program() {
  return FENCEPOST_PROGRAM;
}

}  // namespace fencepost::test
