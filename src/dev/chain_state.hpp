// The file that holds the local chain's state, guarded: anvil rewrites it in place, so an anvil that is killed while it
// does so leaves half a file, from which it then refuses to start.
//
// In `directory`:
//   state.json         anvil's
//   state.good.json    our copy of the last whole one
//   state.broken.json  the last one that was not whole, for a person who wants to look
// Blocks on the disk; one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>

namespace fencepost {

class ChainState {
 public:
  explicit ChainState(std::filesystem::path directory);

  std::filesystem::path file() const { return directory_ / "state.json"; }
  // 0 when there is none.
  std::uintmax_t size() const;

  // Before anvil starts: a broken file gives way to the last good copy (to none when there is no copy), with a
  // warning. No file at all is a fresh start, also when there are copies.
  void prepare();
  // While anvil runs, so that what is copied is what anvil accepts: keeps a copy if the file has changed and is whole
  // just now.
  void keep_copy();
  // The file is whole but anvil does not accept it: as if it was broken. There must be one.
  void set_aside();

 private:
  std::filesystem::path directory_;
  std::filesystem::file_time_type copied_{};
};

// Whether the file holds one JSON object from its first byte to its last (white space aside). Looks only at what
// a cut changes: brackets and strings.
bool is_whole_json(const std::filesystem::path& file);

}  // namespace fencepost
