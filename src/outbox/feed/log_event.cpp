#include "outbox/feed/log_event.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/error.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;

// Text of a member that is a string or an integer; empty when there is none.
std::string member_text(const json::object& data, std::string_view member) {
  const auto* const value = data.if_contains(member);
  if (value == nullptr) return {};
  if (const auto* const text = value->if_string()) return std::string(*text);
  if (const auto* const number = value->if_int64()) return std::to_string(*number);
  return {};
}

json::object parse_data(std::int64_t seq, std::string_view data) {
  boost::system::error_code ec;
  auto value = json::parse(data, ec);
  if (ec || !value.is_object()) {
    throw Exception(internal("bad_event", fmt::format("the data of event {} is not a JSON object", seq)));
  }
  return std::move(value.as_object());
}

// `data` is JSON already. Members are in the order in which people read them.
std::string envelope_of(const LogEvent& event, std::string_view data) {
  std::string out;
  out.reserve(data.size() + event.subject.size() + 256);
  fmt::format_to(std::back_inserter(out),
                 R"({{"specversion":"1.0","id":"{}","source":"/fencepost","type":{},"subject":{},)", event.seq,
                 json::serialize(event.type), json::serialize(event.subject));
  fmt::format_to(std::back_inserter(out), R"("time":"{}","datacontenttype":"application/json",)", to_rfc3339(event.at));
  if (!event.chain.empty()) fmt::format_to(std::back_inserter(out), R"("chain":"{}",)", event.chain);
  out += R"("data":)";
  out += data;
  out += '}';
  return out;
}

}  // namespace

LogEvent make_log_event(const EventCatalog& catalog, std::int64_t seq, std::string_view type, std::string_view subject,
                        TimePoint at, std::string_view data) {
  LogEvent event;
  event.seq = seq;
  event.type = type;
  event.subject = subject;
  event.at = at;
  event.domain = catalog.domain_of(subject);
  const auto members = parse_data(seq, data);
  event.chain = member_text(members, "chainId");
  if (event.domain != nullptr) event.id = member_text(members, event.domain->id_member);
  event.envelope = envelope_of(event, data);
  return event;
}

LogEvent make_gap_event(std::int64_t from, std::int64_t to, TimePoint at) {
  LogEvent event;
  event.seq = to;
  event.type = kGapType;
  event.subject = "log";
  event.at = at;
  event.envelope = envelope_of(event, fmt::format(R"({{"gap":true,"from":"{}","to":"{}"}})", from, to));
  return event;
}

}  // namespace fencepost::outbox
