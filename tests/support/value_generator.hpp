// Makes JSON that a schema accepts, and JSON that it does not: at random, the same for the same seed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "base/random.hpp"
#include "tests/support/json_schema.hpp"

namespace fencepost::test {

class ValueGenerator {
 public:
  ValueGenerator(const JsonSchema& schemas, std::uint64_t seed) : schemas_(schemas), random_(seed) {}

  // Values that mean something to the system under test, such as the ids of things that exist. A member or a parameter
  // of that name often gets one of them, where its schema accepts it.
  void suggest(const std::string& name, boost::json::value value);

  // A value that the schema accepts. Throws Exception `bad_schema` when none was found.
  boost::json::value good(const boost::json::value& schema, std::string_view name = {});
  // Another one, made from a good one by a single change, that the schema does not accept. Nothing when none was found.
  std::optional<boost::json::value> broken(const boost::json::value& schema, const boost::json::value& good);
  // Text that matches the pattern: literals, classes, groups, alternatives and repetitions.
  std::string matching(std::string_view pattern);

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.next() % bound); }
  bool chance(std::size_t percent) { return below(100) < percent; }

 private:
  boost::json::value attempt(const boost::json::value& schema, std::string_view name, int depth);
  boost::json::value of_type(std::string_view type, const boost::json::object& rules, int depth);
  boost::json::value text(const boost::json::object& rules);
  boost::json::value integer(const boost::json::object& rules);
  boost::json::value object(const boost::json::object& rules, int depth);
  boost::json::value anything(int depth);

  const JsonSchema& schemas_;
  SeededRandom random_;
  std::map<std::string, std::vector<boost::json::value>, std::less<>> suggestions_;
};

}  // namespace fencepost::test
