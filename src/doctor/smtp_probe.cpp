#include "doctor/smtp_probe.hpp"

#include <algorithm>
#include <array>
#include <system_error>

#include <curl/curl.h>
#include <fmt/format.h>

#include "notify/transport/curl_handle.hpp"

namespace fencepost {
namespace {

constexpr std::size_t kLongestReply = 512;  // RFC 5321's limit

using notify::CurlHandle;
using notify::set;

// The server's replies; libcurl calls once per line.
struct Transcript {
  std::string last;
  int greetings = 0;  // lines with code 220: the greeting, and the answer to STARTTLS
  bool logged_in = false;

  void hear(std::string_view line) {
    if (line.starts_with("220 ")) ++greetings;
    if (line.starts_with("235")) logged_in = true;
    last = line.substr(0, kLongestReply);
  }
};

std::size_t on_reply(char* data, std::size_t size, std::size_t count, void* user) {
  static_cast<Transcript*>(user)->hear({data, size * count});
  return size * count;
}

void set_up(const CurlHandle& curl, const notify::EmailOptions& email, Transcript& transcript, char* error_text) {
  const auto timeout_ms = static_cast<long>(email.timeout.count());
  const auto timeout_s = static_cast<long>(std::chrono::ceil<std::chrono::seconds>(email.timeout).count());
  set(curl, CURLOPT_ERRORBUFFER, error_text);
  set(curl, CURLOPT_URL, email.smtp_url.c_str());
  set(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  set(curl, CURLOPT_PROXY, "");
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_USE_SSL, static_cast<long>(CURLUSESSL_TRY));
  set(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  set(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  set(curl, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
  set(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
  set(curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, timeout_s);  // the only timeout that applies to QUIT
  set(curl, CURLOPT_HEADERFUNCTION, &on_reply);
  set(curl, CURLOPT_HEADERDATA, static_cast<void*>(&transcript));
  set(curl, CURLOPT_CUSTOMREQUEST, "NOOP");
  set(curl, CURLOPT_NOBODY, 1L);
  if (!email.ca_file.empty()) set(curl, CURLOPT_CAINFO, email.ca_file.c_str());
  if (email.username.empty()) return;
  const std::string password(email.password.reveal());
  set(curl, CURLOPT_USERNAME, email.username.c_str());
  set(curl, CURLOPT_PASSWORD, password.c_str());
}

// The system's message if there is an errno, the server's reply if it refused, otherwise curl's message.
std::string reason_of(const CurlHandle& curl, SmtpFailure failure, CURLcode code, const Transcript& transcript,
                      std::string_view error_text) {
  long system_error = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_OS_ERRNO, &system_error);
  if (failure == SmtpFailure::kUnreachable && system_error != 0) {
    return std::generic_category().message(static_cast<int>(system_error));
  }
  const bool refused = transcript.last.starts_with('4') || transcript.last.starts_with('5');
  if (refused && (failure == SmtpFailure::kAuthentication || failure == SmtpFailure::kRejected)) return transcript.last;
  return error_text.empty() ? curl_easy_strerror(code) : std::string(error_text);
}

}  // namespace

SmtpFailure smtp_failure_of(int curl_code) {
  switch (curl_code) {
    case CURLE_OK:
      return SmtpFailure::kNone;
    case CURLE_COULDNT_RESOLVE_HOST:
      return SmtpFailure::kUnknownHost;
    case CURLE_COULDNT_CONNECT:
      return SmtpFailure::kUnreachable;
    case CURLE_OPERATION_TIMEDOUT:
      return SmtpFailure::kTimeout;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_USE_SSL_FAILED:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return SmtpFailure::kTls;
    case CURLE_LOGIN_DENIED:
    case CURLE_AUTH_ERROR:
      return SmtpFailure::kAuthentication;
    default:
      return SmtpFailure::kRejected;
  }
}

SmtpOutcome probe_smtp(const notify::EmailOptions& email) {
  Transcript transcript;  // declared before the handle: destroying the handle still receives the reply to QUIT
  std::array<char, CURL_ERROR_SIZE> error_text{};
  const auto curl = notify::make_curl_handle();
  set_up(curl, email, transcript, error_text.data());

  const auto code = curl_easy_perform(curl.get());
  SmtpOutcome outcome{.failure = smtp_failure_of(code)};
  outcome.encrypted = email.smtp_url.starts_with("smtps:") || transcript.greetings > 1;
  outcome.authenticated = transcript.logged_in;
  if (code != CURLE_OK) outcome.reason = reason_of(curl, outcome.failure, code, transcript, error_text.data());
  return outcome;
}

}  // namespace fencepost
