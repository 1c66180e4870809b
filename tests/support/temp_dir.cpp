#include "tests/support/temp_dir.hpp"

#include <cerrno>
#include <iostream>
#include <system_error>

#include <stdlib.h>
#include <sys/stat.h>

namespace fencepost::test {

TempDir::TempDir(const std::string& purpose) {
  std::string name =
      (std::filesystem::temp_directory_path() / ("fencepost-" + purpose + "-" + std::string(6, 'X'))).string();
  if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0711) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a temporary directory " + name);
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
  if (ec) std::cerr << "cannot remove " << path_ << ": " << ec.message() << "\n";
}

}  // namespace fencepost::test
