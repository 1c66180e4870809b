#include "doctor/keystore.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/keys/keystore_file.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::doctor {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DoctorKeystore : public testing::Test {
 protected:
  fs::path write_key(const std::string& password) {
    const auto key = evm::PrivateKey::generate(random_);
    return evm::write_keystore(dir(), key, Secret(password), clock_, random_, evm::ScryptCost{.n = 2, .r = 8, .p = 1})
        .value();
  }
  fs::path dir() const { return temp_ / "keys"; }
  // "status detail → fix" of each finding.
  std::vector<std::string> findings(std::vector<Secret> dev_keys = {}) const {
    std::vector<std::string> out;
    for (const auto& finding :
         check_keystore({.directory = dir(), .password = Secret("right"), .dev_keys = std::move(dev_keys)})) {
      EXPECT_EQ(finding.check, "keystore");
      out.push_back(render_line(finding, 0));
    }
    return out;
  }

 private:
  test::TempDir temp_{"doctor-keystore"};
  SystemClock clock_;
  SeededRandom random_{7};
};

TEST_F(DoctorKeystore, files_that_the_password_opens_pass) {
  write_key("right");
  write_key("right");
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("the password opens 2 of 2 key files in " + dir().string())));
}

TEST_F(DoctorKeystore, each_file_that_the_password_does_not_open_fails) {
  write_key("right");
  const auto other = write_key("other");
  std::ofstream(dir() / "notes.txt") << "not a key";
  fs::permissions(dir() / "notes.txt", fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(findings(), ElementsAre(AllOf(HasSubstr("FAIL"), HasSubstr(other.string()), HasSubstr("does not open"),
                                            HasSubstr("check keystore.password")),
                                      AllOf(HasSubstr("FAIL"), HasSubstr("notes.txt"), HasSubstr("backup")),
                                      AllOf(HasSubstr("ok"), HasSubstr("opens 1 of 3"))));
}

TEST_F(DoctorKeystore, a_file_that_others_can_read_is_a_warning_with_the_command_that_fixes_it) {
  const auto file = write_key("right");
  for (const auto right : {fs::perms::group_read, fs::perms::others_read, fs::perms::group_write}) {
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | right);
    EXPECT_THAT(findings(), ElementsAre(AllOf(HasSubstr("warn"), HasSubstr("chmod 600 " + file.string())),
                                        HasSubstr("opens 1 of 1")));
  }
  fs::permissions(file, fs::perms::owner_read);
  EXPECT_EQ(findings().size(), 1U);
  fs::permissions(dir(), fs::perms::owner_all | fs::perms::group_all);
  EXPECT_THAT(findings().front(), HasSubstr("chmod 700 " + dir().string()));
}

TEST_F(DoctorKeystore, two_files_with_one_key_fail) {
  const auto file = write_key("right");
  fs::copy_file(file, dir() / "copy");
  fs::permissions(dir() / "copy", fs::perms::owner_read);
  EXPECT_THAT(findings(), testing::Contains(AllOf(HasSubstr("FAIL"), HasSubstr("remove one of them"))));
}

TEST_F(DoctorKeystore, a_directory_without_keys_is_named) {
  EXPECT_THAT(findings(), ElementsAre(AllOf(HasSubstr("FAIL"), HasSubstr("signer new"))));
  fs::create_directory(dir());
  EXPECT_THAT(findings(), ElementsAre(AllOf(HasSubstr("warn"), HasSubstr("no key files"))));
}

TEST(doctor_keystore, without_a_directory_it_says_which_keys_there_are) {
  EXPECT_THAT(check_keystore({.directory = "", .password = {}, .dev_keys = {}}).at(0).detail,
              HasSubstr("signs nothing"));
  EXPECT_EQ(check_keystore({.directory = "", .password = {}, .dev_keys = {Secret("a"), Secret("b")}}).at(0).detail,
            "2 development keys");
}

}  // namespace
}  // namespace fencepost::doctor
