// The API of a running node, for commands: one blocking call at a time.
#pragma once

#include <chrono>
#include <string>

#include <boost/json/value.hpp>

#include "base/error.hpp"
#include "http/client.hpp"

#include "cli/api_access.hpp"

namespace fencepost::cli {

class Api {
 public:
  virtual ~Api() = default;

  // The body of a successful answer. Otherwise the problem the server reports, with its sentence, and its code, its
  // facts and the request's id as context, fit for a terminal; or that of http::Client::send; or kUnavailable
  // `bad_answer` when it is none of ours.
  virtual Result<boost::json::value> get(const std::string& target, std::chrono::milliseconds timeout) = 0;
  // `repeatable`: doing it twice is like doing it once, so a lost answer may be asked for again.
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
  // A successful answer that is no JSON, as it came. Errors: as get.
  Result<http::ClientResponse> get_file(const std::string& target);

 private:
  ApiAccess access_;
};

// What an answer means: its JSON, or the error it reports.
Result<boost::json::value> read_answer(const http::ClientResponse& response);

}  // namespace fencepost::cli
