#include "http/request_parser.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

namespace fencepost::http {

namespace beast_http = boost::beast::http;

namespace {

// The body buffer grows as bytes arrive. An announced Content-Length reserves no more than this.
constexpr std::size_t kMaxReserve = 64 * 1024;

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

Error too_large(std::string code, std::string message) {
  return {ErrorKind::kTooLarge, std::move(code), std::move(message), {}, {}};
}

}  // namespace

RequestParser::RequestParser(Request& request, const Limits& limits) : request_(request), limits_(limits) {
  header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(limits.header_bytes, 1U << 30)));
  body_limit(limits.body_bytes);
}

std::size_t RequestParser::feed(std::string_view bytes) {
  error_code ec;
  const bool had_head = head_done();
  if (had_head) eager(true);
  const auto used = put(boost::asio::buffer(bytes), ec);
  if (ec == beast_http::error::need_more) {
    // The rest is an unfinished head or chunk head: bound its size.
    if (bytes.size() - used >= limits_.header_bytes) fail_with(beast_http::error::header_limit);
  } else if (ec) {
    fail_with(ec);
  }
  if (!had_head && head_done()) trailers_ = true;
  return used;
}

void RequestParser::fail_with(const error_code& ec) {
  if (failure_) return;
  if (ec == beast_http::error::header_limit) {
    failure_ = {431, too_large("header_too_large",
                               fmt::format("the head is over the limit of {} bytes", limits_.header_bytes))};
  } else if (ec == beast_http::error::body_limit) {
    failure_ = {413,
                too_large("body_too_large", fmt::format("the body is over the limit of {} bytes", limits_.body_bytes))};
  } else if (ec == beast_http::error::bad_version) {
    failure_ = {505, invalid("bad_version", "the request line must end in HTTP/1.1 or HTTP/1.0 and CRLF")};
  } else {
    failure_ = {400, invalid("malformed_request", fmt::format("the request is not HTTP: {}", ec.message()))};
  }
}

void RequestParser::refuse(unsigned status, Error error, error_code& ec) {
  failure_ = {status, std::move(error)};
  ec = beast_http::error::bad_value;
}

void RequestParser::on_request_impl(beast_http::verb, string_view method, string_view target, int version,
                                    error_code& ec) {
  version_ = version;
  request_.set_method(view(method));
  if (auto good = request_.set_target(view(target)); !good) refuse(400, std::move(good.error()), ec);
}

void RequestParser::on_field_impl(field name, string_view name_text, string_view value, error_code& ec) {
  if (trailers_) return;  // allowed by the grammar, but no handler needs trailers
  if (name == field::transfer_encoding) {
    check_transfer_encoding(value, ec);
    if (ec) return;
  }
  if (name == field::host && ++hosts_ > 1)
    return refuse(400, invalid("bad_host", "the request has several Host headers; expected one"), ec);
  request_.add_header(view(name_text), view(value));
  if (request_.header_count() > limits_.header_count || request_.header_bytes() > limits_.header_bytes) {
    ec = beast_http::error::header_limit;
  }
}

void RequestParser::check_transfer_encoding(string_view value, error_code& ec) {
  if (version_ == 10) {
    refuse(400, invalid("bad_transfer_encoding", "HTTP/1.0 has no Transfer-Encoding"), ec);
  } else if (!boost::beast::iequals(value, "chunked")) {
    refuse(501, invalid("unsupported_transfer_encoding", "the only Transfer-Encoding served here is chunked"), ec);
  }
}

void RequestParser::on_header_impl(error_code& ec) {
  if (version_ == 11 && hosts_ == 0) refuse(400, invalid("bad_host", "HTTP/1.1 requires a Host header"), ec);
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) {
  if (length) request_.mutable_body().reserve(std::min<std::uint64_t>(*length, kMaxReserve));
}

std::size_t RequestParser::on_body_impl(string_view body, error_code&) {
  request_.mutable_body().append(body.data(), body.size());
  return body.size();
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, string_view body, error_code&) {
  request_.mutable_body().append(body.data(), body.size());
  return body.size();
}

}  // namespace fencepost::http
