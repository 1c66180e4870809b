// A program on a terminal of its own, 80 columns wide: for what it draws and asks only there.
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
  // `env` is added to ours. Throws when there is no terminal to be had.
  explicit Terminal(std::vector<std::string> argv, const std::vector<std::string>& env = {});
  ~Terminal();  // kills it if it still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Waits until it has written that, after all that earlier calls have found. False when it ends or takes longer.
  [[nodiscard]] bool shows(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(20));
  void type(std::string_view text) const;
  // Waits for its end, for at most a minute, and gives its exit code; -1 when a signal ended it. Throws when it goes
  // on.
  int end();
  // Everything so far, byte by byte.
  const std::string& screen() const { return screen_; }

 private:
  // False when it has ended or nothing came in time.
  bool read_more(std::chrono::steady_clock::time_point deadline);

  UniqueFd side_;
  pid_t pid_ = -1;
  std::string screen_;
  std::size_t found_ = 0;
};

}  // namespace fencepost::test
