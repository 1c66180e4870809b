// Client of a running node's API, for commands. Each call blocks; one call at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/error.hpp"
#include "http/client.hpp"

#include "cli/api_access.hpp"

namespace fencepost::cli {

class Api {
 public:
  virtual ~Api() = default;

  // The body of a successful answer. Errors: the problem that the server reports, printable, with its code, its facts
  // and the request's id as context; those of http::Client::send; kUnavailable `bad_answer` if the answer is not from
  // Fencepost.
  virtual Result<boost::json::value> get(const std::string& target, std::chrono::milliseconds timeout) = 0;
  // `repeatable`: the request is idempotent, so it may be sent again if its answer is lost.
  virtual Result<boost::json::value> post(const std::string& target, const boost::json::value& body,
                                          bool repeatable) = 0;

  Result<boost::json::value> get(const std::string& target) { return get(target, std::chrono::seconds(30)); }
};

class ApiClient final : public Api {
 public:
  explicit ApiClient(ApiAccess access) : access_(std::move(access)) {}

  using Api::get;
  Result<boost::json::value> get(const std::string& target, std::chrono::milliseconds timeout) override;
  Result<boost::json::value> post(const std::string& target, const boost::json::value& body, bool repeatable) override;
  // As post. A change sets values, and what is removed stays removed, so both may be repeated.
  Result<boost::json::value> patch(const std::string& target, const boost::json::value& body);
  Result<boost::json::value> put(const std::string& target, const boost::json::value& body);
  Result<boost::json::value> remove(const std::string& target);
  // A successful answer that is not JSON, unchanged. Errors: as get.
  Result<http::ClientResponse> get_file(const std::string& target);
  // An answer without an end: `on_piece` gets it until it returns false or the server ends it. Error `timeout` when
  // nothing came for `silence`; otherwise as get.
  Result<void> stream(const std::string& target, std::chrono::milliseconds silence,
                      std::function<bool(std::string_view)> on_piece);

 private:
  ApiAccess access_;
};

// The JSON of an answer, or the error that it reports.
Result<boost::json::value> read_answer(const http::ClientResponse& response);

}  // namespace fencepost::cli
