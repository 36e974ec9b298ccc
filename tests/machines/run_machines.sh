#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/machines/run_machines.sh [options]
#
# Faults of machines, for which UCI is not to blame, and which it must survive or name: no memory, at every allocation of the library by itself; no room in
# /dev/shm; signals at any moment; a rank that stands still. Never a wrong byte, never a hang, never a crash; the job may end, with a line that says why.
# Ends with "N passed, N failed, N skipped".
#
#   --build DIR       what to test (build/)
#   --mpi LIST        openmpi,mpich (default both)
#   --still S         seconds for which a rank is stopped (15)
#   --only REGEX      only checks whose name matches
#   --help            this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/machines
build=$uci_root/build
mpi=openmpi,mpich
only='.*'
still=15
enough=64m # of /dev/shm, for plain UCX
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"

flags=(-std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror)

compile_all() {
    local one
    # shellcheck disable=SC2046
    gcc "${flags[@]}" -o "$work/exchange" "$here/exchange.c" $(pkg-config --cflags --libs ucx)
    for one in scarce interrupts; do
        gcc "${flags[@]}" -shared -fPIC -o "$work/$one.so" "$here/$one.c" -ldl
    done
    for one in ${mpi//,/ }; do
        mkdir -p "$work/$one"
        "mpicc.$one" "${flags[@]}" -Wno-stringop-overflow -o "$work/$one/words" "$here/words.c"
    done
}

check_one() {
    local name=$1
    shift
    [[ $name =~ $only ]] || return 0
    check "$name" "$@"
}

note_of() {
    sed -n 's/^note: //p' "$1" | tail -n 1
}

# exchange [NAME=VALUE]...: two workers in one process, with UCI behind what `under` names
exchange() {
    local status=0
    { # the shell has nothing to say of how it ends
        timeout -s KILL 40 env UCX_LOG_LEVEL=fatal UCX_HANDLE_ERRORS=none UCI_LOG_LEVEL=error LD_PRELOAD="$under $build/libucx_integrity.so" "$@" \
            "$work/exchange" "$rounds" >"$work/said" 2>&1 || status=$?
    } 2>/dev/null
    return "$status"
}

# --- no memory ---

# The job ends with what it says of that, or the program is told, or nothing is lost
ends_well() {
    local status=0
    exchange "$@" || status=$?
    case $status in
    0|3) ;;
    134) grep -q "UCI FATAL" "$work/said" ;;
    *) false ;;
    esac
}

scarce() {
    local under=$work/scarce.so rounds=1 number i bad=0
    exchange SCARCE_COUNT="$work/count" "$@" && number=$(cat "$work/count") && [ "$number" -gt 100 ] || return
    for ((i = 1; i <= number; ++i)); do
        if ! ends_well SCARCE_AT="$i" "$@"; then
            bad=$((bad + 1))
            say "allocation $i of $number:"
            tail -n 3 "$work/said"
        fi
    done
    say "note: $number allocations"
    [ "$bad" -eq 0 ]
}

# --- signals ---

interrupted() {
    local under=$work/interrupts.so rounds=30
    exchange INTERRUPTS_COUNT="$work/count" "$@" && [ "$(cat "$work/count")" -gt 100 ] && say "note: $(cat "$work/count") signals"
}

# --- jobs ---

# job MPI LIBRARIES SECONDS [NAME=VALUE]...: two ranks of words.c for so long
job() {
    local one=$1 libraries=$2 seconds=$3 command
    shift 3
    case $one in
    openmpi) command=(mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -np 2 --mca pml ucx --mca opal_common_ucx_tls any
                      --mca btl "^vader,openib,ofi" --mca mtl ^ofi --mca osc ucx -x "LD_PRELOAD=$libraries") ;;
    mpich)   command=(mpirun.mpich -n 2 -genv LD_PRELOAD "$libraries") ;;
    esac
    "$uci_root/tests/watchdog.sh" 60 env UCX_LOG_LEVEL=fatal UCI_LOG_LEVEL=error "$@" "${command[@]}" "$work/$one/words" "$seconds"
}

# in_little_shm SIZE COMMAND...: nobody else's /dev/shm, of so much memory
in_little_shm() {
    local size=$1
    shift
    # shellcheck disable=SC2016
    unshare -m bash -c 'mount -t tmpfs -o "size=$0" uci-test /dev/shm && "$@"' "$size" "$@"
}

# Where plain UCX runs, UCI does
little_shm() {
    local one=$1 size=$2
    export -f job
    if ! in_little_shm "$size" bash -c "uci_root=$uci_root work=$work; job $one '' 1 UCX_TLS=posix,self"; then
        say "note: plain UCX does not run there"
        [ "$size" != "$enough" ]
        return
    fi
    in_little_shm "$size" bash -c "uci_root=$uci_root work=$work; job $one $build/libucx_integrity.so 1 UCX_TLS=posix,self"
}

# The other one waits for it, longer than UCI waits for anything without asking
stands_still() {
    local one=$1 tls=$2 pid
    rm -f "$work/rank.1"
    job "$one" "$build/libucx_integrity.so" 4 UCX_TLS="$tls" WORDS_PID="$work/rank" UCI_FAULT=rate=1e-3,target=any,seed=3 &
    until [ -s "$work/rank.1" ]; do
        kill -0 $! || return
        sleep 0.1
    done
    pid=$(cat "$work/rank.1")
    sleep 1
    kill -STOP "$pid"
    sleep "$still"
    kill -CONT "$pid"
    wait $!
}

main() {
    local one size
    while [ $# -gt 0 ]; do
        case $1 in
        --build) build=$(realpath "$2"); shift 2 ;;
        --mpi)   mpi=$2; shift 2 ;;
        --still) still=$2; shift 2 ;;
        --only)  only=$2; shift 2 ;;
        -h|--help) usage_of "$0"; exit ;;
        *) die "unknown option $1 (--help)" ;;
        esac
    done
    compile_all
    for one in posix,self posix,cma,self tcp; do
        check_one "no memory, $one" scarce UCX_TLS="$one"
        check_one "signals, $one" interrupted UCX_TLS="$one"
    done
    (umask 077 && openssl rand -hex 32 >"$work/key")
    check_one "no memory, sealed, tcp" scarce UCX_TLS=tcp UCI_SEAL=encrypt UCI_SEAL_SCOPE=all UCI_KEY_FILE="$work/key"
    check_one "no memory, faults, posix,self" scarce UCX_TLS=posix,self UCI_FAULT=rate=0.05,target=any,seed=1
    for one in ${mpi//,/ }; do
        for size in 4m 6m 8m 12m 16m 24m "$enough"; do
            if [ "$(id -u)" -eq 0 ]; then
                check_one "$one: $size of /dev/shm" little_shm "$one" "$size"
            else
                skip "$one: $size of /dev/shm" "file systems are mounted by root"
            fi
        done
        check_one "$one: a rank is stopped for $still s, posix,self" stands_still "$one" posix,self
        check_one "$one: a rank is stopped for $still s, tcp" stands_still "$one" tcp,self
    done
    end_of_checks
}

main "$@"
