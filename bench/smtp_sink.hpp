// smtp-sink of Postfix: a mail server that accepts all mail and stores none, on a free port of 127.0.0.1. `./fp`
// unpacks it into build/postfix; Postfix itself is never installed. The destructor stops it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/error.hpp"
#include "runtime/child_process.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::bench {

class SmtpSink {
 public:
  // Returns when the server accepts connections. Throws if it does not, or was not unpacked.
  SmtpSink() {
    const auto folder = test::source_dir() / "build" / "postfix";
    const auto program = folder / "usr" / "sbin" / "smtp-sink";
    if (!std::filesystem::exists(program)) {
      throw Exception(unavailable("no_smtp_sink", program.string() + " is missing: ./fp bench fetches it"));
    }
    std::vector<std::string> argv{program};
    if (::geteuid() == 0) argv.insert(argv.end(), {"-u", "nobody"});  // smtp-sink refuses to run as root
    argv.insert(argv.end(), {endpoint(), "1000"});
    auto child = ChildProcess::start(
        {.argv = argv,
         .env = test::environment_with({"LD_LIBRARY_PATH=" + (folder / "usr" / "lib" / "postfix").string()}),
         .out = Output::file(log_),
         .err = Output::same_as_out()});
    if (!child) throw Exception(child.error());
    child_ = std::move(*child);
    const bool up = test::eventually([&] { return accepts() || !child_->running(); });
    if (!up || !child_->running()) throw Exception(unavailable("smtp_sink", "smtp-sink does not start: " + endpoint()));
  }

  std::uint16_t port() const { return port_; }
  std::string url() const { return "smtp://" + endpoint(); }

 private:
  using Tcp = boost::asio::ip::tcp;

  static Tcp::endpoint loopback(std::uint16_t port) { return {boost::asio::ip::make_address("127.0.0.1"), port}; }

  // smtp-sink cannot choose a port itself. Another program could take this one in between; then the start fails.
  static std::uint16_t free_port() {
    boost::asio::io_context context;
    return Tcp::acceptor(context, loopback(0)).local_endpoint().port();
  }

  bool accepts() const {
    boost::asio::io_context context;
    Tcp::socket socket(context);
    boost::system::error_code error;
    socket.connect(loopback(port_), error);
    return !error;
  }

  std::string endpoint() const { return fmt::format("127.0.0.1:{}", port_); }

  test::TempDir dir_{"smtp-sink"};
  std::filesystem::path log_ = dir_ / "log";
  std::uint16_t port_ = free_port();
  std::optional<ChildProcess> child_;
};

}  // namespace fencepost::bench
