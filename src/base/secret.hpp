// A string that cannot be printed: passing it to fmt, a stream or the logger does not compile. Its memory is wiped when
// it is destroyed, moved from or assigned over.
#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace fencepost {

// Compares in a time that depends only on the lengths. Use it whenever one side is secret.
bool constant_time_equal(std::string_view a, std::string_view b);

class Secret {
 public:
  Secret() = default;
  // Copies `text`; the caller must still wipe the original. Prefer `take` when the caller owns the string.
  explicit Secret(std::string_view text);
  // Copies, then wipes the given string and leaves it empty.
  static Secret take(std::string&& text);

  Secret(const Secret& other) : Secret(other.reveal()) {}
  Secret(Secret&& other) noexcept;
  Secret& operator=(const Secret& other);
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  bool empty() const { return size_ == 0; }
  // The only access to the text. The view is valid as long as the Secret; never put it in a message.
  std::string_view reveal() const { return {text_.get(), size_}; }

  // In constant time.
  friend bool operator==(const Secret& a, const Secret& b) { return constant_time_equal(a.reveal(), b.reveal()); }

 private:
  void wipe() noexcept;

  // Not a std::string: a move would leave a copy in its small buffer.
  std::unique_ptr<char[]> text_;
  std::size_t size_ = 0;
};

}  // namespace fencepost
