// std::ranges::contains, which the standard library of Debian 12 does not have.
#pragma once

#include <algorithm>
#include <ranges>

namespace fencepost {

template <std::ranges::input_range Range, class Value>
constexpr bool contains(Range&& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

}  // namespace fencepost
