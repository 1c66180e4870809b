#include "transfer/statement_csv.hpp"

#include <gtest/gtest.h>

namespace fencepost::transfer {
namespace {

TEST(statement_csv, text_is_quoted_where_rfc_4180_requires_it) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"rent", "rent"},
      {" padded ", " padded "},
      {"größe; 5 €", "größe; 5 €"},
      {"a,b", R"("a,b")"},
      {R"(say "hi")", R"("say ""hi""")"},
      {R"(")", R"("""")"},
      {"two\nlines", "\"two\nlines\""},
      {"two\r\nlines", "\"two\r\nlines\""},
  };
  for (const auto& [text, field] : cases) EXPECT_EQ(csv_text(text), field) << text;
}

TEST(statement_csv, text_is_never_a_formula) {
  const std::pair<std::string, std::string> cases[] = {
      {"=1+1", "'=1+1"},     {"+1", "'+1"},
      {"-1", "'-1"},         {"@SUM(A1)", "'@SUM(A1)"},
      {"\t=1", "'\t=1"},     {"\r=1", "\"'\r=1\""},
      {"\n=1", "\"'\n=1\""}, {R"(=HYPERLINK("http://x","y"))", R"x("'=HYPERLINK(""http://x"",""y"")")x"},
      {"1=1", "1=1"},        {"'=1", "'=1"},
  };
  for (const auto& [text, field] : cases) EXPECT_EQ(csv_text(text), field) << text;
}

TEST(statement_csv, an_empty_statement_is_a_header) {
  EXPECT_EQ(statement_csv({}), "ledgerId,createdAt,kind,amount,balanceAfter,counterpartyId,transferId,reason\r\n");
}

TEST(statement_csv, numbers_stay_numbers) {
  const Entry entries[] = {
      {.ledger_id = 12,
       .transfer_id = Uuid::parse("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b").value(),
       .kind = "transfer",
       .amount = -40,
       .balance_after = 9223372036854775807,
       .counterparty_id = 2,
       .reason = "-40, as agreed",
       .created_at = TimePoint(std::chrono::seconds(1'700'000'000))},
      {.ledger_id = 11, .transfer_id = {}, .kind = "mint", .amount = 5, .balance_after = 5, .counterparty_id = 0},
  };
  const auto csv = statement_csv(entries);
  EXPECT_EQ(csv.substr(csv.find('\n') + 1),
            "12," + to_rfc3339(entries[0].created_at) +
                ",transfer,-40,9223372036854775807,2,0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,\"'-40, as agreed\"\r\n"
                "11," +
                to_rfc3339(entries[1].created_at) + ",mint,5,5,0,00000000-0000-0000-0000-000000000000,\r\n");
}

}  // namespace
}  // namespace fencepost::transfer
