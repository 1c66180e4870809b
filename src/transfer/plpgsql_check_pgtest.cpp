// PL/pgSQL is compiled when it runs. plpgsql_check finds what a compiler would have found, in code that no test
// reached.
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

// Of all schemas. Advice on performance only in `economy`: the other functions run rarely, or once for each statement.
// Dynamic SQL is left out of the advice on volatility: the check cannot see into it.
constexpr std::string_view kFindings = R"(
  SELECT p.oid::regprocedure || coalesce(' line ' || c.lineno, '') || ': ' || c.message AS finding
    FROM pg_proc AS p
    JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
    LEFT JOIN LATERAL (SELECT t.tgrelid, t.tgoldtable, t.tgnewtable
                         FROM pg_trigger AS t
                        WHERE t.tgfoid = p.oid
                        LIMIT 1) AS t ON true
   CROSS JOIN LATERAL plpgsql_check_function_tb(
                p.oid, coalesce(t.tgrelid, 0), oldtable => t.tgoldtable, newtable => t.tgnewtable,
                other_warnings => true, extra_warnings => true,
                performance_warnings => p.pronamespace = 'economy'::regnamespace, security_warnings => true) AS c
   WHERE NOT EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')  -- an extension's
     AND NOT (c.message LIKE 'routine is marked as VOLATILE%' AND coalesce(c.detail, '') LIKE '%dynamic SQL%')
   ORDER BY 1)";

class PlpgsqlCheck : public EconomyTest {
 protected:
  void SetUp() override { db.exec("CREATE EXTENSION plpgsql_check"); }

  Texts findings() { return column(admin.must(kFindings), "finding"); }
};

TEST_F(PlpgsqlCheck, finds_nothing_in_any_function) {
  EXPECT_EQ(findings(), Texts{});
}

TEST_F(PlpgsqlCheck, would_find_a_name_that_does_not_exist_in_any_schema) {
  for (const std::string schema : {"economy", "public"}) {
    db.exec(
        fmt::format("CREATE FUNCTION {}.fn_slip() RETURNS void LANGUAGE plpgsql AS $$ "
                    "BEGIN IF false THEN PERFORM balanec FROM economy.accounts; END IF; END $$",
                    schema));
  }
  EXPECT_EQ(findings(), (Texts{"economy.fn_slip() line 1: column \"balanec\" does not exist",
                               "fn_slip() line 1: column \"balanec\" does not exist"}));
}

}  // namespace
}  // namespace fencepost::transfer
