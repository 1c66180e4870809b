#include "notify/model/mail_address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

using testing::HasSubstr;

TEST(mail_address, has_one_normal_form) {
  const struct {
    std::string_view given;
    std::string_view stored;
  } cases[] = {
      {"alice@example.org", "alice@example.org"},
      {"Alice.B@Example.ORG", "Alice.B@example.org"},
      {"a@b.co", "a@b.co"},
      {"alice+fencepost@mail.example.org", "alice+fencepost@mail.example.org"},
      {"o'brien=x_y-z!#$%&*/?^`{|}~@example.org", "o'brien=x_y-z!#$%&*/?^`{|}~@example.org"},
      {"user%other.org@example.org", "user%other.org@example.org"},
      {"1@1.example", "1@1.example"},
      {"a@3com.com", "a@3com.com"},
      {"a@ex-ample.org", "a@ex-ample.org"},
      {"a@ü.example", "a@xn--tda.example"},
      {"a@u\u0308.example", "a@xn--tda.example"},  // u and a combining diaeresis
      {"a@xn--tda.example", "a@xn--tda.example"},
      {"a@XN--TDA.example", "a@xn--tda.example"},
      {"a@straße.de", "a@xn--strae-oqa.de"},  // not strasse.de, which is another domain
      {"a@例子.中国", "a@xn--fsqu00a.xn--fiqs8s"},
      {"a@пример.рф", "a@xn--e1afmkfd.xn--p1ai"},
      {"a@مثال.إختبار", "a@xn--mgbh0fb.xn--kgbechtv"},
  };
  for (const auto& [given, stored] : cases) {
    const auto address = normalize_mail_address(given);
    ASSERT_TRUE(address) << quote(given) << ": " << address.error().message;
    EXPECT_EQ(*address, stored) << quote(given);
    EXPECT_EQ(normalize_mail_address(*address), *address) << quote(given) << ": the normal form is stable";
  }
}

TEST(mail_address, says_what_is_wrong) {
  const std::string nul("a@example.org\0x", 15);
  const std::string label_64(64, 'a');
  const struct {
    std::string given;
    std::string_view why;
  } cases[] = {
      {"", "has no @"},
      {"alice", "has no @"},
      {"@example.org", "nothing before the @"},
      {"alice@", "nothing after the @"},
      {"a@b@example.org", "more than one @"},
      {"a\uff20example.org", "has no @"},  // full-width @
      {"a\ufe6bexample.org", "has no @"},  // small @
      {" a@example.org", "before the @"},
      {"a @example.org", "before the @"},
      {"a@example.org ", "has a domain"},
      {"a@exa mple.org", "has a domain"},
      {"a@example.org\n", "has a domain"},
      {"a@example.org\r\nRCPT TO:<b@example.org>", "more than one @"},
      {"a@example.org\r\nDATA", "has a domain"},
      {"a\r\nb@example.org", "before the @"},
      {"a\tb@example.org", "before the @"},
      {nul, "control character"},
      {"\"a b\"@example.org", "before the @"},
      {"\"a\"@example.org", "before the @"},
      {"Alice <a@example.org>", "before the @"},
      {"<a@example.org>", "before the @"},
      {"a@example.org>", "has a domain"},
      {"a@example.org,b", "has a domain"},
      {"a,b@example.org", "before the @"},
      {"a;b@example.org", "before the @"},
      {"a(comment)@example.org", "before the @"},
      {"a@(comment)example.org", "has a domain"},
      {"a\\b@example.org", "before the @"},
      {"a:b@example.org", "before the @"},
      {"[a]@example.org", "before the @"},
      {"ä@example.org", "before the @"},
      {"a\u200f@example.org", "before the @"},  // right-to-left mark
      {".a@example.org", "dot"},
      {"a.@example.org", "dot"},
      {"a..b@example.org", "two dots"},
      {"a@localhost", "without a dot"},
      {"a@example.org.", "ends with a dot"},
      {"a@.example.org", "has a domain"},
      {"a@example..org", "has a domain"},
      {"a@-example.org", "has a domain"},
      {"a@example-.org", "has a domain"},
      {"a@exam_ple.org", "not a host name"},
      {"a@127.0.0.1", "address literals"},
      {"a@example.123", "address literals"},
      {"a@[127.0.0.1]", "has a domain"},
      {"a@[IPv6:::1]", "has a domain"},
      {"a@exam\u00adple.org", "has a domain"},   // soft hyphen
      {"a@exam\u200bple.org", "has a domain"},   // zero-width space
      {"a@\u202eexample.org", "has a domain"},   // right-to-left override
      {"a@\u200fexample.org", "has a domain"},   // right-to-left mark
      {"a@\uff45xample.org", "has a domain"},    // full-width e
      {"a@example\u3002org", "has a domain"},    // ideographic full stop
      {"a@\u2100.example.org", "has a domain"},  // "a/c" in one character
      {"a@\u0308u.example", "has a domain"},     // begins with a combining character
      {"a@MÜNCHEN.de", "write it in lowercase"},
      {"a@xn--zzzzzzzz99999.example", "has a domain"},
      {"a@\xff\xfe.org", "not UTF-8"},
      {"a@" + label_64 + ".org", "has a domain"},
      {std::string(65, 'a') + "@example.org", "more than 64"},
      {"a@" + std::string(50, 'b') + "." + std::string(60, 'c') + "." + std::string(60, 'd') + "." +
           std::string(60, 'e'),
       "longer than 200"},
  };
  for (const auto& [given, why] : cases) {
    const auto address = normalize_mail_address(given);
    ASSERT_FALSE(address) << quote(given) << " became " << quote(*address);
    EXPECT_EQ(address.error().kind, ErrorKind::kInvalid) << quote(given);
    EXPECT_EQ(address.error().code, "bad_email") << quote(given);
    EXPECT_THAT(address.error().message, HasSubstr(why)) << quote(given);
    for (const char c : address.error().message) EXPECT_GE(static_cast<unsigned char>(c), ' ') << quote(given);
  }
}

TEST(mail_address, lengths_up_to_the_limit_are_accepted) {
  const auto domain = std::string(63, 'b') + "." + std::string(63, 'c') + ".org";
  const auto longest_local = std::string(64, 'a') + "@" + domain;
  EXPECT_EQ(normalize_mail_address(longest_local), longest_local);
  const auto longest = std::string(64, 'a') + "@" + std::string(63, 'b') + "." + std::string(63, 'c') + ".abcdefg";
  ASSERT_EQ(longest.size(), kMailAddressMaxBytes);
  EXPECT_EQ(normalize_mail_address(longest), longest);
  EXPECT_FALSE(normalize_mail_address(longest + "h"));
}

TEST(mail_address, the_limit_counts_the_ascii_form) {
  std::string domain;
  for (int i = 0; i < 12; ++i) domain += "ü" + std::string(7, 'a') + ".";
  const auto text = std::string(64, 'a') + "@" + domain + "example";  // 192 bytes, and more than 200 in ASCII
  ASSERT_LE(text.size(), kMailAddressMaxBytes);
  const auto address = normalize_mail_address(text);
  ASSERT_FALSE(address) << *address;
  EXPECT_THAT(address.error().message, HasSubstr("in ASCII"));
}

TEST(mail_address, the_domain_follows_the_at) {
  EXPECT_EQ(domain_of("alice@mail.example.org"), "mail.example.org");
}

}  // namespace
}  // namespace fencepost::notify
