#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/json.hpp"
#include "http/list_answer.hpp"
#include "outbox/outbox_store.hpp"
#include "timelock/routes/flow_json.hpp"
#include "timelock/routes/flow_request.hpp"
#include "timelock/routes/handlers.hpp"
#include "timelock/service/flow_calls.hpp"
#include "timelock/store/flow_store.hpp"

namespace fencepost::timelock {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

constexpr std::size_t kMaxShown = 1'000;  // events, steps, generations in an answer

Error no_such_flow() {
  return not_found("no_such_flow", "There is no such flow of a watched contract, or no such generation of it.");
}

json::object step_json(const outbox::HistoryStep& step) {
  return {{"at", to_rfc3339(step.at)},
          {"from", optional_json(step.from_state)},
          {"to", step.to_state},
          {"node", step.node},
          {"why", step.why}};
}

// The first kMaxShown of the rows.
template <class Rows, class ToJson>
json::array some_json(const Rows& rows, ToJson one) {
  json::array out;
  for (std::size_t i = 0; i < rows.size() && i < kMaxShown; ++i) out.push_back(one(rows[i]));
  return out;
}

}  // namespace

awaitable<Response> get_flows(Request& request, RoutesParts parts) {
  auto filter = read_flow_filter(request);
  const auto sort = filter.sort;
  const auto limit = filter.limit++;  // one row more says whether there is a next page
  const auto flows = co_await list_flows(parts.service.pool(), std::move(filter));
  co_return http::page_answer(
      flows, limit, [](const FlowView& flow) { return to_json(flow); },
      [sort](const FlowView& flow) { return cursor_text(place_of(flow, sort), sort); });
}

awaitable<Response> get_flow(Request& request, RoutesParts parts) {
  http::check_query(request, {"generation"});
  const auto generation = http::need(request.query_as<std::int32_t>("generation"));
  if (generation && *generation < 1) {
    http::refuse_parameter("generation", "a number from 1", std::to_string(*generation));
  }
  const auto key = flow_of_path(request);
  check_contract(request, key.contract);
  auto& pool = parts.service.pool();
  const auto flow = co_await find_flow(pool, key, generation);
  if (!flow) co_return Response::problem(no_such_flow(), request);
  const auto generations = co_await list_generations(pool, key, kMaxShown);
  const auto steps = co_await outbox::history_of(pool, flow_subject(key), kMaxShown);
  const auto folded = co_await read_flow_calls(pool, key, flow->generation);

  auto out = to_json(*flow);
  out["salt"] = folded.salt.empty() ? json::value(nullptr) : json::value(folded.salt);
  json::array calls;
  for (std::size_t i = 0; i < folded.calls.size(); ++i) calls.push_back(to_json(folded.calls[i], folded.explained[i]));
  out["calls"] = std::move(calls);
  out["events"] = some_json(folded.events, [](const StoredEvent& event) { return to_json(event); });
  out["eventsTruncated"] = folded.events.size() > kMaxShown;
  out["history"] = some_json(steps, step_json);
  out["generations"] = some_json(generations, [](const GenerationView& one) { return to_json(one); });
  co_return Response::json(200, std::move(out));
}

}  // namespace fencepost::timelock
