// Writes a set of items so that a bad item fails alone.
#pragma once

#include <cstddef>
#include <exception>
#include <expected>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "pg/error.hpp"
#include "runtime/async.hpp"

namespace fencepost::pg {

// The outcome of one item of a set: its answer, or its own error.
template <class Answer>
using Outcome = std::expected<Answer, std::exception_ptr>;

// Whether one item may have caused the failure of its set: by its data, or by a lock that another session holds.
inline bool may_be_one_item(const Exception& error) {
  const auto* refused = dynamic_cast<const QueryError*>(&error);
  return refused != nullptr && (refused->is_about_data() || refused->is_lock_timeout());
}

inline bool may_be_one_item(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Exception& error) {
    return may_be_one_item(error);
  } catch (const std::exception&) {
    return false;
  }
}

using OneToBlame = bool (*)(const Exception&);

// Writes a set in one transaction: `write` takes a span of items and returns one answer for each, in order. When the
// set is refused for a reason that one item may have caused, nothing was written, and each half is tried separately,
// down to the single item that is refused.
//
// Returns one outcome for each item, in order. Any other failure of the whole set is thrown. Any other failure of a
// half becomes the outcome of each of its items, because the other half may have been written. Requires: the items and
// `write` outlive the call.
template <class Answer, class Item, class Write>
awaitable<std::vector<Outcome<Answer>>> write_or_halve(std::span<const Item> items, const Write& write,
                                                       OneToBlame one_to_blame = may_be_one_item) {
  std::vector<Outcome<Answer>> outcomes;
  std::exception_ptr refused;
  try {
    std::vector<Answer> answers = co_await write(items);
    if (answers.size() != items.size()) throw Exception(internal("batch_mismatch", "answers do not match items"));
    outcomes.assign(std::make_move_iterator(answers.begin()), std::make_move_iterator(answers.end()));
    co_return outcomes;
  } catch (const Exception& error) {
    if (!one_to_blame(error)) throw;
    refused = std::current_exception();
  }
  if (items.size() == 1) {
    outcomes.push_back(std::unexpected(refused));
    co_return outcomes;
  }
  for (const auto half : {items.first(items.size() / 2), items.subspan(items.size() / 2)}) {
    try {
      auto some = co_await write_or_halve<Answer>(half, write, one_to_blame);
      std::move(some.begin(), some.end(), std::back_inserter(outcomes));
    } catch (const std::exception&) {
      outcomes.insert(outcomes.end(), half.size(), std::unexpected(std::current_exception()));
    }
  }
  co_return outcomes;
}

}  // namespace fencepost::pg
