// A client of GET /api/v1/events on a thread of its own, as a service would have it.
//
//   EventListener listener(node.url("/api/v1/events"), key);
//   EXPECT_TRUE(eventually([&] { return listener.types() == …; }));
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/json/value.hpp>

#include "http/client.hpp"

namespace fencepost::test {

class EventListener {
 public:
  // `after`: sent as Last-Event-ID unless empty.
  EventListener(const std::string& url, const std::string& key, const std::string& after = "");
  ~EventListener();

  // The envelopes so far.
  std::vector<boost::json::value> events() const;
  std::vector<std::string> ids() const;
  std::vector<std::string> comments() const;
  std::string last_id() const;  // as the client would send it when it reconnects
  bool connected() const;       // the stream has begun
  bool ended() const;           // the server has ended the stream, or refused it

 private:
  awaitable<> listen(http::ClientRequest request);

  mutable std::mutex mutex_;
  std::vector<boost::json::value> events_;
  std::vector<std::string> comments_;
  std::string last_id_;
  bool connected_ = false;
  bool ended_ = false;
  asio::io_context context_{1};
  http::Client client_{context_.get_executor(), {}};
  std::thread thread_;
};

}  // namespace fencepost::test
