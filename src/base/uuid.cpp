#include "base/uuid.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/hex.hpp"
#include "base/text.hpp"

namespace fencepost {
namespace {

constexpr std::size_t kTextLength = 36;
constexpr std::uint64_t kLowBits = (std::uint64_t{1} << 62) - 1;
constexpr std::uint64_t kHighBits = 0xfff;

constexpr bool is_dash_position(std::size_t i) {
  return i == 8 || i == 13 || i == 18 || i == 23;
}

Error bad_uuid(std::string_view text) {
  return invalid("bad_uuid",
                 fmt::format("expected a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057, got {}", quote(text)));
}

}  // namespace

Result<Uuid> Uuid::parse(std::string_view text) {
  if (text.size() != kTextLength) return fail(bad_uuid(text));
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] == '-') != is_dash_position(i)) return fail(bad_uuid(text));
    if (text[i] != '-') digits += text[i];
  }
  Raw bytes;
  if (!decode_hex(digits, bytes)) return fail(bad_uuid(text));
  return Uuid(bytes);
}

std::string Uuid::to_string() const {
  const auto digits = to_hex(bytes_);
  std::string out;
  out.reserve(kTextLength);
  for (const char digit : digits) {
    if (is_dash_position(out.size())) out += '-';
    out += digit;
  }
  return out;
}

Uuid UuidGenerator::next() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::floor<std::chrono::milliseconds>(clock_.now().time_since_epoch()).count();
  const auto millis = static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0));
  if (!started_ || millis > millis_) {
    start_millisecond(millis);
  } else {
    step_within_millisecond();
  }
  Uuid::Raw bytes;
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(millis_ >> (40 - 8 * i));
  bytes[6] = static_cast<std::uint8_t>(0x70 | high_ >> 8);
  bytes[7] = static_cast<std::uint8_t>(high_);
  for (std::size_t i = 0; i < 8; ++i) bytes[8 + i] = static_cast<std::uint8_t>(low_ >> (56 - 8 * i));
  bytes[8] = static_cast<std::uint8_t>(0x80 | (bytes[8] & 0x3f));
  return Uuid(bytes);
}

void UuidGenerator::start_millisecond(std::uint64_t millis) {
  started_ = true;
  millis_ = millis;
  high_ = random_.next() & (kHighBits >> 1);  // the top bit stays clear, as room for carries from low_
  low_ = random_.next() & kLowBits;
}

// A random step makes ids of the same millisecond hard to guess from each other.
void UuidGenerator::step_within_millisecond() {
  low_ += 1 + (random_.next() >> 32);
  if (low_ <= kLowBits) return;
  low_ &= kLowBits;
  if (++high_ > kHighBits) start_millisecond(millis_ + 1);
}

}  // namespace fencepost

std::size_t std::hash<fencepost::Uuid>::operator()(const fencepost::Uuid& uuid) const noexcept {
  std::uint64_t time_half;
  std::uint64_t random_half;
  std::memcpy(&time_half, uuid.bytes().data(), sizeof time_half);
  std::memcpy(&random_half, uuid.bytes().data() + sizeof time_half, sizeof random_half);
  return static_cast<std::size_t>(time_half * 0x9e3779b97f4a7c15ULL ^ random_half);
}
