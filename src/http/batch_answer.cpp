#include "http/batch_answer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "http/problem.hpp"
#include "runtime/log.hpp"

namespace fencepost::http {
namespace {

namespace json = boost::json;

// One log line for all failed items of the batch.
void log_failures(const std::vector<ItemAnswer>& items, const Request& request) {
  const Error* first = nullptr;
  std::size_t count = 0;
  for (const auto& item : items) {
    if (item.status < 500) continue;
    if (first == nullptr) first = &*item.error;
    ++count;
  }
  if (first != nullptr)
    log::error("items of a batch failed", *first, {{"items", count}, {"httpRequestId", request.id()}});
}

}  // namespace

ItemAnswer refused_item(Error error) {
  return {.status = status_of(error.kind), .body = {}, .error = std::move(error)};
}

Response batch_answer(std::vector<ItemAnswer> items, std::string_view member, const Request& request) {
  log_failures(items, request);
  json::array results;
  results.reserve(items.size());
  for (auto& item : items) {
    json::object result{{"status", item.status}};
    if (item.error) {
      result["error"] = item_error(*item.error);
    } else {
      result[member] = std::move(item.body);
    }
    results.push_back(std::move(result));
  }
  return Response::json(200, json::object{{"results", std::move(results)}});
}

json::object item_error(const Error& error) {
  auto out = json::parse(make_problem(error, "").body).as_object();
  for (const auto* part : {"type", "title", "status", "httpRequestId"}) out.erase(part);
  if (const auto delay = retry_after_of(error)) out["retryAfter"] = delay->count();
  return out;
}

}  // namespace fencepost::http
