#include "base/contains.hpp"
#include "notify/notify_test_support.hpp"
#include "notify/store/mail_log_store.hpp"

namespace fencepost::notify {
namespace {

// Two addresses, two contracts and all statuses: mail i has flow i, and the status i % 5.
class MailLog : public NotifyTest {
 protected:
  static constexpr SendStatus kAll[] = {SendStatus::kPending, SendStatus::kSuccess, SendStatus::kFailed,
                                        SendStatus::kDead, SendStatus::kSuppressed};

  MailLog() {
    for (const int number : {1, 2}) add_subscriber(number);
    admin.must(
        "INSERT INTO email_send_logs (email_id, flow_id, timelock_standard, chain_id, contract_address, generation, "
        "status_to, "
        "kind, retraction, changed_at, initiator_address, send_status, next_attempt_at) "
        "SELECT e.id, n::text, 'compound', 1, CASE WHEN n % 3 = 0 THEN $1 ELSE $2 END, 1, 'waiting', 'change', 0, "
        "now(), 'x', "
        "($3::text[])[n % 5 + 1], now() - n * interval '1 s' "
        "FROM generate_series(0, 59) AS n JOIN emails AS e ON e.email = CASE WHEN n % 2 = 0 THEN 'p1' ELSE 'p2' END || "
        "'@example.org' ORDER BY n + 0",
        pg::Params::of(kContract, kOtherContract, names()));
  }
  static std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto status : kAll) out.emplace_back(kSendStatus.name(status));
    return out;
  }
  // Whether the filter lets mail n pass.
  static bool passes(const MailLogFilter& filter, int n) {
    return (!filter.status || *filter.status == kAll[n % 5]) &&
           (!filter.email || (*filter.email == "p1@example.org") == (n % 2 == 0)) &&
           (!filter.contracts || contains(*filter.contracts, n % 3 == 0 ? kContract : kOtherContract));
  }
};

TEST_F(MailLog, lists_the_newest_first_in_pages_for_every_combination_of_filters) {
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    std::vector<std::optional<SendStatus>> statuses{std::nullopt};
    statuses.insert(statuses.end(), std::begin(kAll), std::end(kAll));
    for (const auto& status : statuses) {
      for (const auto& email : {std::optional<std::string>(), std::optional<std::string>("p1@example.org")}) {
        using Contracts = std::vector<std::string>;
        for (const auto& contracts :
             {std::optional<Contracts>(), std::optional(Contracts{kOtherContract}),
              std::optional(Contracts{kContract, kOtherContract, wallet(7), kContract}), std::optional(Contracts{})}) {
          MailLogFilter filter{.status = status, .email = email, .contracts = contracts, .before = {}};
          std::vector<std::string> expected, listed;
          for (int n = 59; n >= 0; --n) {
            if (passes(filter, n)) expected.push_back(std::to_string(n));
          }
          for (int page = 0; page < 20; ++page) {
            for (const auto& mail : co_await list_mails(pool, filter, 7)) {
              listed.push_back(mail.ref.flow_id);
              filter.before = mail.id;
            }
          }
          EXPECT_EQ(listed, expected) << (status ? kSendStatus.name(*status) : "any") << email.value_or("")
                                      << ::testing::PrintToString(contracts);
        }
      }
    }
  });
}

TEST_F(MailLog, is_empty_for_an_address_that_is_not_known) {
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    EXPECT_TRUE((co_await list_mails(pool, {.status = {}, .email = "x@example.org", .contracts = {}, .before = {}}, 7))
                    .empty());
  });
}

TEST_F(MailLog, says_to_whom_and_what_about) {
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    const auto mail = (co_await list_mails(pool, {}, 1)).at(0);
    EXPECT_EQ(mail.email, "p2@example.org");
    EXPECT_EQ(mail.ref.contract, kOtherContract);
    EXPECT_EQ(mail.status, SendStatus::kSuppressed);
    EXPECT_EQ(mail.change.to, "waiting");
    EXPECT_FALSE(mail.change.correction);
  });
}

}  // namespace
}  // namespace fencepost::notify
