#include "runtime/test_point.hpp"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string>

#include <signal.h>

namespace fencepost {
namespace {

// One environment variable: the point that it names, and at which passage to send the signal.
class Wanted {
 public:
  Wanted(const char* variable, int signal) : signal_(signal) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return;
    name_ = text;
    const auto colon = name_.find(':');
    if (colon == std::string::npos) return;
    int count = 1;
    std::from_chars(name_.data() + colon + 1, name_.data() + name_.size(), count);
    left_ = count;
    name_.resize(colon);
  }

  void pass(std::string_view name) {
    if (name_.empty() || name_ != name) [[likely]]
      return;
    // raise() signals this thread, so the thread does not continue past the point.
    if (--left_ == 0) ::raise(signal_);
  }

 private:
  int signal_;
  std::string name_;
  std::atomic<int> left_{1};
};

}  // namespace

void test_point(std::string_view name) {
  static Wanted kill("FENCEPOST_TEST_KILL_AT", SIGKILL);
  static Wanted stop("FENCEPOST_TEST_STOP_AT", SIGSTOP);
  kill.pass(name);
  stop.pass(name);
}

}  // namespace fencepost
