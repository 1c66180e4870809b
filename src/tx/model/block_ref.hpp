// A block by its place on a branch: what a walk of headers consists of, and what a consumer is told.
#pragma once

#include <cstdint>
#include <string>

namespace fencepost::tx {

struct BlockRef {
  std::int64_t number = 0;
  std::string hash;
  std::string parent_hash;

  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

}  // namespace fencepost::tx
