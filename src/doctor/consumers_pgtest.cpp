#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/postgres.hpp"

#include "doctor/consumers.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(doctor_consumers, names_what_is_not_served_behind_or_failing) {
  const test::TestDatabase db(test::Template::kMigrated);
  Config config;
  config.database.dsn = Secret(db.dsn());
  config.database.connect_timeout = 2s;
  const auto check = [&] { return check_consumers(config).at(0); };
  EXPECT_EQ(check(), passed("consumers", "0 consumers, 0 paused or disabled"));

  db.exec(
      "INSERT INTO event (at, type, subject, data) VALUES (clock_timestamp() - interval '10 minutes', 'T', 's', '{}')");
  db.exec("INSERT INTO event_consumer (consumer, position, active) VALUES ('webhook/a', 0, false)");
  EXPECT_EQ(check(), passed("consumers", "1 consumers, 1 paused or disabled"));

  db.exec("UPDATE event_consumer SET active = true");
  EXPECT_EQ(check().status, Status::kFail);
  EXPECT_THAT(check().detail, HasSubstr("no node serves webhook/a"));

  db.exec("UPDATE event_consumer SET owner_node = 'n', claimed_until = clock_timestamp() + interval '1 hour'");
  EXPECT_EQ(check().status, Status::kFail);
  EXPECT_THAT(check().detail, HasSubstr("behind: webhook/a (by 6"));

  db.exec("UPDATE event_consumer SET position = 1, failing_since = clock_timestamp(), last_error = 'refused'");
  EXPECT_EQ(check().status, Status::kWarn);
  EXPECT_THAT(check().detail, HasSubstr("refused"));

  db.exec("UPDATE event_consumer SET failing_since = NULL, last_error = NULL");
  EXPECT_EQ(check().status, Status::kOk);
}

}  // namespace
}  // namespace fencepost::doctor
