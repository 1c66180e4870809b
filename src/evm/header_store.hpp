// Block headers that outlive the process: one row for each block that any node has seen, insert-only, keyed by
// (chain_id, hash).
//
// Pinned to one loop. What the database refuses or loses is thrown (pg/error.hpp); every method may be repeated.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "evm/chain_connector.hpp"
#include "pg/pool.hpp"

namespace fencepost::evm {

class HeaderStore {
 public:
  virtual ~HeaderStore() = default;

  // Keeps those that are new; a hash that is there already stays as it is.
  virtual awaitable<> save(std::int64_t chain_id, std::vector<BlockHeader> headers) = 0;

  // Those with number >= from_number, of every branch, lowest number first. No more than `limit`: then the highest.
  virtual awaitable<std::vector<BlockHeader>> recent(std::int64_t chain_id, std::int64_t from_number,
                                                     std::size_t limit) = 0;

  // The highest number on any branch; nothing when there is no header.
  virtual awaitable<std::optional<std::int64_t>> newest(std::int64_t chain_id) = 0;

  // Forgets headers with number < below_number, the lowest first and no more than `limit`. How many they were.
  virtual awaitable<std::size_t> prune(std::int64_t chain_id, std::int64_t below_number, std::size_t limit) = 0;
};

class PgHeaderStore final : public HeaderStore {
 public:
  explicit PgHeaderStore(pg::Pool& pool) : pool_(pool) {}

  awaitable<> save(std::int64_t chain_id, std::vector<BlockHeader> headers) override;
  awaitable<std::vector<BlockHeader>> recent(std::int64_t chain_id, std::int64_t from_number,
                                             std::size_t limit) override;
  awaitable<std::optional<std::int64_t>> newest(std::int64_t chain_id) override;
  awaitable<std::size_t> prune(std::int64_t chain_id, std::int64_t below_number, std::size_t limit) override;

 private:
  pg::Pool& pool_;
};

}  // namespace fencepost::evm
