#!/usr/bin/env bash
# shellcheck disable=SC2317  # `await` and the trap call some functions by name
#
# Measures the delivery of events: how many per second, and how old they are on arrival. Events are appended as steps do
# it, in transactions of their own.
#
#   bench/events.sh stream|webhook|nats|idle path/to/build
#
#   stream   GET /api/v1/events: ten streams that get every event, and the age of events at 100 per second
#   webhook  one webhook that gets every event in a request of its own
#   nats     a stream of NATS JetStream on this machine
#   idle     1,000 streams on which nothing happens: memory and processor time of the node
#
# The exit code is 3 if a bar is missed.
set -euo pipefail

what=${1:?usage: bench/events.sh stream|webhook|nats|idle path/to/build}
build=${2:?usage: bench/events.sh stream|webhook|nats|idle path/to/build}
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

# receive PROGRAM ARGUMENT…: starts a receiver, and returns when it is ready.
receive() {
  rm -f "$dir/receiver.out"
  "$build/bench/$1" "${@:2}" >"$dir/receiver.out" &
  receiver=$!
  await "the receiver" grep -q '^ready' "$dir/receiver.out"
}
listen() { receive event_listener "$url/api/v1/events" "$KEY" "$1" "$2"; }

# received NAME BAR: waits for the receiver's end and reports the rate; a bar of 0 is none.
received() {
  wait "$receiver"
  local count took p50 p99
  read -r _ count _ took _ p50 _ p99 _ < <(grep '^events' "$dir/receiver.out")
  awk -v name="$1" -v bar="$2" -v count="$count" -v took="$took" -v p50="$p50" -v p99="$p99" 'BEGIN {
    rate = count / (took > 0 ? took : 0.001)
    printf "%-30s %8.0f events/s", name, rate
    if (bar > 0) printf " (bar %d) %s", bar, (rate >= bar ? "reached" : "MISSED")
    printf "   p50 %.1f ms   p99 %.1f ms\n", p50 / 1000, p99 / 1000
    exit !(rate >= bar) }' || missed $?
}

# Not grep -q: it would end curl early, and the pipe would count as failed.
nats_connected() { curl -s "$url/metrics" | grep -c '^fencepost_nats_connected 1'; }

resident_mb() { awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$node_pid/status"; }

{
  echo "http: {rate_limit_per_second: 1000000, rate_limit_burst: 1000000}"
  echo "log: {level: warn}"
} >"$dir/config.yaml"

if [[ $what == nats ]]; then
  nats-server -a 127.0.0.1 -p -1 -js -sd "$dir/nats" >"$dir/nats.out" 2>&1 &
  started+=($!)
  await "nats-server" grep -q 'Server is ready' "$dir/nats.out"
  nats=nats://127.0.0.1:$(sed -n 's/.*client connections on 127.0.0.1:\([0-9]*\).*/\1/p' "$dir/nats.out")
  echo "nats: {url: ['$nats']}" >>"$dir/config.yaml"
fi
up --config "$dir/config.yaml"

case $what in
  stream)
    listen 1 "$(sized 500 20)"
    append "$(sized 500 20)" 1 "$(sized 100 50)"
    wait "$receiver"
    read -r _ _ _ _ _ p50 _ p99 < <(grep '^events' "$dir/receiver.out")
    awk -v p50="$p50" -v p99="$p99" 'BEGIN {
      printf "%-30s p50 %8.2f ms   p99 %8.2f ms (bar 5.00 for p50) %s\n", "events-stream-age", p50 / 1000, p99 / 1000,
             (p50 <= 5000 ? "reached" : "MISSED")
      exit !(p50 <= 5000) }' || missed $?
    listen 10 "$(sized 50000 500)"
    append "$(sized 250 5)" "$(sized 200 100)"
    received events-stream 20000
    ;;
  webhook)
    receive webhook_receiver "$(sized 30000 500)"
    port=$(awk '/^ready/{print $2}' "$dir/receiver.out")
    curl -sf -o "$dir/answer" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \
      --data "{\"url\":\"http://127.0.0.1:$port/hook\"}" "$url/api/v1/webhooks"
    append "$(sized 300 5)" 100
    received events-webhook 3000
    ;;
  nats)
    await "the stream in NATS" nats_connected
    receive nats_receiver "$nats" 'fencepost.>' "$(sized 50000 500)"
    append "$(sized 250 5)" "$(sized 200 100)"
    received events-nats 0
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
    wait "$receiver"
    ;;
  *)
    echo "bench/events.sh: unknown benchmark '$what'" >&2
    exit 2
    ;;
esac
exit "$status"
