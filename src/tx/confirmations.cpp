#include "tx/confirmations.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace fencepost::tx {
namespace {

void check_linked(std::span<const BlockRef> list) {
  const auto unlinked = [](const BlockRef& lower, const BlockRef& upper) {
    return upper.number != lower.number + 1 || upper.parent_hash != lower.hash;
  };
  const auto gap = std::ranges::adjacent_find(list, unlinked);
  if (gap == list.end()) return;
  throw Exception(internal("broken_header_walk", "the headers above a receipt are not one branch")
                      .with("block", std::to_string(gap->number))
                      .with("hash", gap->hash));
}

// How many blocks of the list the consumer has; nullopt when what it has is not the beginning of the list.
std::optional<std::size_t> known_length(std::span<const BlockRef> list, const Told& told) {
  if (told.withdrawn) return std::nullopt;
  if (!told.last) return 0;
  const auto found = std::ranges::find(list, told.last->number, &BlockRef::number);
  if (found == list.end() || found->hash != told.last->hash) return std::nullopt;
  return static_cast<std::size_t>(found - list.begin()) + 1;
}

}  // namespace

std::optional<Telling> next_telling(std::span<const BlockRef> list, const Told& told) {
  check_linked(list);
  if (list.empty()) {
    if (!told.last) return std::nullopt;
    return Telling{true, list, {std::nullopt, true}};
  }
  const auto known = known_length(list, told);
  if (known == list.size()) return std::nullopt;
  const Told then{ToldBlock{list.back().number, list.back().hash}, false};
  return Telling{!known, list.subspan(known.value_or(0)), then};
}

}  // namespace fencepost::tx
