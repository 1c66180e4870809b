// Protects the file with the local chain's state. Anvil rewrites the file in place: if it is killed meanwhile, the file
// is truncated and anvil refuses to start from it.
//
// In `directory`:
//   state.json         written by anvil
//   state.good.json    our copy of the last complete state
//   state.broken.json  the last incomplete state, for inspection
// Calls block on the disk. One thread at a time may call.
#pragma once

#include <cstdint>
#include <filesystem>

namespace fencepost {

class ChainState {
 public:
  explicit ChainState(std::filesystem::path directory);

  std::filesystem::path file() const { return directory_ / "state.json"; }
  // Returns 0 if there is no file.
  std::uintmax_t size() const;

  // Call before anvil starts. Replaces a broken file by the last good copy, or removes it if there is no copy, and logs
  // a warning. No file means a fresh start, even if there are copies.
  void prepare();
  // Call while anvil runs, so that only states that anvil accepts are copied. Copies the file if it has changed and is
  // complete.
  void keep_copy();
  // Treats the file as broken, because anvil does not accept it although it is complete. Requires: the file exists.
  void set_aside();

 private:
  std::filesystem::path directory_;
  std::filesystem::file_time_type copied_{};
};

// Whether the file is one complete JSON object, apart from white space around it. Checks only brackets and strings,
// which is enough to find a truncated file.
bool is_whole_json(const std::filesystem::path& file);

}  // namespace fencepost
