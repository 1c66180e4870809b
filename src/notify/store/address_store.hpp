// The addresses of people and their codes. Every function acts for one person: another person's rows are not found.
// Functions throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/error.hpp"
#include "notify/options.hpp"
#include "pg/transaction.hpp"

namespace fencepost::notify {

namespace sql {
// Locks the person. A statement of its own: the next one must see what was committed before the lock was granted.
extern const pg::Statement kLockUser;
extern const pg::Statement kListEmails;
extern const pg::Statement kCodeRequests;
extern const pg::Statement kVoidCodes;
extern const pg::Statement kAddCode;
extern const pg::Statement kForgetRequests;
extern const pg::Statement kTakeTry;
extern const pg::Statement kMarkVerified;
}  // namespace sql

inline constexpr int kMaxEmailsOfUser = 20;

struct UserEmail {
  std::int64_t id = 0;
  std::int64_t email_id = 0;
  std::string email;
  std::optional<std::string> remark;
  bool is_verified = false;
  std::optional<TimePoint> last_verified_at;
  // True until the person has verified the address: what mails to other people showed would reveal that they use it.
  bool is_deliverable = true;
  TimePoint created_at;
};

// The hash is of the code and the row of user_emails that it belongs to (model/verification_code.hpp).
struct NewCode {
  std::string salt;
  Digest256 hash;
};

struct CodeLimits {
  std::chrono::milliseconds ttl;
  std::chrono::milliseconds resend_interval;
  std::int64_t per_address_per_day = 0;
  std::int64_t per_user_per_day = 0;
};

// Locks the person, so that no two requests of one person pass the same limit together.
awaitable<> lock_user(pg::Transaction& tx, std::int64_t user_id);

awaitable<std::optional<UserEmail>> find_email(pg::Transaction& tx, std::int64_t user_id, std::string email);
awaitable<std::optional<UserEmail>> find_email(pg::Transaction& tx, std::int64_t user_id, std::int64_t id);
awaitable<std::optional<UserEmail>> find_email(pg::Pool& pool, std::int64_t user_id, std::int64_t id);
awaitable<std::vector<UserEmail>> list_emails(pg::Pool& pool, std::int64_t user_id);

// Whether the person may ask for a code now. `address`: as normalised. Errors: kRateLimited `code_too_soon`,
// `too_many_codes`, with retry_after. Requires: lock_user.
awaitable<Result<void>> may_ask_for_code(pg::Transaction& tx, std::int64_t user_id, std::string address,
                                         const CodeLimits& limits);
// Adds the address. Errors: kConflict `too_many_emails`. Requires: lock_user; the person does not have it yet.
awaitable<Result<UserEmail>> add_email(pg::Transaction& tx, std::int64_t user_id, std::string address,
                                       std::optional<std::string> remark);
// Stores a code to be mailed, and voids the earlier ones. If other people have used up the day's codes of the address,
// no mail is sent, no digits verify the address, and the answer does not show it. Requires: lock_user and
// may_ask_for_code.
awaitable<> add_code(pg::Transaction& tx, std::int64_t user_id, const UserEmail& email, NewCode code,
                     const CodeLimits& limits);

// Counts a try of the newest code, and returns its hash; nullopt: there is no code that may be tried.
awaitable<std::optional<std::string>> take_try(pg::Pool& pool, std::int64_t user_id, std::int64_t id);
// Marks the address as verified and the code as used. False: the code was used or replaced meanwhile.
awaitable<bool> mark_verified(pg::Pool& pool, std::int64_t user_id, std::int64_t id, Digest256 hash);

// False, both: the person has no such address.
awaitable<bool> change_remark(pg::Pool& pool, std::int64_t user_id, std::int64_t id, std::optional<std::string> remark);
awaitable<bool> remove_email(pg::Pool& pool, std::int64_t user_id, std::int64_t id);

// "en" or "zh".
awaitable<std::string> language_of(pg::Pool& pool, std::int64_t user_id);
awaitable<> set_language(pg::Pool& pool, std::int64_t user_id, std::string language);

}  // namespace fencepost::notify
