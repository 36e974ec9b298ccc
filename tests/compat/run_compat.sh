#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/compat/run_compat.sh [options]
#
# Other Debian suites: makes a root folder for each (mmdebstrap), builds UCI in it against its own UCX with its own
# compiler, checks docs/call-surface.md against its headers, and runs the unit tests, the programs that call UCX (tests/ucp)
# and the MPI programs under its Open MPI and MPICH: preloaded, and from UCX 1.22 on as a UCX module too. Ends with one
# table, in Markdown for docs/compatibility.md, and the line "N passed, N failed, N skipped". Needs root and, for the
# first run, the network; the folders are kept (1.5 GB each).
#
#   --suites LIST   Debian suites (trixie,sid)
#   --roots DIR     where the root folders are (UCI_COMPAT_DIR, or /var/cache/uci-compat)
#   --tls LIST      transports, separated by spaces ("posix,self posix,cma,self tcp,self")
#   --filter REGEX  only MPI programs whose name matches
#   --renew         make the root folders anew
#   --help          this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

suites=trixie,sid
roots=${UCI_COMPAT_DIR:-/var/cache/uci-compat}
all_tls='posix,self posix,cma,self tcp,self'
filter='.*'
renew=
logs=$uci_root/build/compat-logs
packages=(libucx-dev ucx-utils openmpi-bin libopenmpi-dev mpich libmpich-dev gcc libc6-dev meson ninja-build pkg-config
          libxxhash-dev libisal-dev libcriterion-dev libjansson-dev git python3 python3-mpi4py strace ca-certificates)
passed=0 failed=0 skipped=0

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --suites)  suites=${2:?}; shift ;;
        --roots)   roots=${2:?}; shift ;;
        --tls)     all_tls=${2:?}; shift ;;
        --filter)  filter=${2:?}; shift ;;
        --renew)   renew=1 ;;
        -h|--help) usage_of "$0"; exit ;;
        *)         die "unknown option '$1' (see --help)" ;;
        esac
        shift
    done
}

# make_root SUITE: unless it is there and whole.
make_root() {
    local suite=$1 root=$roots/$1
    [ -z "$renew" ] || rm -rf --one-file-system "$root"
    [ ! -e "$root/.uci-complete" ] || return 0
    command -v mmdebstrap >/dev/null || die "mmdebstrap is missing (Debian: apt-get install mmdebstrap)"
    rm -rf --one-file-system "$root"
    mkdir -p "$roots"
    must_step "making a root folder for $suite" "$logs/$suite-root.log" mmdebstrap --variant=minbase --mode=root \
        --include="$(IFS=,; say "${packages[*]}")" --aptopt='Acquire::Check-Valid-Until "false"' \
        --aptopt='Apt::Install-Recommends "false"' "$suite" "$root"
    touch "$root/.uci-complete"
}

# in_root SUITE COMMAND: a shell command in the suite, with the sources in /uci, read-only. The mounts are in a name space
# of their own and go with it; build is the one place written to.
in_root() {
    local root=$roots/$1
    mkdir -p "$root/uci" "$root/build"
    # shellcheck disable=SC2016  # that shell expands them
    unshare --mount --propagation private bash -euc '
        mount -t proc proc "$0/proc"
        mount --bind /sys "$0/sys"
        mount --bind /dev "$0/dev"
        mount --bind /dev/shm "$0/dev/shm"
        mount --bind "$1" "$0/uci"
        mount -o remount,bind,ro "$0/uci"
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TEST_BUILD_DIR=/build \
            bash -c "cd /uci && $2"' "$root" "$uci_root" "$2"
}

# counted LOG: add the closing lines of what ran; one that shows none has failed.
counted() {
    local counts
    counts=$(awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5; n++ }
                  END { print p + 0, f + (n == 0), s + 0 }' "$1")
    read -r p f s <<<"$counts"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# part SUITE NAME COMMAND: run, count, and show what failed.
part() {
    local suite=$1 name=$2 log=$logs/$1-$2.log begin
    begin=$(clock)
    in_root "$suite" "$3" >"$log" 2>&1 </dev/null || true
    counted "$log"
    say "$suite $name: $(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1), $(since "$begin") s ($log)"
    grep -aE '^(FAIL|HANG|failed:)' "$log" | head -n 20 | cut -c1-200 | sed 's/^/    /' || true
}

mpi_options() {
    local tls
    printf " --filter '%s'" "$filter"
    for tls in $all_tls; do
        printf ' --tls %s' "$tls"
    done
}

# has_modules SUITE: UCX 1.22 is the first that loads modules from elsewhere.
has_modules() {
    in_root "$1" 'pkg-config --atleast-version=1.22 ucx'
}

run_suite() {
    local suite=$1
    say "--- $suite: $(in_root "$suite" "dpkg-query -W -f '\${Package} \${Version}, ' libucx0 openmpi-bin mpich gcc")"
    in_root "$suite" 'git config --global --add safe.directory /uci; { [ -f /build/build.ninja ] || meson setup /build /uci; } &&
        ninja -C /build' >"$logs/$suite-build.log" 2>&1 || { failed=$((failed + 1)); tail -n 20 "$logs/$suite-build.log"; return; }
    part "$suite" unit 'meson test -C /build --no-rebuild >/dev/null; python3 tests/count_meson.py /build/meson-logs/testlog.json'
    part "$suite" layers 'python3 tests/layering.py /build; python3 tests/call_surface.py /build'
    part "$suite" ucp 'tests/ucp/run_ucp.sh'
    part "$suite" attach 'tests/attach/run_attach.sh'
    part "$suite" mpi-preload "tests/mpi/run_mpi.sh --preload /build/libucx_integrity.so $(mpi_options)"
    ! has_modules "$suite" || part "$suite" mpi-module "tests/mpi/run_mpi.sh --plugin /build/ucx_plugin $(mpi_options)"
}

# One row for each suite, MPI and way; passed of all that were run, by transport.
print_matrix() {
    local tls suite way
    say
    printf '| suite | MPI | UCI |'
    # shellcheck disable=SC2086
    printf ' %s |' $all_tls
    printf '\n|---|---|---|'
    for tls in $all_tls; do printf -- '---|'; done
    say
    for suite in ${suites//,/ }; do
        for way in preload module; do
            [ -f "$logs/$suite-mpi-$way.log" ] || continue
            awk -v suite="$suite" -v way="$way" -v all="$all_tls" '
                $1 ~ /^(PASS|FAIL|HANG)$/ && $3 == "s" { runs[$5, $6]++; good[$5, $6] += ($1 == "PASS"); mpis[$5] }
                END { n = split(all, tls, " ")
                      for (mpi in mpis) {
                          row = "| " suite " | " mpi " | " way " |"
                          for (i = 1; i <= n; ++i) row = row " " good[mpi, tls[i]] + 0 "/" runs[mpi, tls[i]] + 0 " |"
                          print row } }' "$logs/$suite-mpi-$way.log" | sort
        done
    done
    say
}

main() {
    local suite
    parse_options "$@"
    [ "$(id -u)" -eq 0 ] || die "root folders need root"
    rm -rf "$logs"
    mkdir -p "$logs"
    for suite in ${suites//,/ }; do
        make_root "$suite"
        run_suite "$suite"
    done
    print_matrix
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
