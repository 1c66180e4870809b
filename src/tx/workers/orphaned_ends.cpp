#include "tx/workers/orphaned_ends.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "tx/service/block_check.hpp"
#include "tx/store/reorg_store.hpp"

namespace fencepost::tx {
namespace {

class Search {
 public:
  explicit Search(ChainContext& chain) : chain_(chain) {}

  awaitable<OrphanedEnds> run(std::int64_t above, std::int64_t final_number, bool below) {
    auto& pool = chain_.database.pool();
    co_await look_at(co_await ended_above(pool, chain_.chain_id(), above, final_number));
    auto lowest = std::min(above, final_number) + 1;
    for (bool deeper = below; deeper;) {
      const auto ended = co_await ended_below(pool, chain_.chain_id(), lowest);
      if (ended.empty()) break;
      lowest = ended.front().block;
      deeper = co_await look_at(ended);
    }
    co_return std::move(found_);
  }

 private:
  // Returns whether all of these were undone.
  awaitable<bool> look_at(std::vector<EndedTx> ended) {
    bool all = true;
    for (const auto& tx : ended) {
      const auto there = co_await is_there(tx);
      if (there == false) found_.undone.push_back(tx.tx_id);
      if (!there) found_.all_known = false;
      all = all && there == false;
    }
    co_return all;
  }

  // Each block is asked for once.
  awaitable<std::optional<bool>> is_there(const EndedTx& tx) {
    const auto known = seen_.find(tx.block_hash);
    if (known != seen_.end()) co_return known->second;
    const auto there = co_await is_on_chain(chain_, tx.block, tx.block_hash);
    seen_.emplace(tx.block_hash, there);
    co_return there;
  }

  ChainContext& chain_;
  std::map<std::string, std::optional<bool>> seen_;  // by hash
  OrphanedEnds found_;
};

}  // namespace

awaitable<OrphanedEnds> find_orphaned_ends(ChainContext& chain, std::int64_t above, std::int64_t final_number,
                                           bool below) {
  Search search(chain);
  co_return co_await search.run(above, final_number, below);
}

}  // namespace fencepost::tx
