#include <fmt/format.h>

#include "timelock/model/calendar.hpp"
#include "timelock/routes/flow_request.hpp"
#include "timelock/routes/handlers.hpp"
#include "timelock/store/calendar_store.hpp"

namespace fencepost::timelock {
namespace {

using http::Request;
using http::Response;

constexpr std::size_t kMaxWaiting = 1'000;
constexpr std::size_t kMaxReady = 200;
constexpr std::int64_t kEndOfCalendars = 253'402'300'799;  // the year 9999

std::string uid_of(const FlowView& flow, std::string_view moment) {
  return fmt::format("{}-{}-{}-{}-{}-{}@fencepost", moment, kStandards.name(flow.key.standard), flow.key.chain_id,
                     flow.key.contract, flow.key.flow_id, flow.generation);
}

CalendarEntry entry_of(const FlowView& flow, const CalendarText& text, std::string_view moment, std::int64_t at) {
  const auto name = text.remark.empty() ? flow.key.contract : text.remark;
  const auto what =
      text.signature.empty() ? fmt::format("{} call{}", flow.calls, flow.calls == 1 ? "" : "s") : text.signature;
  return {.uid = uid_of(flow, moment),
          .at = at,
          .changed_at = std::chrono::floor<std::chrono::seconds>(flow.updated_at).time_since_epoch().count(),
          .summary = fmt::format("{}: {} {}", name, what, moment == "due" ? "can be executed" : "expires"),
          .description =
              fmt::format("{} flow {} of {} on chain {}, queued by {} in {}", kStandards.name(flow.key.standard),
                          flow.key.flow_id, flow.key.contract, flow.key.chain_id, flow.initiator, flow.queue_tx_hash)};
}

}  // namespace

awaitable<Response> get_calendar(Request& request, RoutesParts parts) {
  auto filter = read_calendar_filter(request);
  const auto flows = co_await calendar_flows(parts.service.pool(), std::move(filter), kMaxWaiting, kMaxReady);
  const auto texts = co_await calendar_texts(parts.service.pool(), flows);
  std::vector<CalendarEntry> entries;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto& flow = flows[i];
    const auto add = [&](std::string_view moment, std::optional<std::int64_t> at) {
      if (at && *at <= kEndOfCalendars) entries.push_back(entry_of(flow, texts[i], moment, *at));
    };
    add("due", flow.due_at);
    add("expiry", flow.expired_at);
  }
  co_return Response::text(200, calendar_text(entries), "text/calendar; charset=utf-8")
      .with("Cache-Control", "private, max-age=300");
}

}  // namespace fencepost::timelock
