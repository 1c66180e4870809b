// Values at the limits of a schema and just beyond them, and values of every type: for tests that compare what a schema
// accepts with what a program accepts. Whether the schema accepts one of them is for JsonSchema to say.
#pragma once

#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "tests/support/json_schema.hpp"
#include "tests/support/value_generator.hpp"

namespace fencepost::test {

class EdgeValues {
 public:
  // Arrays and texts beyond these sizes are not made.
  static constexpr std::size_t kMaxItems = 1001;
  static constexpr std::size_t kMaxText = 300'000;

  EdgeValues(const JsonSchema& schemas, ValueGenerator& generator) : schemas_(schemas), generator_(generator) {}

  // A value that the schema accepts, with every member that its objects describe.
  boost::json::value full(const boost::json::value& schema, std::string_view name = {});
  // For one place.
  std::vector<boost::json::value> of(const boost::json::value& schema);
  // `good` with a change in one place: an edge value of that place, a member less, or one more.
  std::vector<boost::json::value> variants(const boost::json::value& schema, const boost::json::value& good);

 private:
  void add_limits(const boost::json::object& rules, std::vector<boost::json::value>& out);
  void add_texts(const boost::json::object& rules, std::vector<boost::json::value>& out);
  void add_lists(const boost::json::object& rules, std::vector<boost::json::value>& out);
  void add_members(const boost::json::object& rules, const boost::json::object& good,
                   std::vector<boost::json::value>& out);

  const JsonSchema& schemas_;
  ValueGenerator& generator_;
};

}  // namespace fencepost::test
