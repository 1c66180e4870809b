// The least that a client has to do to send a mail: blocking system calls, one command after the other, on one
// connection. The floor of the benchmarks of mail.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.hpp"
#include "runtime/unique_fd.hpp"

namespace fencepost::bench {

class RawSmtpClient {
 public:
  // Connects to 127.0.0.1 and greets. Throws if the server does not answer as expected; so does `send`.
  explicit RawSmtpClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      fail_with("connect");
    expect("220");
    say("EHLO bench\r\n", "250");
  }

  // Requires: `body` has its dots stuffed and ends with the final dot.
  void send(const std::string& from, const std::string& to, std::string_view body) {
    say("MAIL FROM:<" + from + ">\r\n", "250");
    say("RCPT TO:<" + to + ">\r\n", "250");
    say("DATA\r\n", "354");
    say(body, "250");
  }

 private:
  [[noreturn]] static void fail_with(std::string_view what) {
    throw Exception(unavailable("raw_smtp", "the raw SMTP client failed: " + std::string(what)));
  }

  void say(std::string_view text, std::string_view code) {
    while (!text.empty()) {
      const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) fail_with("send");
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    expect(code);
  }

  // Reads one reply, whose last line has a space after the code.
  void expect(std::string_view code) {
    for (;;) {
      const auto end = input_.find("\r\n");
      if (end == std::string::npos) {
        read_more();
        continue;
      }
      const bool last = end < 4 || input_[3] != '-';
      const auto line = input_.substr(0, end);
      input_.erase(0, end + 2);
      if (!line.starts_with(code)) fail_with(line);
      if (last) return;
    }
  }

  void read_more() {
    char buffer[4096];
    const auto count = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (count <= 0) fail_with("the server closed the connection");
    input_.append(buffer, static_cast<std::size_t>(count));
  }

  UniqueFd socket_;
  std::string input_;
};

}  // namespace fencepost::bench
