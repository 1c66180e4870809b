#include "outbox/nats/nats_message.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "base/text.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;

constexpr std::string_view kIdPrefix = "fencepost-";
constexpr std::int64_t kWrongLastMsgId = 10070;
constexpr std::int64_t kWrongLastSequence = 10071;

// One token of a subject: a dot, a space or a wildcard in a name would change the subject's meaning.
std::string subject_token(std::string_view name) {
  std::string out(name);
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  std::ranges::replace_if(out, [&](char c) { return !allowed(c); }, '_');
  return out.empty() ? "_" : out;
}

std::string_view first_token(std::string_view& rest) {
  const auto dot = rest.find('.');
  const auto token = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return token;
}

std::int64_t integer_at(const json::object& object, std::string_view key) {
  const auto* const value = object.if_contains(key);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

NatsRefusal refusal_of(const json::object& error) {
  const auto* const text = error.if_contains("description");
  return {.code = integer_at(error, "err_code"),
          .text = text != nullptr && text->is_string() ? plain_text(text->get_string(), 300) : "no description"};
}

}  // namespace

NatsMessage to_nats_message(const LogEvent& event, std::string_view prefix) {
  const auto domain =
      event.domain != nullptr ? event.domain->name : std::string_view(event.subject).substr(0, event.subject.find('/'));
  return {.seq = event.seq,
          .subject = fmt::format("{}.{}.{}", prefix, subject_token(domain), subject_token(event.type)),
          .id = nats_message_id(event),
          .body = event.envelope};
}

std::string nats_message_id(const LogEvent& event) {
  if (event.type == kGapType) return fmt::format("{}{}-gap", kIdPrefix, event.seq);
  const auto at = std::chrono::duration_cast<std::chrono::microseconds>(event.at.time_since_epoch());
  return fmt::format("{}{}-{}", kIdPrefix, event.seq, at.count());
}

std::optional<std::int64_t> seq_in_message_id(std::string_view id) {
  if (!id.starts_with(kIdPrefix)) return std::nullopt;
  id.remove_prefix(kIdPrefix.size());
  std::int64_t seq = 0;
  const auto [end, ec] = std::from_chars(id.data(), id.data() + id.size(), seq);
  if (ec != std::errc() || end == id.data() + id.size() || *end != '-') return std::nullopt;
  return seq;
}

bool subject_covers(std::string_view pattern, std::string_view subject) {
  while (!pattern.empty() && !subject.empty()) {
    const auto mine = first_token(pattern);
    const auto other = first_token(subject);
    if (mine == ">") return true;
    if (other == ">" || (mine != "*" && mine != other)) return false;
  }
  return pattern.empty() && subject.empty();
}

bool NatsRefusal::out_of_step() const {
  return code == kWrongLastMsgId || code == kWrongLastSequence;
}

std::expected<NatsAck, NatsRefusal> parse_nats_ack(std::string_view text) {
  boost::system::error_code ec;
  const auto value = json::parse(text, ec);
  const auto* const answer = ec ? nullptr : value.if_object();
  if (answer == nullptr) return std::unexpected(NatsRefusal{0, "the answer is not from JetStream: " + quote(text)});
  const auto* const error = answer->if_contains("error");
  if (error != nullptr && error->is_object()) return std::unexpected(refusal_of(error->get_object()));
  const auto sequence = integer_at(*answer, "seq");
  if (sequence <= 0) return std::unexpected(NatsRefusal{0, "the answer has no sequence: " + quote(text)});
  const auto* const duplicate = answer->if_contains("duplicate");
  return NatsAck{.sequence = static_cast<std::uint64_t>(sequence),
                 .duplicate = duplicate != nullptr && duplicate->is_bool() && duplicate->get_bool()};
}

}  // namespace fencepost::outbox
