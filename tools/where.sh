#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tools/where.sh PID...
#
# Where do these processes hang? Prints the stacks of all their threads, and has UCI, where it is loaded, print its state
# on the standard error of each process: workers, peers, every send, receive and close that is under way, unexpected
# messages (docs/debugging.md, A job that hangs). Uses gdb; without it, what the kernel knows. The processes are stopped for a
# second or two each and then go on. For instance, on each node of a job that hangs: tools/where.sh $(pgrep -x my_program)
# Exit status 1 if one of them is gone.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Without the debugger's chatter, and without scripts that lie beside the program or its libraries, or in them: they would run as who looks. Only
# the thread that is selected may run while UCI is called.
debugger=(gdb -nx -batch -iex 'set debuginfod enabled off' -iex 'set auto-load gdb-scripts off' -iex 'set auto-load python-scripts off'
          -iex 'set auto-load guile-scripts off' -iex 'set auto-load local-gdbinit off' -ex 'set pagination off'
          -ex 'thread apply all backtrace 30' -ex 'set scheduler-locking on' -ex 'set unwindonsignal on'
          -ex 'call (void)uci_dump_state(2)')

# Fails if there are none; that UCI is not loaded is no failure.
stacks_by_gdb() {
    local text
    text=$({ timeout -k 1 30 "${debugger[@]}" -p "$1" 2>/dev/null </dev/null || true; } | grep -E '^(#|Thread )' | cut -c1-220)
    say "$text"
    [ -n "$text" ]
}

stacks_by_kernel() {
    local task
    for task in "/proc/$1/task"/*; do
        say "thread ${task##*/}: waits in $(cat "$task/wchan" 2>/dev/null), system call $(cat "$task/syscall" 2>/dev/null)"
        cat "$task/stack" 2>/dev/null || true
    done
}

show_process() {
    local pid=$1
    say "--- process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c1-200)"
    if type gdb >/dev/null 2>&1 && stacks_by_gdb "$pid"; then
        return
    fi
    say "gdb is not here, or may not look into it; by the kernel:"
    stacks_by_kernel "$pid"
}

show_processes() {
    local pid status=0
    for pid; do
        if [ -r "/proc/$pid/cmdline" ]; then
            show_process "$pid"
        else
            say "--- process $pid: is gone"
            status=1
        fi
    done
    return "$status"
}

main() {
    case ${1:--h} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    [[ "$*" =~ ^[0-9\ ]+$ ]] || die "'$*': expected numbers of processes (see --help)"
    show_processes "$@" | LC_ALL=C tr -c '[:print:]\n' '?' # their names are their users', and who looks may be root
}

main "$@"
