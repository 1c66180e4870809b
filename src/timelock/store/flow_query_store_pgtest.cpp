// Lists of flows: each filter, each order, pages that neither skip nor repeat; and the flows of a calendar.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"
#include "timelock/store/calendar_store.hpp"
#include "timelock/store/flow_query_store.hpp"

namespace fencepost::timelock {
namespace {

using test::TestDatabase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string address(int number) {
  return fmt::format("0x{:040x}", number);
}
std::string hash(int number) {
  return fmt::format("0x{:064x}", number);
}

// Two contracts on chain 1, one of each standard, and one on chain 2.
constexpr std::string_view kContracts = R"(
  INSERT INTO timelock_scan (chain_id, block_number, block_hash, block_timestamp)
  VALUES (1, 100, '0x', to_timestamp(5000)), (2, 100, '0x', to_timestamp(5000));
  INSERT INTO timelock (chain_id, contract_address, standard, remark, from_block, history_next, history_last, created_by)
  SELECT chain, '0x' || lpad(to_hex(address), 40, '0'), standard, remark, 0, 1, 0, 'test'
    FROM (VALUES (1, 1, 'compound', 'Main Treasury'), (1, 2, 'openzeppelin', 'Grants'), (2, 1, 'compound', 'Bridge'))
         AS c(chain, address, standard, remark))";

struct Row {
  int chain = 1;
  int contract = 1;
  int flow = 1;
  int generation = 1;
  std::string status = "waiting";
  int queued = 1000;
  std::string eta = "2000";
  int initiator = 10;
  std::string more_columns = {};
  std::string more_values = {};
};

void add(const TestDatabase& db, const Row& row) {
  const auto end = row.status == "executed"    ? ", execute_tx_hash, executed_at"
                   : row.status == "cancelled" ? ", cancel_tx_hash, cancelled_at"
                                               : "";
  const auto end_values =
      *end == '\0' ? std::string() : fmt::format(", '{}', to_timestamp(3000)", hash(9'000'000 + row.flow));
  db.exec(fmt::format(
      "INSERT INTO timelock_transaction_flows (timelock_standard, chain_id, contract_address, flow_id, generation, "
      "status, confirmed, initiator_address, eta, queue_tx_hash, queue_block, queued_at, calls, told{}{}) VALUES "
      "('{}', {}, '{}', '{}', {}, '{}', true, '{}', {}, '{}', 1, to_timestamp({}), 1, '{{}}'{}{})",
      end, row.more_columns, row.contract == 2 ? "openzeppelin" : "compound", row.chain, address(row.contract),
      hash(row.flow), row.generation, row.status, address(row.initiator), row.eta, hash(8'000'000 + row.flow),
      row.queued, end_values, row.more_values));
}

// The event of a transaction of a flow of contract 1, in a block of its own.
void add_event(const TestDatabase& db, int flow, const std::string& type, const std::string& tx_hash) {
  db.exec(
      fmt::format("INSERT INTO compound_timelock_transactions VALUES (1, '{}', '{}', '{}', '{}', 0, '', NULL, '0x', 1, "
                  "'{}', '0x2', "
                  "NULL, 1, '{}', now(), 0)",
                  address(1), type, hash(flow), address(99), tx_hash, tx_hash));
}

class FlowQueries : public ::testing::Test {
 protected:
  FlowQueries() { db_.exec(std::string(kContracts)); }

  std::vector<FlowView> list(FlowFilter filter) {
    std::vector<FlowView> out;
    test::with_pool(db_.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> { out = co_await list_flows(pool, filter); });
    return out;
  }
  std::vector<int> ids(const FlowFilter& filter) {
    std::vector<int> out;
    for (const auto& flow : list(filter)) out.push_back(std::stoi(flow.key.flow_id.substr(50), nullptr, 16));
    return out;
  }
  std::vector<int> search(FlowSearch what, const std::string& text) { return ids({.search = what, .text = text}); }

  TestDatabase db_{test::Template::kMigrated};
};

TEST_F(FlowQueries, are_sorted_newest_first_or_by_eta) {
  add(db_, {.flow = 1, .queued = 1000, .eta = "9000"});
  add(db_, {.contract = 2, .flow = 2, .status = "executed", .queued = 3000, .eta = "100"});
  add(db_, {.chain = 2,
            .flow = 3,
            .queued = 2000,
            .eta = "115792089237316195423570985008687907853269984665640564039457584007913129639935"});
  EXPECT_THAT(ids({}), ElementsAre(2, 3, 1));
  EXPECT_THAT(ids({.sort = FlowSort::kEta}), ElementsAre(2, 1, 3));
  EXPECT_THAT(ids({.sort = FlowSort::kLatestEta}), ElementsAre(3, 1, 2));
  EXPECT_EQ(list({.sort = FlowSort::kEta}).back().eta,
            "115792089237316195423570985008687907853269984665640564039457584007913129639935");
}

TEST_F(FlowQueries, every_filter_and_its_combinations) {
  add(db_, {.flow = 1, .status = "waiting"});
  add(db_, {.flow = 2, .status = "ready", .initiator = 11});
  add(db_, {.contract = 2, .flow = 3, .status = "executed"});
  add(db_, {.chain = 2, .flow = 4, .status = "cancelled", .initiator = 11});
  EXPECT_THAT(ids({.statuses = {FlowStatus::kWaiting, FlowStatus::kCancelled}}), UnorderedElementsAre(1, 4));
  EXPECT_THAT(ids({.chain_id = 2}), ElementsAre(4));
  EXPECT_THAT(ids({.chain_id = 3}), IsEmpty());
  EXPECT_THAT(ids({.contracts = {{address(1)}}}), UnorderedElementsAre(1, 2, 4));
  EXPECT_THAT(ids({.chain_id = 1, .contracts = {{address(1)}}}), UnorderedElementsAre(1, 2));
  EXPECT_THAT(ids({.contracts = std::vector<std::string>{}}), IsEmpty());
  EXPECT_THAT(ids({.initiator = address(11)}), UnorderedElementsAre(2, 4));
  EXPECT_THAT(ids({.statuses = {FlowStatus::kReady}, .initiator = address(11)}), ElementsAre(2));
  EXPECT_THAT(ids({.contracts = {{address(2)}}, .initiator = address(11)}), IsEmpty());
  EXPECT_THAT(ids({.standard = Standard::kOpenZeppelin}), ElementsAre(3));
}

TEST_F(FlowQueries, removed_flows_are_left_out_unless_asked_for) {
  add(db_, {.flow = 1, .more_columns = ", removed", .more_values = ", true"});
  add(db_, {.flow = 2});
  EXPECT_THAT(ids({}), ElementsAre(2));
  EXPECT_THAT(ids({.removed = true}), UnorderedElementsAre(1, 2));
}

TEST_F(FlowQueries, a_hash_finds_the_flow_and_its_transactions) {
  add(db_, {.flow = 1, .status = "executed"});
  add(db_, {.flow = 2, .status = "cancelled"});
  add(db_, {.flow = 4});
  add_event(db_, 1, "QueueTransaction", hash(8'000'001));
  add_event(db_, 1, "ExecuteTransaction", hash(9'000'001));
  add_event(db_, 2, "QueueTransaction", hash(8'000'002));
  add_event(db_, 2, "CancelTransaction", hash(9'000'002));
  add_event(db_, 4, "ExecuteTransaction", hash(7'000'004));  // a reorg removed it: the flow is open
  EXPECT_THAT(search(FlowSearch::kHash, hash(1)), ElementsAre(1));
  EXPECT_THAT(search(FlowSearch::kHash, hash(8'000'002)), ElementsAre(2));
  EXPECT_THAT(search(FlowSearch::kHash, hash(9'000'001)), ElementsAre(1));
  EXPECT_THAT(search(FlowSearch::kHash, hash(9'000'002)), ElementsAre(2));
  EXPECT_THAT(search(FlowSearch::kHash, hash(7'000'004)), IsEmpty());
  EXPECT_THAT(search(FlowSearch::kHash, hash(3)), IsEmpty());
}

TEST_F(FlowQueries, an_address_finds_contract_initiator_via_and_target) {
  add(db_, {.flow = 1, .initiator = 20});
  add(db_, {.contract = 2,
            .flow = 2,
            .initiator = 21,
            .more_columns = ", via_address",
            .more_values = ", '" + address(22) + "'"});
  db_.exec(
      fmt::format("INSERT INTO compound_timelock_transactions VALUES (1, '{}', 'QueueTransaction', '{}', '{}', 0, "
                  "'transfer(address,uint256)', NULL, '0x', 1, '0x1', '0x2', NULL, 1, '0x3', now(), 0)",
                  address(1), hash(1), address(23)));
  db_.exec(
      fmt::format("INSERT INTO openzeppelin_timelock_transactions (chain_id, contract_address, event_type, event_id, "
                  "event_target, tx_hash, from_address, block_number, block_hash, block_timestamp, log_index) "
                  "VALUES (1, '{}', 'CallScheduled', '{}', '{}', '0x1', '0x2', 1, '0x4', now(), 0)",
                  address(2), hash(2), address(23)));
  EXPECT_THAT(search(FlowSearch::kAddress, address(1)), ElementsAre(1));
  EXPECT_THAT(search(FlowSearch::kAddress, address(21)), ElementsAre(2));
  EXPECT_THAT(search(FlowSearch::kAddress, address(22)), ElementsAre(2));
  EXPECT_THAT(search(FlowSearch::kAddress, address(23)), UnorderedElementsAre(1, 2));
  EXPECT_THAT(ids({.standard = Standard::kCompound, .search = FlowSearch::kAddress, .text = address(23)}),
              ElementsAre(1));
  // Text: a part of the remark in any case, or the beginning of a signature.
  EXPECT_THAT(search(FlowSearch::kText, "tREAS"), ElementsAre(1));
  EXPECT_THAT(search(FlowSearch::kText, "transfer("), ElementsAre(1));
  EXPECT_THAT(search(FlowSearch::kText, "ansfer("), IsEmpty());
  EXPECT_THAT(search(FlowSearch::kText, "%"), IsEmpty());
}

TEST_F(FlowQueries, a_flow_is_blocked_until_its_predecessor_was_executed) {
  const auto with = fmt::format(", '{}'", hash(7));
  add(db_, {.contract = 2, .flow = 1, .status = "ready", .more_columns = ", predecessor", .more_values = with});
  EXPECT_EQ(list({}).at(0).blocked_by, hash(7));  // not known yet
  add(db_, {.contract = 2, .flow = 7, .generation = 1, .status = "cancelled", .queued = 1});
  EXPECT_EQ(list({}).at(0).blocked_by, hash(7));
  add(db_, {.contract = 2, .flow = 7, .generation = 2, .status = "executed", .queued = 1});
  EXPECT_EQ(list({}).at(0).blocked_by, std::nullopt);
  add(db_, {.contract = 2,
            .flow = 2,
            .status = "cancelled",
            .queued = 5000,
            .more_columns = ", predecessor",
            .more_values = fmt::format(", '{}'", hash(8))});
  EXPECT_EQ(list({}).at(0).blocked_by, std::nullopt) << "it has ended";
}

// Flows share times, ids and contracts, so that every part of the order decides somewhere.
TEST_F(FlowQueries, pages_neither_skip_nor_repeat) {
  const char* statuses[] = {"waiting", "ready", "executed", "cancelled", "expired"};
  int made = 0;
  for (int flow = 1; flow <= 12; ++flow) {
    for (int generation = 1; generation <= 2; ++generation) {
      for (const auto& [chain, contract] : {std::pair(1, 1), std::pair(1, 2), std::pair(2, 1)}) {
        if (contract == 2 && (flow + generation) % 5 == 4) continue;  // OpenZeppelin's do not expire
        add(db_, {.chain = chain,
                  .contract = contract,
                  .flow = flow,
                  .generation = generation,
                  .status = statuses[(flow + generation) % 5],
                  .queued = 1000 + flow / 6,
                  .eta = std::to_string(2000 + flow / 4),
                  .initiator = 10});
        ++made;
      }
    }
  }
  for (const auto sort : {FlowSort::kNewest, FlowSort::kEta, FlowSort::kLatestEta}) {
    for (const FlowFilter& base :
         {FlowFilter{}, FlowFilter{.contracts = {{address(1), address(2)}}}, FlowFilter{.initiator = address(10)},
          FlowFilter{.search = FlowSearch::kAddress, .text = address(10)}}) {
      auto filter = base;
      filter.sort = sort;
      filter.limit = 1000;
      const auto all = list(filter);
      EXPECT_EQ(all.size(), static_cast<std::size_t>(made));
      filter.limit = 7;
      std::vector<FlowPlace> paged;
      for (int pages = 0; pages < 100; ++pages) {
        const auto page = list(filter);
        for (const auto& flow : page) paged.push_back(place_of(flow, sort));
        if (page.size() < filter.limit) break;
        filter.after = paged.back();
      }
      std::vector<FlowPlace> expected;
      expected.reserve(all.size());
      for (const auto& flow : all) expected.push_back(place_of(flow, sort));
      EXPECT_EQ(paged, expected);
    }
  }
}

TEST_F(FlowQueries, a_calendar_shows_what_waits_however_many_flows_have_been_ready_for_long) {
  for (int flow = 1; flow <= 5; ++flow) add(db_, {.flow = flow, .status = "ready", .eta = std::to_string(100 + flow)});
  add(db_, {.flow = 6, .status = "executed", .eta = "150"});
  for (int flow = 7; flow <= 9; ++flow) add(db_, {.flow = flow, .eta = std::to_string(1000 - flow)});
  test::with_pool(db_.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    std::vector<std::string> shown;
    for (const auto& flow : co_await calendar_flows(pool, {}, 2, 2)) shown.push_back(flow.key.flow_id);
    EXPECT_THAT(shown, ElementsAre(hash(9), hash(8), hash(5), hash(4)));
    EXPECT_EQ((co_await calendar_flows(pool, {}, 10, 10)).size(), 8U);
  });
}

TEST_F(FlowQueries, the_newest_generation_that_was_not_removed_is_found_first) {
  add(db_, {.flow = 1, .generation = 1, .status = "cancelled"});
  add(db_, {.flow = 1, .generation = 2, .status = "waiting"});
  add(db_, {.flow = 1, .generation = 3, .more_columns = ", removed", .more_values = ", true"});
  const FlowKey key{Standard::kCompound, 1, address(1), hash(1)};
  test::with_pool(db_.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    EXPECT_EQ((co_await find_flow(pool, key, {}))->generation, 2);
    EXPECT_EQ((co_await find_flow(pool, key, 3))->removed, true);
    EXPECT_EQ((co_await find_flow(pool, key, 1))->status, FlowStatus::kCancelled);
    EXPECT_FALSE((co_await find_flow(pool, key, 4)).has_value());
    const auto generations = co_await list_generations(pool, key, 10);
    EXPECT_EQ(generations.size(), 3U);
    EXPECT_EQ(generations.front().number, 3);
  });
}

}  // namespace
}  // namespace fencepost::timelock
