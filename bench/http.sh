#!/usr/bin/env bash
# How fast the HTTP server answers a small JSON GET, against nginx serving a static file of the same size, both
# driven by wrk with 64 connections in alternating rounds.
#
#   bench/http.sh path/to/http_bench_server
#
# Prints one line with the medians and their ratio; the exit code is 1 when the ratio is under the bar.
set -euo pipefail

server=${1:?usage: bench/http.sh path/to/http_bench_server}
bar=${BAR:-0.50}
rounds=${ROUNDS:-3}
seconds=${SECONDS_PER_ROUND:-5}

dir=$(mktemp -d)
server_pid=
nginx_pid=
finish() {
  if [ -n "$server_pid" ]; then kill "$server_pid" 2>/dev/null || true; fi
  if [ -n "$nginx_pid" ]; then kill "$nginx_pid" 2>/dev/null || true; fi
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

# await "what" command…: up to 10 s.
await() {
  local what=$1 i
  shift
  for ((i = 0; i < 200; i++)); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.05
  done
  echo "bench/http.sh: $what did not come up" >&2
  cat "$dir"/*.err "$dir"/error.log >&2 2>/dev/null || true
  exit 1
}

fetch() {
  curl -sf "http://127.0.0.1:$1/small"
}

"$server" 0 >"$dir/server.out" 2>"$dir/server.err" &
server_pid=$!
await "the server" grep -q '^port ' "$dir/server.out"
server_port=$(awk '/^port /{print $2}' "$dir/server.out")
await "the server" fetch "$server_port"

# nginx cannot be asked for any free port, so one where nobody answers is tried.
free_port() {
  local port
  while port=$((20000 + RANDOM % 30000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo "$port"
}
nginx_port=$(free_port)
mkdir "$dir/www"
fetch "$server_port" >"$dir/www/small"
cat >"$dir/nginx.conf" <<CONF
daemon off;
worker_processes auto;
pid $dir/nginx.pid;
error_log $dir/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  sendfile on;
  tcp_nopush on;
  default_type application/json;
  client_body_temp_path $dir/body;
  proxy_temp_path $dir/proxy;
  fastcgi_temp_path $dir/fastcgi;
  uwsgi_temp_path $dir/uwsgi;
  scgi_temp_path $dir/scgi;
  server { listen 127.0.0.1:$nginx_port; root $dir/www; }
}
CONF
chmod 755 "$dir" # nginx's workers may run as another user
nginx -c "$dir/nginx.conf" 2>"$dir/nginx.err" &
nginx_pid=$!
await nginx fetch "$nginx_port"

load() {
  wrk -t2 -c64 -d"${seconds}s" "http://127.0.0.1:$1/small" >"$dir/wrk.out"
  if grep -qE 'Non-2xx|Socket errors' "$dir/wrk.out"; then
    cat "$dir/wrk.out" >&2
    exit 1
  fi
  awk '/^Requests\/sec:/{print $2}' "$dir/wrk.out"
}

median() {
  sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

for ((i = 0; i < rounds; i++)); do
  load "$server_port" >>"$dir/ours"
  load "$nginx_port" >>"$dir/theirs"
done

awk -v ours="$(median <"$dir/ours")" -v theirs="$(median <"$dir/theirs")" -v bar="$bar" 'BEGIN {
  ratio = ours / theirs
  printf "http-get: %.0f req/s, nginx %.0f req/s, ratio %.2f (bar %.2f)\n", ours, theirs, ratio, bar
  exit ratio < bar
}'
