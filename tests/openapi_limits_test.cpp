// Every limit of the OpenAPI document, on both sides: what its schemas accept is not refused as malformed, and what
// they do not accept is refused with 400. In each request, each place gets each value that is near one of its limits;
// openapi_live_test makes random requests.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/serialize.hpp>

#include "tests/support/edge_values.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/openapi_fixture.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

constexpr std::size_t kPersons = 10;
constexpr std::size_t kShown = 100;  // failures

// Texts that the document describes in prose only: a longest duration, and forms of cursors.
const std::set<std::string> kInProse = {"timeout", "cursor"};

bool fits_header(const std::string& text) {
  const bool control = std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
  return !text.empty() && !control && !text.starts_with(' ') && !text.ends_with(' ');
}

class OpenApiLimits : public OpenApiFixture {
 protected:
  OpenApiLimits() : OpenApiFixture(1, kPersons) {}

  bool takes_part(const Operation& operation) const {
    // The state of the transaction or of the transfer comes first in the answers of operators' actions.
    return !operation.is_login() && !operation.needs_a_mail();
  }

  // A request whose other parts are valid.
  Wish base(const Operation& operation) {
    auto wish = good_wish(operation);
    wish.headers.clear();
    if (const auto* schema = body_schema(operation)) wish.body = edges_.full(*schema);
    settle(operation, wish);
    return wish;
  }

  void try_bodies(const Operation& operation) {
    const auto* schema = body_schema(operation);
    if (schema == nullptr) return;
    const auto wish = base(operation);
    std::set<std::string> seen;
    for (auto& body : edges_.variants(*schema, *wish.body)) {
      auto changed = wish;
      changed.body = std::move(body);
      if (changed.body->is_object() && schemas_.accepts(*schema, *changed.body)) settle(operation, changed);
      if (seen.insert(json::serialize(*changed.body)).second) {
        judge(operation, changed, schemas_.accepts(*schema, *changed.body));
      }
    }
  }

  void try_parameters(const Operation& operation) {
    for (const auto* parameter : parameters(operation)) {
      const std::string name(parameter->at("name").as_string());
      if (kInProse.contains(name)) continue;
      const auto place = parameter->at("in").as_string();
      std::set<std::string> seen;
      for (const auto& value : edges_.of(parameter->at("schema"))) {
        const auto text = text_of(value);
        if (value.is_object() || !seen.insert(text).second) continue;
        auto wish = base(operation);
        if (place == "path" && (text.empty() || text.contains('\0'))) continue;
        if (place == "path") wish.path[name] = text;
        if (place == "query") wish.query[name] = text;
        if (place == "header" && !fits_header(text)) continue;
        if (place == "header") wish.headers = {{name, text}};
        const bool valid = is_parameter(parameter->at("schema"), text);
        if (valid) settle(operation, wish);
        judge(operation, wish, valid);
      }
    }
    if (!operation.path.starts_with("/api/")) return;  // probes may add what they like
    auto wish = base(operation);
    wish.query["unexpected"] = "1";
    judge(operation, wish, false);
  }

  // Sends the request, and notes what is wrong with its answer.
  void judge(const Operation& operation, const Wish& wish, bool valid) {
    const auto answer = unlimited(operation, wish);
    ++(valid ? valid_ : invalid_);
    std::string wrong;
    if (answer.status >= 500) wrong = "failed";
    if (valid && !malformed_codes(answer).empty()) wrong = "valid, and refused";
    if (!valid && !refused(answer)) wrong = "invalid, and accepted";
    if (!wrong.empty() && wrong_.size() < kShown) {
      wrong_.push_back(fmt::format("{} {}: {:.250}\n  {} {:.200}", operation.id(), wrong, shown_, answer.status,
                                   answer.status < 400 ? answer.body : text_of(answer.json().at("detail"))));
    }
    SCOPED_TRACE(shown_.substr(0, 1000));
    compare(operation, answer);
  }

  // The answer, when the rate limit of the wallet lets the request through.
  Answer unlimited(const Operation& operation, const Wish& wish) {
    Answer answer;
    const bool through = eventually([&] {
      answer = send(operation, wish, key_);
      return answer.code() != "rate_limited";
    });
    EXPECT_TRUE(through);
    return answer;
  }

  EdgeValues edges_{schemas_, generator_};
  std::vector<std::string> wrong_;
  int valid_ = 0;
  int invalid_ = 0;
};

TEST_F(OpenApiLimits, each_limit_of_a_body_is_that_of_the_server) {
  for (const auto& operation : operations_) {
    if (takes_part(operation)) try_bodies(operation);
  }
  EXPECT_EQ(wrong_.size(), 0U) << fmt::format("{}", fmt::join(wrong_, "\n"));
  EXPECT_GT(valid_, 500);
  EXPECT_GT(invalid_, 3000);
}

TEST_F(OpenApiLimits, each_limit_of_a_parameter_is_that_of_the_server) {
  for (const auto& operation : operations_) {
    if (takes_part(operation)) try_parameters(operation);
  }
  EXPECT_EQ(wrong_.size(), 0U) << fmt::format("{}", fmt::join(wrong_, "\n"));
  EXPECT_GT(valid_, 100);
  EXPECT_GT(invalid_, 500);
}

}  // namespace
}  // namespace fencepost::test
