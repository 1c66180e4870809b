#include "base/base64.hpp"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(base64, encodes_with_padding) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(to_base64(std::string_view("\xff\x00\xfe", 3)), "/wD+");
}

TEST(base64, decodes_what_it_encoded) {
  for (const std::string_view bytes : {"", "f", "fo", "foo", "foob", "\xff\xfe=?"}) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
  EXPECT_EQ(from_base64("/wD+"), std::string("\xff\x00\xfe", 3));
  for (const std::string_view bad : {"Zg", "Zg=", "!!!!", "Zm9v\n"}) EXPECT_EQ(from_base64(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace fencepost
