#!/usr/bin/env bash
# shellcheck disable=SC2317  # `await` and the trap call some functions by name
#
# Measures timelocks.
#
#   bench/timelock.sh backfill|refresh path/to/build
#
#   backfill  the history of one contract with 200,000 events, read from a node on this machine, stored and folded;
#             against pgbench inserting the same rows by unnest
#   refresh   100,000 flows whose time has come at once
#
# The exit code is 3 if a bar is missed.
set -euo pipefail

what=${1:?usage: bench/timelock.sh backfill|refresh path/to/build}
build=${2:?usage: bench/timelock.sh backfill|refresh path/to/build}
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

contract=0x00000000000000000000000000000000000c0de0
per_block=10
blocks=$(sized 20000 400)

# The last 300 blocks have no events, so that the whole history is below the follower's window.
"$build/bench/timelock_node" "$((blocks + 300))" "$per_block" >"$dir/chain.out" &
started+=($!)
await "the chain" grep -c '^port' "$dir/chain.out"
chain=http://127.0.0.1:$(sed -n 's/^port //p' "$dir/chain.out")
cat >"$dir/config.yaml" <<END
http: {rate_limit_per_second: 1000000, rate_limit_burst: 1000000}
log: {level: warn}
scanner: {confirmations: 0}
chains: [{name: stub, chain_id: 31337, rpc_urls: ['$chain'], poll_interval: 100ms}]
END
up --config "$dir/config.yaml"

ask() { curl -sS -H "Authorization: Bearer $KEY" "$@"; }
seconds_now() { date +%s.%N; }
since() { awk -v from="$1" -v to="$(seconds_now)" 'BEGIN { print to - from }'; }

import() {
  ask -H 'Content-Type: application/json' "$url/api/v1/timelocks" \
    -d "{\"chainId\": 31337, \"address\": \"$contract\", \"fromBlock\": $1}" >"$dir/import.json"
  grep -c '"standard":"openzeppelin"' "$dir/import.json" >/dev/null || { cat "$dir/import.json" >&2; exit 1; }
}
# wait_for SQL: until the answer is t; for up to ten minutes. Polls seldom: psql takes time from the cores that are
# measured.
wait_for() {
  local i
  for ((i = 0; i < 1500; i++)); do
    [[ $(sql "$1") == t ]] && return 0
    sleep 0.4
  done
  echo "bench: gave up waiting for $1" >&2
  exit 1
}

# The floor: the same rows into the same table without anything else, 2,000 at a time.
insert_floor() {
  sql "CREATE TABLE floor_rows AS SELECT * FROM openzeppelin_timelock_transactions ORDER BY block_number, log_index;
       CREATE INDEX ON floor_rows (block_number);
       CREATE TABLE floor (LIKE openzeppelin_timelock_transactions INCLUDING ALL);"
  cat >"$dir/floor.sql" <<'SQL'
\set first :at * 200
INSERT INTO floor
SELECT (r).* FROM unnest(ARRAY(SELECT f FROM floor_rows AS f WHERE block_number > :first AND block_number <= :first + 200)) AS r;
\set at :at + 1
SQL
  local begin
  begin=$(seconds_now)
  pgbench -n -c 1 -t "$(((blocks + 199) / 200))" -D at=0 -f "$dir/floor.sql" "$dsn" >"$dir/pgbench.out" 2>&1
  floor_seconds=$(since "$begin")
}

case $what in
  backfill)
    begin=$(seconds_now)
    import 0
    wait_for "SELECT history_done_at IS NOT NULL FROM timelock"
    took=$(sql "SELECT extract(epoch FROM history_done_at - created_at) FROM timelock")
    events=$(sql "SELECT count(*) FROM openzeppelin_timelock_transactions")
    flows=$(sql "SELECT count(*) FROM timelock_transaction_flows")
    wait_for "SELECT NOT EXISTS (SELECT FROM timelock_transaction_flows WHERE NOT confirmed)"
    told=$(since "$begin")
    insert_floor
    [[ $(sql "SELECT count(*) FROM floor") == "$events" ]] || { echo "bench: the floor has other rows" >&2; exit 1; }
    echo "$events events, $flows flows: stored and folded in $took s, announced after $told s; floor $floor_seconds s"
    report timelock-backfill "$(awk "BEGIN { print $events / $took }")" events/s \
      "$(awk "BEGIN { print $events / $floor_seconds }")" 0.15
    ;;
  refresh)
    flows=$(sized 100000 1000)
    import "$((blocks + 300))"
    wait_for "SELECT history_done_at IS NOT NULL FROM timelock"
    # Flows that were announced, with a time that has come. The refresher finds them at the next block or interval.
    begin=$(seconds_now)
    sql "INSERT INTO timelock_transaction_flows (timelock_standard, chain_id, contract_address, flow_id, generation, status,
           confirmed, initiator_address, eta, due_at, queue_tx_hash, queue_block, queued_at, calls, told)
         SELECT 'openzeppelin', 31337, '$contract', '0x' || lpad(to_hex(n), 64, '0'), 1, 'waiting', true,
                '0x00000000000000000000000000000000005e4de4', 1700000000, to_timestamp(1700000000), '0x' || lpad('', 64, '1'),
                1, to_timestamp(1700000000), 1, '{waiting}'
           FROM generate_series(1, $flows) AS n"
    filled=$(since "$begin")
    begin=$(seconds_now)
    kill "$node_pid"
    wait "$node_pid" || true
    rm -f "$dir/up/up.json"
    up --config "$dir/config.yaml"
    wait_for "SELECT NOT EXISTS (SELECT FROM timelock_transaction_flows WHERE status = 'waiting')"
    sql "SELECT format('%s flows became ready in %s s, from the first to the last event', count(*),
                       round(extract(epoch FROM max(at) - min(at))::numeric, 2))
           FROM event WHERE to_state = 'ready'"
    took=$(sql "SELECT extract(epoch FROM max(at) - min(at)) FROM event WHERE to_state = 'ready'")
    echo "(inserting them took $filled s)"
    awk -v took="$took" 'BEGIN {
      printf "%-30s %8.2f s for 100,000 flows (bar 5.00) %s\n", "flow-refresh", took, (took <= 5 ? "reached" : "MISSED")
      exit !(took <= 5) }' || missed $?
    ;;
  *)
    echo "bench/timelock.sh: unknown benchmark '$what'" >&2
    exit 2
    ;;
esac
exit "$status"
