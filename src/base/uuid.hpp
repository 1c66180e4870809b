// 128-bit identifiers. Generated ones are in time order (RFC 9562, version 7), so inserts go to the end of an index.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace fencepost {

class Uuid {
 public:
  using Raw = std::array<std::uint8_t, 16>;

  // All zero, which means "none".
  constexpr Uuid() = default;
  constexpr explicit Uuid(const Raw& bytes) : bytes_(bytes) {}

  // Accepts 8-4-4-4-12 hex digits of either case, of any version. Anything else is kInvalid "bad_uuid".
  static Result<Uuid> parse(std::string_view text);

  // 36 lowercase characters.
  std::string to_string() const;

  constexpr const Raw& bytes() const { return bytes_; }
  constexpr int version() const { return bytes_[6] >> 4; }

  // By bytes, which is also the order of the text and, for version 7, of time.
  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;

 private:
  Raw bytes_{};
};

// Each id is greater than the previous one, also within one millisecond and when the clock steps back: the generator
// then keeps its last time until the clock has caught up. Any thread may call `next`. `random` is used under this
// object's lock, so it may be shared with other users only if it is thread-safe itself (SystemRandom is).
class UuidGenerator {
 public:
  UuidGenerator(const Clock& clock, Random& random) : clock_(clock), random_(random) {}

  Uuid next();

 private:
  void start_millisecond(std::uint64_t millis);
  void step_within_millisecond();

  const Clock& clock_;
  Random& random_;
  std::mutex mutex_;
  std::uint64_t millis_ = 0;  // 48 bits are used
  std::uint64_t high_ = 0;    // 12 bits: rand_a
  std::uint64_t low_ = 0;     // 62 bits: rand_b
  bool started_ = false;
};

}  // namespace fencepost

template <>
struct std::hash<fencepost::Uuid> {
  std::size_t operator()(const fencepost::Uuid& uuid) const noexcept;
};
