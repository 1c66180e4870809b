#!/usr/bin/env bash
# Compares the HTTP server answering a small JSON GET with nginx serving a static file of the same size. wrk drives both
# with 64 connections, in alternating rounds.
#
#   bench/http.sh path/to/http_bench_server
#
# Prints one line with the medians and their ratio. The exit code is 3 if the ratio is below the bar.
set -euo pipefail

server=${1:?usage: bench/http.sh path/to/http_bench_server}
bar=${BAR:-0.50}
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch() {
  curl -sf "http://127.0.0.1:$1/small"
}

"$server" 0 >"$dir/server.out" 2>&1 &
started+=($!)
await "the server" grep -q '^port ' "$dir/server.out"
server_port=$(awk '/^port /{print $2}' "$dir/server.out")
await "the server" fetch "$server_port"

# nginx cannot choose a free port itself, so pick a random port on which no program answers.
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
error_log $dir/nginx.out;
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
nginx -c "$dir/nginx.conf" 2>"$dir/start.out" &
started+=($!)
await nginx fetch "$nginx_port"

load() {
  wrk -t2 -c64 -d"${seconds}s" "http://127.0.0.1:$1/small" >"$dir/wrk.out"
  if grep -qE 'Non-2xx|Socket errors' "$dir/wrk.out"; then
    cat "$dir/wrk.out" >&2
    exit 1
  fi
  awk '/^Requests\/sec:/{print $2}' "$dir/wrk.out"
}

for ((i = 0; i < rounds; i++)); do
  load "$server_port" >>"$dir/ours"
  load "$nginx_port" >>"$dir/nginx"
done
report http-get "$(median <"$dir/ours")" "req/s" "$(median <"$dir/nginx")" "$bar"
exit "$status"
