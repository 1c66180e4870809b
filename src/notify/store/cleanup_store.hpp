// Removes what mail does not need any more, a batch at a time. Each table is walked in the order of ids, which is that
// of age, so that an hour's work does not depend on the size of the table. Functions throw as pg::Pool does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "pg/pool.hpp"

namespace fencepost::notify {

// $1 the id after which the walk continues, $2 how many rows to look at, $3 milliseconds: younger rows end the walk.
namespace sql {
// Mails about flows that have an outcome and that no correction refers to. A correction goes first, and the mail that
// it corrects with the next walk.
extern const pg::Statement kRemoveFlowMails;
extern const pg::Statement kRemoveOperatorMails;
extern const pg::Statement kRemoveCodes;
// Addresses that no person, mail or request for a code refers to.
extern const pg::Statement kRemoveAddresses;
}  // namespace sql

struct Removed {
  std::int64_t rows = 0;
  std::optional<std::int64_t> next;  // the id after which the walk continues; nullopt: it is at its end
};

// Runs one of the statements above. Rows that another session has locked stay until the next walk.
awaitable<Removed> remove_old(pg::Pool& pool, const pg::Statement& statement, std::int64_t after, std::int64_t limit,
                              std::chrono::milliseconds age);
// Requests for codes that no limit counts any more. Returns how many of at most `limit` were removed.
awaitable<std::int64_t> forget_code_requests(pg::Pool& pool, std::int64_t limit);

}  // namespace fencepost::notify
