#!/usr/bin/env bash
# Checks tx_protocol.pml with Spin, exhaustively. `./fp model` calls this.
#
#   model/run.sh                     runs every check, prints one line each; exit code 1 if a result is not as expected
#   model/run.sh --story VARIANT     prints how a broken variant goes wrong, step by step
#
# Every promise must hold in every state within the bounds. Every broken variant must break the promise named below.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

compiler=${CC:-clang-19}
model=$PWD/tx_protocol.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# VARIANT TRANSACTIONS FAULTS PROMISE: the smallest bounds that show the counterexample, and the promise it breaks.
broken=(
  "NO_LOCK                1 1 no_stale_write"
  "PLAIN_UPDATE_TAKEOVER  1 1 no_stale_write"
  "NO_TERMINATE           1 1 all_finish"
  "STALE_SNAPSHOT         1 1 one_nonce_for_a_transaction"
  "BROADCAST_BEFORE_CLAIM 1 2 one_hash_for_a_nonce_is_ever_out"
  "UNCLAIMED_RESEND       1 2 only_what_is_stored_is_mined"
  "UNCOUNTED_CLAIMS       1 3 only_what_is_stored_is_mined"
  "REFUSAL_STAYS          1 2 only_what_is_stored_is_mined"
  "RELEASE_UNKNOWN        2 1 only_what_is_stored_is_mined"
  "RELEASE_LOWER          2 1 no_gap_below_the_cursor"
)

defines=() # the macros of the last build
seconds=0  # the processor time of the last search

# build "SPIN DEFINES" "COMPILER DEFINES": builds a checker for the model, $work/pan. It uses no bitstate hashing and
# no compaction: the checker stores every state, and more than 2,000 MB is an error.
build() {
  read -ra defines <<<"$1"
  local how
  read -ra how <<<"$2"
  (
    cd "$work"
    rm -f ./*.trail
    spin "-P$compiler -E -x c" "${defines[@]}" -a "$model" >spin.log || { cat spin.log >&2; exit 1; }
    "$compiler" -O2 -w -DMEMLIM=2000 "${how[@]}" -o pan pan.c
  )
}

# search [PAN OPTIONS]: runs the checker and writes $work/log. A search that runs out of depth or memory is incomplete.
# Ignore the exit code: pan exits with 0 with and without errors.
search() {
  local TIMEFORMAT=%U
  seconds=$({ time (cd "$work" && ./pan -b -m100000 "$@" >log 2>&1); } 2>&1) || true
}

is_complete() { grep -q 'errors: ' "$work/log" && ! grep -q 'Search not completed' "$work/log"; }
found_nothing() { is_complete && grep -q 'errors: 0$' "$work/log"; }
broke() {
  if [[ $1 == all_finish ]]; then
    grep -q '^pan:1: acceptance cycle' "$work/log"
  else
    grep -q "^pan:1: assertion violated .*\\b$1\\b" "$work/log"
  fi
}
# True if some run takes every step of the model. The ends of endless loops do not count: no run reaches them.
took_every_step() { ! grep -E '^\s.*, state [0-9]+, ' "$work/log" | grep -qv '"-end-"'; }

wrong=0

# report NAME TRANSACTIONS FAULTS VERDICT…
report() {
  local name=$1 txs=$2 faults=$3 states memory
  shift 3
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$work/log")
  memory=$(sed -n 's/^ *\([0-9.]*\)\ttotal actual memory usage/\1/p' "$work/log")
  printf '%-24s %3d %6d %10d %8.1f %6.0f  %s\n' \
    "$name" "$txs" "$faults" "${states:-0}" "$seconds" "${memory:-0}" "$*"
}

fail() {
  report "$@"
  sed 's/^/    /' "$work/log" | head -n 40
  wrong=$((wrong + 1))
}

# safety TRANSACTIONS FAULTS
safety() {
  build "-DTXS=$1 -DFAULTS=$2" -DSAFETY
  search -w24
  if ! found_nothing; then
    fail safety "$1" "$2" "WRONG: not proven, see the log below"
  elif ! took_every_step; then
    fail safety "$1" "$2" "WRONG: a step of the model is never taken"
  else
    report safety "$1" "$2" "holds"
  fi
}

# liveness TRANSACTIONS FAULTS: checks under weak fairness
liveness() {
  build "-DTXS=$1 -DFAULTS=$2 -DLIVENESS" -DNFAIR=3
  search -a -f -w22
  if found_nothing; then report liveness "$1" "$2" "holds"; else fail liveness "$1" "$2" "WRONG: not proven, see the log below"; fi
}

# find_counterexample VARIANT TRANSACTIONS FAULTS PROMISE: finds the shortest one for safety, any one for liveness
find_counterexample() {
  if [[ $4 == all_finish ]]; then
    build "-D$1 -DTXS=$2 -DFAULTS=$3 -DLIVENESS" -DNFAIR=3
    search -a -f
  else
    build "-D$1 -DTXS=$2 -DFAULTS=$3" "-DSAFETY -DBFS"
    search
  fi
}

must_break() {
  find_counterexample "$@"
  if broke "$4"; then
    report "$1" "$2" "$3" "breaks $4, as it must"
  else
    fail "$1" "$2" "$3" "WRONG: it should break $4 and does not"
  fi
}

story() {
  local variant
  for variant in "${broken[@]}"; do
    read -ra variant <<<"$variant"
    [[ ${variant[0]} == "$1" ]] || continue
    find_counterexample "${variant[@]}"
    grep '^pan:1: ' "$work/log"
    (cd "$work" && spin "-P$compiler -E -x c" "${defines[@]}" -B -t -k tx_protocol.pml.trail "$model") |
      sed -e '/^spin: /d' -e '/^Never claim/d' -e '/^#processes/,$d' -e '/^ltl /d' -e 's/^ *//'
    return
  done
  echo "model/run.sh: unknown variant '$1'; expected one of: $(printf '%s\n' "${broken[@]}" | awk '{ print $1 }' | xargs)" >&2
  exit 2
}

if [[ ${1:-} == --story ]]; then
  story "${2:-}"
  exit
fi

printf '%-24s %3s %6s %10s %8s %6s  %s\n' check txs faults states seconds MB verdict
safety 3 2
safety 2 3
liveness 3 1
liveness 2 2
for variant in "${broken[@]}"; do
  read -ra variant <<<"$variant"
  must_break "${variant[@]}"
done
if ((wrong > 0)); then
  echo "$wrong results are not as expected"
  exit 1
fi
