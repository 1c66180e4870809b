# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # variables are shared with the script that sources this file
# Functions for the benchmarks of a whole node. Requires: `set -euo pipefail`, and `build` names the build tree.
# `status` is the benchmark's exit code: 0, or 3 if a bar was missed. With BENCH_SMOKE the benchmark only has to run.
# `finish` runs at exit and stops the programs in `started`, in that order.
seconds=${SECONDS_PER_ROUND:-8}
rounds=${ROUNDS:-3}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # when root runs this, the database and nginx run as other users
started=() status=0
finish() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

# await DESCRIPTION COMMAND…: retries the command until it succeeds, for up to 60 s.
await() {
  local awaited=$1 i
  shift
  for ((i = 0; i < 600; i++)); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  echo "bench: gave up after 60 s of waiting for $awaited; the output of the programs:" >&2
  cat "$dir"/*.out >&2
  exit 1
}

json() { sed -n "s|.*\"$1\":\"\{0,1\}\([^\",}]*\).*|\1|p" "$2"; }

# up OPTION…: starts a node with everything it needs; sets node_pid, url, KEY and dsn.
up() {
  "$build/fencepost" up --port 0 --data-dir "$dir/up" "$@" >"$dir/up.out" 2>&1 &
  node_pid=$!
  started=("$node_pid" "${started[@]}")
  await "the node" test -s "$dir/up/up.json"
  url=$(json url "$dir/up/up.json") KEY=$(json apiKey "$dir/up/up.json") dsn=$(json dsn "$dir/up/up.json")
  export KEY
}

# drive SCRIPT ITEMS CONNECTIONS: prints "items per second, p50 of a request in µs". The script reads its settings from
# the environment.
drive() {
  local value p50 errors
  read -r value p50 errors < <(
    HERE=$here ITEMS=$2 wrk -t1 -c"$3" -d"$seconds" --timeout 30s -s "$here/$1" "$url" |
      awk -v items="$2" '/^requests /{printf "%.0f %d %d\n", $2 * items / ($6 / 1e6), $8, $4}'
  )
  if ((errors > 0)); then
    echo "note: $errors requests failed" >&2
    [[ -z ${BENCH_SMOKE:-} ]] || return 1
  fi
  echo "$value $p50"
}

# The processor time that the node has used so far.
cpu_seconds() { awk -v ticks="$(getconf CLK_TCK)" '{ print ($14 + $15) / ticks }' "/proc/$node_pid/stat"; }

sql() { psql -XqAt "$dsn" -c "$1"; }

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# missed CODE: handles the exit code of the awk that compared the numbers. 1 is a missed bar; any other code is a failed
# benchmark.
missed() { if (($1 == 1)); then status=3; else exit "$1"; fi; }

# report NAME VALUE UNIT FLOOR BAR
report() {
  awk -v name="$1" -v value="${2:-0}" -v unit="$3" -v floor="${4:-0}" -v bar="$5" 'BEGIN {
    if (value <= 0 || floor <= 0) { print name ": no value, or no floor" >"/dev/stderr"; exit 2 }
    ratio = value / floor
    printf "%-30s %8.0f %s   floor %8.0f   ratio %.2f (bar %.2f) %s\n", name, value, unit, floor, ratio, bar,
           (ratio >= bar ? "reached" : "MISSED")
    exit !(ratio >= bar)
  }' || missed $?
}

# sized NORMAL SMOKE: prints NORMAL, or SMOKE in a smoke run.
sized() { if [[ -n ${BENCH_SMOKE:-} ]]; then echo "$2"; else echo "$1"; fi; }

