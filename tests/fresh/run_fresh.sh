#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/fresh/run_fresh.sh [options]
#
# README's two commands on a machine with nothing installed: makes a root folder with a minimal Debian 12 and git
# (mmdebstrap), clones this checkout into it, runs tools/demo.sh there and then tests/run.sh; and both the other way round
# in a second one. What the commands need they must install. What is tested is what is committed. Needs root and the
# network; 3 GB a root folder, which is removed at the end. Ends with the line "N passed, N failed, N skipped".
#
#   --orders LIST    demo-first,test-first (both)
#   --suites LIST    suites for tests/run.sh (unit,tools,attach)
#   --debian SUITE   another Debian (bookworm)
#   --roots DIR      where the root folders are made (UCI_FRESH_DIR, or /var/cache/uci-fresh)
#   --keep           leave them there
#   --help           this text
set -euo pipefail
# shellcheck source=tests/roots.sh
source "$(dirname "${BASH_SOURCE[0]}")/../roots.sh"

orders=demo-first,test-first
suites=unit,tools,attach
debian=bookworm
roots=${UCI_FRESH_DIR:-/var/cache/uci-fresh}
keep=''
logs=$uci_root/build/fresh-logs
passed=0 failed=0

remove_roots() {
    [ -n "$keep" ] || rm -rf --one-file-system "$roots/minimal" "$roots/demo-first" "$roots/test-first"
}

# make_minimal: a Debian with git alone, and a clone of what is committed here as /root/clone. Names are looked up as here.
make_minimal() {
    local root=$roots/minimal
    make_debian "$debian" "$root" "$logs/minimal.log" git
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    git -C "$uci_root" -c safe.directory="$uci_root" bundle create --quiet "$root/root/uci.bundle" HEAD
    run_in_debian "$root" 'git -c advice.detachedHead=false clone --quiet /root/uci.bundle /root/clone'
}

# show_result LOG: the closing table of a command, indented: its counts are not ours.
show_result() {
    grep -aE '^FAIL|^(missing packages|failed:)' "$1" | cut -c1-200 | sed 's/^/    /' || true
    tail -n 12 "$1" | sed 's/^/    /'
}

# command_in ORDER COMMAND: it must end with status 0.
command_in() {
    local order=$1 command=$2 log status=0
    log=$logs/$order.$(basename "${command%% *}").log
    run_step "$order: $command" "$log" run_in_debian "$roots/$order" "cd /root/clone && $command" || status=$?
    show_result "$log"
    if [ "$status" -eq 0 ]; then
        passed=$((passed + 1))
        say "ok   $order: $command"
    else
        failed=$((failed + 1))
        say "FAIL $order: $command: status $status ($log)"
    fi
}

run_order() {
    local order=$1 tests="tests/run.sh ${suites//,/ }"
    rm -rf --one-file-system "${roots:?}/$order"
    cp -a "$roots/minimal" "$roots/$order"
    case $order in
    demo-first) command_in "$order" tools/demo.sh; command_in "$order" "$tests" ;;
    test-first) command_in "$order" "$tests"; command_in "$order" tools/demo.sh ;;
    *)          die "unknown order '$order' (demo-first or test-first)" ;;
    esac
}

main() {
    local order
    set_options orders suites debian roots keep! -- "$@"
    [ "$(id -u)" -eq 0 ] || die "root folders need root"
    mkdir -p "$logs"
    trap remove_roots EXIT
    make_minimal
    for order in ${orders//,/ }; do
        run_order "$order"
    done
    say "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
