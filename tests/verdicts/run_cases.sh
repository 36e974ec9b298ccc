#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/verdicts/run_cases.sh [options]
#
# Symptoms of public reports of silent corruption, each brought about from outside UCI, by a UCX with one bug (bad_ucx.c, a library
# between UCI and UCX) or a program with one (overwrite.c): the records and the log must name the right cause, path and class, and every
# byte must arrive. Where UCI does not repair (UCI_MODE=detect), the program must see wrong ones. cases.py has the cases, and what is wanted
# of each. Prints what UCI has said of each, as a table, if none failed. Ends with the line "N passed, N failed, N skipped"; exit status
# 1 if any failed.
#
#   --mpi LIST        openmpi,mpich (default both); the table is of the first
#   --only REGEX      only cases whose line (see --list) matches; then there is no table
#   --preload PATH    default build/libucx_integrity.so
#   --timeout S       limit for each job (default 60)
#   --write           put the table into docs/symptoms.md
#   --list            the cases, and nothing else
#   --help            this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

programs_dir=$uci_root/tests/verdicts
cases_py=$programs_dir/cases.py

mpi=openmpi,mpich
only='.*'
preload=$uci_root/build/libucx_integrity.so
timeout=60
write=
list=

table_dir=$work_dir/cases.$run_mark
trap 'end_marked; rm -rf "$run_dir" "$table_dir"' EXIT

compile_bad_ucx() {
    mkdir -p "$work_dir" "$table_dir"
    gcc -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -fPIC -fvisibility=hidden \
        -shared "$programs_dir/bad_ucx.c" -o "$table_dir/bad_ucx.so" -ldl
}

# preload_of WHERE: which libraries, in their order.
preload_of() {
    case $1 in
    behind) say "$preload:$table_dir/bad_ucx.so" ;;
    before) say "$table_dir/bad_ucx.so:$preload" ;;
    none)   say "$preload" ;;
    esac
}

# run_once MPI PROGRAM ARGUMENTS UCX_TLS WHERE NAME=VALUE...
run_once() {
    local libraries
    libraries=$(preload_of "$5")
    run_program "$2" "$1" "$4" 2 "$libraries" "$timeout" "$3" "${@:6}" \
        "UCI_EVENTS=$run_dir/events.%h.%p.jsonl" UCI_LOG_LEVEL=warn
    cat "$run_dir"/events.* >"$run_dir/all.events" 2>/dev/null || true
}

# What UCI does not repair must reach the program, or the bug would be none.
check_harm() {
    run_once "$@" UCI_MODE=detect UCI_ON_ERROR=log
    if [ "$verdict" != FAIL ] || ! grep -q 'CHECK FAILED .*wrong contents' "$run_log"; then
        verdict=WRONG
        complaints="without repairs the program has not seen wrong bytes"
    fi
}

# run_case MPI LINE
run_case() {
    local one=$1 name program words tls where changes settings complaints=
    IFS='|' read -r name program words tls where changes <<<"$2"
    read -ra settings <<<"$changes"
    set -- "$one" "$program" "$words" "$tls" "$where" "${settings[@]}"
    [ "$where" != behind ] || check_harm "$@"
    if [ -z "$complaints" ]; then
        run_once "$@"
        complaints=$(python3 "$cases_py" check "$name" "$verdict" "$run_log" "$run_dir/all.events") || verdict=WRONG
        [ "$one" != "${mpi%%,*}" ] || cp "$run_dir/all.events" "$table_dir/$name.events"
    fi
    count_case "$one $name" "$complaints"
}

# count_case NAME COMPLAINTS: an end that is wanted is none of run_program's.
count_case() {
    [ "$verdict" = WRONG ] && verdict=FAIL || verdict=PASS
    reason=${2//$'\n'/; }
    printf '%s  %6s s  %s%s\n' "$verdict" "$duration" "$1" "${reason:+: $reason}" | cut -c1-300
    count_job "$1" "cases $1"
}

main() {
    local line one begin lines=()
    set_options mpi only preload timeout write! list! -- "$@"
    mapfile -t lines < <(python3 "$cases_py" list)
    if [ -n "$list" ]; then
        printf '%s\n' "${lines[@]}"
        return
    fi
    [ -z "$write" ] || [ "$only" = '.*' ] || die "--write takes all cases, without --only"
    preload=$(check_preload "$preload")
    [ -n "$preload" ] || die "cases need a preload"
    say "preload: $preload"
    begin=$(clock)
    compile_bad_ucx
    for one in ${mpi//,/ }; do
        compile_programs "$one" buffers overwrite
        for line in "${lines[@]}"; do
            [[ ! $line =~ $only ]] || run_case "$one" "$line"
        done
    done
    say
    if [ "$only" = '.*' ] && [ "$failed" -eq 0 ]; then
        python3 "$cases_py" table "$table_dir"
        [ -z "$write" ] || python3 "$cases_py" write "$table_dir" "$uci_root/docs/symptoms.md"
    else
        say "no table: that takes all cases, and none that has failed"
    fi
    end_of_jobs "$begin"
}

main "$@"
