#!/usr/bin/env bash
# Runs the benchmarks and prints which bars were reached. `./fp bench [filter]` builds and calls this.
#
#   bench/run.sh [filter]     runs each benchmark whose name contains the filter: pg-select, pg-pipeline, http-get,
#                             tx-create, tx-batch, tx-lifecycle, tx-latency, tx-memory, transfer-sync, transfer-pool,
#                             transfer-latency, micro
#
# $FENCEPOST_BUILD (default build/bench) is the build tree with the programs. ROUNDS and SECONDS_PER_ROUND set how long
# the loads run. The exit code is 1 if a bar is missed or a benchmark fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

filter=${1:-}
build=${FENCEPOST_BUILD:-build/bench}/bench
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
matched=0 failed=()

# bench NAME COMMAND…
bench() {
  local name=$1
  shift
  [[ $name == *"$filter"* ]] || return 0
  matched=$((matched + 1))
  printf '\n==> %s\n' "$name"
  if ! "$@" | tee -a "$lines"; then failed+=("$name"); fi
}

# Other programs on the machine take throughput from a pipeline, and hardly any from a program that waits for each round
# trip. So a busy machine favours the slower program.
read -r load _ </proc/loadavg
if awk -v load="$load" -v cpus="$(nproc)" 'BEGIN { exit !(load > cpus / 2) }'; then
  echo "note: the machine is busy (load $load on $(nproc) CPUs); expect lower ratios than on an idle one" >&2
fi

bench pg-select "$build/pg_bench" select
bench pg-pipeline "$build/pg_bench" pipeline
bench http-get bench/http.sh "$build/http_bench_server"
for what in create batch lifecycle latency memory; do
  bench "tx-$what" bench/tx.sh "$what" "${FENCEPOST_BUILD:-build/bench}"
done
for what in sync pool latency; do
  bench "transfer-$what" bench/transfer.sh "$what" "${FENCEPOST_BUILD:-build/bench}"
done
bench micro "$build/micro_bench" --benchmark_color=false

if ((matched == 0)); then
  echo "bench/run.sh: no benchmark's name contains '$filter'" >&2
  exit 2
fi
printf '\n==> bars\n'
grep -F '(bar ' "$lines" || echo "none of these benchmarks has a bar"
if ((${#failed[@]} > 0)); then
  echo "missed or failed: ${failed[*]}"
  exit 1
fi
