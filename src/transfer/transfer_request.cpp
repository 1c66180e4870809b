#include "transfer/transfer_request.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/id_text.hpp"
#include "base/json.hpp"
#include "base/request_id.hpp"
#include "base/text.hpp"

namespace fencepost::transfer {
namespace {

namespace json = boost::json;
using http::need;
using http::refuse_parameter;
using http::Request;

constexpr std::int64_t kMaxSafeInteger = std::int64_t{1} << 53;
constexpr std::int64_t kMaxCooldownSeconds = 31'536'000;
constexpr std::int64_t kMaxRetries = 1000;
constexpr std::array<std::pair<std::string_view, Mode>, 2> kModes{{{"sync", Mode::kSync}, {"pool", Mode::kPool}}};
constexpr std::array<std::string_view, 2> kKinds{"member", "government"};

std::int64_t read_number(const JsonReader& in, std::int64_t min) {
  const auto& value = in.value();
  const bool number = value.is_int64() || value.is_uint64();
  const auto read = number ? in.int64(std::numeric_limits<std::int64_t>::min(), kMaxSafeInteger) : in.int64_text();
  if (read < min) {
    in.reject("bad_request", fmt::format("expected at least {}, got {}", min, describe_json(value)));
  }
  return read;
}

std::int64_t read_positive(const JsonReader& in) {
  return read_number(in, 1);
}

std::optional<std::string> read_key(const JsonReader& in) {
  if (!in.present()) return std::nullopt;
  const auto* text = in.value().if_string();
  // `string()` rejects any other type; a string must also satisfy parse_request_id (length, no NUL).
  if (text == nullptr) return in.string();
  auto key = parse_request_id(std::string_view(*text));
  if (!key) in.reject("bad_idempotency_key", key.error().message);
  return std::move(*key);
}

// Measures JSON as PostgreSQL would store it: jsonb cannot hold a NUL and writes every digit of a number.
struct Measure {
  std::size_t digits = 0;
  std::size_t depth = 0;
  bool has_nul = false;

  // Recursion is bounded: parse_json limits the depth of a document.
  void take(const json::value& value, std::size_t level) {
    if (const auto* text = value.if_string()) take(std::string_view(*text));
    if (const auto* number = value.if_double()) {
      digits += *number == 0 ? 0 : static_cast<std::size_t>(std::abs(std::ilogb(*number))) / 3;
    }
    if (const auto* object = value.if_object()) {
      depth = std::max(depth, level);
      for (const auto& member : *object) {
        take(std::string_view(member.key()));
        take(member.value(), level + 1);
      }
    }
    if (const auto* array = value.if_array()) {
      depth = std::max(depth, level);
      for (const auto& element : *array) take(element, level + 1);
    }
  }
  void take(std::string_view text) { has_nul = has_nul || text.find('\0') != std::string_view::npos; }
};

json::object read_metadata(const JsonReader& in) {
  if (!in.present()) return {};
  const auto* object = in.value().if_object();
  if (object == nullptr) in.reject("bad_request", "expected an object, got " + describe_json(in.value()));
  Measure measure;
  measure.take(in.value(), 1);
  const auto size = json::serialize(*object).size() + measure.digits;
  if (size > kMetadataMaxBytes) {
    in.reject("bad_request", fmt::format("expected at most {} bytes with all digits, got {}", kMetadataMaxBytes, size));
  }
  if (measure.depth > kMetadataMaxDepth) {
    in.reject("bad_request", fmt::format("expected at most {} levels, got {}", kMetadataMaxDepth, measure.depth));
  }
  if (measure.has_nul) in.reject("bad_request", "must not contain a NUL character");
  return *object;
}

std::optional<std::int32_t> read_expiry(const JsonReader& in, Mode mode) {
  if (!in.present()) return std::nullopt;
  const auto hours = static_cast<std::int32_t>(in.int64(1, kMaxExpiryHours));
  if (mode == Mode::kSync)
    in.reject("bad_request", "is allowed only in mode pool: a synchronous transfer does not wait");
  return hours;
}

// Left out: the guild's. null: until the transfer expires.
std::optional<std::int32_t> read_max_retries(const JsonReader& in, Mode mode) {
  if (!in.value().get_object().contains("maxRetries")) return std::nullopt;
  const auto field = in.field("maxRetries");
  if (!field.present()) return mode == Mode::kPool ? std::optional(kUntilExpiry) : std::nullopt;
  const auto retries = static_cast<std::int32_t>(field.int64(0, kMaxRetries));
  if (mode == Mode::kSync)
    field.reject("bad_request", "is allowed only in mode pool: a synchronous transfer is not retried");
  return retries;
}

std::optional<std::int64_t> read_cursor(const Request& request) {
  const auto text = need(request.query_as<std::string>("cursor"));
  if (!text) return std::nullopt;
  const auto before = parse_id(*text);
  if (!before || *before < 1) refuse_parameter("cursor", "the nextCursor of a page", *text);
  return before;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool accepts_csv(const Request& request) {
  auto accept = request.header("Accept").value_or("");
  while (!accept.empty()) {
    const auto comma = std::min(accept.find(','), accept.size());
    auto type = accept.substr(0, std::min(accept.find(';'), comma));
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    while (type.starts_with(' ')) type.remove_prefix(1);
    while (type.ends_with(' ')) type.remove_suffix(1);
    if (equal_ignoring_case(type, "text/csv")) return true;
    if (equal_ignoring_case(type, "application/json") || type == "*/*") return false;
  }
  return false;
}

bool wants_csv(const Request& request) {
  const auto format = need(request.query_as<std::string>("format"));
  if (!format) return accepts_csv(request);
  if (*format != "csv" && *format != "json") refuse_parameter("format", "json or csv", *format);
  return *format == "csv";
}

std::int64_t path_id(const Request& request, std::string_view name, std::int64_t min) {
  const auto id = request.param_id(name);
  if (id < min) refuse_parameter(name, fmt::format("an id from {} up", min), request.param(name));
  return id;
}

}  // namespace

TransferBody read_transfer(const JsonReader& in, Mode default_mode) {
  in.reject_unknown({"guildId", "initiatorId", "targetId", "amount", "reason", "metadata", "expiresHours", "maxRetries",
                     "mode", "idempotencyKey"});
  TransferBody body;
  auto& transfer = body.transfer;
  transfer.guild_id = read_positive(in.field("guildId"));
  transfer.initiator_id = read_positive(in.field("initiatorId"));
  transfer.target_id = read_positive(in.field("targetId"));
  transfer.amount = read_positive(in.field("amount"));
  if (transfer.target_id == transfer.initiator_id) {
    in.field("targetId").reject("invalid_transfer", "initiatorId and targetId must differ");
  }
  const auto reason = in.field("reason");
  if (reason.present()) transfer.reason = http::read_text(reason, http::kReasonMaxCharacters);
  transfer.metadata = read_metadata(in.field("metadata"));
  const auto mode = in.field("mode");
  body.mode = mode.present() ? mode.one_of(kModes) : default_mode;
  transfer.expires_hours = read_expiry(in.field("expiresHours"), body.mode);
  transfer.max_retries = read_max_retries(in, body.mode);
  transfer.idempotency_key = read_key(in.field("idempotencyKey"));
  return body;
}

IssueBody read_issue(const JsonReader& in) {
  in.reject_unknown({"amount", "reason", "idempotencyKey"});
  return {.amount = read_positive(in.field("amount")),
          .reason = http::read_reason(in),
          .idempotency_key = read_key(in.field("idempotencyKey"))};
}

SettingsBody read_settings_change(const JsonReader& in) {
  in.reject_unknown({"dailyLimit", "cooldownSeconds", "defaultExpiryHours", "maxRetries", "reason"});
  SettingsBody body;
  const auto& given = in.value().get_object();
  if (given.contains("dailyLimit")) {
    const auto limit = in.field("dailyLimit");
    body.changes["daily_limit"] = limit.present() ? json::value(read_number(limit, 0)) : json::value(nullptr);
  }
  const auto change = [&](std::string_view name, std::string_view column, std::int64_t min, std::int64_t max) {
    if (given.contains(name)) body.changes[column] = in.field(name).int64(min, max);
  };
  change("cooldownSeconds", "cooldown_seconds", 0, kMaxCooldownSeconds);
  change("defaultExpiryHours", "default_expiry_hours", 1, kMaxExpiryHours);
  if (given.contains("maxRetries") && !in.field("maxRetries").present()) {
    body.changes["max_retries"] = nullptr;
  } else {
    change("maxRetries", "max_retries", 0, kMaxRetries);
  }
  body.reason = http::read_reason(in);
  if (body.changes.empty()) in.reject("bad_request", "expected at least one setting to change, got none");
  return body;
}

std::string read_fail(const JsonReader& in) {
  in.reject_unknown({"reason"});
  return http::read_reason(in);
}

KindBody read_kind(const JsonReader& in) {
  in.reject_unknown({"kind", "reason"});
  return {.kind = std::string(kKinds[in.field("kind").index_of(kKinds)]), .reason = http::read_reason(in)};
}

TransferQuery read_transfer_query(const Request& request) {
  check_query(request, {"guildId", "status", "cursor", "limit"});
  TransferQuery query;
  const auto guild = http::required_parameter(request, "guildId");
  const auto guild_id = parse_id(guild);
  if (!guild_id || *guild_id < 1) refuse_parameter("guildId", fmt::format("an id from 1 up: {}", kIdForm), guild);
  query.guild_id = *guild_id;
  if (const auto status = need(request.query_as<std::string>("status"))) {
    query.status = kPendingTransfer.find(*status);
    if (!query.status) refuse_parameter("status", one_of_list(kPendingTransfer.names()), *status);
  }
  query.before = read_cursor(request);
  query.limit = http::read_limit(request);
  return query;
}

StatementQuery read_statement_query(const Request& request) {
  check_query(request, {"cursor", "limit", "format"});
  StatementQuery query;
  query.csv = wants_csv(request);
  query.before = read_cursor(request);
  query.limit = query.csv ? http::read_limit(request, kCsvMaxLines, kCsvMaxLines) : http::read_limit(request);
  return query;
}

std::int64_t guild_of(const Request& request) {
  return path_id(request, "guildId", 1);
}

std::int64_t member_of(const Request& request, std::int64_t min) {
  return path_id(request, "memberId", min);
}

}  // namespace fencepost::transfer
