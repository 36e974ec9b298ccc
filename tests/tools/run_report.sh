#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tools/run_report.sh [BUILD_DIR] [RECORDS]
#
# uci_report over synthetic runs, over real jobs of 4 ranks under both MPIs with injected faults, over many jobs, and its page in a headless
# browser, where one is installed; the dashboard for Grafana against what uci_top exports of those jobs. RECORDS are those of the large job there (100000; a million takes some minutes to make).
# Leaves screenshots in BUILD_DIR/test-logs/report. Ends with "N passed, N failed, N skipped", five times.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

build=$(realpath "${1:-$uci_root/build}")
export TEST_BUILD_DIR=$build
# shellcheck source=tests/mpi/lib.sh
source "$uci_root/tests/mpi/lib.sh"

# run_job MPI FOLDER: a real program, whose messages are damaged and healed.
run_job() {
    local launch_line=()
    mkdir -p "$2"
    compile_programs "$1" p2p_blocking
    launcher "$1" 4 posix,self "$build/libucx_integrity.so" UCI_FAULT=rate=1e-2,target=payload,seed=1 \
        "UCI_EVENTS=$2/events.%h.%p.jsonl" "UCI_STATS=$2/stats.%h.%p.json" "UCI_LIVE=$run_dir/live" "CHECK_FOLDER=$2"
    run_limited 120 "$2/log" "${launch_line[@]}" "$work_dir/$1/p2p_blocking" || { tail -n 15 "$2/log"; die "the job under $1 failed"; }
}

main() {
    local status=0 runs=() mpi
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    for mpi in openmpi mpich; do
        run_job "$mpi" "$run_dir/$mpi"
        runs+=("$run_dir/$mpi")
    done
    "$uci_root/tests/tools/test_report.py" "$build/tools/uci_report" "${runs[@]}" || status=1
    "$uci_root/tests/tools/test_calls.py" "$build/tools/uci_report" || status=1
    "$uci_root/tests/tools/test_history.py" "$build/tools/uci_report" "${runs[@]}" || status=1
    "$build/tools/uci_top" --once --openmetrics "$run_dir/uci.prom" "$run_dir/live"
    "$uci_root/tests/tools/test_dashboard.py" "$run_dir/uci.prom" || status=1
    "$uci_root/tests/tools/test_report_page.py" "$build/tools/uci_report" "$build/test-logs/report" "${2:-100000}" || status=1
    return "$status"
}

main "$@"
