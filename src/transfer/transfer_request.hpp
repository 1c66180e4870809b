// Reads the requests of the economy's routes strictly, as http/request_reader.hpp does; throws if a request is invalid.
// Pure: no I/O.
//
// Ids and amounts have 64 bits, which many JSON parsers round: they are strings of decimal digits. A JSON integer is
// accepted if it cannot have been rounded (up to 2^53).
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

// {guildId, initiatorId, targetId, amount, reason?, metadata?, expiresHours?, maxRetries?: null|…, mode?,
// idempotencyKey?}. The caller sets the transfer's id. Throws `bad_idempotency_key`, `invalid_transfer` if payer and
// payee are the same, `bad_request` for everything else.
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

// {dailyLimit?: null|"…", cooldownSeconds?, defaultExpiryHours?, maxRetries?: null|…, reason}: at least one of the
// settings.
struct SettingsBody {
  boost::json::object changes;  // by column name, as AccountStore::set_settings takes them
  std::string reason;
};
SettingsBody read_settings_change(const JsonReader& in);

// {reason}
std::string read_fail(const JsonReader& in);

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

// ?cursor=&limit=&format=json|csv. Without `format`, CSV if `Accept` names text/csv before JSON or */*; weights (q=)
// are ignored. The default limit of CSV is larger than that of JSON.
struct StatementQuery {
  std::optional<std::int64_t> before;
  std::size_t limit = http::kPageDefaultItems;
  bool csv = false;
};
StatementQuery read_statement_query(const http::Request& request);

// Reads `{guildId:id}` and `{memberId:id}` of the path. Member 0 is the guild's own account, which is read-only.
std::int64_t guild_of(const http::Request& request);
std::int64_t member_of(const http::Request& request, std::int64_t min = 1);

}  // namespace fencepost::transfer
