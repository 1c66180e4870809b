#!/usr/bin/env bash
# Measures mail from the event to the mail server: a node finds the subscriptions, stores a row for each mail, sends it to
# smtp-sink on the same machine, and stores the outcome.
#
#   bench/mail.sh queue path/to/build
#
# Two shapes: many people follow a few flows, and each of many flows has one follower. Prints mails per second from the
# events' commit to the last stored outcome; the bar is 500. The exit code is 3 if a bar is missed.
set -euo pipefail

what=${1:?usage: bench/mail.sh queue path/to/build}
build=${2:?usage: bench/mail.sh queue path/to/build}
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ $what != queue ]]; then
  echo "bench/mail.sh: unknown benchmark '$what'" >&2
  exit 2
fi

# smtp-sink cannot choose a port itself.
port=$((20000 + RANDOM % 20000))
postfix=$here/../build/postfix/usr
sink=("$postfix/sbin/smtp-sink")
if ((EUID == 0)); then sink+=(-u nobody); fi # it refuses to run as root
LD_LIBRARY_PATH=$postfix/lib/postfix "${sink[@]}" "127.0.0.1:$port" 1000 >"$dir/sink.out" 2>&1 &
started=("$!")
cat >"$dir/config.yaml" <<YAML
log: {level: warn}
email:
  smtp_url: smtp://127.0.0.1:$port
  from: no-reply@example.org
  rate_per_second: 1000000
  domain_rate_per_second: 1000000
YAML
up --config "$dir/config.yaml"

followers=$(sized 500 20) flows=$(sized 20 2) own_flows=$(sized 5000 20)
# Chain 1 is not configured, so no scanner touches these contracts. Contract 0 has flows with many followers; of contract 1
# each flow has its initiator as the only one.
sql "INSERT INTO timelock_scan (chain_id, block_number, block_hash, block_timestamp) VALUES (1, 1000, '0x', now());
     INSERT INTO timelock (chain_id, contract_address, standard, remark, from_block, history_next, history_last, created_by)
     SELECT 1, '0x' || lpad(to_hex(n), 40, '0'), 'openzeppelin', 'c' || n, 0, 1, 0, 'bench' FROM generate_series(0, 1) AS n;
     INSERT INTO openzeppelin_timelocks (chain_id, contract_address, min_delay)
     SELECT chain_id, contract_address, 100 FROM timelock;
     INSERT INTO users (wallet_address)
     SELECT '0x' || lpad(to_hex(n), 40, '0') FROM generate_series(1, greatest($followers, $own_flows)) AS n;
     INSERT INTO emails (email) SELECT 'user' || id || '@example.org' FROM users ORDER BY id;
     INSERT INTO user_emails (user_id, email_id, is_verified)
     SELECT u.id, e.id, true FROM users AS u JOIN emails AS e ON e.email = 'user' || u.id || '@example.org';
     INSERT INTO user_email_subscriptions
            (user_email_id, timelock_standard, chain_id, contract_address, notify_on, scope, since_block, since_timestamp)
     SELECT ue.id, 'openzeppelin', 1, '0x' || lpad(c::text, 40, '0'), '[\"waiting\"]',
            CASE c WHEN 0 THEN 'all' ELSE 'initiator' END, 0, now()
       FROM user_emails AS ue, generate_series(0, 1) AS c
      WHERE c = 1 OR ue.user_id <= $followers;
     INSERT INTO timelock_transaction_flows
            (timelock_standard, chain_id, contract_address, flow_id, generation, status, confirmed, initiator_address, eta,
             due_at, queue_tx_hash, queue_block, queued_at, calls, told)
     SELECT 'openzeppelin', 1, '0x' || lpad(c::text, 40, '0'), '0x' || encode(sha256(n::text::bytea), 'hex'), 1, 'waiting',
            true, '0x' || lpad(to_hex(n), 40, '0'), 2000000000, to_timestamp(2000000000),
            '0x' || encode(sha256(('q' || n)::bytea), 'hex'), n, now(), 1, '{waiting}'
       FROM generate_series(0, 1) AS c, generate_series(1, CASE c WHEN 0 THEN $flows ELSE $own_flows END) AS n;
     ANALYZE"

# shellcheck disable=SC2317  # await calls it
mails_left() { [[ $(sql "SELECT count(*) FROM email_send_logs WHERE send_status = 'success'") -ge $1 ]]; }

# announce CONTRACT: appends an event for each flow of the contract.
announce() {
  sql "INSERT INTO event (subject, type, data)
       SELECT concat_ws('/', 'timelock/openzeppelin/1', contract_address, flow_id), 'FlowStatusChanged',
              jsonb_build_object('standard', 'openzeppelin', 'chainId', 1, 'contractAddress', contract_address, 'flowId',
                flow_id, 'generation', 1, 'statusFrom', NULL, 'statusTo', 'waiting', 'txHash', queue_tx_hash,
                'blockNumber', queue_block, 'initiatorAddress', initiator_address, 'viaAddress', NULL, 'changedAt',
                to_char(queued_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), 'retracted', false,
                'retraction', 0)
         FROM timelock_transaction_flows
        WHERE contract_address = '0x' || lpad('$1', 40, '0')"
}

# queue NAME CONTRACT MAILS: how long the mails of that contract's flows take.
queue() {
  local before
  before=$(sql "SELECT count(*) FROM email_send_logs")
  announce "$2"
  await "the mails" mails_left $((before + $3))
  sql "SELECT count(*) / extract(epoch FROM max(sent_at) -
                                 (SELECT max(at) FROM event WHERE data->>'contractAddress' = '0x' || lpad('$2', 40, '0')))
         FROM email_send_logs
        WHERE contract_address = '0x' || lpad('$2', 40, '0')" |
    awk -v name="mail-queue-$1" -v mails="$3" '{
      printf "%-30s %8.0f mails/s (bar 500) %s   %d mails\n", name, $1, ($1 >= 500 ? "reached" : "MISSED"), mails
      exit !($1 >= 500) }' || missed $?
}

queue followers 0 $((flows * followers))
queue initiators 1 "$own_flows"
exit "$status"
