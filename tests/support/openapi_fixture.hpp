// A node with whatever the operations of the OpenAPI document need, and the requests that the document describes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "tests/support/mailbox.hpp"
#include "tests/support/person.hpp"
#include "tests/support/tx_cluster.hpp"
#include "tests/support/value_generator.hpp"

namespace fencepost::test {

struct Operation {
  std::string verb;
  std::string path;
  const boost::json::object* described;

  std::string id() const { return std::string(described->at("operationId").as_string()); }
  std::string_view description() const;
  bool is_personal() const;  // for a person who has logged in
  // Needs a signature, a key or an origin that the generator does not make, and is limited by address; login_test
  // covers these.
  bool is_login() const;
  // Needs what only a mail has: a code or a link; the tests of mail cover these.
  bool needs_a_mail() const;
};

// The parts of one request; texts are not encoded yet.
struct Wish {
  std::map<std::string, std::string> path;
  std::map<std::string, std::string> query;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<boost::json::value> body;
  bool broken = false;
};

// The value of a parameter as a URL or a header has it; the elements of a list are separated by commas.
std::string text_of(const boost::json::value& value);

class OpenApiFixture : public testing::Test {
 protected:
  // `seed` of the generator. `persons`: wallets that take turns, as each may make 20 requests a second.
  OpenApiFixture(std::uint64_t seed, std::size_t persons);

  // The value, or what its $ref leads to.
  const boost::json::value& resolved(const boost::json::value& value) const;
  std::vector<const boost::json::object*> parameters(const Operation& operation) const;
  const boost::json::value* body_schema(const Operation& operation) const;
  // A valid request.
  Wish good_wish(const Operation& operation);
  // Applies rules between two values, which the document states in prose only.
  void settle(const Operation& operation, Wish& wish);
  // Whether the schema of a parameter accepts the text: as a string, an integer, a boolean or a list.
  bool is_parameter(const boost::json::value& schema, const std::string& text) const;

  Answer send(const Operation& operation, const Wish& wish, const std::string& key);
  // Compares status, content type and body of the answer with the document.
  void compare(const Operation& operation, const Answer& answer);
  // Whether an invalid request was refused: as a whole, or at least one item of a batch.
  static bool refused(const Answer& answer);
  // The codes of the answer, and of its items, that mean "the request violates the document's schema": those of 400,
  // but for a list of codes that report what a schema cannot express.
  static std::set<std::string> malformed_codes(const Answer& answer);

  Mailbox box_;
  TxCluster cluster_{{.nodes = 1, .start = false}};
  std::vector<Person> persons_;
  boost::json::value document_;
  JsonSchema schemas_{document_};
  ValueGenerator generator_;
  std::vector<Operation> operations_;
  std::string key_;
  std::string shown_;  // the last request, for messages

 private:
  void suggest();
  void suggest_timelocks();
  void suggest_mail();
  void compare_problem(const Answer& answer, const boost::json::value& body) const;
  // Suggests the ids in an answer for later requests.
  void remember(const boost::json::value& body);

  std::size_t turn_ = 0;
};

}  // namespace fencepost::test
