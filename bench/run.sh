#!/usr/bin/env bash
# Runs the benchmarks and sums up which bars were reached. `./fp bench [filter]` builds and calls this.
#
#   bench/run.sh [filter]     those of pg-select, pg-pipeline, http-get, tx-create, tx-batch, tx-lifecycle,
#                             tx-latency, tx-memory, transfer-sync, transfer-pool, transfer-latency and micro whose
#                             name contains the filter
#
# The programs are taken from $FENCEPOST_BUILD (build/bench). ROUNDS and SECONDS_PER_ROUND change how long the loads
# run. The exit code is 1 when a bar is missed or a benchmark failed.
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

# Throughput shares the machine with whoever else is on it; latency hardly does. A busy machine so flatters the slow side.
read -r load _ </proc/loadavg
if awk -v load="$load" -v cpus="$(nproc)" 'BEGIN { exit !(load > cpus / 2) }'; then
  echo "note: the machine is busy (load $load on $(nproc) CPUs); expect lower ratios than on a calm one" >&2
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
grep -F '(bar ' "$lines" || echo "none among these"
if ((${#failed[@]} > 0)); then
  echo "missed or failed: ${failed[*]}"
  exit 1
fi
