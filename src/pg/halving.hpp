// One bad item fails alone.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "pg/error.hpp"
#include "runtime/async.hpp"

namespace fencepost::pg {

// The data is at fault, or a lock that somebody keeps: either way it may be about one item.
inline bool may_be_one_item(const QueryError& error) {
  return error.is_about_data() || error.is_lock_timeout();
}

// Answers for a set that is written in one transaction, in order. When PostgreSQL refuses it for what may be one item's
// doing, nothing was written, and each half is tried by itself; `alone` answers for the one that is refused alone, and
// for every item of a half that fails otherwise: the other half may have been written. What makes the whole set fail
// otherwise is thrown. The items and both functions must outlive the call.
template <class Item, class Answer>
awaitable<std::vector<Answer>> write_or_halve(
    std::span<const Item> items, const std::function<awaitable<std::vector<Answer>>(std::span<const Item>)>& write,
    const std::function<Answer(const Item&, const std::exception_ptr&)>& alone) {
  std::exception_ptr refused;
  try {
    co_return co_await write(items);
  } catch (const QueryError& error) {
    if (!may_be_one_item(error)) throw;
    refused = std::current_exception();
  }
  std::vector<Answer> answers;
  if (items.size() == 1) {
    answers.push_back(alone(items.front(), refused));
    co_return answers;
  }
  for (const auto half : {items.first(items.size() / 2), items.subspan(items.size() / 2)}) {
    std::vector<Answer> some;
    std::exception_ptr failed;
    try {
      some = co_await write_or_halve<Item, Answer>(half, write, alone);
    } catch (const std::exception&) {
      failed = std::current_exception();
    }
    if (failed) {
      for (const auto& item : half) some.push_back(alone(item, failed));
    }
    for (auto& one : some) answers.push_back(std::move(one));
  }
  co_return answers;
}

}  // namespace fencepost::pg
