// A directory for one test. The destructor removes it with everything in it.
#pragma once

#include <filesystem>
#include <string>

namespace fencepost::test {

class TempDir {
 public:
  // Under TMPDIR or /tmp. The name says which purpose left it behind. Other users may pass through it (mode 0711): a
  // cluster that root starts runs as another user.
  explicit TempDir(const std::string& purpose = "test");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace fencepost::test
