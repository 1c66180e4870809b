#!/usr/bin/env bash
# shellcheck disable=SC2317  # `await` and the trap call some functions by name
#
# Compares creating and finishing transactions with pgbench inserting the same row into the same table of the same
# PostgreSQL, one commit each, with 64 clients.
#
#   bench/tx.sh create|batch|lifecycle|busy|rpc|delivery|work|latency|memory path/to/build
#
#   create     POST /api/v1/tx over 64 connections, for one signer and for 1,000
#   batch      POST /api/v1/tx/batch, 200 transactions per request, over 4 connections, 1,000 signers
#   lifecycle  from creation to CONFIRMED: 2,000 signers, 16 in flight each, 2 confirmations, a block every 100 ms
#   busy       POST /api/v1/tx over 64 connections for 100 signers, while all of it is sent and mined, a block per second
#   rpc        eth_sendTransaction through POST /rpc/{chainId}, which answers when the transaction is signed, compared with
#              POST /api/v1/tx under the same load: 256 connections, 100 signers, all of it sent and mined
#   delivery   how much tx-create loses when every event is delivered to a stream
#   work       how long the queries take with which the workers find their work: under load, with a snapshot that is held
#              open, with 50,000 open transactions, and with 1,000,000 that wait for a nonce
#   latency    one create at a time on an idle node, compared with one pgbench client
#   memory     the node's largest resident size with 1,000,000 finished and 50,000 open transactions in the database
#
# Prints one line per comparison with the ratio to the floor. The exit code is 3 if a ratio misses its bar.
set -euo pipefail

what=${1:?usage: bench/tx.sh create|batch|lifecycle|busy|rpc|delivery|work|latency|memory path/to/build}
build=${2:?usage: bench/tx.sh create|batch|lifecycle|busy|rpc|delivery|work|latency|memory path/to/build}
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# start SIGNERS IN_FLIGHT BLOCK_INTERVAL_MS
start() {
  "$build/bench/stub_chain_server" "$3" >"$dir/chain.out" &
  started+=($!)
  await "the stub chain" grep -q '^port ' "$dir/chain.out"
  chain_url=http://127.0.0.1:$(awk '/^port /{print $2}' "$dir/chain.out")
  local i
  {
    echo "dev: true"
    echo "http: {rate_limit_per_second: 1000000, rate_limit_burst: 1000000, max_body_bytes: 4194304}"
    echo "log: {level: warn}"
    echo "tx: {max_in_flight: $2}"
    echo "confirmations: {required: 2}"
    echo "chains: [{name: stub, chain_id: 31337, rpc_urls: ['$chain_url'], poll_interval: 100ms}]"
    echo "keystore:"
    echo "  dev_keys:"
    for ((i = 1; i <= $1; i++)); do printf "    - '0x%064x'\n" "$i"; done
  } >"$dir/config.yaml"
  up --config "$dir/config.yaml"
  curl -s -H "Authorization: Bearer $KEY" "$url/api/v1/signers" | grep -o '"signer":"0x[0-9a-f]*"' | cut -d'"' -f4 >"$dir/all"
  head -n 1 "$dir/all" >"$dir/one"
}

# The floor: the row that a create writes, and nothing else.
cat >"$dir/insert.sql" <<'SQL'
\set n random(1, 1000000000)
INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, payload, payload_hash, gas_limit)
VALUES (gen_random_uuid(), 99, '0x0000000000000000000000000000000000000001', gen_random_uuid()::text, :n,
        '{"to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "gas": "21000", "value": "1"}',
        '\x0000000000000000000000000000000000000000000000000000000000000000', 21000);
SQL

# pgbench_tps CLIENTS: prints inserts per second.
pgbench_tps() {
  pgbench -n -M prepared -c "$1" -j 1 -T "$seconds" -f "$dir/insert.sql" "$dsn" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p'
}

# load SIGNERS_FILE ITEMS CONNECTIONS: prints "transactions created per second, p50 of a request in µs"
load() { SIGNERS=$1 RUN=$RANDOM$RANDOM drive tx_create.lua "$2" "$3"; }

# compare NAME SIGNERS_FILE ITEMS CONNECTIONS BAR: runs ours and the floor in alternating rounds, reports the medians.
compare() {
  local i
  rm -f "$dir/ours" "$dir/floor"
  load "$2" "$3" "$4" >/dev/null # warm up: leases, plans, pages
  for ((i = 0; i < rounds; i++)); do
    load "$2" "$3" "$4" | cut -d' ' -f1 >>"$dir/ours"
    pgbench_tps 64 >>"$dir/floor"
  done
  report "$1" "$(median <"$dir/ours")" "tx/s" "$(median <"$dir/floor")" "$5"
}

# send_load: as `load`, over JSON-RPC. A call that fails is answered with 200, so the node's counter tells.
send_load() {
  local failed
  failed=$(counted 'jsonrpc_calls_total{chain="stub",class="send",result="error"')
  SIGNERS=$1 drive tx_rpc.lua 1 "$2"
  failed=$(($(counted 'jsonrpc_calls_total{chain="stub",class="send",result="error"') - failed))
  if ((failed > 0)); then
    echo "note: $failed sends failed" >&2
    return 1
  fi
}

# lifecycle COUNT: creates COUNT transactions in batches of 200, waits until all have ended, prints their rate.
lifecycle() {
  local count=$1 begin i requests
  requests=$((count / 200))
  rm -rf "$dir/bodies"
  mkdir "$dir/bodies"
  awk -v run="$RANDOM$RANDOM" -v requests="$requests" -v dir="$dir/bodies" '
    { signers[NR] = $1 }
    END {
      for (r = 1; r <= requests; r++) {
        file = dir "/" r
        printf "{\"items\":[" >file
        for (i = 1; i <= 200; i++) {
          n = (r - 1) * 200 + i
          printf "%s{\"signer\":\"%s\",\"requestId\":\"%s-%d\",\"payload\":{\"to\":\"0x70997970c51812dc3a010c7d01b50e0d17dc79c8\",\"value\":\"1\",\"gas\":21000}}",
            i == 1 ? "" : ",", signers[n % NR + 1], run, n >file
        }
        printf "]}" >file
        close(file)
      }
    }' "$dir/all"
  begin=$(date +%s.%N)
  for ((i = 1; i <= requests; i++)); do echo "$dir/bodies/$i"; done |
    xargs -P 4 -I{} curl -sf -o "$dir/answer" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \
      --data-binary @{} "$url/api/v1/tx/batch"
  await "all transactions to finish" all_ended
  awk -v begin="$begin" -v end="$(date +%s.%N)" -v count="$count" 'BEGIN { printf "%.0f\n", count / (end - begin) }'
}

# Polls seldom and by index: the query takes time from the cores that are measured.
all_ended() {
  sleep 0.4
  [[ $(sql "SET enable_seqscan = off; SELECT NOT EXISTS (SELECT FROM tx_open WHERE chain_id = 31337) AND
            NOT EXISTS (SELECT FROM managed_tx WHERE chain_id = 31337 AND nonce IS NULL)") == t ]]
}

all_led() {
  [[ $(sql "SELECT count(*) FROM signer_lease WHERE expires_at < now()") == 0 ]]
}

# calls_per_tx COUNT: reports the JSON-RPC calls per transaction, not counting its broadcast.
calls_per_tx() {
  awk -v count="$1" 'function total(text, all, n, parts, i, pair) {
      gsub(/[{}"]/, "", text); n = split(text, parts, ","); all = 0
      for (i = 1; i <= n; i++) { split(parts[i], pair, ":"); if (pair[1] != "eth_sendRawTransaction") all += pair[2] }
      return all
    }
    { seen[NR] = total($0) }
    END {
      if (seen[2] <= seen[1]) exit 2
      ratio = (seen[2] - seen[1]) / count
      printf "%-30s %8.3f per transaction beside the broadcast (bar 0.200) %s\n", "tx-rpc-calls", ratio,
             (ratio <= 0.2 ? "reached" : "MISSED")
      exit !(ratio <= 0.2)
    }' <(cat "$dir/calls.before"; echo) <(cat "$dir/calls.after"; echo) || missed $?
}

# fill_tables ENDED NUMBERED WAITING: gives each signer transactions with nonces up to NUMBERED, of which the first ENDED
# have ended and the others are tracked, and WAITING ones without a nonce.
fill_tables() {
  sql "INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit)
       SELECT gen_random_uuid(), 31337, s.signer, 'r' || n, n, CASE WHEN n < $2 THEN n END,
              '{\"to\": \"0x70997970c51812dc3a010c7d01b50e0d17dc79c8\"}', '', 21000
         FROM signer_lease AS s, generate_series(0, $2 + $3 - 1) AS n"
  sql "INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, tx_hash, first_submitted_at, next_resubmit_at,
                            fencing_token)
       SELECT chain_id, signer, nonce, tx_id, 'TRACKING', '0x' || lpad(replace(tx_id::text, '-', ''), 64, '0'),
              clock_timestamp(), clock_timestamp() + interval '1 hour', 0
         FROM managed_tx WHERE nonce >= $1"
  sql "INSERT INTO tx_ended (tx_id, chain_id, state, retry_count, tx_hash, receipt_block, receipt_hash)
       SELECT tx_id, chain_id, 'CONFIRMED', 0, '0x' || lpad(replace(tx_id::text, '-', ''), 64, '0'), 0, '0x'
         FROM managed_tx WHERE nonce < $1"
  sql "INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fencing_token)
       SELECT chain_id, tx_hash, tx_id, 1, 'original', decode(repeat('ab', 110), 'hex'), 0
         FROM (SELECT chain_id, tx_hash, tx_id FROM tx_open UNION ALL SELECT chain_id, tx_hash, tx_id FROM tx_ended) AS t"
  sql "UPDATE signer_nonce_cursor
          SET next_nonce = $2, next_creation = $2 + $3, first_waiting = $2, first_unmined = $1"
  sql "VACUUM ANALYZE managed_tx" # now, and not while the queries are measured
  sql "CHECKPOINT"
}

# query_times TITLE: prints how long each query took, on average, with which the workers have found their work since the
# last call. With an empty title it prints nothing.
query_times() {
  curl -s "$url/metrics" | sed -n 's/^fencepost_pg_statement_duration_seconds_\(sum\|count\){statement="\(tx_[a-z_]*\)"} /\2 \1 /p' \
    >"$dir/times.now"
  [[ -z $1 ]] || awk -v title="$1" '
    NR == FNR { before[$1, $2] = $3; next }
    { now[$1, $2] = $3 - before[$1, $2]; names[$1] = 1 }
    END {
      split("due_submits due_submits_of due_resubmits stale_receipts match_attempts mined_between lowest_mined open_heads signers_waiting backlogs", wanted, " ")
      printf "%s\n", title
      for (i = 1; i in wanted; i++) {
        name = "tx_" wanted[i]
        if (now[name, "count"] > 0) printf "  %-28s %8.2f ms\n", name, 1000 * now[name, "sum"] / now[name, "count"]
      }
    }' "$dir/times.before" "$dir/times.now"
  mv "$dir/times.now" "$dir/times.before"
}

# counted METRIC: prints its present value, summed over all labels.
counted() { curl -s "$url/metrics" | awk -v name="$1" 'index($1, "fencepost_" name) == 1 { sum += $2 } END { print sum + 0 }'; }

# budget NAME SIGNERS_FILE: reports the commits per created transaction under load. Each commit is one round trip.
budget() {
  local commits created
  commits=$(counted tx_create_commits_total) created=$(counted 'tx_create_total{chain="stub",result="created"')
  load "$2" 1 64 >/dev/null
  awk -v name="$1" -v commits=$(($(counted tx_create_commits_total) - commits)) \
    -v created=$(($(counted 'tx_create_total{chain="stub",result="created"') - created)) 'BEGIN {
      ratio = commits / created
      printf "%-30s %8.3f commits and round trips per create (bar 0.050) %s\n", name, ratio,
             (ratio <= 0.05 ? "reached" : "MISSED")
      exit !(ratio <= 0.05)
    }' || missed $?
}

case $what in
  create)
    start "$(sized 1000 10)" 1 3600000 # no block is mined: only creation is measured
    compare tx-create-1-signer "$dir/one" 1 64 1.2
    compare tx-create-1000 "$dir/all" 1 64 1.2
    budget tx-create-budget "$dir/all"
    ;;
  batch)
    start "$(sized 1000 10)" 1 3600000 # no block is mined: only creation is measured
    compare tx-batch "$dir/all" 200 4 2.0
    ;;
  latency)
    start 1 1 3600000 # a window of one that stays full: nothing is sent, so no other work runs
    load "$dir/one" 1 1 >/dev/null
    read -r _ p50 _ < <(load "$dir/one" 1 1)
    floor=$(pgbench_tps 1)
    awk -v p50="$p50" -v tps="$floor" 'BEGIN {
      if (p50 <= 0 || tps <= 0) exit 2
      floor = 1e6 / tps
      printf "%-30s %8.0f us p50   one commit %8.0f us   ratio %.2f (bar 2.50) %s\n", "tx-create-idle", p50, floor,
             p50 / floor, (p50 / floor <= 2.5 ? "reached" : "MISSED")
      exit !(p50 / floor <= 2.5)
    }' || missed $?
    ;;
  lifecycle)
    start "$(sized 2000 20)" 16 100
    count=$(sized 60000 400)
    lifecycle "$(sized 20000 200)" >/dev/null # warm up: leases, plans, pages
    floor=$(pgbench_tps 64)
    curl -s "$chain_url/calls" >"$dir/calls.before"
    report tx-lifecycle "$(lifecycle "$count")" "tx/s" "$floor" 0.4
    curl -s "$chain_url/calls" >"$dir/calls.after"
    calls_per_tx "$count"
    ;;
  busy)
    start "$(sized 100 10)" 0 1000
    load "$dir/all" 1 64 >/dev/null # warm up: leases, plans, pages
    seconds=$((seconds * $(sized 3 1)))
    confirmed=$(counted tx_create_to_final_seconds_count)
    begin=$(date +%s.%N)
    read -r created _ < <(load "$dir/all" 1 64)
    awk -v name=tx-busy -v created="$created" -v confirmed=$(($(counted tx_create_to_final_seconds_count) - confirmed)) \
      -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN {
        if (created <= 0) exit 2
        printf "%-30s %8.0f created/s   %8.0f confirmed/s at the same time\n", name, created, confirmed / (end - begin) }'
    ;;
  rpc)
    start "$(sized 100 10)" 0 1000
    connections=$(sized 256 16)
    send_load "$dir/all" "$connections" >/dev/null # warm up: leases, plans, pages
    for ((i = 0; i < rounds; i++)); do
      await "all transactions to finish" all_ended # the backlog of one load must not slow the next
      load "$dir/all" 1 "$connections" | cut -d' ' -f1 >>"$dir/floor"
      await "all transactions to finish" all_ended
      send_load "$dir/all" "$connections" >"$dir/sent"
      cut -d' ' -f1 "$dir/sent" >>"$dir/ours"
      cut -d' ' -f2 "$dir/sent" >>"$dir/p50"
    done
    printf '%-30s %8.1f ms p50 until the hash is answered\n' tx-rpc-latency "$(awk -v us="$(median <"$dir/p50")" 'BEGIN { print us / 1000 }')"
    report tx-rpc "$(median <"$dir/ours")" "tx/s" "$(median <"$dir/floor")" 0.8
    ;;
  delivery)
    start "$(sized 1000 10)" 1 3600000 # no block is mined: only creation is measured
    load "$dir/all" 1 64 >/dev/null # warm up: leases, plans, pages
    for ((i = 0; i < rounds; i++)); do
      sql "ALTER TABLE event DISABLE TRIGGER event_is_announced"
      load "$dir/all" 1 64 | cut -d' ' -f1 >>"$dir/without"
      sql "ALTER TABLE event ENABLE TRIGGER event_is_announced"
      "$build/bench/event_listener" "$url/api/v1/events" "$KEY" 1 1000000000 >"$dir/listener.out" &
      listener=$!
      await "the stream" grep -q '^ready' "$dir/listener.out"
      load "$dir/all" 1 64 | cut -d' ' -f1 >>"$dir/with"
      kill "$listener"
      wait "$listener" || true
      rm -f "$dir/listener.out"
    done
    report tx-create-while-delivering "$(median <"$dir/with")" "tx/s" "$(median <"$dir/without")" 0.9
    ;;
  work)
    start "$(sized 100 10)" 16 "$(sized 1000 100)"
    lifecycle "$(sized 20000 200)" >/dev/null # warm up: leases, plans, pages
    query_times ""
    lifecycle "$(sized 40000 200)" >/dev/null
    query_times "tx-work: under load"
    sql "CREATE TABLE held AS SELECT 1"
    psql -XqAt "$dsn" -c "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM held; SELECT pg_sleep(3600)" >"$dir/held.out" 2>&1 &
    started+=($!)
    for ((i = 0; i < $(sized 5 1); i++)); do lifecycle "$(sized 40000 200)" >/dev/null; done
    query_times ""
    lifecycle "$(sized 40000 200)" >/dev/null
    query_times "tx-work: under load, after $(sized 200000 200) transactions under a snapshot that was held all the time"
    kill "${started[-1]}"
    unset 'started[-1]'
    sql "TRUNCATE managed_tx, tx_open, tx_ended, tx_attempt, tx_receipt"
    fill_tables 0 "$(sized 500 20)" 0
    sleep "$(sized 3 1)"
    query_times ""
    sleep "$(sized 12 2)"
    query_times "tx-work: $(sized 50000 200) open transactions"
    sql "TRUNCATE managed_tx, tx_open, tx_ended, tx_attempt, tx_receipt"
    fill_tables 0 "$(sized 500 20)" "$(sized 10000 20)"
    sleep "$(sized 3 1)"
    query_times ""
    sleep "$(sized 12 2)"
    query_times "tx-work: $(sized 50000 200) open transactions, and $(sized 1000000 200) that wait for a nonce"
    ;;
  memory)
    start "$(sized 50 2)" 1 3600000
    fill_tables "$(sized 20000 100)" "$(sized 21000 110)" 0
    await "the node to hold every lease" all_led
    sleep "$(sized 45 1)" # each worker runs several times
    awk '/^VmHWM/ { mb = $2 / 1024
      printf "%-30s %8.0f MB (bar 300) %s\n", "tx-memory", mb, (mb <= 300 ? "reached" : "MISSED"); exit !(mb <= 300) }' \
      "/proc/$node_pid/status" || missed $?
    ;;
  *)
    echo "bench/tx.sh: unknown benchmark '$what'" >&2
    exit 2
    ;;
esac
exit "$status"
