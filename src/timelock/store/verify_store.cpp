#include "timelock/store/verify_store.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

// Each part ends at the limit by itself: the whole is as short as its parts. Both read an index in its order.
#define FENCEPOST_KEYS_AFTER(standard, table, id)                                  \
  "SELECT flow_id FROM ((SELECT DISTINCT flow_id FROM timelock_transaction_flows " \
  "WHERE timelock_standard = '" standard                                           \
  "' AND chain_id = $1 AND contract_address = $2 AND flow_id > $3 "                \
  "ORDER BY flow_id LIMIT $4) UNION (SELECT DISTINCT " id " FROM " table           \
  " WHERE chain_id = $1 AND contract_address = $2 AND " id " > $3 ORDER BY " id    \
  " LIMIT $4)) AS ids(flow_id) ORDER BY flow_id LIMIT $4"

constexpr Statement kCompoundKeys{"timelock_verify_compound",
                                  FENCEPOST_KEYS_AFTER("compound", "compound_timelock_transactions", "event_tx_hash")};
constexpr Statement kOpenZeppelinKeys{
    "timelock_verify_openzeppelin",
    FENCEPOST_KEYS_AFTER("openzeppelin", "openzeppelin_timelock_transactions", "event_id")};

constexpr Statement kAnnounce{"timelock_verify_failed", R"(
  INSERT INTO event (subject, type, data)
  VALUES (concat_ws('/', 'timelock', $1::text, $2::bigint, $3::text), 'TimelockVerifyFailed',
          jsonb_build_object(
            'standard', $1::text, 'chainId', $2::bigint, 'contractAddress', $3::text, 'flows', $4::bigint,
            'differences', $5::bigint, 'flowId', $6::text, 'what', $7::text)))"};

}  // namespace

awaitable<FlowKeys> flow_keys_after(pg::Transaction& tx, ContractKey contract, Standard standard, std::string after,
                                    std::size_t limit) {
  const auto& statement = standard == Standard::kCompound ? kCompoundKeys : kOpenZeppelinKeys;
  const auto rows = co_await tx.query(statement, contract.chain_id, contract.address, after, std::uint64_t{limit});
  FlowKeys keys;
  for (const auto row : rows) {
    keys.insert({standard, contract.chain_id, contract.address, row.get<std::string>("flow_id")});
  }
  co_return keys;
}

awaitable<> announce_verify_failure(pg::Pool& pool, VerifyFailure failure) {
  co_await pool.execute(kAnnounce, kStandards.name(failure.standard), failure.contract.chain_id,
                        failure.contract.address, failure.flows, failure.differences, failure.flow_id, failure.what);
}

}  // namespace fencepost::timelock
