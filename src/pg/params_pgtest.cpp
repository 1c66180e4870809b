// Parameters and results, through a real server and back.
#include <gtest/gtest.h>

#include "pg/error.hpp"
#include "pg/params.hpp"
#include "pg/result.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using test::TestDatabase;
using test::with_pool;

TEST(pg_params, scalars_round_trip) {
  constexpr Statement kEcho{"echo_scalars", R"(
    SELECT $1::bigint, $2::text, $3::bool, $4::uuid, $5::timestamptz, $6::bytea, $7::float8, $8::text)"};
  TestDatabase db;
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    const auto id = Uuid::parse("0192f3a0-1111-7222-8333-444455556666").value();
    const TimePoint when = std::chrono::sys_days{std::chrono::year{1999} / 12 / 31} + std::chrono::microseconds{7};
    const Bytes bytes{std::byte{0}, std::byte{255}, std::byte{92}};
    const auto result = co_await pool.query(kEcho, std::int64_t{-9223372036854775807}, "a'\"\\{},\nü", true, id, when,
                                            bytes, 0.1, nullptr);
    const auto row = result.one();
    EXPECT_EQ(row.get<std::int64_t>(0), -9223372036854775807);
    EXPECT_EQ(row.get<std::string>(1), "a'\"\\{},\nü");
    EXPECT_TRUE(row.get<bool>(2));
    EXPECT_EQ(row.get<Uuid>(3), id);
    EXPECT_EQ(row.get<TimePoint>(4), when);
    EXPECT_EQ(row.get<Bytes>(5), bytes);
    EXPECT_EQ(row.get<double>(6), 0.1);
    EXPECT_EQ(row.get<std::optional<std::string>>(7), std::nullopt);
  });
}

TEST(pg_params, arrays_unnest_side_by_side) {
  constexpr Statement kUnnest{"unnest_arrays", R"(
    SELECT *
      FROM unnest($1, $2, $3, $4, $5, $6, $7) WITH ORDINALITY AS t(i, s, b, u, w, x, n, place)
     ORDER BY place)"};
  TestDatabase db;
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    const std::vector<std::int64_t> ints{1, -2};
    const std::vector<std::string> texts{"", "x,\"{}\\"};
    const std::vector<bool> bools{true, false};
    const std::vector<Uuid> ids{Uuid{}, Uuid::parse("ffffffff-ffff-ffff-ffff-ffffffffffff").value()};
    const std::vector<TimePoint> times{TimePoint{}, TimePoint{std::chrono::microseconds{1}}};
    const std::vector<Bytes> blobs{{}, {std::byte{1}}};
    const std::vector<std::optional<std::int32_t>> nullable{std::nullopt, 7};
    const auto rows = co_await pool.query(kUnnest, ints, texts, bools, ids, times, blobs, nullable);
    EXPECT_EQ(rows.size(), 2);
    for (int i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(rows[i].get<std::int64_t>("i"), ints[at]);
      EXPECT_EQ(rows[i].get<std::string>("s"), texts[at]);
      EXPECT_EQ(rows[i].get<bool>("b"), bools[at]);
      EXPECT_EQ(rows[i].get<Uuid>("u"), ids[at]);
      EXPECT_EQ(rows[i].get<TimePoint>("w"), times[at]);
      EXPECT_EQ(rows[i].get<Bytes>("x"), blobs[at]);
      EXPECT_EQ(rows[i].get<std::optional<std::int32_t>>("n"), nullable[at]);
    }
  });
}

TEST(pg_params, empty_array_is_empty_not_null) {
  constexpr Statement kCount{"count_array", "SELECT cardinality($1), $1 IS NULL"};
  TestDatabase db;
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    const auto result = co_await pool.query(kCount, std::vector<std::int64_t>{});
    EXPECT_EQ(result.one().get<int>(0), 0);
    EXPECT_FALSE(result.one().get<bool>(1));
  });
}

TEST(pg_params, text_with_nul_is_refused_not_truncated) {
  EXPECT_THROW(Params::of(std::string("a\0b", 3)), Exception);
  EXPECT_THROW(Params::of(std::vector<std::string>{std::string("\0", 1)}), Exception);
}

TEST(pg_result, reading_a_wrong_type_or_a_missing_column_throws) {
  constexpr Statement kRow{"odd_row", "SELECT NULL::int AS n, 'x' AS s, 99999999999 AS big"};
  TestDatabase db;
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    const auto result = co_await pool.query(kRow);
    const auto row = result.one();
    EXPECT_THROW(row.get<int>("n"), Exception);
    EXPECT_THROW(row.get<int>("s"), Exception);
    EXPECT_THROW(row.get<std::int32_t>("big"), Exception);
    EXPECT_THROW(row.get<int>("missing"), Exception);
    EXPECT_THROW(row.get<int>(3), Exception);
  });
}

TEST(pg_result, affected_counts_rows_touched) {
  constexpr Statement kMake{"make_table", "CREATE TABLE t (id int)"};
  constexpr Statement kInsert{"insert_three", "INSERT INTO t SELECT generate_series(1, 3)"};
  constexpr Statement kGuarded{"guarded_update", "UPDATE t SET id = 0 WHERE id = $1"};
  TestDatabase db;
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    co_await pool.execute(kMake);
    EXPECT_EQ((co_await pool.execute(kInsert)).affected(), 3);
    EXPECT_EQ((co_await pool.execute(kGuarded, 17)).affected(), 0);
  });
}

}  // namespace
}  // namespace fencepost::pg
