// What the benchmarks written in C++ share: their settings, and the median of their rounds.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <stdlib.h>

#include "base/error.hpp"

namespace fencepost::bench {

// A positive integer of the environment. Throws Exception `bad_setting` if it is set to something else.
inline int setting(const char* name, int otherwise) {
  const char* text = ::getenv(name);
  if (text == nullptr) return otherwise;
  const std::string_view digits(text);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 1) {
    throw Exception(invalid("bad_setting", fmt::format("{}={}: expected a positive integer", name, text)));
  }
  return value;
}

inline int rounds() {
  return setting("ROUNDS", 3);
}

inline std::chrono::seconds time_per_round() {
  return std::chrono::seconds(setting("SECONDS_PER_ROUND", 5));
}

// Requires: not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace fencepost::bench
