#include "cli/api_access.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost::cli {
namespace {

using Environment = std::map<std::string, std::string>;

class FindApiTest : public testing::Test {
 protected:
  std::string up_in(const std::string& name, std::string_view text) const {
    const std::filesystem::path dir = directory_ / name;
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "up.json") << text;
    return dir;
  }
  std::string empty_dir() const { return directory_ / "empty"; }

  Result<ApiAccess> find(const ApiFlags& flags, const Environment& environment, const std::string& usual) const {
    return find_api(flags, environment, usual);
  }

 private:
  test::TempDir directory_{"api"};
};

constexpr auto kUp = R"({"url": "http://127.0.0.1:1", "apiKey": "fp_up", "pid": 5})";

void expect_access(const Result<ApiAccess>& access, std::string_view url, std::string_view key) {
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_EQ(access->url, url);
  EXPECT_EQ(access->api_key.reveal(), key);
}

TEST_F(FindApiTest, a_flag_beats_data_dir_beats_the_environment_beats_the_usual_place) {
  const auto up = up_in("up", kUp);
  const auto usual = up_in("usual", R"({"url": "http://127.0.0.1:2", "apiKey": "fp_usual"})");
  const Environment environment{{"FENCEPOST_URL", "http://env/"}, {"FENCEPOST_API_KEY", "fp_env"}};
  expect_access(find({.url = "http://flag//", .api_key = "fp_flag", .data_dir = up}, environment, usual), "http://flag",
                "fp_flag");
  expect_access(find({.url = "", .api_key = "", .data_dir = up}, environment, usual), "http://127.0.0.1:1", "fp_up");
  expect_access(find({.url = "http://flag", .api_key = "", .data_dir = ""}, environment, usual), "http://flag",
                "fp_env");
  expect_access(find({}, environment, usual), "http://env", "fp_env");
  expect_access(find({}, {}, usual), "http://127.0.0.1:2", "fp_usual");
}

TEST_F(FindApiTest, names_the_source_of_url_and_key) {
  const auto up = up_in("up", kUp);
  const auto usual = up_in("usual", kUp);
  const Environment environment{{"FENCEPOST_URL", "http://env/"}, {"FENCEPOST_API_KEY", "fp_env"}};
  const auto from = [&](const ApiFlags& flags, const Environment& variables) {
    return find(flags, variables, usual)->from();
  };
  EXPECT_EQ(from({.url = "http://x", .api_key = "k", .data_dir = up}, environment), "--url (key from --api-key)");
  EXPECT_EQ(from({.url = "", .api_key = "", .data_dir = up}, environment), up + "/up.json");
  EXPECT_EQ(from({.url = "", .api_key = "k", .data_dir = ""}, environment), "FENCEPOST_URL (key from --api-key)");
  EXPECT_EQ(from({}, environment), "FENCEPOST_URL (key from FENCEPOST_API_KEY)");
  EXPECT_EQ(from({}, {}), usual + "/up.json");
}

TEST_F(FindApiTest, the_key_of_a_running_up_is_not_sent_to_another_url) {
  const auto usual = up_in("usual", kUp);
  const auto access = find({.url = "http://elsewhere", .api_key = "", .data_dir = ""}, {}, usual);
  ASSERT_FALSE(access.has_value());
  EXPECT_EQ(access.error().code, "api_unknown");
}

TEST_F(FindApiTest, says_what_is_missing) {
  const auto message = [&](const ApiFlags& flags, const Environment& environment) {
    return find(flags, environment, empty_dir()).error().message;
  };
  EXPECT_TRUE(message({}, {}).starts_with("the URL of the node is not known. No 'fencepost up' is running in ./"))
      << message({}, {});
  EXPECT_TRUE(message({.url = "http://x", .api_key = "", .data_dir = ""}, {})
                  .starts_with("the API key is not known. --url gives a URL without a key."));
  EXPECT_TRUE(message({}, {{"FENCEPOST_API_KEY", "k"}})
                  .starts_with("the URL of the node is not known. FENCEPOST_API_KEY gives a key without a URL."));
  EXPECT_EQ(find({.url = "", .api_key = "", .data_dir = empty_dir()}, {}, empty_dir()).error().code, "not_up");
}

}  // namespace
}  // namespace fencepost::cli
