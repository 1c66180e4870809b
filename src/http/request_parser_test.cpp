#include "http/request_parser.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::http {
namespace {

constexpr RequestParser::Limits kLimits{.header_bytes = 1024, .header_count = 10, .body_bytes = 64};

// Feeds `bytes` as a socket would deliver them, `step` at a time. Returns "done", "more" or the failure's status.
std::string parse(Request& request, std::string_view bytes, std::size_t step) {
  request.reset();
  RequestParser parser(request, kLimits);
  std::string buffer;
  while (!bytes.empty()) {
    buffer += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    // The parser stops after the head, then after the body.
    for (int stop = 0; stop < 2 && !buffer.empty() && !parser.done(); ++stop) {
      buffer.erase(0, parser.feed(buffer));
      if (parser.failure()) return std::to_string(parser.failure()->status);
    }
    if (parser.done()) return "done";
  }
  return "more";
}

constexpr std::string_view kPlain = "POST /a?b=%20 HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view kChunked =
    "PUT http://h/p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;e=\"v\"\r\nabc\r\n2\r\nde\r\n0\r\nT: "
    "1\r\n\r\n";

TEST(request_parser, the_result_does_not_depend_on_how_bytes_are_split) {
  Request request;
  for (std::size_t step = 1; step <= kChunked.size(); ++step) {
    ASSERT_EQ(parse(request, kPlain, step), "done") << step;
    EXPECT_EQ(request.verb(), Verb::kPost);
    EXPECT_EQ(request.path(), "/a");
    EXPECT_EQ(request.query("b"), " ");
    EXPECT_EQ(request.header("x-a"), "1");
    EXPECT_EQ(request.body(), "hello");
    ASSERT_EQ(parse(request, kChunked, step), "done") << step;
    EXPECT_EQ(request.path(), "/p");
    EXPECT_EQ(request.body(), "abcde");
    EXPECT_EQ(request.header("T"), std::nullopt) << "a trailer is no header";
  }
}

TEST(request_parser, a_truncated_request_is_never_done) {
  Request request;
  for (const auto whole : {kPlain, kChunked}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_EQ(parse(request, whole.substr(0, size), 7), "more") << size;
    }
  }
}

TEST(request_parser, a_corrupt_byte_anywhere_is_parsed_or_refused) {
  Request request;
  constexpr std::string_view kBends("\0\r\n \t:;/%?#\"0f-,\x7f\xff", 18);
  std::map<std::string, int> seen;
  for (const auto whole : {kPlain, kChunked}) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char bend : kBends) {
        std::string bent(whole);
        bent[at] = bend;
        for (const std::size_t step : {std::size_t{1}, std::size_t{13}, bent.size()})
          ++seen[parse(request, bent, step)];
      }
    }
  }
  EXPECT_GT(seen["done"], 0);  // inside a value, say
  EXPECT_GT(seen["400"], 0);
  for (const auto& [outcome, times] : seen) {
    EXPECT_TRUE(outcome == "done" || outcome == "more" || outcome.starts_with("4") || outcome.starts_with("5"))
        << outcome;
  }
}

TEST(request_parser, limits_do_not_depend_on_how_bytes_are_split) {
  Request request;
  const std::string start = "POST / HTTP/1.1\r\nHost: x\r\n";
  std::string many;
  for (int i = 0; i < 11; ++i) many += "A: 1\r\n";
  // Each line is small; only their sum is over the limit.
  std::string lines;
  for (int i = 0; i < 8; ++i) lines += fmt::format("A{}: {}\r\n", i, std::string(200, 'a'));
  std::string body = "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 65; ++i) body += "1\r\nx\r\n";
  for (const std::size_t step : {1, 10, 100, 10'000}) {
    SCOPED_TRACE(step);
    EXPECT_EQ(parse(request, start + many + "\r\n", step), "431");
    EXPECT_EQ(parse(request, start + lines + "\r\n", step), "431");
    EXPECT_EQ(parse(request, start + "A: " + std::string(1100, 'a'), step), "431");
    EXPECT_EQ(parse(request, start + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(1100, 'a'), step), "431");
    EXPECT_EQ(parse(request, start + "Content-Length: 65\r\n\r\n", step), "413");
    EXPECT_EQ(parse(request, start + body, step), "413");
  }
}

}  // namespace
}  // namespace fencepost::http
