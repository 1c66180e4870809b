// What the economy's routes are asked, read as http/request_reader.hpp reads: strictly, and what is wrong is thrown.
// Pure: no I/O.
//
// Ids and amounts have 64 bits, which JSON numbers do not carry everywhere: they are strings of decimal digits, and an
// integer is taken too as long as it cannot have been rounded (up to 2^53).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "http/request_reader.hpp"
#include "transfer/transfer.hpp"

namespace fencepost::transfer {

inline constexpr std::size_t kMetadataMaxBytes = 4096;  // as compact JSON, with all digits of its numbers
inline constexpr std::size_t kMetadataMaxDepth = 16;
inline constexpr std::int32_t kMaxExpiryHours = 8760;
inline constexpr std::size_t kCsvMaxLines = 10'000;

// {guildId, initiatorId, targetId, amount, reason?, metadata?, expiresHours?, mode?, idempotencyKey?}. The transfer's
// id is left to the caller. `bad_idempotency_key`, `invalid_transfer` for a payer who is the payee, `bad_request` for
// the rest.
struct TransferBody {
  NewTransfer transfer;
  Mode mode = Mode::kSync;
};
TransferBody read_transfer(const JsonReader& in, Mode default_mode);

// {amount, reason, idempotencyKey?}
struct IssueBody {
  std::int64_t amount = 0;
  std::string reason;
  std::optional<std::string> idempotency_key;
};
IssueBody read_issue(const JsonReader& in);

// {dailyLimit?: null|"…", cooldownSeconds?, defaultExpiryHours?, maxRetries?, reason}: at least one of the settings.
struct SettingsBody {
  boost::json::object changes;  // by column name, as AccountStore::set_settings takes them
  std::string reason;
};
SettingsBody read_settings_change(const JsonReader& in);

// {kind: "member"|"government", reason}
struct KindBody {
  std::string kind;
  std::string reason;
};
KindBody read_kind(const JsonReader& in);

// ?guildId=&status=&cursor=&limit=
struct TransferQuery {
  std::int64_t guild_id = 0;
  std::optional<TransferStatus> status;
  std::optional<std::int64_t> before;
  std::size_t limit = http::kPageDefaultItems;
};
TransferQuery read_transfer_query(const http::Request& request);

// ?cursor=&limit=&format=json|csv. Without `format`, CSV when `Accept` names text/csv before JSON or anything; weights
// (q=) are not looked at. A page of JSON is short, a CSV is a file.
struct StatementQuery {
  std::optional<std::int64_t> before;
  std::size_t limit = http::kPageDefaultItems;
  bool csv = false;
};
StatementQuery read_statement_query(const http::Request& request);

// Of the path: `{guildId:id}` and `{memberId:id}`. Member 0 is the guild's own account, which may only be looked at.
std::int64_t guild_of(const http::Request& request);
std::int64_t member_of(const http::Request& request, std::int64_t min = 1);

}  // namespace fencepost::transfer
