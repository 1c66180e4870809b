#!/usr/bin/env bash
# Measures pages of GET /api/v1/flows over 1,000,000 flows: 100 contracts, 1,000 initiators, a flow in ten open.
#
#   bench/timelock_flows.sh flows path/to/build
#
# One client asks for one page of 50 flows after the other. Prints p50 and p99 of each kind of page; the bar is a p99 of
# 10 ms. The exit code is 3 if a page is slower.
set -euo pipefail

what=${1:?usage: bench/timelock_flows.sh flows path/to/build}
build=${2:?usage: bench/timelock_flows.sh flows path/to/build}
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ $what != flows ]]; then
  echo "bench/timelock_flows.sh: unknown benchmark '$what'" >&2
  exit 2
fi

flows=$(sized 1000000 5000) requests=$(sized 500 20)
cat >"$dir/config.yaml" <<YAML
http: {rate_limit_per_second: 1000000, rate_limit_burst: 1000000}
log: {level: warn}
YAML
up --config "$dir/config.yaml"
# Chain 1 is not configured, so no scanner touches these contracts. The scanner of the development chain has none.
sql "INSERT INTO timelock_scan (chain_id, block_number, block_hash, block_timestamp) VALUES (1, 1000, '0x', now());
     INSERT INTO timelock (chain_id, contract_address, standard, remark, from_block, history_next, history_last, created_by)
     SELECT 1, '0x' || lpad(to_hex(n), 40, '0'), CASE WHEN n % 2 = 0 THEN 'compound' ELSE 'openzeppelin' END, 'c' || n, 0, 1,
            0, 'bench'
       FROM generate_series(0, 99) AS n;
     INSERT INTO timelock_transaction_flows
            (timelock_standard, chain_id, contract_address, flow_id, generation, status, confirmed, initiator_address, eta,
             due_at, queue_tx_hash, queue_block, queued_at, execute_tx_hash, executed_at, calls, told)
     SELECT CASE WHEN n % 2 = 0 THEN 'compound' ELSE 'openzeppelin' END, 1, '0x' || lpad(to_hex(n % 100), 40, '0'),
            '0x' || encode(sha256(n::text::bytea), 'hex'), 1,
            CASE WHEN n % 10 = 0 THEN 'waiting' WHEN n % 10 = 1 THEN 'ready' ELSE 'executed' END, true,
            '0x' || lpad(to_hex(n / 100 % 1000), 40, '0'), 1600000000 + n, to_timestamp(1600000000 + n),
            '0x' || encode(sha256(('q' || n)::bytea), 'hex'), n, to_timestamp(1500000000 + n),
            CASE WHEN n % 10 > 1 THEN '0x' || encode(sha256(('e' || n)::bytea), 'hex') END,
            CASE WHEN n % 10 > 1 THEN to_timestamp(1700000000 + n) END, 1, '{waiting}'
       FROM generate_series(0, $flows - 1) AS n"
sql "VACUUM ANALYZE timelock_transaction_flows"

address() { printf '0x%040x' "$1"; }

# pages NAME QUERY: asks for the page again and again over one connection, and reports the times of the server.
pages() {
  local name=$1 i
  for ((i = 0; i < requests; i++)); do printf 'url = "%s/api/v1/flows?%s"\noutput = /dev/null\n' "$url" "$2"; done >"$dir/urls"
  curl -s -K "$dir/urls" -H "Authorization: Bearer $KEY" -w '%{http_code} %{time_starttransfer}\n' >"$dir/times"
  if grep -qv '^200 ' "$dir/times"; then
    echo "bench/timelock_flows.sh: $name was refused" >&2
    exit 1
  fi
  cut -d' ' -f2 "$dir/times" | sort -n | awk -v name="flows-$name" '{ v[NR] = $1 * 1000 } END {
    if (NR == 0) exit 2
    p50 = v[int((NR + 1) / 2)]; p99 = v[int(NR * 0.99 + 0.999)]
    printf "%-30s p50 %6.2f ms   p99 %6.2f ms (bar 10.00) %s\n", name, p50, p99, (p99 <= 10 ? "reached" : "MISSED")
    exit !(p99 <= 10) }' || missed $?
}

pages all "limit=50"
pages waiting-eta "status=waiting&sort=eta"
pages contract "contract=$(address 8)"
pages contract-eta "contract=$(address 8)&sort=eta&status=waiting,ready"
pages initiator "initiator=$(address 7)"
pages search-address "q=$(address 8)"
pages search-hash "q=0x$(printf 5000 | sha256sum | cut -d' ' -f1)"
middle=$((1500000000 + flows / 2))
pages cursor "cursor=n.$middle.0x$(printf '%064d' 0).1.$(address 8).1"
exit "$status"
