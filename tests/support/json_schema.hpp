// Checks JSON against the part of JSON Schema (2020-12) that the OpenAPI document uses. A keyword, a type or a format
// that is not known here is an error, never ignored: a schema that says more than is checked would be a false promise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

namespace fencepost::test {

class JsonSchema {
 public:
  // References ("#/components/schemas/Tx") lead into the document, which outlives this.
  explicit JsonSchema(const boost::json::value& document) : document_(document) {}

  // What is wrong with the value, a line each: "/items/0/nonce: expected at least 0". Empty: nothing. Throws Exception
  // `bad_schema` for what is not known here.
  std::vector<std::string> check(const boost::json::value& schema, const boost::json::value& value) const;
  bool accepts(const boost::json::value& schema, const boost::json::value& value) const {
    return check(schema, value).empty();
  }

  // What is wrong with the schema itself, a line each: unknown keywords, patterns that do not compile, objects that are
  // neither closed nor say what else they may have. Looks into subschemas, not behind references.
  std::vector<std::string> review(const boost::json::value& schema) const;

  // What a reference leads to; and the schema itself, or what its $ref leads to (when it has no other keyword that
  // matters).
  const boost::json::value& resolve(std::string_view reference) const;
  const boost::json::value& resolved(const boost::json::value& schema) const;

 private:
  const boost::json::value& document_;
};

}  // namespace fencepost::test
