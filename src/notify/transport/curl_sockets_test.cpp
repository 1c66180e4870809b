#include "notify/transport/curl_sockets.hpp"

#include <future>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;

// Accepts connections and never says a word.
class SilentServer {
 public:
  std::string url() const { return fmt::format("smtp://127.0.0.1:{}", acceptor_.local_endpoint().port()); }
  tcp::socket accept() { return acceptor_.accept(); }

 private:
  boost::asio::io_context context_;
  tcp::acceptor acceptor_{context_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
};

CurlHandle handle_for(const SilentServer& server, CurlSockets& sockets) {
  auto curl = make_curl_handle();
  set(curl, CURLOPT_URL, server.url().c_str());
  set(curl, CURLOPT_PROXY, "");
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_TIMEOUT_MS, 60'000L);
  sockets.watch(curl);
  return curl;
}

TEST(curl_sockets, another_thread_ends_a_transfer_that_waits_for_its_peer) {
  SilentServer server;
  CurlSockets sockets;
  const auto curl = handle_for(server, sockets);
  EXPECT_FALSE(sockets.any_open());
  auto ended = std::async(std::launch::async, [&] { return curl_easy_perform(curl.get()); });
  auto peer = server.accept();
  EXPECT_TRUE(sockets.any_open());
  sockets.shut_down();
  ASSERT_EQ(ended.wait_for(20s), std::future_status::ready);
  EXPECT_NE(ended.get(), CURLE_OK);
  EXPECT_FALSE(sockets.any_open());
  // The peer sees the end, too.
  char byte = 0;
  boost::system::error_code error;
  peer.read_some(boost::asio::buffer(&byte, 1), error);
  EXPECT_TRUE(error);
}

TEST(curl_sockets, refuses_new_connections_once_told_so) {
  const SilentServer server;
  CurlSockets sockets;
  const auto curl = handle_for(server, sockets);
  sockets.refuse();
  EXPECT_EQ(curl_easy_perform(curl.get()), CURLE_COULDNT_CONNECT);
  EXPECT_FALSE(sockets.any_open());
}

}  // namespace
}  // namespace fencepost::notify
