// One connection to a mail server, reused from mail to mail. It blocks: one thread at a time, which is no event loop.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "notify/options.hpp"
#include "notify/transport/curl_handle.hpp"
#include "notify/transport/curl_sockets.hpp"
#include "notify/transport/mail_transport.hpp"
#include "notify/transport/smtp_dialogue.hpp"

namespace fencepost::notify {

class SmtpSession {
 public:
  // Does not connect. Throws if libcurl refuses a setting, or the URL is not one of a mail server or has a password.
  explicit SmtpSession(const EmailOptions& options);

  // Sends one mail within `options.timeout`. When the server has closed the connection of an earlier mail, tries once
  // more on a new one. Requires: bare addresses, checked; `eml` with CRLF.
  SendOutcome send(const std::string& from, const std::string& to, std::string_view eml);

  // Ends a running `send` at once and makes later ones fail. Any thread. The thread of `send` still owns the handle.
  void interrupt();
  bool busy() const { return busy_; }
  // Says QUIT to the server, waits for its answer, and frees the handle. On the thread of `send`.
  void close();
  // Ends what `close` waits for. Any thread.
  void abandon() { sockets_.refuse(); }

 private:
  SendOutcome attempt(std::string_view eml, std::chrono::milliseconds timeout);
  void set_up(const EmailOptions& options);
  void set_envelope(const std::string& from, curl_slist* recipients, std::size_t size);
  // Whether the last attempt made a new connection.
  bool has_connected() const;
  std::string reason_of(CURLcode code) const;
  void on_sent(std::size_t bytes);

  static std::size_t on_read(char* out, std::size_t size, std::size_t count, void* self);
  static int on_debug(CURL*, curl_infotype type, char* data, std::size_t size, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

  const std::chrono::milliseconds timeout_;
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> busy_ = false;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  std::string_view unread_;       // by libcurl, of the mail's text
  std::size_t unsent_bytes_ = 0;  // of the mail's text
  SmtpDialogue dialogue_;
  CurlSockets sockets_;  // before the handle, whose end still uses it
  CurlHandle curl_ = make_curl_handle();
};

// Whether a password may go there in clear text: "localhost" or a loopback address. Throws Exception `bad_smtp_url` if
// the URL is not smtp or smtps with a host, or has a user or a password.
bool is_on_this_machine(const std::string& smtp_url);

}  // namespace fencepost::notify
