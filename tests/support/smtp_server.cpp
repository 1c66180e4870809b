#include "tests/support/smtp_server.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Debian's python3 has python3-aiosmtpd; another python3 in PATH does not.
constexpr auto kPython = "/usr/bin/python3";

// aiosmtpd's own command line has no AUTH and does not print which free port it chose.
constexpr auto kProgram = R"(
import asyncio, ssl, sys
from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import AuthResult, LoginPassword, SMTP

folder, username, password, certificate, key, implicit = sys.argv[1:]

def authenticate(server, session, envelope, mechanism, data):
    login = LoginPassword(username.encode(), password.encode())
    return AuthResult(success=data == login, handled=False)

tls = None
if certificate:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

def session():
    return SMTP(Mailbox(folder), hostname="mail.test", tls_context=None if implicit else tls,
                authenticator=authenticate if username else None, auth_required=bool(username),
                auth_require_tls=not username or bool(tls and not implicit))

async def serve():
    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0, ssl=tls if implicit else None)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(serve())
)";

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The port in the line "port 41234", which the server prints once it listens; 0 before.
std::uint16_t announced_port(const std::string& log) {
  constexpr std::string_view kBefore = "port ";
  const auto at = log.find(kBefore);
  std::uint16_t port = 0;
  if (at != std::string::npos && log.find('\n', at) != std::string::npos) {
    std::from_chars(log.data() + at + kBefore.size(), log.data() + log.size(), port);
  }
  return port;
}

}  // namespace

SmtpServer::SmtpServer(const SmtpServerOptions& options) : implicit_tls_(options.implicit_tls) {
  const auto out = dir_ / "smtp.out";
  const auto err = dir_ / "smtp.err";
  auto child = ChildProcess::start({.argv = {kPython, "-c", kProgram, dir_ / "mail", options.username, options.password,
                                             options.certificate_file, options.key_file, implicit_tls_ ? "yes" : ""},
                                    .out = Output::file(out),
                                    .err = Output::file(err)});
  if (!child) throw Exception(child.error());
  child_ = std::move(*child);
  const bool up = eventually([&] {
    port_ = announced_port(read_all(out));
    return port_ != 0 || !child_->running();
  });
  if (!up || port_ == 0) {
    throw Exception(unavailable("smtp_server_failed", "the SMTP server does not start:\n" + read_all(err)));
  }
}

SmtpServer::~SmtpServer() {
  child_->stop_blocking({{SIGKILL, 0s}});
}

std::string SmtpServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", implicit_tls_ ? "smtps" : "smtp", port_);
}

std::size_t SmtpServer::received() const {
  const auto folder = dir_ / "mail" / "new";
  if (!fs::exists(folder)) return 0;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace fencepost::test
