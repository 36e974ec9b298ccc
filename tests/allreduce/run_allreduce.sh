#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/allreduce/run_allreduce.sh [options]
#
# All-reduces by node (docs/allreduce.md), on two and on four hosts that are network namespaces of this machine (root): is each result, to the last
# bit, what the documented order of operations gives? Ranks spread evenly and unevenly, Fortran, settings that differ, messages that are damaged,
# and memory shared by a node's ranks that a stray store damages. Each number of hosts ends with the line "N passed, N failed, N skipped"; exit
# status 1 if any failed.
#
#   --mpi LIST        openmpi,mpich (default both)
#   --build DIR       default build/; one with -Db_sanitize=address is run with it
#   --timeout S       limit for each job (default 120)
#   --hosts LIST      numbers of hosts (default 2,4)
#   --quick           less of each: for CI
#   --help            this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

allreduce_dir=$uci_root/tests/allreduce
programs_dir=$allreduce_dir

mpi=openmpi,mpich
build=${TEST_BUILD_DIR:-$uci_root/build}
timeout=120
hosts=2,4
quick=
inside= # number of hosts: this is the script's second start, on the first of them
bindings=(by_mpifh by_mpi by_mpi_f08)
preloads=
sanitizer=() # settings, and first_preload the runtime, of a build with ASan
first_preload=

refuse() {
    verdict=FAIL
    reason=${reason:+$reason; }$1
}

# run_on MPI WHERE PROGRAM ARGUMENTS [NAME=VALUE]...: on hosts as in "2:1", ranks of each of them.
run_on() {
    local one=$1 where=$2 program=$3 words=$4 spec='' ranks=0 number letter
    shift 4
    for letter in a b c d; do
        number=${where%%:*}
        spec+=${spec:+,}uci-$letter:$number
        ranks=$((ranks + number))
        [[ $where == *:* ]] || break
        where=${where#*:}
    done
    launch_options=(--host "$spec")
    [ "$one" = openmpi ] || launch_options=(-hosts "$spec")
    run_program "$program" "$one" tcp,self "$ranks" "$first_preload$library:$build/mpi/libuci_mpi_$one.so${preloads:+:$preloads}" \
        "$timeout" "$words" ${sanitizer[@]+"${sanitizer[@]}"} "$@"
}

# expect CONDITION...: on the summed counters of the last run, if it has passed.
expect() {
    local one
    [ "$verdict" = PASS ] || return 0
    for one; do
        [ "$(stats_value "$one")" = True ] || refuse "not: $one ($(stats_value "${one%% *}"))"
    done
}

report_case() {
    printf '%-5s %6s s  %-8s %s  %s\n' "$verdict" "$duration" "$1" "$2" "$reason"
    count_job "$1 $2" "allreduce $1 $2"
}

# right_case MPI WHERE PROGRAM ARGUMENTS [NAME=VALUE]...: it is done by node, and the result is right.
right_case() {
    run_on "$@" UCI_ALLREDUCE=on
    expect 'allreduces > 0' 'allreduce_damaged == 0' 'unrepaired_chunks == 0'
    report_case "$1" "$2 ranks: $3 $4 ${*:5}"
}

# left_case MPI WHERE NAME [NAME=VALUE]...: it is left to the MPI.
left_case() {
    run_on "$1" "$2" steady '20 64' "${@:4}"
    expect 'allreduces == 0'
    report_case "$1" "$2 ranks: left to the MPI: $3"
}

compile_fortran() {
    local one=$1 name
    for name in "${bindings[@]}"; do
        [ ! "$work_dir/$one/allreduce_$name" -nt "$allreduce_dir/by_fortran.F90" ] || continue
        "mpif90.$one" -w -fallow-argument-mismatch -O1 "-D${name^^}" "-DBINDING='allreduce_$name'" "$allreduce_dir/by_fortran.F90" \
            -o "$work_dir/$one/allreduce_$name" || die "$name does not compile"
    done
}

# flipped_case MPI HOW ARGUMENTS [NAME=VALUE]...: a rank's memory is damaged in HOW.
flipped_case() {
    preloads=$work_dir/flip.so
    run_on "$1" 2:2 steady "$3" UCI_ALLREDUCE=on FLIP="$2" "${@:4}"
    preloads=
}

# What goes between nodes is sealed, and then it is by node wherever the model says so
test_sealed() {
    local one=$1 key=$run_dir.key
    (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$key" && echo >>"$key")
    run_on "$one" 2:2 sums '64 few' UCI_ALLREDUCE=on UCI_SEAL=encrypt UCI_KEY_FILE="$key"
    expect 'allreduces > 0' 'sealed_records > 0' 'sealed_rejected == 0' 'unrepaired_chunks == 0'
    report_case "$one" '2:2 ranks: sums, sealed'
    run_on "$one" 2:2 steady '10 4096' UCI_SEAL=sign UCI_KEY_FILE="$key"
    expect 'allreduces > 0' 'sealed_rejected == 0'
    report_case "$one" '2:2 ranks: steady, signed, as the model says'
    left_case "$one" 2:2 'UCI_SEAL_SCOPE=all' UCI_ALLREDUCE=on UCI_SEAL=encrypt UCI_SEAL_SCOPE=all UCI_KEY_FILE="$key"
    rm -f "$key"
}

test_damage() {
    local one=$1
    flipped_case "$one" data '200 256' FLIP_US=50
    expect 'allreduce_damaged > 0'
    grep -q 'UCI WARN  all-reduce of 262144 bytes by node: bytes .* arrived damaged in memory .* repaired by' "$run_log" || refuse "it was not told"
    report_case "$one" 'shared memory is damaged, and repaired'

    # counters: their owners put them right, or it ends and says why
    flipped_case "$one" seats '200 64' FLIP_US=500
    [ "$verdict" = PASS ] || ! grep -q "UCI FATAL all-reduce .* a rank's counter is damaged" "$run_log" || verdict=PASS reason='ended, and said so'
    grep -q '^flip: [1-9]' "$run_log" || [ -n "$reason" ] || refuse "nothing was damaged"
    report_case "$one" 'counters are damaged'

    # whether it is set again between writing and reading, three times one after the other, is for the scheduler: if not, all was repaired
    # whether it is at all is too: a job in which nothing was hit says nothing, and there is another one
    for _ in 1 2 3 4 5 6 7 8; do
        flipped_case "$one" stuck '300 256'
        expect 'allreduce_damaged > 0'
        [[ $reason == *'allreduce_damaged > 0 (0)'* ]] || break
    done
    if [ "$verdict" = FAIL ] && grep -q 'UCI FATAL all-reduce .* and did again 3 times' "$run_log"; then
        verdict=PASS reason='ended, and said so'
    fi
    report_case "$one" 'a bit is set again and again: repaired, or ended with a report'
}

test_two_hosts() {
    local one=$1 name
    run_on "$one" 2:2 sums '64 few' UCI_ALLREDUCE=on UCI_CHECK_SOURCES=on UCI_EAGER_MAX=1k
    expect 'allreduces > 0' 'sources_checked > 0' 'source_changed == 0' 'source_changed_late == 0'
    report_case "$one" '2:2 ranks: sums, and what is being sent is left alone'
    right_case "$one" 3:2 sums '16 few' # one rank is no leader
    right_case "$one" 2:2 allreduce_by_mpi_f08 ''
    # shellcheck disable=SC2016  # for the shell of the rank
    rank_wrapper=(sh -c '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] || export UCI_ALLREDUCE=on; exec "$@"' rank)
    left_case "$one" 2:2 'ranks do not agree'
    rank_wrapper=()
    test_damage "$one"
    test_sealed "$one"
    [ -z "$quick" ] || return 0

    right_case "$one" 2:2 sums 256
    right_case "$one" 1:1 sums '64 few'
    right_case "$one" 1:3 sums '64 few'
    right_case "$one" 2:2 sums '64 few' UCI_FAULT=rate=0.01,seed=5,target=payload+header
    right_case "$one" 2:2 steady '300 64'
    right_case "$one" 2:2 steady '2 65536'
    for name in "${bindings[@]}"; do
        right_case "$one" 2:2 "allreduce_$name" ''
    done
    left_case "$one" 2 'one host' UCI_ALLREDUCE=on
    left_case "$one" 2:2 'not sealed'
    left_case "$one" 2:2 UCI_ALLREDUCE=off UCI_ALLREDUCE=off
}

test_four_hosts() {
    local one=$1
    right_case "$one" 1:1:1 sums '16 few'
    right_case "$one" 2:2:2:2 steady '10 1024'
    [ -z "$quick" ] || return 0
    right_case "$one" 2:1:1:2 sums '64 few'
    right_case "$one" 1:1:1:1 sums '256 few'
}

run_inside() {
    local one
    begin=$(clock)
    for one in ${mpi//,/ }; do
        if [ "$inside" -eq 2 ]; then
            test_two_hosts "$one"
        else
            test_four_hosts "$one"
        fi
    done
    end_of_jobs "$begin" "$inside hosts"
}

main() {
    local one number status=0
    set_options mpi build timeout hosts quick! inside -- "$@"
    build=$(realpath "$build")
    library=$(check_preload "$build/libucx_integrity.so")
    first_preload=$(ldd "$build/libucx_integrity.so" | awk '/libasan/ { print $3 ":" }')
    [ -z "$first_preload" ] ||
        sanitizer=(ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1)
    [ -z "$inside" ] || { run_inside; exit; }
    if [ "$(id -u)" -ne 0 ]; then
        say "skip: network namespaces are made by root"
        say "0 passed, 0 failed, 1 skipped"
        exit
    fi
    for one in ${mpi//,/ }; do
        [ -f "$build/mpi/libuci_mpi_$one.so" ] || die "no $build/mpi/libuci_mpi_$one.so (build with the headers of that MPI)"
        compile_programs "$one" sums steady
        compile_fortran "$one"
    done
    gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC "$allreduce_dir/flip.c" -o "$work_dir/flip.so" -lpthread
    for number in ${hosts//,/ }; do
        "$uci_root/tools/two_hosts.sh" -n "$number" "$0" --mpi "$mpi" --build "$build" --timeout "$timeout" ${quick:+--quick} --inside "$number" ||
            status=$?
    done
    return "$status"
}

main "$@"
