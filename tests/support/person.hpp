// A person who has logged in with a wallet, at one node: for tests of what belongs to people.
//
//   Person alice(cluster, signer_key(0));
//   EXPECT_EQ(alice.post("/api/v1/me/emails", {{"email", "a@example.org"}}).status, 201U);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {

class Person {
 public:
  // Logs in. Throws with the answer if that fails.
  Person(TxCluster& cluster, const std::string& private_key, std::size_t node = 0);

  const std::string& wallet() const { return wallet_; }

  Answer get(const std::string& path) const { return call("GET", path, ""); }
  Answer post(const std::string& path, const boost::json::object& body) const;
  Answer patch(const std::string& path, const boost::json::object& body) const;
  Answer remove(const std::string& path) const { return call("DELETE", path, ""); }
  // As a page of this server does, with the session's cookie.
  Answer call(const std::string& method, const std::string& path, const std::string& body) const;
  // The headers of such a request.
  const std::vector<std::pair<std::string, std::string>>& headers() const { return headers_; }

 private:
  std::string base_;  // of the node's URL
  std::string wallet_;
  std::vector<std::pair<std::string, std::string>> headers_;
};

}  // namespace fencepost::test
