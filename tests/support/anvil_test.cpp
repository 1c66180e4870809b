#include "tests/support/anvil.hpp"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>

#include "runtime/leftover_process.hpp"

namespace fencepost::test {
namespace {

TEST(anvil, listens_after_construction_and_is_gone_after_destruction) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  pid_t pid = 0;
  {
    const Anvil chain;
    pid = chain.pid();
    socket.connect({boost::asio::ip::address_v4::loopback(), chain.port()});
  }
  EXPECT_FALSE(process_info(pid));
}

}  // namespace
}  // namespace fencepost::test
