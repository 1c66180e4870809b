#include "cli/cli.hpp"

int main(int argc, char** argv) {
  return fencepost::run_cli(argc, argv);
}
