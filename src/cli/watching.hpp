// What a user who stops watching should know: that the work goes on, and the command to look again.
#pragma once

#include <string>
#include <string_view>

#include "cli/api_access.hpp"

namespace fencepost::cli {

// A command that can be pasted: the program as the user starts it, the words, and the flags that choose the node. A key
// that was given as a flag is not repeated.
std::string command_again(std::string_view words, const ApiFlags& flags);

// While it lives, Ctrl-C prints that `what` goes on and how to look again, and ends the process by that signal. One at
// a time.
class Watching {
 public:
  // "the transaction", "./fp tx watch …"
  Watching(std::string what, std::string command);
  ~Watching();
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  // Prints the same for a timeout that has passed. Returns kExitNotYet.
  int timed_out() const;

 private:
  std::string text(std::string_view begin) const;

  std::string what_;
  std::string command_;
};

}  // namespace fencepost::cli
