#include <algorithm>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/text.hpp"
#include "http/connection.hpp"

namespace fencepost::http {
namespace {

bool has_header(const Response& response, std::string_view name) {
  return std::ranges::any_of(response.headers,
                             [&](const auto& header) { return equal_ignoring_case(header.first, name); });
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  // A line break in a value would inject another header.
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    throw Exception(internal("bad_response_header", fmt::format("the value of {} has a line break or NUL", name)));
  }
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

void append_number(std::string& out, std::size_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

void append_status_line(std::string& out, unsigned status) {
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\n";
    return;
  }
  out += "HTTP/1.1 ";
  append_number(out, status);
  out += ' ';
  out += reason_phrase(status);
  out += "\r\n";
}

}  // namespace

void append_response(std::string& out, const Response& response, const Request& request, std::string_view date,
                     bool keep_alive) {
  const bool bodiless = response.status == 204 || response.status == 304;
  append_status_line(out, response.status);
  append_header(out, "Date", date);
  for (const auto& [name, value] : response.headers) append_header(out, name, value);
  if (!response.stream && !bodiless) {
    out += "Content-Length: ";
    append_number(out, response.body.size());
    out += "\r\n";
  }
  append_header(out, "X-Request-Id", request.id());
  out += "X-Content-Type-Options: nosniff\r\n";
  if (request.path().starts_with("/api") && !has_header(response, "Cache-Control"))
    out += "Cache-Control: no-store\r\n";
  out += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  if (!bodiless && request.verb() != Verb::kHead) out += response.body;
}

}  // namespace fencepost::http
