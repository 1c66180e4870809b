#include "evm/keys/keystore.hpp"

#include <string>

#include <gtest/gtest.h>

#include "evm/address.hpp"

namespace fencepost::evm {
namespace {

constexpr ScryptCost kCheap{.n = 2, .r = 8, .p = 1};

std::string hex_of(const PrivateKey& key) {
  return to_hex(key.reveal());
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Error refused(std::string_view text, std::string_view password = "foo") {
  const auto key = decrypt_keystore(text, Secret(password));
  EXPECT_FALSE(key) << text;
  return key ? Error{} : key.error();
}

// From the specification of the format, also in geth's tests: n = 2^18 with r = 1.
constexpr std::string_view kWikiScrypt = R"({
  "crypto": {
    "cipher": "aes-128-ctr",
    "cipherparams": {"iv": "83dbcc02d8ccb40e466191a123791e0e"},
    "ciphertext": "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
    "kdf": "scrypt",
    "kdfparams": {
      "dklen": 32, "n": 262144, "r": 1, "p": 8,
      "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"
    },
    "mac": "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"
  },
  "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
  "version": 3
})";

constexpr std::string_view kWikiPbkdf2 = R"({
  "crypto": {
    "cipher": "aes-128-ctr",
    "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
    "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
    "kdf": "pbkdf2",
    "kdfparams": {
      "c": 262144, "dklen": 32, "prf": "hmac-sha256",
      "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"
    },
    "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"
  },
  "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
  "version": 3
})";

// Geth's own test file, "aaa", whose password is foobar.
constexpr std::string_view kGeth =
    R"({"address":"f466859ead1932d743d622cb74fc058882e8648a","crypto":{"cipher":"aes-128-ctr",)"
    R"("ciphertext":"cb664472deacb41a2e995fa7f96fe29ce744471deb8d146a0e43c7898c9ddd4d",)"
    R"("cipherparams":{"iv":"dfd9ee70812add5f4b8f89d0811c9158"},"kdf":"scrypt","kdfparams":{"dklen":32,"n":8,"p":16,)"
    R"("r":8,"salt":"0d6769bf016d45c479213990d6a08d938469c4adad8a02ce507b4a4e7b7739f1"},)"
    R"("mac":"bac9af994b15a45dd39669fc66f9aa8a3b9dd8c22cb16e4d8d7ea089d0f1a1a9"},)"
    R"("id":"472e8b3d-afb6-45b5-8111-72c89895099a","version":3})";

// Geth's test of keys whose leading zeros were left out.
constexpr std::string_view kThirtyBytes = R"({
  "crypto": {
    "cipher": "aes-128-ctr",
    "cipherparams": {"iv": "3ca92af36ad7c2cd92454c59cea5ef00"},
    "ciphertext": "108b7d34f3442fc26ab1ab90ca91476ba6bfa8c00975a49ef9051dc675aa",
    "kdf": "scrypt",
    "kdfparams": {
      "dklen": 32, "n": 2, "r": 8, "p": 1,
      "salt": "d0769e608fb86cda848065642a9c6fa046845c928175662b8e356c77f914cd3b"
    },
    "mac": "75d0e6759f7b3cefa319c3be41680ab6beea7d8328653474bd06706d4cc67420"
  },
  "id": "a37e1559-5955-450d-8075-7b8931b392b2",
  "version": 3
})";

TEST(keystore, opens_the_published_scrypt_vector) {
  const auto key = decrypt_keystore(kWikiScrypt, Secret("testpassword"));
  ASSERT_TRUE(key) << key.error().to_string();
  EXPECT_EQ(hex_of(*key), "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d");
}

TEST(keystore, opens_the_published_pbkdf2_vector) {
  const auto key = decrypt_keystore(kWikiPbkdf2, Secret("testpassword"));
  ASSERT_TRUE(key) << key.error().to_string();
  EXPECT_EQ(hex_of(*key), "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d");
}

TEST(keystore, opens_a_file_of_geth) {
  const auto key = decrypt_keystore(kGeth, Secret("foobar"));
  ASSERT_TRUE(key) << key.error().to_string();
  EXPECT_EQ(address_text(key->address()), "0xf466859ead1932d743d622cb74fc058882e8648a");
}

TEST(keystore, opens_keys_without_their_leading_zeros) {
  const auto key = decrypt_keystore(kThirtyBytes, Secret("foo"));
  ASSERT_TRUE(key) << key.error().to_string();
  EXPECT_EQ(hex_of(*key), "000081c29e8142bb6a81bef5a92bda7a8328a5c85bb2f9542e76f9b0f94fc018");
}

TEST(keystore, opens_what_it_makes) {
  SeededRandom random(1);
  for (const KdfCost cost :
       {KdfCost(kCheap), KdfCost(ScryptCost{.n = 1024, .r = 4, .p = 3}), KdfCost(Pbkdf2Cost{10})}) {
    for (const auto* password : {"", "a", "pässwörd with spaces\n"}) {
      const auto key = PrivateKey::generate(random);
      const auto text = encrypt_keystore(key, Secret(password), random, cost);
      const auto opened = decrypt_keystore(text, Secret(password));
      ASSERT_TRUE(opened) << opened.error().to_string();
      EXPECT_EQ(hex_of(*opened), hex_of(key));
      EXPECT_EQ(text.find(hex_of(key)), std::string::npos);
      EXPECT_EQ(refused(text, std::string(password) + "x").code, "wrong_password");
    }
  }
}

TEST(keystore, makes_files_at_geths_cost) {
  SeededRandom random(2);
  const auto key = PrivateKey::generate(random);
  const auto text = encrypt_keystore(key, Secret("pw"), random);
  EXPECT_NE(text.find(R"("n":262144,"p":1,"r":8)"), std::string::npos) << text;
  const auto opened = decrypt_keystore(text, Secret("pw"));
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_EQ(hex_of(*opened), hex_of(key));
}

TEST(keystore, never_repeats_salt_or_iv) {
  SeededRandom random(3);
  const auto key = PrivateKey::generate(random);
  const auto one = parse_keystore(encrypt_keystore(key, Secret("pw"), random, kCheap)).value();
  const auto two = parse_keystore(encrypt_keystore(key, Secret("pw"), random, kCheap)).value();
  EXPECT_NE(one.salt, two.salt);
  EXPECT_NE(one.iv, two.iv);
  EXPECT_NE(one.ciphertext, two.ciphertext);
}

TEST(keystore, refuses_to_make_a_file_that_it_could_not_open) {
  SeededRandom random(4);
  const auto key = PrivateKey::generate(random);
  EXPECT_THROW(encrypt_keystore(key, Secret("pw"), random, ScryptCost{.n = 1000}), Exception);
}

TEST(keystore, says_when_the_password_is_wrong) {
  const auto error = refused(kGeth, "foobaz");
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_EQ(error.code, "wrong_password");
  EXPECT_EQ(error.to_string().find("foobaz"), std::string::npos);
}

TEST(keystore, refuses_a_key_of_another_address) {
  const auto error = refused(replaced(std::string(kGeth), "f466", "f467"), "foobar");
  EXPECT_EQ(error.code, "bad_keystore");
  EXPECT_EQ(error.message,
            "the file states the address 0xf467859ead1932d743d622cb74fc058882e8648a, but its key belongs to "
            "0xf466859ead1932d743d622cb74fc058882e8648a");
}

TEST(keystore, finds_names_whatever_their_case) {
  auto text = replaced(std::string(kGeth), R"("crypto")", R"("Crypto")");
  text = replaced(text, R"("kdfparams")", R"("KDFParams")");
  text = replaced(text, R"("f466859e)", R"("0xF466859E)");
  EXPECT_TRUE(decrypt_keystore(text, Secret("foobar")));
  const auto twice = replaced(std::string(kGeth), R"("version":3)", R"("version":3,"Version":3)");
  EXPECT_EQ(refused(twice, "foobar").message, "\"version\" is given twice");
}

TEST(keystore, opens_files_without_an_address) {
  for (const auto* address : {R"("address":"",)", R"("address":null,)", ""}) {
    const auto text = replaced(std::string(kGeth), R"("address":"f466859ead1932d743d622cb74fc058882e8648a",)", address);
    EXPECT_TRUE(decrypt_keystore(text, Secret("foobar"))) << address;
  }
}

TEST(keystore, refuses_malformed_and_unsupported_key_files) {
  struct Case {
    std::string_view from;
    std::string_view to;
    std::string_view code;
    std::string_view message;
  };
  const Case cases[] = {
      {R"("version":3)", R"("version":1)", "unsupported_keystore", "version: only 3 is supported, got 1"},
      {R"("version":3)", R"("version":"3")", "bad_keystore", R"(version: expected a whole number, got "3")"},
      {R"(,"version":3)", "", "bad_keystore", "version is missing"},
      {R"("crypto")", R"("crypt")", "bad_keystore", "crypto is missing"},
      {"aes-128-ctr", "aes-128-cbc", "unsupported_keystore",
       R"(cipher: only aes-128-ctr is supported, got "aes-128-cbc")"},
      {R"("kdf":"scrypt")", R"("kdf":"argon2id")", "unsupported_keystore",
       R"(kdf: only scrypt and pbkdf2 are supported, got "argon2id")"},
      {R"("kdf":"scrypt")", R"("kdf":"pbkdf2")", "bad_keystore", "prf is missing"},
      {R"("dklen":32)", R"("dklen":64)", "unsupported_keystore", "dklen: only 32 is supported, got 64"},
      {R"("n":8)", R"("n":-8)", "bad_keystore", "n: expected a whole number, got number -8"},
      {R"("n":8)", R"("n":9)", "unsupported_keystore", "scrypt: n must be a power of two over 1, got 9"},
      {R"("n":8)", R"("n":1)", "unsupported_keystore", "scrypt: n must be a power of two over 1, got 1"},
      {R"("r":8)", R"("r":0)", "unsupported_keystore", "scrypt: r and p must be at least 1"},
      {R"("iv":"df)", R"("iv":")", "bad_keystore", "iv: expected 32 hex digits, got 30"},
      {R"("mac":"ba)", R"("mac":"zz)", "bad_keystore", R"(mac: "z" at position 0 is not a hex digit)"},
      {R"("ciphertext":"cb)", R"("ciphertext":"cbcb)", "bad_keystore", "ciphertext: expected 1 to 32 bytes, got 33"},
      {R"("address":"f4)", R"("address":")", "bad_keystore", "address: expected 40 hex digits, got 38"},
  };
  for (const auto& [from, to, code, message] : cases) {
    SCOPED_TRACE(to);
    const auto error = refused(replaced(std::string(kGeth), from, to), "foobar");
    EXPECT_EQ(error.kind, ErrorKind::kInvalid);
    EXPECT_EQ(error.code, code);
    EXPECT_EQ(error.message, message);
  }
  for (const auto* text : {"", "garbage", "[]", "3", "null", "{}"})
    EXPECT_EQ(refused(text).code, "bad_keystore") << text;
  EXPECT_EQ(refused(std::string(kMaxKeystoreBytes + 1, ' ')).code, "bad_keystore");
}

TEST(keystore, does_not_let_a_file_take_all_memory_or_time) {
  for (const auto* cost :
       {R"("n":1073741824,"p":1,"r":8)", R"("n":2,"p":1,"r":1073741824)", R"("n":262144,"p":1000,"r":8)",
        R"("n":1048576,"p":1,"r":8)", R"("n":9223372036854775808,"p":1,"r":8)",
        R"("n":2,"p":18446744073709551615,"r":18446744073709551615)", R"("n":2,"p":1073741824,"r":1)"}) {
    const auto error = refused(replaced(std::string(kGeth), R"("n":8,"p":16,"r":8)", cost), "foobar");
    EXPECT_EQ(error.code, "unsupported_keystore") << cost;
    EXPECT_NE(error.message.find("costs too much"), std::string::npos) << error.message;
  }
  const auto slow = replaced(std::string(kWikiPbkdf2), R"("c": 262144)", R"("c": 4294967296)");
  EXPECT_EQ(refused(slow).code, "unsupported_keystore");
  EXPECT_EQ(refused(replaced(std::string(kWikiPbkdf2), R"("c": 262144)", R"("c": 0)")).code, "unsupported_keystore");
}

// Whether the cost is low enough for a test that opens thousands of files.
bool is_cheap(const KdfCost& cost) {
  const auto* scrypt = std::get_if<ScryptCost>(&cost);
  return scrypt != nullptr && scrypt->n * scrypt->r * scrypt->p <= 1'000;
}

// A flipped bit may leave a file that opens (in the id, or in the case of a name), but never to another key.
TEST(keystore, a_flipped_bit_never_opens_to_another_key) {
  SeededRandom random(5);
  const auto key = PrivateKey::generate(random);
  const auto original = encrypt_keystore(key, Secret("pw"), random, kCheap);
  int opened = 0;
  for (std::size_t bit = 0; bit < original.size() * 8; ++bit) {
    auto text = original;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    const auto parsed = parse_keystore(text);
    if (!parsed || !is_cheap(parsed->cost)) continue;
    const auto found = decrypt_keystore(text, Secret("pw"));
    if (!found) continue;
    ++opened;
    ASSERT_EQ(hex_of(*found), hex_of(key)) << text;
  }
  EXPECT_GT(opened, 100);
}

// The format's mac does not cover the iv, so only the address protects it. A file with a damaged iv and without an
// address opens to another key, in every wallet.
TEST(keystore, mutations_open_to_no_key_of_another_address) {
  SeededRandom random(6);
  const auto key = PrivateKey::generate(random);
  const auto original = encrypt_keystore(key, Secret("pw"), random, kCheap);
  for (int i = 0; i < 20'000; ++i) {
    auto text = original;
    for (auto changes = 1 + random.next() % 4; changes > 0; --changes) {
      const auto at = random.next() % text.size();
      if (random.next() % 2 == 0) text.erase(at, 1);
      text.insert(at, 1, static_cast<char>(random.next()));
    }
    if (random.next() % 8 == 0) text.resize(random.next() % text.size());
    const auto parsed = parse_keystore(text);
    if (!parsed || !is_cheap(parsed->cost)) continue;
    const auto found = decrypt_keystore(text, Secret("pw"));
    if (found && parsed->address) ASSERT_EQ(address_text(found->address()), *parsed->address) << text;
  }
}

}  // namespace
}  // namespace fencepost::evm
