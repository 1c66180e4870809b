// The kinds of timelock contracts that are followed.
#pragma once

#include "base/name_table.hpp"

namespace fencepost::timelock {

enum class Standard { kCompound, kOpenZeppelin };

inline constexpr auto kStandards = name_table<Standard>({
    {Standard::kCompound, "compound", "Compound's Timelock and its forks."},
    {Standard::kOpenZeppelin, "openzeppelin", "OpenZeppelin's TimelockController."},
});

}  // namespace fencepost::timelock
