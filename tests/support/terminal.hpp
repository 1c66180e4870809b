// Runs a program on a terminal of its own: for output and prompts that appear only on a terminal.
//
//   Terminal terminal({fencepost_program(), "signer", "new"});
//   ASSERT_TRUE(terminal.shows("Password"));
//   terminal.type("secret\n");
//   EXPECT_EQ(terminal.end(), 0);
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "runtime/unique_fd.hpp"

namespace fencepost::test {

class Terminal {
 public:
  // `env` is added to our environment. Throws if no terminal can be created.
  explicit Terminal(std::vector<std::string> argv, const std::vector<std::string>& env = {},
                    unsigned short columns = 80);
  ~Terminal();  // kills the program if it still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Waits until the program has written `text`, after the matches of earlier calls. False if it ends or takes longer.
  [[nodiscard]] bool shows(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(20));
  void type(std::string_view text) const;
  // Waits for the program's end, for at most a minute. Returns its exit code, or -1 if a signal ended it. Throws if it
  // still runs.
  int end();
  // All output so far, byte by byte.
  const std::string& screen() const { return screen_; }
  // The columns of the widest line so far, without escape sequences. A line that is redrawn counts each time.
  std::size_t widest_line() const;

 private:
  // False if the program has ended, or if it wrote nothing before the deadline.
  bool read_more(std::chrono::steady_clock::time_point deadline);

  UniqueFd side_;
  pid_t pid_ = -1;
  std::string screen_;
  std::size_t found_ = 0;
};

}  // namespace fencepost::test
