#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tsan/run_tsan.sh [options]
#
# Programs with many threads under ThreadSanitizer: tests/ucp/threads.c and siblings.c over several transports, without and with injected
# faults, and tests/mpi/threads.c under both MPIs. Each runs on plain UCX too, to tell whose a report is. UCI and the programs are
# instrumented, UCX and the MPIs are not, and their memory hooks are off, which do not bear with the sanitizer's. What is not
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

# tsan_case NAME WORD COMMAND...: must end with status 0 and WORD, and with no report.
tsan_case() {
    local name=$1 word=$2 log=$out/${1//\//-}.log count ok=1
    [[ $name == *"$filter"* ]] || return 0
    shift 2
    # addresses where the sanitizer's shadow can be: no randomization
    "$uci_root/tests/watchdog.sh" "$timeout" setarch -R env "${environment[@]}" "$@" >"$log" 2>&1 </dev/null || ok=0
    grep -q "^$word" "$log" || ok=0
    count=$(grep -c 'WARNING: ThreadSanitizer' "$log" || true)
    if [ $ok = 1 ] && [ "$count" -eq 0 ]; then
        passed=$((passed + 1))
        say "ok   $name"
    else
        failed=$((failed + 1))
        say "FAIL $name: $count reports ($log)"
        grep '^SUMMARY' "$log" | sort | uniq -c | head -n 10 | cut -c1-200 | sed 's/^/     /' || true
    fi
}

run_ucp() {
    local tls
    for tls in posix,self tcp,self self; do
        tsan_case "plain/$tls/threads" 'ok   workers_apart' UCX_TLS=$tls "$out/threads"
        tsan_case "uci/$tls/threads" 'ok   workers_apart' UCX_TLS=$tls LD_PRELOAD="$library" "$out/threads"
        tsan_case "plain/$tls/siblings" 'ok   wakes_sleepers' UCX_TLS=$tls "$out/siblings"
        tsan_case "uci/$tls/siblings" 'ok   wakes_sleepers' UCX_TLS=$tls LD_PRELOAD="$library" "$out/siblings"
    done
    tsan_case "faults/posix,self/threads" 'ok   workers_apart' UCX_TLS=posix,self LD_PRELOAD="$library" \
        UCI_FAULT=rate=0.1,kind=any,target=any "$out/threads"
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
    run_mpi
    end_of_jobs "$begin"
}

main "$@"
