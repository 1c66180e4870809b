// The server under TLS: with a real certificate, and a client that verifies it.
#include <ctime>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "http/http_test_support.hpp"
#include "http/server_certificate.hpp"
#include "http/sse.hpp"
#include "http/tls_test_support.hpp"

namespace fencepost::http {
namespace {

using namespace testing;
using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::string_view kHello = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";

// One blocking TLS connection that trusts one authority, and only for the name localhost.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const std::string& authority) {
    context_.load_verify_file(authority);
    stream_.set_verify_mode(asio::ssl::verify_peer);
    stream_.set_verify_callback(asio::ssl::host_name_verification("localhost"));
    stream_.next_layer().connect({asio::ip::make_address("127.0.0.1"), port});
    stream_.handshake(asio::ssl::stream_base::client);
  }

  void send(std::string_view bytes) { asio::write(stream_, asio::buffer(bytes)); }
  std::string read_until(std::string_view mark) {
    while (!in_.contains(mark)) {
      if (!read_more()) throw std::runtime_error("the server ended; so far: " + in_);
    }
    const auto end = in_.find(mark) + mark.size();
    auto out = in_.substr(0, end);
    in_.erase(0, end);
    return out;
  }
  std::string read_to_end() {
    while (read_more()) {
    }
    return std::exchange(in_, {});
  }
  // Whether the server has said that it ends, instead of only closing the connection.
  bool ended_properly() const { return end_ == asio::error::eof; }

 private:
  bool read_more() {
    std::array<char, 16384> buffer;
    const auto n = stream_.read_some(asio::buffer(buffer), end_);
    in_.append(buffer.data(), n);
    return !end_;
  }

  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_client};
  asio::ssl::stream<tcp::socket> stream_{io_, context_};
  boost::system::error_code end_;
  std::string in_;
};

awaitable<Response> hello(Request&) {
  co_return Response::text(200, "hello");
}

awaitable<Response> echo(Request& request) {
  co_return Response::text(200, std::string(request.body()));
}

awaitable<> three_events(EventStream& stream) {
  for (int i = 1; i <= 3; ++i) co_await stream.send(std::to_string(i), "tick", "x");
}

awaitable<> one_event_and_silence(EventStream& stream) {
  co_await stream.send("1", "tick", "x");
  asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::use_awaitable);
}

awaitable<> flood(EventStream& stream) {
  const std::string large(64 * 1024, 'x');
  while (co_await stream.send("", "", large)) {
  }
}

void add_routes(Router& router) {
  const auto stream = [](awaitable<> (*function)(EventStream&)) {
    return [function](Request&) -> awaitable<Response> { co_return Response::events(function); };
  };
  router.add({Verb::kGet, "/hello", Access::open(), hello});
  router.add({Verb::kPost, "/echo", Access::open(), echo});
  router.add({Verb::kGet, "/three", Access::open(), stream(three_events)});
  router.add({Verb::kGet, "/open", Access::open(), stream(one_event_and_silence)});
  router.add({Verb::kGet, "/flood", Access::open(), stream(flood)});
}

class ServerTls : public ::testing::Test {
 protected:
  ServerTls() { install(first_); }

  void start(ServerOptions options = {}) {
    ASSERT_TRUE(certificate_.load());
    runtime_.start();
    asio::post(runtime_.executor(0), [this] { certificate_.start(); });
    options.certificate = &certificate_;
    server_.emplace(add_routes, options);
  }
  void TearDown() override {
    if (!server_) return;
    server_->stop();
    runtime_.run_on(0, certificate_.stop());
    runtime_.stop();
  }

  static void replace(const std::string& from, const std::string& to) {
    fs::copy_file(from, to + ".new", fs::copy_options::overwrite_existing);
    fs::rename(to + ".new", to);
  }
  void install(const TestCertificate& certificate) {
    replace(certificate.certificate_file(), files_.certificate_path);
    replace(certificate.key_file(), files_.key_path);
  }
  bool serves(const TestCertificate& certificate) {
    try {
      TlsClient client(server_->port(), certificate.certificate_file());
      return true;
    } catch (const boost::system::system_error&) {
      return false;
    }
  }
  // Both registries have these metrics; the certificate's own counts the loads.
  bool counts(Metrics& metrics, const std::string& line) {
    return eventually([&] { return metrics.scrape().contains("\nfencepost_" + line + "\n"); });
  }

  test::TempDir folder_{"server-tls"};
  CertificateFiles files_{.certificate_path = folder_ / "cert.pem", .key_path = folder_ / "key.pem"};
  TestCertificate first_{"localhost"};
  TestCertificate second_{"localhost"};
  Runtime runtime_{{.threads = 1, .cpu_threads = 1}};
  Metrics metrics_;
  ServerCertificate certificate_{runtime_.executor(0), files_, metrics_, milliseconds(5)};
  std::optional<TestServer> server_;
};

TEST_F(ServerTls, a_client_that_verifies_the_certificate_is_served) {
  start();
  TlsClient client(server_->port(), first_.certificate_file());
  for (int i = 0; i < 3; ++i) {
    client.send(kHello);
    EXPECT_THAT(client.read_until("\r\n\r\nhello"), HasSubstr("Connection: keep-alive"));
  }
  client.send("GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), EndsWith("hello"));
  EXPECT_TRUE(client.ended_properly());
}

TEST_F(ServerTls, bodies_of_many_records_arrive_whole) {
  start();
  const std::string body(1'000'000, 'x');
  TlsClient client(server_->port(), first_.certificate_file());
  client.send(fmt::format("POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
                          body.size(), body));
  EXPECT_THAT(client.read_to_end(), EndsWith("\r\n\r\n" + body));
}

TEST_F(ServerTls, a_client_that_trusts_another_authority_gets_nothing) {
  start();
  EXPECT_FALSE(serves(second_));
  EXPECT_TRUE(counts(server_->metrics(), "http_tls_handshakes_failed_total 1"));
}

TEST_F(ServerTls, a_plain_request_gets_nothing) {
  start();
  RawClient client(server_->port());
  client.send(kHello);
  EXPECT_FALSE(client.read_to_end().contains("HTTP/1.1 200"));
  EXPECT_TRUE(counts(server_->metrics(), "http_tls_handshakes_failed_total 1"));
}

TEST_F(ServerTls, a_client_that_never_shakes_hands_is_disconnected) {
  ServerOptions options;
  options.header_timeout = milliseconds(50);
  start(options);
  RawClient client(server_->port());
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_TRUE(eventually([&] { return server_->server().connections() == 0; }));
}

// The handshake and the first request must be in time, too, also under a sanitizer.
TEST_F(ServerTls, an_idle_connection_is_ended_properly) {
  ServerOptions options;
  options.idle_timeout = seconds(1);
  start(options);
  TlsClient client(server_->port(), first_.certificate_file());
  client.send(kHello);
  client.read_until("hello");
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(client.ended_properly());
}

// The time limit is one of the handshake, too, which takes long under a sanitizer.
TEST_F(ServerTls, a_request_that_does_not_arrive_in_time_is_answered) {
  ServerOptions options;
  options.header_timeout = seconds(1);
  start(options);
  TlsClient client(server_->port(), first_.certificate_file());
  client.send("GET /hello HTTP/1.1\r\nHos");
  EXPECT_THAT(client.read_to_end(), HasSubstr("request_timeout"));
  EXPECT_TRUE(client.ended_properly());
}

TEST_F(ServerTls, a_refused_client_that_still_sends_gets_its_answer) {
  ServerOptions options;
  options.max_body_bytes = 1000;
  start(options);
  TlsClient client(server_->port(), first_.certificate_file());
  client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + std::string(90'000, 'x'));
  EXPECT_THAT(client.read_to_end(), HasSubstr("HTTP/1.1 413"));
}

TEST_F(ServerTls, a_client_over_the_limit_is_told_so) {
  ServerOptions options;
  options.max_connections = 1;
  start(options);
  const TlsClient first(server_->port(), first_.certificate_file());
  TlsClient second(server_->port(), first_.certificate_file());
  EXPECT_THAT(second.read_to_end(), HasSubstr("too_many_connections"));
  EXPECT_TRUE(second.ended_properly());
}

TEST_F(ServerTls, an_event_stream_arrives_event_by_event_and_ends_properly) {
  start();
  TlsClient client(server_->port(), first_.certificate_file());
  client.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.read_until("id: 1\nevent: tick\ndata: x\n\n");  // while the stream goes on
  std::thread stopper([&] { server_->stop(); });
  client.read_to_end();
  EXPECT_TRUE(client.ended_properly());
  stopper.join();
}

TEST_F(ServerTls, the_end_of_an_event_stream_is_not_a_broken_connection) {
  start();
  TlsClient client(server_->port(), first_.certificate_file());
  client.send("GET /three HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), EndsWith("id: 3\nevent: tick\ndata: x\n\n"));
  EXPECT_TRUE(client.ended_properly());
}

TEST_F(ServerTls, a_reader_that_stops_reading_is_disconnected) {
  ServerOptions options;
  options.write_timeout = milliseconds(50);
  options.linger_timeout = milliseconds(50);
  start(options);
  TlsClient client(server_->port(), first_.certificate_file());
  client.send("GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.read_until("data: ");
  EXPECT_TRUE(eventually([&] { return server_->server().connections() == 0; }));
}

TEST_F(ServerTls, a_new_certificate_is_for_new_connections) {
  start();
  TlsClient open(server_->port(), first_.certificate_file());
  EXPECT_FALSE(serves(second_));
  install(second_);
  EXPECT_TRUE(eventually([&] { return serves(second_); }));
  EXPECT_FALSE(serves(first_));
  open.send(kHello);
  open.read_until("hello");
}

TEST_F(ServerTls, a_certificate_that_does_not_fit_its_key_changes_nothing_until_the_key_is_there) {
  start();
  replace(second_.certificate_file(), files_.certificate_path);
  EXPECT_TRUE(counts(metrics_, R"(http_tls_loads_total{result="failed"} 1)"));
  EXPECT_TRUE(serves(first_));
  replace(second_.key_file(), files_.key_path);
  EXPECT_TRUE(eventually([&] { return serves(second_); }));
  EXPECT_TRUE(counts(metrics_, R"(http_tls_loads_total{result="ok"} 2)"));
  EXPECT_TRUE(counts(metrics_, R"(http_tls_loads_total{result="failed"} 1)")) << "reported once for each change";
}

// A changeover from RSA to EC, or back: the files are written one after the other.
TEST_F(ServerTls, a_certificate_for_another_type_of_key_changes_nothing_until_the_key_is_there) {
  const TestCertificate rsa("localhost", EVP_PKEY_RSA);
  start();
  replace(rsa.certificate_file(), files_.certificate_path);
  EXPECT_TRUE(counts(metrics_, R"(http_tls_loads_total{result="failed"} 1)"));
  EXPECT_TRUE(serves(first_));
  replace(rsa.key_file(), files_.key_path);
  EXPECT_TRUE(eventually([&] { return serves(rsa); }));
  replace(first_.key_file(), files_.key_path);
  EXPECT_TRUE(counts(metrics_, R"(http_tls_loads_total{result="failed"} 2)"));
  EXPECT_TRUE(serves(rsa));
}

// The operator's fix of a key that the node was not allowed to read changes neither the file's bytes nor its mtime.
TEST_F(ServerTls, a_file_with_new_permissions_is_read_again) {
  start();
  fs::permissions(files_.key_path, fs::perms::owner_read);
  EXPECT_TRUE(counts(metrics_, R"(http_tls_loads_total{result="ok"} 2)"));
  EXPECT_TRUE(serves(first_));
}

TEST_F(ServerTls, a_key_of_another_type_fails_the_start_and_is_named) {
  const TestCertificate rsa("localhost", EVP_PKEY_RSA);
  replace(rsa.key_file(), files_.key_path);
  const auto loaded = certificate_.load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, AllOf(HasSubstr(files_.key_path), HasSubstr("does not belong to")));
}

TEST_F(ServerTls, a_missing_or_broken_file_fails_the_start_and_is_named) {
  fs::remove(files_.key_path);
  auto loaded = certificate_.load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, "bad_certificate");
  EXPECT_THAT(loaded.error().message, HasSubstr(files_.key_path));
  std::ofstream(files_.certificate_path) << "no certificate\n";
  loaded = certificate_.load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr(files_.certificate_path));
}

TEST_F(ServerTls, the_expiry_of_the_certificate_is_a_metric) {
  ASSERT_TRUE(certificate_.load());
  const auto text = metrics_.scrape();
  const std::string name = "\nfencepost_http_tls_certificate_expiry_timestamp_seconds ";
  const auto at = text.find(name);
  ASSERT_NE(at, std::string::npos);
  const auto expiry = std::stod(text.substr(at + name.size()));
  const auto left = expiry - static_cast<double>(std::time(nullptr));
  EXPECT_GT(left, 3000);
  EXPECT_LT(left, 3700);
}

}  // namespace
}  // namespace fencepost::http
