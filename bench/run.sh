#!/usr/bin/env bash
# Runs the benchmarks and prints which bars were reached. `./fp bench [filter]` builds and calls this.
#
#   bench/run.sh [--smoke] [filter]   runs each benchmark whose name contains the filter: pg-select, pg-pipeline,
#                                     http-get, tx-create, tx-batch, tx-lifecycle, tx-busy, tx-rpc, tx-work,
#                                     tx-latency, tx-memory, transfer-sync, transfer-pool, transfer-latency, events-stream,
#                                     events-webhook, events-nats, events-idle, timelock-backfill, timelock-refresh,
#                                     timelock-flows, mail-match, mail-send, mail-queue, micro
#
# --smoke runs each benchmark for about a second with little data: `./fp test` does that, so that the benchmarks keep
# working. The numbers mean nothing then, and a missed bar is no failure.
#
# $BENCH_BUILD (default build/release) is the build tree with the programs. ROUNDS and SECONDS_PER_ROUND set how long the
# loads run. The exit code is 1 if a bar is missed or a benchmark fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export BENCH_SMOKE=
if [[ ${1:-} == --smoke ]]; then
  BENCH_SMOKE=yes
  export ROUNDS=1 SECONDS_PER_ROUND=1
  shift
fi
filter=${1:-}
build=${BENCH_BUILD:-build/release}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
matched=0 failed=() missed=()

# bench NAME COMMAND…: exit code 3 of the command means that it ran and missed a bar.
bench() {
  local name=$1 code=0
  shift
  [[ $name == *"$filter"* ]] || return 0
  matched=$((matched + 1))
  printf '\n==> %s\n' "$name"
  "$@" | tee -a "$lines" || code=$?
  case $code in
    0) ;;
    3) missed+=("$name") ;;
    *) failed+=("$name") ;;
  esac
}

# Other programs on the machine take throughput from a pipeline, and hardly any from a program that waits for each round
# trip. So a busy machine favours the slower program.
read -r load _ </proc/loadavg
if [[ -z $BENCH_SMOKE ]] && awk -v load="$load" -v cpus="$(nproc)" 'BEGIN { exit !(load > cpus / 2) }'; then
  echo "note: the machine is busy (load $load on $(nproc) CPUs); expect lower ratios than on an idle one" >&2
fi

bench pg-select "$build/bench/pg_bench" select
bench pg-pipeline "$build/bench/pg_bench" pipeline
bench http-get bench/http.sh "$build/bench/http_bench_server"
for what in create batch lifecycle busy rpc delivery work latency memory; do bench "tx-$what" bench/tx.sh "$what" "$build"; done
for what in sync pool latency; do bench "transfer-$what" bench/transfer.sh "$what" "$build"; done
bench timelock-flows bench/timelock_flows.sh flows "$build"
for what in stream webhook nats idle; do bench "events-$what" bench/events.sh "$what" "$build"; done
for what in backfill refresh; do bench "timelock-$what" bench/timelock.sh "$what" "$build"; done
bench mail-match "$build/bench/mail_match_bench"
bench mail-send "$build/bench/mail_bench" send
bench mail-queue bench/mail.sh queue "$build"
bench micro "$build/bench/micro_bench" --benchmark_color=false ${BENCH_SMOKE:+--benchmark_min_time=0.001}

if ((matched == 0)); then
  echo "bench/run.sh: no benchmark's name contains '$filter'" >&2
  exit 2
fi
if [[ -n $BENCH_SMOKE ]]; then missed=(); fi
printf '\n==> bars\n'
grep -F '(bar ' "$lines" || echo "none of these benchmarks has a bar"
if ((${#missed[@]} > 0)); then echo "missed: ${missed[*]}"; fi
if ((${#failed[@]} > 0)); then echo "failed: ${failed[*]}"; fi
((${#missed[@]} + ${#failed[@]} == 0))
