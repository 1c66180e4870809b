// What a plan of PostgreSQL reads: which tables as a whole, and which indexes.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "pg/batch.hpp"
#include "tests/support/interleaving.hpp"

namespace fencepost::test {

struct Plan {
  std::set<std::string> whole;  // tables that are read as a whole: "tx_open", "managed_tx by managed_tx_pkey"
  std::set<std::string> indexes;
  std::string text;
};

inline void read_node(const boost::json::object& node, Plan& plan) {
  const auto text_of = [&](std::string_view key) {
    const auto* value = node.if_contains(key);
    return value == nullptr ? std::string() : std::string(value->as_string());
  };
  const auto type = text_of("Node Type"), table = text_of("Relation Name"), index = text_of("Index Name");
  if (type.ends_with("Seq Scan")) plan.whole.insert(table);
  if (!index.empty()) {
    plan.indexes.insert(index);
    if (text_of("Index Cond").empty()) plan.whole.insert((table.empty() ? "" : table + " by ") + index);
  }
  if (const auto* children = node.if_contains("Plans")) {
    for (const auto& child : children->as_array()) read_node(child.as_object(), plan);
  }
}

// The generic plan of a statement. Requires: the session has plan_cache_mode = force_generic_plan.
inline Plan plan_of(const pg::Statement& statement, interleaving::Session& session) {
  const std::string sql(statement.sql);
  int parameters = 0;
  for (std::size_t at = 0; (at = sql.find('$', at)) != std::string::npos; ++at) {
    parameters = std::max(parameters, std::atoi(sql.c_str() + at + 1));
  }
  std::string nulls;
  for (int i = 0; i < parameters; ++i) nulls += i == 0 ? "(NULL" : ", NULL";
  if (!nulls.empty()) nulls += ")";
  session.must(fmt::format("PREPARE {} AS {}", statement.name, sql));
  const auto rows = session.must(fmt::format("EXPLAIN (FORMAT JSON) EXECUTE {}{}", statement.name, nulls));
  Plan plan;
  plan.text = rows.one().get<std::string>(0);
  boost::json::parse_options deep;
  deep.max_depth = 200;  // each node of the plan adds two levels
  read_node(boost::json::parse(plan.text, {}, deep).at(0).at("Plan").as_object(), plan);
  return plan;
}

}  // namespace fencepost::test
