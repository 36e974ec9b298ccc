#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/mpi/run_ending.sh [options]
#
# Programs that end in every way (ending.c): the last message of a job, of every kind and size, by every path; the sides call
# MPI_Finalize at once, early or late; each control message intact or damaged. Every job has to end, with the right bytes.
# Ends with the line "N passed, N failed, N skipped"; exit status 1 if any failed.
#
#   --quick           a fixed choice: endings that have hung once, and their neighbours (default)
#   --count N         N endings drawn from all combinations instead
#   --seed N          which ones, and the seed of the injector (default 1)
#   --mpi LIST        openmpi,mpich (default both)
#   --tls LIST        values of UCX_TLS with spaces between (default "posix,self posix,cma,self tcp,self")
#   --filter REGEX    only endings whose name contains a match; names look like "mpich/tcp,self/get/send 100/before=0,20/ack"
#   --preload PATH    what to preload, several with spaces or colons between (default build/libucx_integrity.so)
#   --timeout S       limit for each job (default 20)
#   --repeat N        run each N times
#   --list            the names of what would run
#   --help            this text
#
# Logs of failures stay in build/mpi/logs.
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mpi=openmpi,mpich tls=$all_tls filter='' preload=$uci_root/build/libucx_integrity.so
quick=0 count=0 seed=1 timeout=20 repeat=1 list=0
endings=() # "MPI|TLS|path|what|when|fault"

# What is sent, as ending.c's words; sizes lie at both sides of the borders between the ways that a message may take.
what=(
    'send 100' 'ssend 100' 'send 5000' 'ssend 5000' 'send 40000' 'send 300000' 'send 786433' 'send 4194304' 'ssend 4194304'
    'isend 100,5000,40000,786433 8' 'isend 1100000 6' 'cross 100 4' 'cross 786433' 'pingpong 100,40000 4' 'pingpong 4194304 2'
    'send 100,5000,40000,786433 4 left=3' 'ssend 40000 1 left=20' 'send 0 0'
)
when=(
    '' 'before=0,20' 'before=20,0' 'after=0,50' 'after=50,0' 'before=0,100' 'before=0,5 after=0,20' 'before=0,30 after=10,0'
    'before=0,20 after=100,0' 'before=20,0 after=0,100'
)
fault=(none ack header any 'any@1e-2' 'any@5e-2' 'any+repair@1e-2' 'ack+header@0.5')
path=(auto stream get bounce)

# words_of WHAT WHEN: "send 100 4 left=3" as "kind=send bytes=100 count=4 left=3".
words_of() {
    local kind bytes number rest
    read -r kind bytes number rest <<<"$1"
    say "kind=$kind bytes=$bytes count=${number:-1} $rest $2"
}

# settings_of PATH FAULT: a line for each setting.
settings_of() {
    local target=${2%@*} rate=1
    [ "$1" = auto ] || say "UCI_PATH=$1"
    [ "$2" != none ] || return 0
    [[ $2 != *@* ]] || rate=${2#*@}
    say "UCI_FAULT=rate=$rate,target=$target,seed=$seed"
}

# add MPI TLS PATH WHAT WHEN FAULT
add() {
    local name="$1/$2/$3/$4/$5/$6"
    if [[ ",$mpi," == *",$1,"* && " $tls " == *" $2 "* && $name =~ $filter ]]; then
        endings+=("$1|$2|$3|$4|$5|$6")
    fi
}

choose_quick() {
    local one_mpi one_tls
    for one_mpi in mpich openmpi; do
        for one_tls in $all_tls; do
            add "$one_mpi" "$one_tls" auto 'ssend 100' '' ack
            add "$one_mpi" "$one_tls" auto 'send 4194304' '' ack
            add "$one_mpi" "$one_tls" auto 'isend 100,5000,40000,786433 8' 'before=0,30 after=10,0' 'any@5e-2'
            add "$one_mpi" "$one_tls" auto 'cross 786433' 'after=0,50' 'any+repair@1e-2'
        done
        add "$one_mpi" tcp,self auto 'send 786433' 'before=0,20' none
        add "$one_mpi" tcp,self auto 'send 786433' 'before=0,30 after=10,0' none
        add "$one_mpi" tcp,self bounce 'send 786433' 'before=0,20' none
        add "$one_mpi" tcp,self stream 'send 786433' 'before=0,20' header
        add "$one_mpi" tcp,self auto 'pingpong 4194304 2' '' 'any@1e-2'
        add "$one_mpi" tcp,self auto 'send 100,5000,40000,786433 4 left=3' 'before=0,100' any
    done
}

# pick VALUE...: set picked to one of them. (Not in a shell of its own, which would draw the same each time.)
pick() {
    shift $((RANDOM % $#))
    picked=$1
}

choose_at_random() {
    local all one_mpi one_tls one_path one_what one_when i picked
    RANDOM=$seed
    read -ra all <<<"$all_tls"
    for ((i = 0; ${#endings[@]} < count && i < 1000 * count; ++i)); do
        pick mpich openmpi && one_mpi=$picked
        pick "${all[@]}" && one_tls=$picked
        pick "${path[@]}" && one_path=$picked
        pick "${what[@]}" && one_what=$picked
        pick "${when[@]}" && one_when=$picked
        pick "${fault[@]}"
        add "$one_mpi" "$one_tls" "$one_path" "$one_what" "$one_when" "$picked"
    done
}

run_ending() {
    local one_mpi one_tls one_path one_what one_when one_fault name settings
    IFS='|' read -r one_mpi one_tls one_path one_what one_when one_fault <<<"$1"
    name="$one_mpi/$one_tls/$one_path/$one_what/$one_when/$one_fault"
    mapfile -t settings < <(settings_of "$one_path" "$one_fault")
    # up to 1 MiB a send ends before it is received
    run_program ending "$one_mpi" "$one_tls" 2 "$preload" "$timeout" "1 $seed $(words_of "$one_what" "$one_when")" UCX_RNDV_THRESH=1m \
        ${settings[@]+"${settings[@]}"}
    if [ "$verdict" = PASS ] && ! check_stats 2 "${stats_always[@]}"; then
        verdict=FAIL
        reason=$(tail -n +2 <<<"$stats_line" | paste -sd';')
    fi
    say "$verdict $name${reason:+: $reason}"
    count_job "$name" "ending.$name.$failed"
}

main() {
    local begin ending i
    set_options quick! count seed mpi tls filter preload timeout repeat list! -- "$@"
    if [ "$quick" = 0 ] && [ "$count" -gt 0 ]; then
        choose_at_random
    else
        choose_quick
    fi
    [ ${#endings[@]} -gt 0 ] || die "nothing fits these options"
    if [ "$list" = 1 ]; then
        printf '%s\n' "${endings[@]}" | tr '|' '/'
        return
    fi
    preload=$(check_preload "$preload")
    for i in ${mpi//,/ }; do
        compile_programs "$i" ending
    done
    begin=$(clock)
    for ending in "${endings[@]}"; do
        for ((i = 0; i < repeat; ++i)); do
            run_ending "$ending"
        done
    done
    end_of_jobs "$begin"
}

main "$@"
