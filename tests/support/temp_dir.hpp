// A directory of a test's own, removed with everything in it at the end.
#pragma once

#include <filesystem>
#include <string>

namespace fencepost::test {

class TempDir {
 public:
  // Under TMPDIR or /tmp, named so that a person who finds one knows what left it. Others may pass through it
  // (mode 0711), since a cluster started by root runs as another user.
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
