// A role of one test in its database, without any rights.
#pragma once

#include <string>

#include <fmt/format.h>

#include "tests/support/postgres.hpp"

namespace fencepost::test {

class Role {
 public:
  // `suffix` tells several roles of one test apart.
  explicit Role(const TestDatabase& db, const std::string& suffix = "")
      : db_(db), name_("role" + suffix + "_of_" + db.name()) {
    db.exec(fmt::format("CREATE ROLE {} LOGIN", name_));
  }
  ~Role() { db_.exec(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", name_)); }
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;

  const std::string& name() const { return name_; }
  // Sessions that log in as the role, and sessions of the superuser that act as it from the start.
  std::string dsn() const { return db_.dsn() + "&user=" + name_; }
  std::string dsn_as() const { return db_.dsn() + "&options=-crole%3D" + name_; }

 private:
  const TestDatabase& db_;
  std::string name_;
};

}  // namespace fencepost::test
