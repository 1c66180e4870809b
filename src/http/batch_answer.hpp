// The answer to a batch: each item has the status and body that it would have as a single request.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/error.hpp"
#include "http/message.hpp"
#include "http/request_reader.hpp"
#include "runtime/async.hpp"

namespace fencepost::http {

struct ItemAnswer {
  unsigned status = 0;
  boost::json::object body;    // of a successful item
  std::optional<Error> error;  // of a failed item
};
ItemAnswer refused_item(Error error);

// The tasks of a batch, one for each item of {"items": […]} in order; run them with runtime/gather.hpp. `prepare` reads
// an item and `run` carries it out; when either throws, only that item fails. Throws as read_batch. Requires: what
// `run` refers to outlives the server's requests, since a batch continues after its client has disconnected.
template <class Wanted>
std::vector<awaitable<ItemAnswer>> batch_tasks(const JsonReader& in,
                                               const std::function<Result<Wanted>(const JsonReader&)>& prepare,
                                               const std::function<awaitable<ItemAnswer>(Wanted)>& run);

// 200 {"results": [{"status": …, <member>: body}, {"status": …, "error": {…}}]}, in the order of the items. Logs the
// items that failed with a status of 500 or more: the server logs only answers that fail as a whole.
Response batch_answer(std::vector<ItemAnswer> items, std::string_view member, const Request& request);

// The `error` member of a refused item: the problem document without `type`, `title`, `status` and `httpRequestId`, and
// with `retryAfter` in seconds instead of the header.
boost::json::object item_error(const Error& error);

namespace detail {

// Runs one item and turns every exception into the item's answer. Owns all that it uses.
template <class Wanted>
awaitable<ItemAnswer> run_item(Result<Wanted> wanted, std::function<awaitable<ItemAnswer>(Wanted)> run) {
  if (!wanted) co_return refused_item(std::move(wanted).error());
  try {
    co_return co_await run(std::move(*wanted));
  } catch (const std::exception&) {
    co_return refused_item(error_of(std::current_exception()));
  }
}

}  // namespace detail

template <class Wanted>
std::vector<awaitable<ItemAnswer>> batch_tasks(const JsonReader& in,
                                               const std::function<Result<Wanted>(const JsonReader&)>& prepare,
                                               const std::function<awaitable<ItemAnswer>(Wanted)>& run) {
  std::vector<awaitable<ItemAnswer>> tasks;
  for (const auto& item : read_batch(in)) {
    Result<Wanted> wanted = fail(Error{});
    try {
      wanted = prepare(item);
    } catch (const Exception& e) {
      wanted = fail(e.error());
    }
    tasks.push_back(detail::run_item<Wanted>(std::move(wanted), run));
  }
  return tasks;
}

}  // namespace fencepost::http
