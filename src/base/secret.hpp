// A string that is never printed: not by fmt, not by a stream, not by the logger (none of them compiles), and
// not left behind in memory: it is wiped when destroyed, moved from or assigned over.
#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace fencepost {

// Compares in a time that depends on the lengths only. Use it wherever one side is secret.
bool constant_time_equal(std::string_view a, std::string_view b);

class Secret {
 public:
  Secret() = default;
  // Copies; whoever owns `text` must still wipe it. Prefer `take` for a string of one's own.
  explicit Secret(std::string_view text);
  // Copies, then wipes the given string and leaves it empty.
  static Secret take(std::string&& text);

  Secret(const Secret& other) : Secret(other.reveal()) {}
  Secret(Secret&& other) noexcept;
  Secret& operator=(const Secret& other);
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  bool empty() const { return size_ == 0; }
  // The only way out. The view dies with the Secret; never put it in a message.
  std::string_view reveal() const { return {text_.get(), size_}; }

  // In constant time.
  friend bool operator==(const Secret& a, const Secret& b) { return constant_time_equal(a.reveal(), b.reveal()); }

 private:
  void wipe() noexcept;

  // Not a std::string: its small-buffer copies would stay behind after a move.
  std::unique_ptr<char[]> text_;
  std::size_t size_ = 0;
};

}  // namespace fencepost
