#!/usr/bin/env bash
# shellcheck disable=SC2317  # `await` and the trap call some functions by name
#
# Measures the delivery of events: how many per second, and how old they are on arrival. Events are appended as steps do
# it, in transactions of their own.
#
#   bench/events.sh stream|idle path/to/build
#
#   stream   GET /api/v1/events: ten streams that get every event, and the age of events at 100 per second
#   idle     1,000 streams on which nothing happens: memory and processor time of the node
#
# The exit code is 3 if a bar is missed.
set -euo pipefail

what=${1:?usage: bench/events.sh stream|idle path/to/build}
build=${2:?usage: bench/events.sh stream|idle path/to/build}
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >"$dir/append.sql" <<'SQL'
INSERT INTO event (type, subject, data)
SELECT 'TxAccepted', 'tx/' || gen_random_uuid(),
       jsonb_build_object('txId', gen_random_uuid(), 'chainId', 31337, 'signer',
                          '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266', 'requestId', 'bench', 'nonce', n)
  FROM generate_series(1, :rows) AS n;
SQL

# append COMMITS ROWS [RATE]: appends that many events per commit, at most RATE commits per second.
append() { pgbench -n -c 1 -t "$1" -D rows="$2" ${3:+-R "$3"} -f "$dir/append.sql" "$dsn" >/dev/null 2>&1; }

# listen CONNECTIONS EVENTS: starts the listener, and returns when its streams have begun.
listen() {
  rm -f "$dir/listener.out"
  "$build/bench/event_listener" "$url/api/v1/events" "$KEY" "$1" "$2" >"$dir/listener.out" &
  listener=$!
  await "the streams" grep -q '^ready' "$dir/listener.out"
}

cpu_seconds() { awk '{ print ($14 + $15) / '"$(getconf CLK_TCK)"' }' "/proc/$node_pid/stat"; }
resident_mb() { awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$node_pid/status"; }

{
  echo "http: {rate_limit_per_second: 1000000, rate_limit_burst: 1000000}"
  echo "log: {level: warn}"
} >"$dir/config.yaml"
up --config "$dir/config.yaml"

case $what in
  stream)
    listen 1 "$(sized 500 20)"
    append "$(sized 500 20)" 1 "$(sized 100 50)"
    wait "$listener"
    read -r _ _ _ _ _ p50 _ p99 < <(grep '^events' "$dir/listener.out")
    awk -v p50="$p50" -v p99="$p99" 'BEGIN {
      printf "%-30s p50 %8.2f ms   p99 %8.2f ms (bar 5.00 for p50) %s\n", "events-stream-age", p50 / 1000, p99 / 1000,
             (p50 <= 5000 ? "reached" : "MISSED")
      exit !(p50 <= 5000) }' || missed $?
    listen 10 "$(sized 50000 500)"
    append "$(sized 250 5)" "$(sized 200 100)"
    wait "$listener"
    read -r _ count _ took _ p50 _ p99 < <(grep '^events' "$dir/listener.out")
    awk -v count="$count" -v took="$took" -v p50="$p50" -v p99="$p99" 'BEGIN {
      rate = count / took
      printf "%-30s %8.0f events/s in total (bar 20000) %s   p50 %.1f ms   p99 %.1f ms\n", "events-stream", rate,
             (rate >= 20000 ? "reached" : "MISSED"), p50 / 1000, p99 / 1000
      exit !(rate >= 20000) }' || missed $?
    ;;
  idle)
    before_mb=$(resident_mb)
    listen "$(sized 1000 50)" 1
    after_mb=$(resident_mb) cpu=$(cpu_seconds) begin=$(date +%s.%N)
    sleep "$(sized 30 1)"
    awk -v streams="$(sized 1000 50)" -v before="$before_mb" -v after="$after_mb" -v cpu="$cpu" -v now="$(cpu_seconds)" \
      -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN {
        printf "%-30s %8.1f kB of memory per stream   %.2f %% of a processor in all\n", "events-idle",
               (after - before) * 1024 / streams, 100 * (now - cpu) / (end - begin) }'
    append 1 1
    wait "$listener"
    ;;
  *)
    echo "bench/events.sh: unknown benchmark '$what'" >&2
    exit 2
    ;;
esac
exit "$status"
