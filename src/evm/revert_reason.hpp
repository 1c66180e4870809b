// Why a call reverted, as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fencepost::evm {

inline constexpr std::size_t kMaxRevertReason = 1024;

// From the data that the call returned:
//   Error(string)     its text, in one line
//   Panic(uint256)    what the code means: "panic 0x11: arithmetic overflow or underflow"
//   anything else     a custom error by its selector, with its arguments: "custom error 0x2e3bb2b4 (0x00…01)"
//   nothing           "reverted without a reason"
// The contract controls the data, so it may be hostile. The result is valid UTF-8 without control characters, at most
// kMaxRevertReason bytes long ("…" at its end means that it was cut).
std::string revert_reason(std::span<const std::uint8_t> data);

}  // namespace fencepost::evm
