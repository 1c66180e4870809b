#include "notify/transport/smtp_session.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

using Recipients = std::unique_ptr<curl_slist, decltype([](curl_slist* list) { curl_slist_free_all(list); })>;
using Url = std::unique_ptr<CURLU, decltype([](CURLU* url) { curl_url_cleanup(url); })>;

// For the time of a send.
class Busy {
 public:
  explicit Busy(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
  ~Busy() { flag_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool>& flag_;
};

// nullopt: the URL has no such part.
std::optional<std::string> part_of(const Url& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK) return std::nullopt;
  const std::unique_ptr<char, decltype([](char* owned) { curl_free(owned); })> owner(text);
  return std::string(text);
}

std::string host_of(const std::string& smtp_url) {
  const Url url(curl_url());
  const bool parsed = url && curl_url_set(url.get(), CURLUPART_URL, smtp_url.c_str(), 0) == CURLUE_OK;
  const auto scheme = parsed ? part_of(url, CURLUPART_SCHEME) : std::nullopt;
  const auto host = parsed ? part_of(url, CURLUPART_HOST) : std::nullopt;
  if (!host || (scheme != "smtp" && scheme != "smtps")) {
    throw Exception(invalid("bad_smtp_url", fmt::format("{} is not a URL of a mail server", quote(smtp_url))));
  }
  // libcurl would log in with it, whether the connection is encrypted or not.
  if (part_of(url, CURLUPART_USER) || part_of(url, CURLUPART_PASSWORD)) {
    throw Exception(invalid("bad_smtp_url", "the URL of the mail server has a user or a password: use the settings"));
  }
  return host->starts_with('[') ? host->substr(1, host->size() - 2) : *host;
}

}  // namespace

bool is_on_this_machine(const std::string& smtp_url) {
  const auto host = host_of(smtp_url);
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return error ? host == "localhost" : address.is_loopback();
}

SmtpSession::SmtpSession(const EmailOptions& options) : timeout_(options.timeout) {
  set_up(options);
}

void SmtpSession::set_up(const EmailOptions& options) {
  // A password never crosses a network in clear text, also if an attacker removes STARTTLS from the server's offer.
  const bool must_encrypt = !is_on_this_machine(options.smtp_url) && !options.username.empty();
  set(curl_, CURLOPT_ERRORBUFFER, error_text_.data());
  set(curl_, CURLOPT_URL, options.smtp_url.c_str());
  set(curl_, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  set(curl_, CURLOPT_PROXY, "");
  set(curl_, CURLOPT_NOSIGNAL, 1L);
  set(curl_, CURLOPT_QUICK_EXIT, 1L);  // a name server that does not answer must not exceed the timeout
  set(curl_, CURLOPT_USE_SSL, static_cast<long>(must_encrypt ? CURLUSESSL_ALL : CURLUSESSL_TRY));
  set(curl_, CURLOPT_SSL_VERIFYPEER, 1L);
  set(curl_, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options.ca_file.empty()) set(curl_, CURLOPT_CAINFO, options.ca_file.c_str());
  set(curl_, CURLOPT_UPLOAD, 1L);
  set(curl_, CURLOPT_READFUNCTION, &SmtpSession::on_read);
  set(curl_, CURLOPT_READDATA, static_cast<void*>(this));
  set(curl_, CURLOPT_VERBOSE, 1L);  // without it, libcurl does not call the next function
  set(curl_, CURLOPT_DEBUGFUNCTION, &SmtpSession::on_debug);
  set(curl_, CURLOPT_DEBUGDATA, static_cast<void*>(this));
  set(curl_, CURLOPT_NOPROGRESS, 0L);
  set(curl_, CURLOPT_XFERINFOFUNCTION, &SmtpSession::on_progress);
  set(curl_, CURLOPT_XFERINFODATA, static_cast<void*>(this));
  set(curl_, CURLOPT_TCP_KEEPALIVE, 1L);
  sockets_.watch(curl_);
  if (options.username.empty()) return;
  const std::string password(options.password.reveal());
  set(curl_, CURLOPT_USERNAME, options.username.c_str());
  set(curl_, CURLOPT_PASSWORD, password.c_str());
}

void SmtpSession::set_envelope(const std::string& from, curl_slist* recipients, std::size_t size) {
  set(curl_, CURLOPT_MAIL_FROM, fmt::format("<{}>", from).c_str());
  set(curl_, CURLOPT_MAIL_RCPT, recipients);
  set(curl_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(size));
}

SendOutcome SmtpSession::send(const std::string& from, const std::string& to, std::string_view eml) {
  const Busy busy(busy_);
  if (interrupted_) return {SendResult::kNotSent, "this node stops", true};
  const Recipients recipients(curl_slist_append(nullptr, fmt::format("<{}>", to).c_str()));
  set_envelope(from, recipients.get(), eml.size());

  const auto begin = std::chrono::steady_clock::now();
  const bool had_connection = sockets_.any_open();
  set(curl_, CURLOPT_FRESH_CONNECT, 0L);
  const auto outcome = attempt(eml, timeout_);
  // A server closes idle connections, with or without a 421. libcurl does not repeat an upload on its own. Before RCPT,
  // the server knows nothing of this mail, so that a repetition is safe.
  const bool server_left = dialogue_.stage() <= SmtpStage::kMail && (dialogue_.code() == 0 || dialogue_.code() == 421);
  const bool reused = had_connection && !has_connected();
  if (outcome.result == SendResult::kSent || !reused || !server_left || interrupted_) return outcome;
  const auto left =
      timeout_ - std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  if (left <= std::chrono::milliseconds{0}) return outcome;
  set(curl_, CURLOPT_FRESH_CONNECT, 1L);
  return attempt(eml, left);
}

SendOutcome SmtpSession::attempt(std::string_view eml, std::chrono::milliseconds timeout) {
  const auto timeout_s = static_cast<long>(std::chrono::ceil<std::chrono::seconds>(timeout).count());
  set(curl_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout.count()));
  set(curl_, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  set(curl_, CURLOPT_SERVER_RESPONSE_TIMEOUT, timeout_s);
  error_text_[0] = '\0';
  dialogue_ = {};
  unread_ = eml;
  unsent_bytes_ = eml.size();
  const auto code = curl_easy_perform(curl_.get());
  if (code == CURLE_OK) return {SendResult::kSent, "", false};
  // libcurl keeps a connection that timed out after the final dot. The late reply would pass for the reply to the next
  // mail's first command.
  sockets_.shut_down();
  return dialogue_.failure(reason_of(code));
}

bool SmtpSession::has_connected() const {
  long fresh = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_NUM_CONNECTS, &fresh);
  return fresh > 0;
}

std::string SmtpSession::reason_of(CURLcode code) const {
  if (interrupted_) return "interrupted: this node stops";
  std::string out = error_text_[0] == '\0' ? curl_easy_strerror(code) : error_text_.data();
  long system_error = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_OS_ERRNO, &system_error);
  if (code != CURLE_COULDNT_CONNECT || system_error == 0) return out;
  return fmt::format("{}: {}", out, std::generic_category().message(static_cast<int>(system_error)));
}

void SmtpSession::interrupt() {
  interrupted_ = true;
  if (busy_) sockets_.refuse();
}

void SmtpSession::close() {
  curl_.reset();
}

std::size_t SmtpSession::on_read(char* out, std::size_t size, std::size_t count, void* self) {
  auto& session = *static_cast<SmtpSession*>(self);
  const auto piece = session.unread_.substr(0, size * count);
  std::ranges::copy(piece, out);
  session.unread_.remove_prefix(piece.size());
  return piece.size();
}

int SmtpSession::on_debug(CURL*, curl_infotype type, char* data, std::size_t size, void* self) {
  auto& session = *static_cast<SmtpSession*>(self);
  const std::string_view text(data, size);
  if (type == CURLINFO_HEADER_IN) session.dialogue_.on_reply(text);
  if (type == CURLINFO_HEADER_OUT) session.dialogue_.on_command(text);
  if (type == CURLINFO_DATA_OUT) session.on_sent(size);
  // libcurl says QUIT on a connection that it gives up, and would wait for the answer as long as for any other.
  if (type == CURLINFO_HEADER_OUT && session.dialogue_.over()) session.sockets_.shut_down();
  return 0;
}

// With stuffed dots, more bytes than those of the mail go out, and the last ones count as sent a little early.
void SmtpSession::on_sent(std::size_t bytes) {
  unsent_bytes_ -= std::min(unsent_bytes_, bytes);
  dialogue_.on_body(unsent_bytes_ == 0);
}

int SmtpSession::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<SmtpSession*>(self)->interrupted_ ? 1 : 0;
}

}  // namespace fencepost::notify
