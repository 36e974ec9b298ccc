#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/watchdog.sh SECONDS COMMAND...
#
# As timeout(1): runs COMMAND, with its exit status, or 124 if it takes longer and is ended. But first it prints where all its
# processes are: their stacks, and UCI's state on their standard error (tools/where.sh). At the end none of them is left.
# Time in which they were ready to run, and had no core because others had them, is not counted, up to eight times as much as SECONDS.
#
# May be sourced for its functions, which find processes by a mark in their environment: so launchers may start them however
# they like.
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../tools/common.sh"

# Marks all processes of this run, and nobody else's, so that those that hang can be found and ended.
run_mark=uci.$$.${EPOCHREALTIME/[.,]/}

# marked_processes: the ids of all processes of this run.
marked_processes() {
    grep -lzxF "MPI_TEST_RUN=$run_mark" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true
}

# is_waiting PID: does it only wait for others, as shells and launchers do?
is_waiting() {
    case $(basename "$(readlink "/proc/$1/exe" 2>/dev/null)") in
    ''|bash|dash|sh|env|sleep|timeout|setarch|grep|mpirun*|mpiexec*|orterun|orted|prte*|hydra*) return 0 ;;
    esac
    return 1
}

# catches_usr2 PID: our MPI programs do, and say what they are at (check.h).
catches_usr2() {
    local caught
    caught=$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status" 2>/dev/null)
    [ $((0x0${caught} >> 11 & 1)) -eq 1 ]
}

# where_are_they: ask the processes of this run what they are at, as many as are worth reading.
where_are_they() {
    local pid pids=()
    for pid in $(marked_processes); do
        is_waiting "$pid" && continue
        pids+=("$pid")
        ! catches_usr2 "$pid" || kill -USR2 "$pid" 2>/dev/null || true
    done
    sleep 0.3
    say "=== took too long: ${#pids[@]} processes"
    "$uci_root/tools/where.sh" "${pids[@]:0:16}" || true
    say "=== end of the stacks"
}

end_marked() {
    local pids
    mapfile -t pids < <(marked_processes)
    [ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
}

# kept_waiting: milliseconds in which one of them was ready to run, and had no core: of the one that waited longest (its first thread; /proc/PID/schedstat
# has the time that it ran, and that it waited to run).
kept_waiting() {
    local pid longest=0 waited
    for pid in $(marked_processes); do
        read -r _ waited _ 2>/dev/null <"/proc/$pid/schedstat" || continue
        [ "${waited:-0}" -le "$longest" ] || longest=$waited
    done
    say $((longest / 1000000))
}

# watched SECONDS COMMAND...: as COMMAND; 124 if it took too long and was ended; where it was is not asked if end_is_wanted is set.
watched() {
    local limit=$1 more=$1 granted=0 waited pid timer ended status
    shift
    MPI_TEST_RUN=$run_mark "$@" &
    pid=$!
    while [ -n "$more" ]; do
        sleep "$more" >/dev/null 2>&1 &
        timer=$!
        status=0
        wait -n -p ended "$pid" "$timer" || status=$?
        if [ "$ended" = "$pid" ]; then
            kill "$timer" 2>/dev/null || true
            wait "$timer" 2>/dev/null || true
            [ "$status" -eq 0 ] || end_marked # MPICH's launcher may leave the other ranks of one that aborts
            return "$status"
        fi
        waited=$(kept_waiting)
        more=$((waited - granted))
        if [ -z "${end_is_wanted:-}" ] && [ "$more" -ge 100 ] && [ "$waited" -le $((${limit%.*} * 8000)) ]; then
            granted=$waited
            more=$((more / 1000)).$(printf %03d $((more % 1000)))
        else
            more=
        fi
    done
    [ -n "${end_is_wanted:-}" ] || where_are_they 2>&1
    kill -TERM "$pid" 2>/dev/null || true
    sleep 1
    end_marked
    wait "$pid" 2>/dev/null || true
    return 124
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -uo pipefail
    case ${1:--h} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    [[ $1 =~ ^[0-9.]+$ && $# -gt 1 ]] || die "wants SECONDS COMMAND... (see --help)"
    trap 'exit 130' INT TERM
    trap end_marked EXIT
    watched "$@"
    exit
fi
