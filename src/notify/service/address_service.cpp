#include "notify/service/address_service.hpp"

#include <algorithm>

#include "base/hex.hpp"
#include "http/errors.hpp"
#include "notify/model/mail_address.hpp"
#include "notify/model/verification_code.hpp"

namespace fencepost::notify {
namespace {

Error no_such_email() {
  return not_found("no_such_email", "You have no address with this id.");
}

Error wrong_code() {
  return http::unprocessable("wrong_code", "This is not the code that was sent: look at the newest mail.");
}

Error no_valid_code() {
  return http::unprocessable("code_expired", "There is no code that may still be tried: ask for a new one.");
}

bool is_code(std::string_view text) {
  return text.size() == 6 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

CodeLimits AddressService::limits() const {
  return {.ttl = options_.code_ttl,
          .resend_interval = options_.code_resend_interval,
          .per_address_per_day = options_.codes_per_address_per_day,
          .per_user_per_day = options_.codes_per_user_per_day};
}

NewCode AddressService::new_code(std::int64_t user_email_id) {
  NewCode out{.salt = make_code_salt(parts_.random), .hash = {}};
  const auto& key = parts_.emails.secret();
  out.hash = code_hash(key, user_email_id, code_of(key, out.salt));
  return out;
}

Result<void> AddressService::can_send() const {
  if (parts_.emails.sends()) return {};
  return fail(unavailable("mail_not_configured",
                          "This server sends no mail, so it cannot verify an address: its operator must set "
                          "email.transport."));
}

awaitable<Result<AddressService::Added>> AddressService::add(std::int64_t user_id, std::string email,
                                                             std::optional<std::string> remark) {
  auto address = normalize_mail_address(email);
  if (!address) co_return fail(address.error());
  if (const auto sends = can_send(); !sends) co_return fail(sends.error());
  const auto body = [&](pg::Transaction& tx) -> awaitable<Result<Added>> {
    co_await lock_user(tx, user_id);
    if (auto known = co_await find_email(tx, user_id, *address)) co_return Added{std::move(*known), false};
    const auto allowed = co_await may_ask_for_code(tx, user_id, *address, limits());
    if (!allowed) co_return fail(allowed.error());
    auto added = co_await add_email(tx, user_id, *address, remark);
    if (!added) co_return fail(added.error());
    co_await add_code(tx, user_id, *added, new_code(added->id), limits());
    co_return Added{std::move(*added), true};
  };
  auto added = co_await pg::transaction(pool(), body);
  if (added && added->is_new) parts_.new_mail();
  co_return added;
}

awaitable<Result<void>> AddressService::send_code(std::int64_t user_id, std::int64_t id) {
  if (auto sends = can_send(); !sends) co_return sends;
  const auto body = [&](pg::Transaction& tx) -> awaitable<Result<void>> {
    co_await lock_user(tx, user_id);
    const auto email = co_await find_email(tx, user_id, id);
    if (!email) co_return fail(no_such_email());
    if (email->is_verified && email->is_deliverable) {
      co_return fail(conflict("already_verified", "You have verified this address."));
    }
    const auto allowed = co_await may_ask_for_code(tx, user_id, email->email, limits());
    if (!allowed) co_return fail(allowed.error());
    co_await add_code(tx, user_id, *email, new_code(id), limits());
    co_return Result<void>{};
  };
  auto sent = co_await pg::transaction(pool(), body);
  if (sent) parts_.new_mail();
  co_return sent;
}

awaitable<Result<UserEmail>> AddressService::verify(std::int64_t user_id, std::int64_t id, std::string code) {
  const auto email = co_await find_email(pool(), user_id, id);
  if (!email) co_return fail(no_such_email());
  const auto stored = co_await take_try(pool(), user_id, id);
  if (!stored) co_return fail(no_valid_code());
  const auto hash = code_hash(parts_.emails.secret(), id, code);
  if (!is_code(code) || !constant_time_equal(to_hex(hash), *stored)) co_return fail(wrong_code());
  if (!co_await mark_verified(pool(), user_id, id, hash)) co_return fail(no_valid_code());
  auto verified = co_await find_email(pool(), user_id, id);
  if (!verified) co_return fail(no_such_email());
  co_return std::move(*verified);
}

awaitable<Result<UserEmail>> AddressService::change_remark(std::int64_t user_id, std::int64_t id,
                                                           std::optional<std::string> remark) {
  if (!co_await notify::change_remark(pool(), user_id, id, std::move(remark))) co_return fail(no_such_email());
  auto changed = co_await find_email(pool(), user_id, id);
  if (!changed) co_return fail(no_such_email());
  co_return std::move(*changed);
}

awaitable<Result<void>> AddressService::remove(std::int64_t user_id, std::int64_t id) {
  if (!co_await remove_email(pool(), user_id, id)) co_return fail(no_such_email());
  co_return Result<void>{};
}

}  // namespace fencepost::notify
