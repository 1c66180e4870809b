// Bytes → Request, on top of Beast's parser. Also refuses what Beast accepts and Fencepost does not: framing that two
// parsers could read differently (RFC 9112 §6), a missing Host, too many headers.
#pragma once

#include <cstddef>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>

#include "base/error.hpp"
#include "http/message.hpp"

namespace fencepost::http {

// Parses one request; make a new one for each.
class RequestParser final : private boost::beast::http::basic_parser<true> {
  using Base = boost::beast::http::basic_parser<true>;

 public:
  struct Limits {
    std::size_t header_bytes;
    std::size_t header_count;
    std::size_t body_bytes;
  };
  struct Failure {
    unsigned status;
    Error error;
  };

  // Fills in `request`, which must outlive the parser. Requires: the caller has reset it.
  RequestParser(Request& request, const Limits& limits);

  // Consumes a part of `bytes` and returns its size. Stops once after the head, so that the caller can look at the head
  // before the body arrives. Requires: neither `done` nor failed.
  std::size_t feed(std::string_view bytes);

  bool started() const { return Base::got_some(); }
  bool head_done() const { return Base::is_header_done(); }
  bool done() const { return Base::is_done(); }
  const std::optional<Failure>& failure() const { return failure_; }

  // Of the head. Requires: the head is complete.
  bool keep_alive() const { return Base::keep_alive(); }
  bool http_1_0() const { return version_ == 10; }

 private:
  using error_code = boost::beast::error_code;
  using string_view = boost::beast::string_view;
  using field = boost::beast::http::field;

  void on_request_impl(boost::beast::http::verb, string_view method, string_view target, int version,
                       error_code& ec) override;
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(field name, string_view name_text, string_view value, error_code& ec) override;
  void on_header_impl(error_code& ec) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code& ec) override;
  std::size_t on_body_impl(string_view body, error_code& ec) override;
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t remaining, string_view body, error_code& ec) override;
  void on_finish_impl(error_code&) override {}

  void refuse(unsigned status, Error error, error_code& ec);
  void check_transfer_encoding(string_view value, error_code& ec);
  void fail_with(const error_code& ec);

  Request& request_;
  Limits limits_;
  std::optional<Failure> failure_;
  int version_ = 11;
  unsigned hosts_ = 0;
  bool trailers_ = false;
};

}  // namespace fencepost::http
