// When a block of a chain counts as final: when it has a number of blocks on top of it, or when the chain's nodes
// report it as safe or finalized.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::evm {

struct FinalityRule {
  enum class Kind { kDepth, kSafe, kFinalized };
  static constexpr std::uint32_t kMaxDepth = 100'000;

  Kind kind = Kind::kDepth;
  std::uint32_t depth = 20;  // for kDepth

  friend bool operator==(const FinalityRule&, const FinalityRule&) = default;
};

// Parses "20", "safe" or "finalized". Errors: kInvalid `bad_finality` for anything else.
Result<FinalityRule> parse_finality_rule(std::string_view text);
std::string to_string(const FinalityRule& rule);

// The highest block with `depth` blocks on top of it; nothing while the chain is shorter than that.
std::optional<std::int64_t> final_by_depth(std::int64_t head_number, std::int64_t depth);

}  // namespace fencepost::evm
