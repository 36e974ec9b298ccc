#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/gpu/run_gpu.sh [options]
#
# Messages from, to and between a GPU's memory, managed memory and the host's, on a machine that has a GPU, over a UCX that knows of it: by UCX's own
# interface (gpu_ucp.c), and by both MPIs (gpu_p2p.c), each on plain UCX, with UCI, and with faults that must heal. What plain UCX can't do is
# skipped, and said; if it can do nothing, or is not done in time, that is a failure. Ends with the line "N passed, N failed, N skipped"; exit status
# 1 if anything failed.
#
#   --ucx DIR       where a UCX with CUDA is installed, with lib/ in it (tests/gpu/build_ucx.sh makes one; default build/gpu/ucx)
#   --preload LIB   what to preload (build/libucx_integrity.so)
#   --tls LIST      transports, separated by spaces ("posix,self,cuda posix,cma,self,cuda tcp,self,cuda")
#   --mpi LIST      openmpi,mpich (both)
#   --filter TEXT   only cases whose name contains TEXT; names look like "faults/tcp,self,cuda/openmpi"
#   --timeout S     seconds for one program (240)
#   --compile       compile the programs, and end: for a machine that has a GPU and no compiler
#   --compiled      the programs are there
#   --time N        instead of the tests: latency and bandwidth, N pairs of runs with and without UCI
#   --help          this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"
# shellcheck source=tests/mpi/lib.sh
source "$uci_root/tests/mpi/lib.sh"

here=$uci_root/tests/gpu
# shellcheck disable=SC2034 # lib.sh's
programs_dir=$here/mpi
ucx=${TEST_BUILD_DIR:-$uci_root/build}/gpu/ucx
preload=$uci_root/build/libucx_integrity.so
transports="posix,self,cuda posix,cma,self,cuda tcp,self,cuda"
mpis=openmpi,mpich
filter='' limit=240 compile=auto pairs=0
ucp_tests=(tags pieces messages messages_rendezvous streams puts_ gets_)
heal="rate=0.05,kind=any,target=any,seed=11"

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --ucx)      ucx=${2:?}; shift ;;
        --preload)  preload=${2:?}; shift ;;
        --tls)      transports=${2:?}; shift ;;
        --mpi)      mpis=${2:?}; shift ;;
        --filter)   filter=${2:?}; shift ;;
        --timeout)  limit=${2:?}; shift ;;
        --compile)  compile=only ;;
        --compiled) compile=no ;;
        --time)     pairs=${2:?}; shift ;;
        -h|--help)  usage_of "$0"; exit ;;
        *)          die "unknown option '$1' (see --help)" ;;
        esac
        shift
    done
}

compile_all() {
    local mpi
    mkdir -p "$work_dir"
    # shellcheck disable=SC2046
    gcc -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -o "$work_dir/gpu_ucp" "$here/gpu_ucp.c" \
        "$uci_root/tests/ucp/ucp_test.c" $(pkg-config --cflags --libs ucx) -lpthread -ldl
    for mpi in ${mpis//,/ }; do
        compile_programs "$mpi" gpu_p2p
    done
}

check_machine() {
    local module missing
    [ -e "$ucx/lib/libucp.so.0" ] || die "no UCX in $ucx: give --ucx, or make one with tests/gpu/build_ucx.sh (needs CUDA's headers)"
    module=$(find "$ucx/lib/ucx" -name 'libuct_cuda*.so' 2>/dev/null | head -n 1)
    [ -n "$module" ] || die "the UCX in $ucx was built without CUDA"
    [ -e /dev/nvidiactl ] || die "this machine has no GPU of NVIDIA's (no /dev/nvidiactl)"
    # UCX would go on without it, and take a GPU's memory for the host's
    missing=$(LD_LIBRARY_PATH=$ucx/lib ldd "$module" | awk '/not found/ {print $1}' | paste -sd' ')
    [ -z "$missing" ] || die "$module needs $missing, which this machine does not have"
    preload=$(check_preload "$preload")
}

# ------------------------------------------------------------------ UCX's own interface

# ucp_run TEST TLS PRELOAD [NAME=VALUE]...: sets verdict, reason, run_log, run_stats as run_program does.
ucp_run() {
    local name=$1 tls=$2 with=$3 status=0
    shift 3
    run_log=$run_dir/log
    run_stats=$run_dir/stats
    rm -rf "$run_dir"
    mkdir -p "$run_stats"
    [ -z "$with" ] || set -- "$@" "LD_PRELOAD=$with" "UCI_STATS=$run_stats/%r.%p.json"
    begin=$(clock)
    run_limited "$limit" "$run_log" env "UCX_TLS=$tls" UCX_LOG_LEVEL=error UCI_LOG_LEVEL=error UT_LIMIT=60 "LD_LIBRARY_PATH=$ucx/lib" "$@" \
        "$work_dir/gpu_ucp" "$name" || status=$?
    duration=$(since "$begin")
    verdict=PASS reason=
    case $status in
    0)   ;;
    124) verdict=HANG reason="ended after $limit s" ;;
    *)   verdict=FAIL reason="exit status $status" ;;
    esac
}

# mpi_run MPI TLS PRELOAD [NAME=VALUE]...
mpi_run() {
    local mpi=$1 tls=$2 with=$3
    shift 3
    run_program gpu_p2p "$mpi" "$tls" 2 "$with" "$limit" "" "LD_LIBRARY_PATH=$ucx/lib" UCX_LOG_LEVEL=error "$@"
}

# show_case NAME: of the last run.
show_case() {
    printf '%-4s %6s s  %s  %s\n' "$verdict" "$duration" "$1" "${reason:-${stats_line:-}}"
    count_job "$1" "$1"
}

# judge_case PROCESSES CONDITION...: of a run with UCI.
judge_case() {
    stats_line=
    [ "$verdict" = PASS ] || return 0
    check_stats "$@" && return
    verdict=FAIL
    reason="statistics: $(tail -n +2 <<<"$stats_line" | paste -sd';')"
}

# three_of KIND PROCESSES TLS WHAT CONDITION...: on plain UCX, with UCI, with faults. KIND_run WHAT TLS PRELOAD SETTING... runs it once.
three_of() {
    local kind=$1 processes=$2 tls=$3 what=$4
    shift 4
    [[ "plain/$tls/$what uci/$tls/$what faults/$tls/$what" == *"$filter"* ]] || return 0
    stats_line=
    "${kind}_run" "$what" "$tls" ""
    if [ "$verdict" = FAIL ]; then
        reason="plain UCX can't ($reason: $(grep -v '^ok ' "$run_log" | tail -n 1 | cut -c1-150))"
        verdict=SKIP
        show_case "all/$tls/$what"
        keep_log "plain/$tls/$what" 0
        return
    fi
    show_case "plain/$tls/$what"
    [ "$verdict" = PASS ] || return 0
    "${kind}_run" "$what" "$tls" "$preload"
    judge_case "$processes" "$@" "${stats_clean[@]}"
    show_case "uci/$tls/$what"
    "${kind}_run" "$what" "$tls" "$preload" "UCI_FAULT=$heal"
    judge_case "$processes" "$@" "${stats_faulty[@]}"
    show_case "faults/$tls/$what"
}

run_tests() {
    local tls mpi name
    for tls in $transports; do
        for name in "${ucp_tests[@]}"; do
            case $name in
            puts_ | gets_) three_of ucp 1 "$tls" "$name" 'unrepaired_chunks == 0' ;;
            *)             three_of ucp 1 "$tls" "$name" 'staged_messages > 0' "${stats_always[@]}" ;;
            esac
        done
        for mpi in ${mpis//,/ }; do
            three_of mpi 2 "$tls" "$mpi" 'staged_messages > 0' "${stats_always[@]}"
        done
    done
}

# ------------------------------------------------------------------ time

run_times() {
    local tls mpi i with folder=$work_dir/gpu-time
    for tls in $transports; do
        for mpi in ${mpis//,/ }; do
            rm -rf "$folder"
            mkdir -p "$folder"
            for ((i = 0; i < pairs; ++i)); do
                for with in plain uci; do
                    launcher "$mpi" 2 "$tls" "$([ "$with" = plain ] || say "$preload")" "LD_LIBRARY_PATH=$ucx/lib" UCX_LOG_LEVEL=error
                    watched "$limit" "${launch_line[@]}" "$work_dir/$mpi/gpu_p2p" time >"$folder/$with.$i" 2>"$folder/$with.$i.err" </dev/null ||
                        { tail -n 3 "$folder/$with.$i.err"; say "$mpi $tls $with: no times"; break 2; }
                done
            done
            say "$mpi, $tls: medians of $pairs pairs"
            python3 "$here/times.py" "$folder"
        done
    done
}

main() {
    local begin
    parse_options "$@"
    [ "$compile" = no ] || compile_all
    [ "$compile" != only ] || exit 0
    check_machine
    if [ "$pairs" -gt 0 ]; then
        run_times
        exit
    fi
    begin=$(clock)
    run_tests
    [ "$passed" -gt 0 ] || failures+=("all: plain UCX could do nothing, so nothing was tried") failed=$((failed + 1))
    end_of_jobs "$begin"
}

main "$@"
