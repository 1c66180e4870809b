#include "dev/chain_state.hpp"

#include <fstream>
#include <system_error>
#include <vector>

#include "runtime/log.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;

class BracketCounter {
 public:
  // Returns false if no further input can complete the document.
  bool feed(char c) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      return true;
    }
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') return true;
    if (ended_ || (depth_ == 0 && c != '{')) return false;
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') ended_ = --depth_ == 0;
    return true;
  }
  bool whole() const { return ended_; }

 private:
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool ended_ = false;
};

// Writes a new file and renames it, so that a process killed meanwhile leaves the old file intact.
void replace_by_copy(const fs::path& from, const fs::path& to) {
  const fs::path unfinished = to.string() + ".new";
  fs::copy_file(from, unfinished, fs::copy_options::overwrite_existing);
  fs::rename(unfinished, to);
}

}  // namespace

bool is_whole_json(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> chunk(1U << 16U);
  BracketCounter brackets;
  while (stream) {
    stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    for (std::streamsize i = 0; i < stream.gcount(); ++i) {
      if (!brackets.feed(chunk[static_cast<std::size_t>(i)])) return false;
    }
  }
  return brackets.whole();
}

ChainState::ChainState(fs::path directory) : directory_(std::move(directory)) {}

std::uintmax_t ChainState::size() const {
  std::error_code missing;
  const auto size = fs::file_size(file(), missing);
  return missing ? 0 : size;
}

void ChainState::prepare() {
  if (fs::exists(file()) && !is_whole_json(file())) set_aside();
}

void ChainState::keep_copy() {
  std::error_code failed;
  const auto written = fs::last_write_time(file(), failed);
  if (failed || written == copied_) return;
  // Check the copy, not the file: anvil may be writing the file at this moment.
  const auto candidate = directory_ / "state.candidate.json";
  fs::copy_file(file(), candidate, fs::copy_options::overwrite_existing, failed);
  if (!failed && !is_whole_json(candidate)) return;
  if (!failed) fs::rename(candidate, directory_ / "state.good.json", failed);
  if (failed) {
    log::warn("cannot copy the local chain's state", {{"reason", failed.message()}});
  } else {
    copied_ = written;
  }
}

void ChainState::set_aside() {
  const auto broken = directory_ / "state.broken.json";
  const auto good = directory_ / "state.good.json";
  fs::rename(file(), broken);
  if (!fs::exists(good)) {
    log::warn("the local chain's state is damaged and there is no copy: the chain starts from its genesis",
              {{"kept", broken.string()}});
    return;
  }
  replace_by_copy(good, file());
  // Do not try the same copy twice.
  fs::remove(good);
  log::warn(
      "the local chain's state is damaged: the chain continues from the last good copy, which may lack the "
      "latest blocks",
      {{"kept", broken.string()}});
}

}  // namespace fencepost
