#!/usr/bin/env bash
# Builds, tests and runs Fencepost: see ./fp help
#
# Installs missing packages and calls CMake's presets, which can also be used directly
# (cmake --preset release && cmake --build --preset release).
set -euo pipefail

caller_dir=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

# --- required packages, by purpose ------------------------------------------------------------------------------

packages_build=(clang-19 lld-19 llvm-19 libclang-rt-19-dev cmake ninja-build ccache mold pkg-config)
packages_libraries=(
  libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev libpq-dev libssl-dev libyaml-cpp-dev libcli11-dev
  libspdlog-dev libfmt-dev prometheus-cpp-dev libsimdjson-dev libcurl4-openssl-dev libsecp256k1-dev
  libcrypto++-dev libnats-dev libjemalloc-dev libidn2-dev)
packages_run=(postgresql-15 ca-certificates)
packages_test=(libgtest-dev libgmock-dev python3-aiosmtpd openssl pgbouncer prometheus nats-server postgresql-15-plpgsql-check jq)
packages_lint=(clang-format-19 clang-tidy-19 shellcheck python3)
packages_bench=(libbenchmark-dev nginx-light wrk curl libdb5.3 libicu72 libnsl2) # the last three are for smtp-sink
packages_model=(spin clang-19)

# --- output -----------------------------------------------------------------------------------------------------

# say WHAT: a phase begins; took: it has ended. Off a terminal these two lines may be all there is to see for minutes.
say() {
  printf '\n==> %s\n' "$*"
  phase_begin=$SECONDS
}
took() { printf '    took %d s\n' $((SECONDS - phase_begin)); }
die() {
  printf 'fp: %s\n' "$*" >&2
  exit 1
}

# Runs a command quietly; its output is shown only if it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# Shows the output on a terminal; elsewhere (a log, CI) only if the command fails.
off_terminal_quietly() {
  if [[ -t 1 ]]; then "$@"; else quietly "$@"; fi
}

# --- setup: uses no network if everything is installed ----------------------------------------------------------

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root to install packages: run ./fp setup as root, or install sudo"
  fi
}

missing_packages() {
  local installed
  # dpkg-query fails if it does not know a package; such a package is missing.
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  comm -23 <(printf '%s\n' "$@" | sort) <(sed -n 's/^installed //p' <<<"$installed" | sort)
}

# Debian starts and enables servers that it installs; we only need their programs. While apt runs, a policy denies every
# start (invoke-rc.d asks it), and afterwards the new services are disabled. Servers that were installed before, and a
# policy that the operator has set, are left alone.
policy_mark='# fencepost: no server starts while ./fp installs packages'

install_packages() {
  local policy=/usr/sbin/policy-rc.d new=("$@") had_main_cluster=no own_policy=no status=0
  [[ -e /etc/postgresql/15/main ]] && had_main_cluster=yes
  # A policy with our mark is left over from a killed run: replace it.
  if [[ ! -e $policy ]] || grep -qs "$policy_mark" "$policy"; then
    own_policy=yes
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0)
  # --no-remove: Boost 1.81 conflicts with the headers of 1.74, and the user decides which version to remove.
  { off_terminal_quietly as_root "${apt[@]}" update &&
    off_terminal_quietly as_root "${apt[@]}" install --no-install-recommends --no-remove "${new[@]}"; } || status=$?
  if [[ $own_policy == yes ]]; then
    as_root rm -f "$policy"
    trap - EXIT
  fi
  ((status == 0)) || die "apt could not install: ${new[*]}; see the output above"

  if [[ " ${new[*]} " == *" postgresql-15 "* ]]; then
    # Drop the empty cluster that the package has just created; it has never run.
    if [[ $had_main_cluster == no && -e /etc/postgresql/15/main ]]; then as_root pg_dropcluster 15 main; fi
    disable_service postgresql
  fi
  if [[ " ${new[*]} " == *" nginx-light "* ]]; then disable_service nginx; fi
  if [[ " ${new[*]} " == *" pgbouncer "* ]]; then disable_service pgbouncer; fi
  if [[ " ${new[*]} " == *" prometheus "* ]]; then disable_service prometheus; fi # for promtool
  if [[ " ${new[*]} " == *" nats-server "* ]]; then disable_service nats-server; fi
}

disable_service() {
  if command -v systemctl >/dev/null; then
    quietly as_root systemctl disable "$1" || true # without systemd nothing is enabled
  fi
  # A package may bring a unit of systemd only.
  if [[ -e /etc/init.d/$1 ]] && command -v update-rc.d >/dev/null; then quietly as_root update-rc.d "$1" disable || true; fi
}

need_packages() {
  local why=$1 missing
  shift
  command -v dpkg-query >/dev/null ||
    die "this system is not Debian. Install the equivalents of these packages, with clang 19 or newer: $*"
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  say "installing with apt, $why: ${missing[*]}"
  install_packages "${missing[@]}"
  took
}

foundry_system() {
  case $(uname -m) in
    x86_64) echo linux-amd64 ;;
    aarch64) echo linux-arm64 ;;
    *) echo "linux-$(uname -m)" ;;
  esac
}

json_string() { sed -n "s|.*\"$2\": *\"\([^\"]*\)\".*|\1|p" "$1" | head -n 1; }

# anvil, the local chain, and cast, with which tests compare our transactions: the native programs in npm's packages.
# npm's wrapper packages are not used: a wrapper that dies leaves its child running. The lock file is for amd64 only.
foundry_programs=(anvil cast)
foundry_version=$(json_string package.json @foundry-rs/anvil-linux-amd64)

foundry_dir() { echo "node_modules/@foundry-rs/$1-$(foundry_system)"; }

foundry_installed() {
  local program dir
  for program in "${foundry_programs[@]}"; do
    dir=$(foundry_dir "$program")
    [[ -x $dir/bin/$program && $(json_string "$dir/package.json" version) == "$foundry_version" ]] || return 1
  done
}

# The Debian packages needed to fetch these programs; none if they are installed, or if npm and node are.
packages_node() {
  if foundry_installed; then return; fi
  command -v npm >/dev/null || echo npm
  command -v node >/dev/null || echo nodejs
}

# A request to the registry that hangs is ended after a minute, and made again.
npm_patience=(--fetch-timeout=60000 --fetch-retries=5)

# Packages of npm that only the tests use: clients that they point at Fencepost, and what builds the client for
# TypeScript. `up` does not need them.
npm_dirs=(tests/clients clients/typescript)

# Whether each package that the folder's package.json names is installed, in that version.
npm_installed() {
  local name version
  while read -r name version; do
    [[ $(json_string "$1/node_modules/$name/package.json" version 2>/dev/null) == "$version" ]] || return 1
  done < <(sed -n 's|^    "\([^"]*\)": "\([0-9][0-9.]*\)",\{0,1\}$|\1 \2|p' "$1/package.json")
}

install_clients() {
  local dir
  for dir in "${npm_dirs[@]}"; do
    if npm_installed "$dir"; then continue; fi
    say "installing with npm, for the tests: what $dir/package.json names"
    (cd "$dir" && off_terminal_quietly npm ci --ignore-scripts "${npm_patience[@]}")
    took
  done
}

# need_for_tests WHY [PACKAGE…]: as `need`, and npm's packages with the Node that runs them.
need_for_tests() {
  local why=$1 node=()
  shift
  command -v node >/dev/null || node+=(nodejs)
  command -v npm >/dev/null || node+=(npm) # a test packs the client for TypeScript
  need "$why" "${node[@]}" "$@"
  install_clients
}

# smtp-sink takes the mail of the benchmarks. It is unpacked from Debian's postfix, which is not installed: the package
# would set up a mail server.
smtp_sink_dir=build/postfix

download_postfix() { (cd "$1" && quietly apt-get -q download postfix); }

fetch_smtp_sink() {
  local unpacked=$smtp_sink_dir.new
  if [[ -x $smtp_sink_dir/usr/sbin/smtp-sink ]]; then return; fi
  say "fetching with apt, for the benchmarks: smtp-sink from the package postfix, without installing it"
  rm -rf "$unpacked" "$smtp_sink_dir"
  mkdir -p "$unpacked"
  # The first attempt fails if apt's lists are missing or name a version that Debian has replaced.
  download_postfix "$unpacked" 2>/dev/null || {
    quietly as_root apt-get -q -o DPkg::Lock::Timeout=120 update && download_postfix "$unpacked"
  } || die "apt could not download the package postfix, which has smtp-sink for the benchmarks"
  dpkg -x "$unpacked"/postfix_*.deb "$unpacked"
  rm -f "$unpacked"/postfix_*.deb
  mv "$unpacked" "$smtp_sink_dir"
  took
}

install_foundry() {
  local program dir
  if foundry_installed; then return; fi
  say "installing with npm, for the local chain: ${foundry_programs[*]} $foundry_version"
  if [[ $(foundry_system) == linux-amd64 ]]; then
    off_terminal_quietly npm ci --ignore-scripts "${npm_patience[@]}"
  else
    for program in "${foundry_programs[@]}"; do
      dir=$(foundry_dir "$program")
      mkdir -p "$dir"
      off_terminal_quietly npm pack --pack-destination "$dir" \
        "@foundry-rs/$program-$(foundry_system)@$foundry_version"
      tar -xzf "$dir"/*.tgz -C "$dir" --strip-components 1
      rm -f "$dir"/*.tgz
    done
  fi
  took
}

# need WHY [PACKAGE…]: installs the packages for building, running and testing, and the given ones, together.
need() {
  local why=$1 node
  shift
  mapfile -t node < <(packages_node)
  need_packages "$why" "${packages_build[@]}" "${packages_libraries[@]}" "${packages_run[@]}" "${packages_test[@]}" \
    "${node[@]}" "$@"
  install_foundry
}

cmd_setup() {
  need_for_tests "to build, run, test and check Fencepost" "${packages_lint[@]}"
  say "everything is installed"
}

# --- build ------------------------------------------------------------------------------------------------------

# Off a terminal ninja shows what compilers complain about, and no line per file.
build_preset() {
  local preset=$1 quiet=()
  shift
  if [[ ! -t 1 ]]; then quiet=(-- --quiet); fi
  say "configuring $preset"
  quietly cmake --preset "$preset" || die "cmake --preset $preset failed"
  took
  say "building $preset"
  cmake --build --preset "$preset" "$@" "${quiet[@]}"
  took
}

cmd_build() {
  need "to build, run and test Fencepost"
  build_preset "${1:-release}"
}

cmd_up() {
  need "to build, run and test Fencepost"
  build_preset release --target fencepost
  run_program up "$@"
}

# --- the program itself -----------------------------------------------------------------------------------------

# The nouns of the program, read from its table in cli.cpp: "tx", "signer", …
program_nouns() { sed -n 's/^    {"\([a-z]*\)", ".*", add_[a-z]*},$/\1/p' src/cli/cli.cpp; }

# In a subshell, so that `quietly` can show why the build failed.
build_program() (build_preset release --target fencepost)

# run_program NOUN …: runs in the user's working directory, so that relative paths work, and passes the name by which
# the user started it, so that printed commands can be pasted.
run_program() {
  local program=$PWD/build/release/fencepost
  if [[ ! -x $program ]]; then
    # On stderr: another program may read the output of the program.
    echo "fp: building Fencepost first, which takes a few minutes" >&2
    { need "to build, run and test Fencepost" && quietly build_program; } >&2
  fi
  cd "$caller_dir"
  FENCEPOST_PROGRAM_NAME=$0 exec "$program" "$@"
}

# --- test -------------------------------------------------------------------------------------------------------

passed=0 failed=0 skipped=0

# Shortens ctest's report where there is no terminal (CI): failed tests, and a line for every tenth of the tests.
show_progress() {
  awk '
    match($0, /^ *[0-9]+\/[0-9]+ Test +#/) {
      split($1, at, "/")
      tenth = int(10 * at[1] / at[2])
      if ($0 !~ / Passed +[0-9.]+ sec/) print
      else if (tenth != last) print "  " $1
      last = tenth
      fflush(); next
    }
    /^ +Start +[0-9]+: / || /^Internal ctest changing/ || /^Test project/ || /^$/ { next }
    /^Label Time Summary:/ || / sec\*proc \(/ { next }
    { print; fflush() }'
}

junit_count() { grep -o -m 1 "$2=\"[0-9]*\"" "$1" | head -n 1 | tr -dc 0-9; }

# run_suite NAME BUILD_DIR LABEL FILTER [COMMAND…]: the tests with that label, under that command.
run_suite() {
  local name=$1 build=$2 label=$3 filter=$4 report status=0 total bad skip gone jobs
  shift 4
  say "suite: $name"
  report=$PWD/$build/tests-${label//|/-}.xml
  rm -f "$report"
  jobs=$(nproc)
  if (($# > 0)); then jobs=$((jobs + 1)); fi # tests with servers spend time waiting
  local ctest=("$@" ctest --test-dir "$build" -L "^($label)\$" -j "$jobs" --output-on-failure
    --output-junit "$report" --no-tests=ignore)
  if [[ -n $filter ]]; then ctest+=(-R "$filter"); fi
  if [[ -t 1 ]]; then
    "${ctest[@]}" --progress || status=$?
  else
    "${ctest[@]}" | show_progress || status=$?
  fi
  total=0 bad=0 skip=0
  if [[ -s $report ]]; then
    total=$(junit_count "$report" tests)
    bad=$(junit_count "$report" failures)
    skip=$(($(junit_count "$report" skipped) + $(junit_count "$report" disabled)))
    # ctest counts a test whose program is missing as skipped; count it as failed.
    gone=$(grep -c '<skipped message="Unable to find executable"' "$report" || true)
    bad=$((bad + gone)) skip=$((skip - gone))
  fi
  # A suite that did not run, or that ctest itself reports as failed, must not count as success.
  if ((total == 0)) && [[ -z $filter ]]; then
    echo "no test ran in this suite" >&2
    failed=$((failed + 1))
  elif ((status != 0 && bad == 0)); then
    echo "ctest failed (exit code $status)" >&2
    failed=$((failed + 1))
  fi
  passed=$((passed + total - bad - skip))
  failed=$((failed + bad))
  skipped=$((skipped + skip))
  took
}

# count_check FUNCTION: counts as one test.
count_check() {
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

cmd_test() {
  local filter=${1:-}
  need_for_tests "to build, run and test Fencepost" "${packages_bench[@]}" clang-format-19 shellcheck
  fetch_smtp_sink
  if [[ -z $filter ]]; then
    count_check check_format
    count_check check_scripts
  fi
  with_benchmarks
  # Each test runs once: tests with servers in the release build, tests without servers under the sanitizers.
  build_preset release --target fencepost with_postgres pg_tests integration_tests benchmarks
  build_preset asan --target unit_tests
  run_suite "unit tests (address and undefined-behaviour sanitizers)" build/asan unit "$filter"
  run_suite "PostgreSQL and integration tests (release)" build/release "pg|integration" "$filter" \
    build/release/tests/support/with_postgres
  run_suite "benchmarks, for a second each" build/release bench "$filter"
  if ((passed + failed + skipped == 0)); then die "no test matches '$filter'"; fi
  echo
  if ((skipped > 0)); then
    echo "$passed passed, $failed failed, $skipped skipped"
  else
    echo "$passed passed, $failed failed"
  fi
  ((failed == 0))
}

# --- bench, model, lint, fmt, clean -----------------------------------------------------------------------------

# The benchmarks are built in the release tree, so that nothing is compiled twice; CMake's cache stores the option.
with_benchmarks() {
  say "configuring release with benchmarks"
  quietly cmake --preset release -DFENCEPOST_BENCH=ON || die "cmake --preset release failed"
  took
}

cmd_bench() {
  need "to build Fencepost and to measure it against others" "${packages_bench[@]}"
  fetch_smtp_sink
  with_benchmarks
  build_preset release --target benchmarks
  exec bench/run.sh "${1:-}"
}

cmd_model() {
  need_packages "to check the model of the protocol" "${packages_model[@]}"
  exec model/run.sh "$@"
}

# cpp_files [FIND'S ARGUMENT…]
cpp_files() { find src tests bench \( -name '*.cpp' -o -name '*.hpp' \) "$@"; }

# The sources that differ from the last commit.
changed_sources() {
  {
    git diff --name-only --diff-filter=d HEAD
    git ls-files --others --exclude-standard
  } | grep -E '^(src|tests|bench)/.*\.cpp$' || true
}

check_format() {
  local status=0
  say "formatting"
  cpp_files -print0 | xargs -0 -n 50 -P "$(nproc)" clang-format-19 --dry-run -Werror || status=$?
  took
  return $status
}

check_scripts() {
  local scripts status=0
  say "scripts"
  mapfile -t scripts < <(find fp .ci/run bench cmake model -name fp -o -name run -o -name '*.sh')
  shellcheck "${scripts[@]}" || status=$?
  took
  return $status
}

cmd_lint() {
  local files
  need "to build and check Fencepost" "${packages_lint[@]}" libbenchmark-dev
  check_format
  check_scripts
  mapfile -t files < <(changed_sources)
  [[ ${1:-} == --all ]] || ((${#files[@]} > 0)) || return 0
  # A tree in which each file is compiled on its own. clang-tidy needs no more of it than the precompiled headers.
  build_preset lint --target fencepost_pch fencepost_test_pch
  if [[ ${1:-} == --all ]]; then
    say "clang-tidy on all files"
    python3 cmake/tidy.py build/lint
  else
    say "clang-tidy on ${#files[@]} files"
    printf '%s\0' "${files[@]}" |
      xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build/lint --quiet --warnings-as-errors='*'
  fi
  took
}

cmd_fmt() {
  need_packages "to format the code" clang-format-19
  cpp_files -print0 | xargs -0 clang-format-19 -i
}

cmd_clean() { rm -rf build; }

cmd_help() {
  cat <<'END'
./fp setup            installs missing packages with apt and npm
./fp build [preset]   builds with a CMake preset: release (default), debug, asan, tsan
./fp up [options]     builds if needed and starts Fencepost with a private database and a local chain
./fp test [filter]    checks formatting and scripts, builds and runs all tests; or only those whose name matches
                      the regular expression
./fp bench [filter]   builds and runs the benchmarks
./fp model            checks the model of the transaction protocol (docs/correctness.md), exhaustively
./fp lint [--all]     checks formatting and scripts, and runs clang-tidy on changed files (or all)
./fp fmt              formats the code
./fp clean            removes the build directory
./fp help             shows this help
END
  printf '\nCommands of the program itself, which is built first if it is missing (see ./fp help tx):\n'
  program_nouns | grep -v '^up$' | paste -sd ' ' | fold -s -w 100 | sed 's/^/  /'
  cat <<'END'

A command first installs missing packages that it needs (./fp setup installs them ahead of time).
END
}

main() {
  local command=${1:-help}
  if (($# > 0)); then shift; fi
  case $command in
    setup | build | up | test | bench | model | lint | fmt | clean) "cmd_$command" "$@" ;;
    help) if (($# > 0)); then run_program help "$@"; else cmd_help; fi ;;
    -h | --help) cmd_help ;;
    version | --version) run_program --version ;;
    *)
      if [[ $'\n'$(program_nouns)$'\n' == *$'\n'"$command"$'\n'* ]]; then run_program "$command" "$@"; fi
      cmd_help >&2
      die "unknown command '$command'"
      ;;
  esac
}

main "$@"
