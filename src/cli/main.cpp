#include "cli/cli.hpp"

int main(int argc, char** argv) {
  return fencepost::cli::run(argc, argv);
}
