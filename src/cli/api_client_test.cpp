#include "cli/api_client.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost {
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

TEST_F(FindApiTest, the_key_found_by_chance_is_not_sent_to_a_url_given_by_hand) {
  const auto usual = up_in("usual", kUp);
  const auto access = find({.url = "http://elsewhere", .api_key = "", .data_dir = ""}, {}, usual);
  ASSERT_FALSE(access.has_value());
  EXPECT_EQ(access.error().code, "api_unknown");
}

TEST_F(FindApiTest, says_what_is_missing) {
  EXPECT_TRUE(find({}, {}, empty_dir()).error().message.starts_with("which node?"));
  EXPECT_TRUE(find({.url = "http://x", .api_key = "", .data_dir = ""}, {}, empty_dir())
                  .error()
                  .message.starts_with("which API key?"));
  EXPECT_EQ(find({.url = "", .api_key = "", .data_dir = empty_dir()}, {}, empty_dir()).error().code, "not_up");
}

Result<boost::json::value> answer(unsigned status, std::string body) {
  return read_answer({.status = status, .headers = {{"X-Request-Id", "r-1"}}, .body = std::move(body)});
}

TEST(read_answer, gives_the_document_of_a_success) {
  EXPECT_EQ(answer(200, R"({"a": 1})")->at("a").as_int64(), 1);
  EXPECT_EQ(answer(202, "[]")->as_array().size(), 0U);
  EXPECT_TRUE(answer(204, "")->is_null());
}

TEST(read_answer, turns_a_problem_into_its_error_fit_for_a_terminal) {
  const auto refused = answer(409, R"({"type": "about:blank", "title": "Conflict", "status": 409, "txId": "t",
                                       "detail": "another\u001b payload", "code": "request_conflict", "nonce": 7,
                                       "httpRequestId": "r-1", "reason": "\u0007"})");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(refused.error().code, "request_conflict");
  EXPECT_EQ(refused.error().message, "another  payload");
  EXPECT_EQ(
      refused.error().context,
      (Error::Context{
          {"code", "request_conflict"}, {"txId", "t"}, {"nonce", "7"}, {"reason", " "}, {"X-Request-Id", "r-1"}}));
}

TEST(read_answer, that_is_not_ours_says_so) {
  for (const auto& [status, body] : {std::pair{200U, "<html>"}, std::pair{502U, "<html>"}, std::pair{404U, "{}"},
                                     std::pair{500U, ""}, std::pair{400U, "[]"}}) {
    const auto strange = answer(status, body);
    ASSERT_FALSE(strange.has_value()) << body;
    EXPECT_EQ(strange.error().code, "bad_answer");
  }
}

TEST(api_client, a_node_that_is_not_there_is_an_error_with_its_url) {
  ApiClient client({"http://127.0.0.1:1", Secret("fp_secret")});
  const auto answer = client.get("/api/v1/tx");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, "connect_failed");
  EXPECT_EQ(answer.error().to_string().find("fp_secret"), std::string::npos);
  EXPECT_NE(answer.error().to_string().find("http://127.0.0.1:1"), std::string::npos);
}

}  // namespace
}  // namespace fencepost
