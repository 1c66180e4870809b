#!/usr/bin/env bash
# shellcheck disable=SC2317  # `await` calls some functions by name
#
# Compares transfers with two other programs on the same PostgreSQL:
#   F1  pgbench with 16 clients: one function call per transfer (two updates and an insert, accounts locked in order)
#   F2  graphile-worker: one job that does nothing per transfer
#
#   bench/transfer.sh sync|pool|latency path/to/build
#
#   sync     POST /api/v1/transfers, mode sync, over 16 and 64 connections: random members, one hot payer, opposite
#            pairs. Payers are government accounts, then members with no cooldown and a limit that is never reached. Also
#            prints the node's processor time per request
#   pool     POST /api/v1/transfers/batch over 16 and 64 connections, 3,200 transfers in flight, from the first request
#            to the last completion. The same shapes and payers. Also prints which share of the row updates was HOT
#   latency  one transfer in the pool at a time on an idle node, from creation until another session sees it completed
#
# Prints one line per comparison with the ratio to its floor. The exit code is 3 if a ratio is below its bar.
set -euo pipefail

what=${1:?usage: bench/transfer.sh sync|pool|latency path/to/build}
build=${2:?usage: bench/transfer.sh sync|pool|latency path/to/build}
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

start() {
  cat >"$dir/config.yaml" <<YAML
http: {rate_limit_per_second: 1000000, rate_limit_burst: 1000000, max_body_bytes: 4194304}
log: {level: warn}
YAML
  up --config "$dir/config.yaml"
  # Guild 1: government accounts. Guild 2: members without a cooldown, with a daily limit that is never reached.
  sql "SELECT economy.fn_set_settings(g, '{\"cooldown_seconds\": 0, \"daily_limit\": 1000000000000}', 'bench', 'bench')
         FROM generate_series(1, 2) AS g" >/dev/null
  sql "SELECT economy.fn_mint(g, m, 1000000000, 'bench', 'bench') FROM generate_series(1, 2) AS g, generate_series(1, 1000) AS m" >/dev/null
  sql "SELECT economy.fn_set_account_kind(1, m, 'government', 'bench', 'bench') FROM generate_series(1, 1000) AS m" >/dev/null
  sql "CREATE TABLE floor_account (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0)) WITH (fillfactor = 50);
       INSERT INTO floor_account SELECT n, 1000000000 FROM generate_series(1, 1000) AS n;
       CREATE TABLE floor_ledger (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, debit bigint, credit bigint,
                                  amount bigint, at timestamptz DEFAULT clock_timestamp());
       CREATE FUNCTION floor_transfer(p_from bigint, p_to bigint, p_amount bigint) RETURNS bigint LANGUAGE plpgsql AS \$\$
       DECLARE
         v_id bigint;
       BEGIN
         PERFORM FROM floor_account WHERE id IN (p_from, p_to) ORDER BY id FOR NO KEY UPDATE;
         UPDATE floor_account SET balance = balance - p_amount WHERE id = p_from;
         UPDATE floor_account SET balance = balance + p_amount WHERE id = p_to;
         INSERT INTO floor_ledger (debit, credit, amount) VALUES (p_from, p_to, p_amount) RETURNING id INTO v_id;
         RETURN v_id;
       END \$\$;
       ANALYZE"
}

# The same shapes as in transfer.lua.
cat >"$dir/random.sql" <<'SQL'
\set from random(1, 1000)
\set to 1 + (:from + random(0, 998)) % 1000
SELECT floor_transfer(:from, :to, 1);
SQL
cat >"$dir/hot.sql" <<'SQL'
\set to random(2, 1000)
SELECT floor_transfer(1, :to, 1);
SQL
cat >"$dir/opposite.sql" <<'SQL'
\set to random(1, 2)
SELECT floor_transfer(3 - :to, :to, 1);
SQL

# floor SHAPE: prints F1's transfers per second.
floor() {
  pgbench -n -M prepared -c 16 -j 1 -T "$seconds" -f "$dir/$1.sql" "$dsn" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p'
}

# load MODE SHAPE GUILD ITEMS CONNECTIONS: prints the transfers created per second.
load() { MODE=$1 SHAPE=$2 GUILD=$3 drive transfer.lua "$4" "$5" | cut -d' ' -f1; }

none_open() {
  [[ $(sql "SELECT count(*) FROM economy.transfer_work") == 0 ]]
}

# pool SHAPE GUILD CONNECTIONS: creates transfers in batches, waits for their completion, prints transfers per second.
pool() {
  local before after begin
  before=$(sql "SELECT count(*) FROM economy.transactions")
  begin=$(date +%s.%N)
  load pool "$1" "$2" $((3200 / $3)) "$3" >"$dir/created"
  await "all transfers to finish" none_open
  after=$(sql "SELECT count(*) FROM economy.transactions")
  awk -v n=$((after - before)) -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN { printf "%.0f\n", n / (end - begin) }'
}

# compare NAME SHAPE BAR COMMAND…: runs the command and F1 in alternating rounds, and reports the medians.
compare() {
  local name=$1 shape=$2 bar=$3 i
  shift 3
  rm -f "$dir/ours" "$dir/floor"
  for ((i = 0; i < rounds; i++)); do
    "$@" >>"$dir/ours"
    floor "$shape" >>"$dir/floor"
  done
  report "$name" "$(median <"$dir/ours")" "tx/s" "$(median <"$dir/floor")" "$bar"
}

# Reports the number of deadlocks: the bar is none.
deadlocks() {
  sql "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()" | awk '{
    printf "%-30s %8d (bar 0) %s\n", "deadlocks", $1, ($1 == 0 ? "reached" : "MISSED"); exit $1 != 0 }' || missed $?
}

# node_cpu CONNECTIONS: the node's processor time for each synchronous transfer of random members.
node_cpu() {
  local begin before
  before=$(sql "SELECT count(*) FROM economy.transactions") begin=$(cpu_seconds)
  load sync random 2 1 "$1" >/dev/null
  awk -v connections="$1" -v cpu="$(cpu_seconds)" -v begin="$begin" -v before="$before" \
    -v after="$(sql "SELECT count(*) FROM economy.transactions")" 'BEGIN {
      if (after <= before) exit 2
      us = (cpu - begin) * 1e6 / (after - before)
      printf "%-30s %8.1f us of the node per request (bar 45) %s\n", "sync-cpu-" connections, us,
             (us <= 45 ? "reached" : "MISSED")
      exit us > 45 }' || missed $?
}

# The kind of payers, by guild.
payers=("" government members)
guilds=(1 2) loads=(16 64)
declare -A sync_bars=([16]=0.8 [64]=1.2)
if [[ -n ${BENCH_SMOKE:-} ]]; then guilds=(2) loads=(16); fi

# graphile COUNT: prints graphile-worker's jobs per second, without batches. Installs it on first use.
graphile() {
  [[ -d $here/node_modules/graphile-worker ]] || (cd "$here" && npm ci --ignore-scripts >/dev/null)
  DATABASE_URL=$dsn JOBS=$1 node "$here/graphile.mjs"
}

case $what in
  sync)
    start
    load sync random 1 1 16 >/dev/null # warm up: plans, pages
    for guild in "${guilds[@]}"; do
      for connections in "${loads[@]}"; do
        compare "sync-random-${payers[guild]}-$connections" random "${sync_bars[$connections]}" \
          load sync random "$guild" 1 "$connections"
        compare "sync-hot-${payers[guild]}-$connections" hot 2.0 load sync hot "$guild" 1 "$connections"
        compare "sync-opposite-${payers[guild]}-$connections" opposite 0.8 load sync opposite "$guild" 1 "$connections"
      done
    done
    for connections in "${loads[@]}"; do node_cpu "$connections"; done
    deadlocks
    ;;
  pool)
    start
    pool random 1 16 >/dev/null
    for guild in "${guilds[@]}"; do
      for connections in "${loads[@]}"; do
        compare "pool-random-${payers[guild]}-$connections" random 1.5 pool random "$guild" "$connections"
        compare "pool-hot-${payers[guild]}-$connections" hot 2.0 pool hot "$guild" "$connections"
        compare "pool-opposite-${payers[guild]}-$connections" opposite 1.5 pool opposite "$guild" "$connections"
      done
    done
    # A smoke run fetches nothing from the network.
    if [[ -z ${BENCH_SMOKE:-} || -d $here/node_modules/graphile-worker ]]; then
      report pool-graphile "$(pool random 1 16)" "tx/s" "$(graphile "$(sized 20000 200)")" 3.0
    fi
    sql "SELECT format('%-22s %s %% of updates were HOT', relname, 100 * n_tup_hot_upd / nullif(n_tup_upd, 0))
           FROM pg_stat_user_tables WHERE schemaname = 'economy' AND relname IN ('pending_transfers', 'accounts')"
    sql "SELECT format('%-22s %s MB, %s rows, of which dead %s %%', relname, pg_relation_size(relid) >> 20,
                       n_live_tup + n_dead_tup, 100 * n_dead_tup / greatest(n_live_tup + n_dead_tup, 1))
           FROM pg_stat_user_tables
          WHERE schemaname = 'economy' AND relname IN ('pending_transfers', 'transactions', 'transfer_work')"
    deadlocks
    ;;
  latency)
    start
    # A transfer counts as completed when another session sees it, after the commit. That session polls all the time.
    sql "CREATE TABLE seen (id bigint PRIMARY KEY, transfer_id uuid NOT NULL, seen_at timestamptz NOT NULL);
         CREATE PROCEDURE watch(v_last bigint, p_count integer) LANGUAGE plpgsql AS \$\$
         BEGIN
           LOOP
             INSERT INTO seen
             SELECT t.id, t.transfer_id, clock_timestamp()
               FROM economy.transactions AS t
              WHERE t.kind = 'transfer' AND t.id > v_last;
             IF FOUND THEN SELECT max(id) INTO v_last FROM seen; END IF;
             COMMIT;
             EXIT WHEN (SELECT count(*) FROM seen) >= p_count;
             PERFORM pg_sleep(0.0005);
           END LOOP;
         END \$\$"
    last=$(sql "SELECT max(id) FROM economy.transactions") count=$(sized 200 20)
    PGOPTIONS="-c synchronous_commit=off" sql "CALL watch($last, $count)" &
    watcher=$!
    for ((i = 0; i < count; i++)); do
      curl -s -o /dev/null -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$url/api/v1/transfers" \
        -d '{"guildId":"1","initiatorId":"1","targetId":"2","amount":"1","mode":"pool"}'
    done
    await "all transfers to finish" none_open
    wait "$watcher"
    sql "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM s.seen_at - p.created_at)) * 1000
           FROM economy.pending_transfers AS p JOIN seen AS s USING (transfer_id)" | awk '{
      if ($1 <= 0) exit 2
      printf "%-30s %8.2f ms p50 (bar 4.00) %s\n", "pool-idle", $1, ($1 <= 4 ? "reached" : "MISSED"); exit !($1 <= 4) }' || missed $?
    ;;
  *)
    echo "bench/transfer.sh: unknown benchmark '$what'" >&2
    exit 2
    ;;
esac
exit "$status"
