#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tsan/run_tsan.sh [options]
#
# Programs with many threads under ThreadSanitizer: tests/ucp/threads.c and siblings.c over several transports, without and with injected
# faults, and tests/mpi/threads.c under both MPIs. Each runs on plain UCX too, to tell whose a report is. And as twins (UCI_TWINS), two that
# compare and three that correct. UCI and the programs are instrumented, UCX and the MPIs are not, and their memory hooks are off, which do not bear with the sanitizer's. What is not
# UCI's stands in suppressions.txt with the reason. A report that is not suppressed fails the case. Ends with the line
# "N passed, N failed, N skipped"; exit status 1 if anything failed.
#
#   --build DIR      a build with -Db_sanitize=thread (build-tsan)
#   --filter TEXT    only cases whose name contains TEXT
#   --timeout S      seconds for one program (120)
#   --help           this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

here=$uci_root/tests/tsan
build=$uci_root/build-tsan
filter='' timeout=120

build_programs() {
    local flags program mpi
    mkdir -p "$out"
    flags=$(pkg-config --cflags --libs ucx)
    for program in threads siblings; do
        # shellcheck disable=SC2086
        gcc -fsanitize=thread -std=gnu11 -D_GNU_SOURCE -O1 -g -o "$out/$program" "$uci_root/tests/ucp/$program.c" \
            "$uci_root/tests/ucp/ucp_test.c" $flags -lpthread
    done
    for mpi in openmpi mpich; do
        "mpicc.$mpi" -fsanitize=thread -std=gnu11 -O1 -g -Wno-stringop-overflow -o "$out/threads.$mpi" \
            "$programs_dir/threads.c" -lpthread
    done
}

# run_logged LOG WORD COMMAND...: does it end with status 0 and WORD?
run_logged() {
    # addresses where the sanitizer's shadow can be: no randomization
    "$uci_root/tests/watchdog.sh" "$timeout" setarch -R env "${environment[@]}" "${@:3}" >"$1" 2>&1 </dev/null && grep -q "^$2" "$1"
}

# count_case NAME STATUS LOG...: it has passed if STATUS is 0 and no report is in its logs.
count_case() {
    local name=$1 count
    count=$(cat "${@:3}" | grep -c 'WARNING: ThreadSanitizer' || true)
    if [ "$2" -eq 0 ] && [ "$count" -eq 0 ]; then
        passed=$((passed + 1))
        say "ok   $name"
    else
        failed=$((failed + 1))
        failures+=("$name: exit status $2 (1: or not its last word), $count reports; logs: ${*:3}")
        say "FAIL $name: exit status $2, $count reports"
        cat "${@:3}" | grep '^SUMMARY' | sort | uniq -c | head -n 10 | cut -c1-200 | sed 's/^/     /' || true
    fi
}

# tsan_case NAME WORD COMMAND...: must end with status 0 and WORD, and with no report.
tsan_case() {
    local name=$1 log=$out/${1//\//-}.log status=0
    [[ $name == *"$filter"* ]] || return 0
    run_logged "$log" "${@:2}" || status=1
    count_case "$name" $status "$log"
}

# twins_case NAME TWINS VERDICT WORD COMMAND...: as tsan_case, with so many of COMMAND at once, which find VERDICT (UCI_TWINS_REPORT).
twins_case() {
    local name=$1 twins=$2 verdict=$3 log=$out/${1//\//-} twin pids=() status=0
    [[ $name == *"$filter"* ]] || return 0
    rm -rf "$out/meet" "$log".*
    for twin in $(seq 0 $((twins - 1))); do
        run_logged "$log.$twin.log" "$4" UCI_TWINS="$out/meet,$twin/$twins" UCI_TWINS_REPORT="$log.$twin.json" "${@:5}" &
        pids+=($!)
    done
    for twin in "${!pids[@]}"; do
        wait "${pids[twin]}" && grep -q "\"verdict\": \"$verdict\"" "$log.$twin.json" || status=1
    done
    count_case "$name" $status "$log".*.log
}

run_ucp() {
    local tls
    for tls in posix,self tcp,self self; do
        tsan_case "plain/$tls/threads" 'ok   workers_come_and_go' UCX_TLS=$tls "$out/threads"
        tsan_case "uci/$tls/threads" 'ok   workers_come_and_go' UCX_TLS=$tls LD_PRELOAD="$library" "$out/threads"
        tsan_case "plain/$tls/siblings" 'ok   wakes_sleepers' UCX_TLS=$tls "$out/siblings"
        tsan_case "uci/$tls/siblings" 'ok   wakes_sleepers' UCX_TLS=$tls LD_PRELOAD="$library" "$out/siblings"
    done
    tsan_case "faults/posix,self/threads" 'ok   workers_come_and_go' UCX_TLS=posix,self LD_PRELOAD="$library" \
        UCI_FAULT=rate=0.1,kind=any,target=any "$out/threads"
}

# Twins have a rank, which here no launcher gives them
run_twins() {
    local settings=("UCX_TLS=posix,self" LD_PRELOAD="$library" PMI_RANK=0 PMI_SIZE=1 UCI_TWINS_WAIT="$timeout")
    twins_case twins/compare 2 same 'ok   everything' "${settings[@]}" "$out/threads" everything
    twins_case twins/correct 3 same 'ok   everything' "${settings[@]}" UCI_TWINS_MODE=correct "$out/threads" everything
    twins_case twins/escapes 3 differs 'ok   everything' "${settings[@]}" UCI_TWINS_MODE=correct \
        UCI_FAULT=rate=0.3,target=escape,min=8,twin=1 "$out/threads" everything
    twins_case twins/workers 3 differs 'ok   workers_come_and_go' "${settings[@]}" UCI_TWINS_MODE=correct \
        UCI_FAULT=rate=0.3,target=escape,min=8,twin=1 "$out/threads" workers_come_and_go
}

run_mpi() {
    local mpi launch_line
    for mpi in openmpi mpich; do
        launcher $mpi 2 posix,self '' "${environment[@]}"
        tsan_case "plain/mpi/$mpi" 'PASS threads' "${launch_line[@]}" "$out/threads.$mpi" 0.1
        launcher $mpi 2 posix,self "$library" "${environment[@]}"
        tsan_case "uci/mpi/$mpi" 'PASS threads' "${launch_line[@]}" "$out/threads.$mpi" 0.1
    done
}

main() {
    local begin out library environment
    set_options build filter timeout -- "$@"
    out=$build/test-tsan library=$build/libucx_integrity.so
    [ -e "$library" ] || die "no $library: meson setup -Db_sanitize=thread -Db_lundef=false -Db_lto=false $build, and build"
    environment=(TSAN_OPTIONS="exitcode=0 history_size=4 suppressions=$here/suppressions.txt" UCX_MEM_MMAP_HOOK_MODE=none
                 UCX_MEM_MALLOC_HOOKS=n UCX_MEM_EVENTS=n UCX_HANDLE_ERRORS=none UCX_LOG_LEVEL=fatal "OMPI_MCA_memory=^patcher")
    begin=$(clock)
    build_programs
    run_ucp
    run_twins
    run_mpi
    end_of_jobs "$begin"
}

main "$@"
