// What people do with their mail addresses. Every method acts for one person. Any loop may call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "notify/options.hpp"
#include "notify/service/email_service.hpp"
#include "notify/store/address_store.hpp"
#include "pg/database.hpp"

namespace fencepost::notify {

class AddressService {
 public:
  struct Parts {
    pg::Database& database;
    Random& random;  // fit for secrets
    EmailService& emails;
    std::function<void()> new_mail;  // wakes the sender; any thread
  };
  AddressService(Parts parts, const EmailOptions& options) : parts_(std::move(parts)), options_(options) {}

  struct Added {
    UserEmail email;
    bool is_new = true;  // false: the person had it, and nothing was changed or sent
  };
  // Adds the address and mails a code. Errors: kInvalid `bad_email`; kConflict `too_many_emails`; kRateLimited
  // `code_too_soon`, `too_many_codes`; kUnavailable `mail_not_configured`.
  awaitable<Result<Added>> add(std::int64_t user_id, std::string email, std::optional<std::string> remark);
  // Mails another code. Errors: kNotFound `no_such_email`; kConflict `already_verified`; as above.
  awaitable<Result<void>> send_code(std::int64_t user_id, std::int64_t id);
  // Errors: kNotFound `no_such_email`; kUnprocessable `wrong_code`, and `code_expired` when no code may be tried.
  awaitable<Result<UserEmail>> verify(std::int64_t user_id, std::int64_t id, std::string code);
  // Errors, both: kNotFound `no_such_email`.
  awaitable<Result<UserEmail>> change_remark(std::int64_t user_id, std::int64_t id, std::optional<std::string> remark);
  awaitable<Result<void>> remove(std::int64_t user_id, std::int64_t id);

  pg::Pool& pool() { return parts_.database.pool(); }

 private:
  CodeLimits limits() const;
  NewCode new_code(std::int64_t user_email_id);
  Result<void> can_send() const;

  Parts parts_;
  EmailOptions options_;
};

}  // namespace fencepost::notify
