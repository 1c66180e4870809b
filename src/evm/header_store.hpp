// Block headers that outlive the process: one row for each block that any node has seen, insert-only, keyed by
// (chain_id, hash).
//
// Pinned to one loop. Methods throw database errors (pg/error.hpp). Each is safe to repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evm/chain_connector.hpp"
#include "pg/pool.hpp"

namespace fencepost::evm {

class HeaderStore {
 public:
  virtual ~HeaderStore() = default;

  // Stores the new headers; a header whose hash is already stored stays unchanged.
  virtual awaitable<> save(std::int64_t chain_id, std::vector<BlockHeader> headers) = 0;

  // The headers with number >= from_number, of every branch, lowest number first. When there are more than `limit`, the
  // highest ones.
  virtual awaitable<std::vector<BlockHeader>> recent(std::int64_t chain_id, std::int64_t from_number,
                                                     std::size_t limit) = 0;

  // The highest number on any branch; nothing when there is no header.
  virtual awaitable<std::optional<std::int64_t>> newest(std::int64_t chain_id) = 0;

  // Deletes headers with number < below_number, the lowest first, at most `limit`. Returns how many it deleted.
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

  // The header with this hash and its ancestors, newest first, as far as they are stored, at most `limit`.
  awaitable<std::vector<BlockHeader>> ancestors(std::int64_t chain_id, std::string hash, std::size_t limit);

 private:
  pg::Pool& pool_;
};

}  // namespace fencepost::evm
