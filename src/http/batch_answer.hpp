// The answer to many requests in one: each told as it would have been alone.
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
  boost::json::object body;    // when it went well
  std::optional<Error> error;  // when it did not
};
ItemAnswer refused_item(Error error);

// The tasks of a batch, one for each item of {"items": […]} in order; run them with runtime/gather.hpp. `prepare` reads
// an item and may throw Exception; `run` carries it out and may throw. Either way the item fails alone. A batch whose
// client is gone runs on, so whatever `run` refers to outlives the server's requests. Throws as read_batch.
template <class Wanted>
std::vector<awaitable<ItemAnswer>> batch_tasks(const JsonReader& in,
                                               const std::function<Result<Wanted>(const JsonReader&)>& prepare,
                                               const std::function<awaitable<ItemAnswer>(Wanted)>& run);

// 200 {"results": [{"status": …, <member>: body}, {"status": …, "error": {…}}]}, in the order of the items. What failed
// on our side is logged, since the answer as a whole is a success to the server.
Response batch_answer(std::vector<ItemAnswer> items, std::string_view member, const Request& request);

// How one refused item is told: what a problem document would say of it, without the parts that belong to an answer of
// its own, and `retryAfter` in seconds instead of the header.
boost::json::object item_error(const Error& error);

namespace detail {

// The edge of one item: whatever goes wrong becomes its answer. Owns all it uses.
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
