#include "base/secret.hpp"

#include <ostream>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost {
namespace {

template <class T>
concept Streamable = requires(std::ostream& out, const T& value) { out << value; };
template <class T>
concept Formattable = fmt::is_formattable<T>::value;

static_assert(Streamable<std::string> && Formattable<std::string>);
static_assert(!Streamable<Secret>);
static_assert(!Formattable<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string> && !std::is_convertible_v<Secret, std::string_view>);
static_assert(!std::is_convertible_v<Secret, bool>);
static_assert(!std::is_convertible_v<std::string, Secret>);

TEST(secret, gives_the_text_only_on_request) {
  const Secret secret("hunter2");
  EXPECT_EQ(secret.reveal(), "hunter2");
  EXPECT_FALSE(secret.empty());
  EXPECT_TRUE(Secret().empty());
  EXPECT_EQ(Secret().reveal(), "");
}

TEST(secret, copies_and_moves_as_a_value) {
  Secret a("first");
  Secret b = a;
  EXPECT_EQ(a, b);
  Secret c = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move): tests that it is empty
  EXPECT_EQ(c.reveal(), "first");
  b = Secret("second");
  EXPECT_EQ(b.reveal(), "second");
  c = b;
  EXPECT_EQ(c.reveal(), "second");
  auto& same = c;
  c = same;
  EXPECT_EQ(c.reveal(), "second");
  c = std::move(same);
  EXPECT_EQ(c.reveal(), "second");
}

TEST(secret, taking_a_string_wipes_it) {
  for (const std::size_t length : {std::size_t{5}, std::size_t{500}}) {
    std::string text(length, 'k');
    const char* bytes = text.data();
    const auto secret = Secret::take(std::move(text));
    EXPECT_EQ(secret.reveal(), std::string(length, 'k'));
    EXPECT_TRUE(text.empty());  // NOLINT(bugprone-use-after-move): `take` promises it
    ASSERT_EQ(text.data(), bytes) << "the buffer is still the string's, so it may be looked at";
    text.resize(length);
    for (std::size_t i = 1; i < length; ++i) ASSERT_EQ(text[i], '\0');
  }
}

TEST(secret, compares_by_content) {
  EXPECT_TRUE(constant_time_equal("", ""));
  EXPECT_TRUE(constant_time_equal("abc", "abc"));
  EXPECT_FALSE(constant_time_equal("abc", "abd"));
  EXPECT_FALSE(constant_time_equal("abc", "ab"));
  EXPECT_FALSE(constant_time_equal("", "a"));
  EXPECT_EQ(Secret("x"), Secret("x"));
  EXPECT_NE(Secret("x"), Secret("y"));
}

}  // namespace
}  // namespace fencepost
