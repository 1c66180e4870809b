// One bad item fails alone.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "pg/error.hpp"
#include "runtime/async.hpp"

namespace fencepost::pg {

// Answers for a set that is written in one transaction, in order. When PostgreSQL refuses it for the data of some item,
// nothing was written, and each half is tried by itself; `alone` answers for the one that is refused alone. Every other
// exception of `write` is everybody's. Both must outlive the call.
template <class Item, class Answer>
awaitable<std::vector<Answer>> write_or_halve(
    std::vector<Item> items, const std::function<awaitable<std::vector<Answer>>(std::vector<Item>)>& write,
    const std::function<Answer(const Item&, const std::exception_ptr&)>& alone) {
  std::exception_ptr refused;
  try {
    co_return co_await write(items);
  } catch (const QueryError& error) {
    if (!error.is_about_data()) throw;
    refused = std::current_exception();
  }
  std::vector<Answer> answers;
  if (items.size() == 1) {
    answers.push_back(alone(items.front(), refused));
    co_return answers;
  }
  const auto middle = items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
  std::vector<Item> upper(std::make_move_iterator(middle), std::make_move_iterator(items.end()));
  items.erase(middle, items.end());
  answers = co_await write_or_halve<Item, Answer>(std::move(items), write, alone);
  auto rest = co_await write_or_halve<Item, Answer>(std::move(upper), write, alone);
  for (auto& one : rest) answers.push_back(std::move(one));
  co_return answers;
}

}  // namespace fencepost::pg
