#include "http/batch_answer.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "runtime/gather.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::http {
namespace {

namespace json = boost::json;

TEST(batch_answer, a_refused_item_says_why_and_where) {
  const auto error = item_error(invalid("bad_address", "signer: expected an address").with("field", "signer"));
  EXPECT_EQ(error,
            (json::object{{"code", "bad_address"}, {"detail", "signer: expected an address"}, {"field", "signer"}}));
}

awaitable<ItemAnswer> doubled(int number) {
  if (number == 3) throw Exception(conflict("no_three", "three is taken"));
  co_return ItemAnswer{.status = 200, .body = {{"number", 2 * number}}, .error = {}};
}

TEST(batch_answer, an_item_fails_alone) {
  Runtime runtime{{.threads = 1}};
  runtime.start();
  const auto body = json::parse(R"({"items": [1, "two", 3, 4]})");
  const auto run = [&]() -> awaitable<Response> {
    auto tasks = batch_tasks<int>(
        JsonReader(body), [](const JsonReader& item) -> Result<int> { return static_cast<int>(item.int64()); },
        doubled);
    auto answers = co_await gather(std::move(tasks));
    co_return batch_answer(std::move(answers), "double", Request());
  };
  const auto results = json::parse(runtime.run_on(0, run()).body).at("results");
  runtime.stop();
  EXPECT_EQ(results.at(0), (json::value{{"status", 200}, {"double", {{"number", 2}}}}));
  EXPECT_EQ(results.at(1).at("error").at("code"), "bad_request");
  EXPECT_EQ(results.at(2).at("status"), 409);
  EXPECT_EQ(results.at(2).at("error").at("code"), "no_three");
  EXPECT_EQ(results.at(3).at("double").at("number"), 8);
}

TEST(batch_answer, a_refused_item_says_when_to_retry) {
  const auto error = item_error(unavailable("busy", "too much").after(std::chrono::seconds(2)));
  EXPECT_EQ(error.at("retryAfter"), 2);
}

TEST(batch_answer, internal_errors_hide_their_details) {
  const auto text = json::serialize(item_error(internal("bug", "row 5 is odd").with("host", "db-1")));
  EXPECT_EQ(text.find("odd"), std::string::npos) << text;
  EXPECT_EQ(text.find("db-1"), std::string::npos) << text;
}

}  // namespace
}  // namespace fencepost::http
