#include "evm/keccak.hpp"

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

std::string hash_of(std::string_view text) {
  return to_hex(keccak256(text));
}

TEST(keccak, hashes_the_published_vectors) {
  EXPECT_EQ(hash_of(""), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
  EXPECT_EQ(hash_of("abc"), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
  EXPECT_EQ(hash_of("The quick brown fox jumps over the lazy dog"),
            "4d741b6f1eb29cb2a9b9911c82f56fa8d73b04959d3d9d222895df6c0b28aa15");
}

TEST(keccak, hashes_across_the_block_boundary) {
  // 136 bytes are one block: the padding then takes a block of its own.
  const std::string long_text(137, 'a');
  const auto before = keccak256(std::string_view(long_text).substr(0, 135));
  const auto exactly = keccak256(std::string_view(long_text).substr(0, 136));
  const auto after = keccak256(long_text);
  EXPECT_EQ(to_hex(before), "34367dc248bbd832f4e3e69dfaac2f92638bd0bbd18f2912ba4ef454919cf446");
  EXPECT_EQ(to_hex(exactly), "a6c4d403279fe3e0af03729caada8374b5ca54d8065329a3ebcaeb4b60aa386e");
  EXPECT_EQ(to_hex(after), "d869f639c7046b4929fc92a4d988a8b22c55fbadb802c0c66ebcd484f1915f39");
}

}  // namespace
}  // namespace fencepost::evm
