#include "evm/finality_rule.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace fencepost::evm {
namespace {

std::optional<std::uint32_t> parse_depth(std::string_view text) {
  if (text.empty() || text.front() < '1' || text.front() > '9') return std::nullopt;
  std::uint32_t depth = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), depth);
  if (ec != std::errc() || end != text.data() + text.size() || depth > FinalityRule::kMaxDepth) return std::nullopt;
  return depth;
}

}  // namespace

Result<FinalityRule> parse_finality_rule(std::string_view text) {
  if (text == "safe") return FinalityRule{FinalityRule::Kind::kSafe, 0};
  if (text == "finalized") return FinalityRule{FinalityRule::Kind::kFinalized, 0};
  if (const auto depth = parse_depth(text)) return FinalityRule{FinalityRule::Kind::kDepth, *depth};
  return fail(invalid("bad_finality", fmt::format("expected an integer from 1 to {}, safe or finalized, got \"{}\"",
                                                  FinalityRule::kMaxDepth, text)));
}

std::string to_string(const FinalityRule& rule) {
  switch (rule.kind) {
    case FinalityRule::Kind::kSafe:
      return "safe";
    case FinalityRule::Kind::kFinalized:
      return "finalized";
    case FinalityRule::Kind::kDepth:
      return std::to_string(rule.depth);
  }
  std::unreachable();
}

std::optional<std::int64_t> final_by_depth(std::int64_t head_number, std::int64_t depth) {
  if (head_number < depth) return std::nullopt;
  return head_number - depth;
}

}  // namespace fencepost::evm
