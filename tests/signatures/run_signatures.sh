#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/signatures/run_signatures.sh [options]
#
# Are types compared, and what does not match told, of each form of point to point, each constructor, and each collective, in C and by Fortran's three
# bindings, and nothing else? Beside that: faults, settings, processes without the library or with that of another MPI, uci_run --signatures. Ends with the line
# "N passed, N failed, N skipped"; exit status 1 if any failed.
#
#   --mpi LIST        openmpi,mpich (default both)
#   --build DIR       default build/
#   --timeout S       limit for each job (default 60)
#   --help            this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

signatures_dir=$uci_root/tests/signatures
programs_dir=$signatures_dir

mpi=openmpi,mpich
build=${TEST_BUILD_DIR:-$uci_root/build}
timeout=60
bindings=(by_mpifh by_mpi by_mpi_f08)
right_programs=(truncate datatypes pack mprobe persistent cancel)
right_collectives=(coll_blocking coll_nonblocking coll_neighbor intercomm comms threads)

refuse() {
    verdict=FAIL
    reason=${reason:+$reason; }$1
}

# companion MPI: its library.
companion() {
    printf '%s' "$build/mpi/libuci_mpi_$1.so"
}

# run_signed MPI PROGRAM TLS ARGUMENTS [NAME=VALUE]...: with both libraries, and $ranks ranks.
ranks=2
run_signed() {
    local one=$1 program=$2 tls=$3 words=$4
    shift 4
    run_program "$program" "$one" "$tls" "$ranks" "$library:$(companion "$one")" "$timeout" "$words" \
        "UCI_EVENTS=$run_dir/events.%r" "$@"
}

# counter NAME [RANK]: of the last run's statistics, of rank 1 by default.
counter() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$run_stats/${2:-1}".*.json "$1" || printf 'none'
}

# expect_counter NAME VALUE [RANK]
expect_counter() {
    local value
    value=$(counter "$1" "${3:-1}")
    [ "$value" = "$2" ] || refuse "$1 is $value, should be $2"
}

report_case() {
    printf '%-5s %6s s  %-8s %s  %s\n' "$verdict" "$duration" "$1" "$2" "$reason"
    count_job "$1 $2" "signatures $1 $2"
}

# judge_told MPI NAME [--faults]: what was told is what the program says.
judge_told() {
    if [ "$verdict" = PASS ]; then
        cat "$run_dir"/events.* >"$run_dir/all.events" 2>/dev/null || true
        python3 "$signatures_dir/judge.py" "${@:3}" "$run_log" "$run_dir/all.events" "$run_stats"/1.*.json >"$run_dir/judged" 2>&1 ||
            refuse "what was told is not what should be"
        cat "$run_dir/judged" >>"$run_log"
    fi
    report_case "$1" "$2"
}

# compile_fortran MPI PREFIX SOURCE: what the bindings of mpif.h take for a mismatch of arguments is what they are for.
compile_fortran() {
    local name
    for name in "${bindings[@]}"; do
        [ ! "$work_dir/$1/$2$name" -nt "$signatures_dir/$3" ] || continue
        "mpif90.$1" -w -fallow-argument-mismatch -O1 "-D${name^^}" "-DBINDING='$2$name'" "$signatures_dir/$3" \
            -o "$work_dir/$1/$2$name" || die "$2$name does not compile"
    done
}

test_types() {
    local one=$1 name
    run_signed "$one" cases posix,self ''
    judge_told "$one" 'cases posix,self'
    run_signed "$one" cases tcp,self ''
    judge_told "$one" 'cases tcp,self'
    run_signed "$one" cases posix,self threads
    judge_told "$one" 'cases, MPI_THREAD_MULTIPLE'
    run_signed "$one" cases posix,self '' UCI_FAULT=rate=0.05,seed=3,target=payload+header
    judge_told "$one" 'cases with faults' --faults
    for name in "${bindings[@]}"; do
        run_signed "$one" "$name" posix,self ''
        judge_told "$one" "$name"
    done
}

# Each collective, and each way not to match, where the program can go on all the same; then those where it can't, which end before.
test_collectives() {
    local one=$1 name
    ranks=3
    for name in collectives "${bindings[@]/#/collectives_}"; do
        run_signed "$one" "$name" posix,self all UCI_SIGNATURES=all
        judge_told "$one" "$name" --collectives
    done
    run_signed "$one" collectives tcp,self 'all threads' UCI_SIGNATURES=all UCI_FAULT=rate=0.05,seed=3,target=payload+header
    judge_told "$one" 'collectives with faults, MPI_THREAD_MULTIPLE' --collectives
    run_signed "$one" collectives posix,self all
    [ "$verdict" != PASS ] || expect_counter signatures_differ 0
    report_case "$one" 'collectives, and UCI_SIGNATURES=p2p'
    test_stops "$one" root 'rank 0 calls MPI_Bcast of 4 x MPI_INT, root 0, rank 1 calls MPI_Bcast of 4 x MPI_INT, root 1'
    test_stops "$one" operation 'rank 0 calls .* MPI_SUM, rank 2 calls .* an operation of the program;'
    test_stops "$one" call 'rank 0 calls MPI_Barrier, rank 1 calls MPI_Allreduce of 4 x MPI_INT, MPI_SUM'
    test_stops "$one" finalize 'rank 0 calls MPI_Barrier, rank 1 calls MPI_Finalize'
    ranks=2
}

# test_stops MPI CASE LINE
test_stops() {
    run_signed "$1" collectives posix,self "$2" UCI_SIGNATURES=all UCI_ON_SIGNATURE=abort
    verdict=PASS reason=
    grep -q "UCI WARN  collectives do not match: $3" "$run_log" || refuse "it was not told"
    grep -q 'UCI FATAL .*UCI_ON_SIGNATURE=abort' "$run_log" || refuse "it has not ended there"
    report_case "$1" "collectives $2, UCI_ON_SIGNATURE=abort"
}

# A rank that does not come is waited for, as ever, and that is told; then it comes.
test_waiting() {
    local one=$1 caller
    local told='UCI WARN  rank [02] of MPI_COMM_WORLD has been waiting for [0-9]* s in MPI_Barrier: rank [012], or one that it waits for, has not'
    rm -rf "$run_dir"
    until grep -qs "$told" "$run_dir"/{log,meet/stderr}; do sleep .1; done && touch "$run_dir/meet/come" &
    caller=$!
    ranks=3
    run_signed "$one" collectives posix,self missing UCI_SIGNATURES=all UCI_SIGNATURE_WAIT=1
    ranks=2
    kill "$caller" 2>/dev/null && refuse "it was not told"
    report_case "$one" 'a rank that comes late'
}

# Programs that are right, and have collectives: nothing is told, not even that a rank waits.
test_right_collectives() {
    local one=$1 name
    programs_dir=$lib_dir
    compile_programs "$one" "${right_collectives[@]}"
    for name in "${right_collectives[@]}"; do
        ranks=$(meta "$name" ranks)
        ranks=${ranks%% *}
        run_signed "$one" "$name" posix,self 0.1 UCI_SIGNATURES=all
        if [ "$verdict" = PASS ]; then
            expect_counter signatures_differ 0
            ! grep -q 'do not match\|has been waiting' "$run_log" || refuse "something was told"
            [ "$(counter signatures_compared)" -gt 0 ] || refuse "nothing was compared"
        fi
        report_case "$one" "tests/mpi/$name, UCI_SIGNATURES=all"
    done
    ranks=2
    programs_dir=$signatures_dir
}

# Programs that are right: nothing is told, though messages are cut off, packed, probed, cancelled.
test_right_programs() {
    local one=$1 name
    programs_dir=$lib_dir
    compile_programs "$one" "${right_programs[@]}"
    for name in "${right_programs[@]}"; do
        run_signed "$one" "$name" posix,self 0.1
        if [ "$verdict" = PASS ]; then
            expect_counter signatures_differ 0
            [ "$(counter signatures_compared)" -gt 0 ] || refuse "nothing was compared"
        fi
        report_case "$one" "tests/mpi/$name"
    done
    programs_dir=$signatures_dir
}

# A setting, and processes that lack something: the program runs on, and what is not compared is counted.
test_settings() {
    local one=$1
    run_signed "$one" cases posix,self '' UCI_SIGNATURES=off
    [ "$verdict" != PASS ] || { expect_counter signatures_compared 0; expect_counter signatures_differ 0; }
    report_case "$one" 'UCI_SIGNATURES=off'

    run_signed "$one" cases posix,self '' UCI_ON_SIGNATURE=abort
    verdict=PASS reason=
    grep -q 'UCI WARN  types do not match: 4 x MPI_INT were sent by rank 0 .* 2 x MPI_DOUBLE are received by MPI_Recv' "$run_log" ||
        refuse "it was not told"
    grep -q 'UCI FATAL .*UCI_ON_SIGNATURE=abort' "$run_log" || refuse "it has not ended there"
    report_case "$one" 'UCI_ON_SIGNATURE=abort'

    run_program cases "$one" posix,self 2 "$(companion "$one")" "$timeout" ''
    ! grep -q libuci_mpi "$run_log" || refuse "without UCI it has something to say"
    report_case "$one" 'without UCI'

    # only one rank knows types: what it receives comes without
    # shellcheck disable=SC2016  # for the shell of the rank
    rank_wrapper=(sh -c 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ]; then LD_PRELOAD=${LD_PRELOAD%:*}; export LD_PRELOAD; fi; exec "$@"' rank)
    run_signed "$one" cases posix,self ''
    rank_wrapper=()
    if [ "$verdict" = PASS ]; then
        expect_counter signatures_compared 0
        expect_counter signatures_missing "$(sed -n 's/^compared //p' "$run_log")"
        expect_counter signatures_compared 0 0
    fi
    report_case "$one" 'one rank tells no types'
}

# Shells and launchers load it too; all that it uses of an MPI is weak.
test_loading() {
    local one=$1 other=mpich strong
    verdict=PASS reason='' duration=0.0 run_log=$run_dir/log
    mkdir -p "$run_dir"
    [ "$one" != mpich ] || other=openmpi
    strong=$(nm -D "$(companion "$one")" | awk '$1 == "U" && $2 ~ /MPI|mpi/ { print $2 }')
    [ -z "$strong" ] || refuse "not weak: ${strong//$'\n'/ } (mpi/weak.sh)"
    LD_BIND_NOW=1 LD_PRELOAD=$(companion "$one") /bin/true >"$run_log" 2>&1 || refuse "a program without MPI does not load it"
    [ ! -s "$run_log" ] || refuse "it says something there"
    report_case "$one" 'in a program without MPI'

    [ -f "$(companion "$other")" ] || return 0
    run_program cases "$one" posix,self 2 "$library:$(companion "$other")" "$timeout" ''
    verdict=PASS reason=
    grep -q "libuci_mpi: the library .* uses another MPI: preload libuci_mpi_$one.so instead" "$run_log" || refuse "it is not told"
    report_case "$one" "with the library of $other"
}

# As users call it
test_run() {
    local one=$1 folder=$run_dir/job begin status=0
    verdict=PASS reason='' run_log=$run_dir/log
    mkdir -p "$run_dir"
    begin=$(clock)
    UCX_TLS=posix,self "$build/tools/uci_run" --signatures --folder "$folder" -n 2 "$work_dir/$one/cases" >"$run_log" 2>&1 || status=$?
    [ "$status" -eq 117 ] || refuse "exit status $status, should be 117"
    grep -q '^    types  .* compared; 9[0-9] do not match$' "$run_log" || refuse "the summary does not say so"
    "$build/tools/uci_report" --text "$folder" >>"$run_log" 2>&1 || refuse "no report"
    grep -q 'were sent, .* are received, by MPI_' "$run_log" || refuse "the report does not name them"
    duration=$(since "$begin")
    report_case "$one" 'uci_run --signatures, uci_report'
}

main() {
    local one begin
    set_options mpi build timeout -- "$@"
    build=$(realpath "$build")
    library=$(check_preload "$build/libucx_integrity.so")
    begin=$(clock)
    for one in ${mpi//,/ }; do
        [ -f "$(companion "$one")" ] || die "no $(companion "$one") (build with the headers of that MPI)"
        compile_programs "$one" cases collectives
        compile_fortran "$one" '' by_fortran.F90
        compile_fortran "$one" collectives_ collectives_by_fortran.F90
        test_types "$one"
        test_right_programs "$one"
        test_collectives "$one"
        test_waiting "$one"
        test_right_collectives "$one"
        test_settings "$one"
        test_loading "$one"
        test_run "$one"
    done
    end_of_jobs "$begin"
}

main "$@"
