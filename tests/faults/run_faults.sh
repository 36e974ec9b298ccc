#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/faults/run_faults.sh [options]
#
# Fault campaigns: MPI programs run while UCI's injector damages what they send, as a bad wire would. A job passes when
# the program finds every byte right AND the statistics say that faults were injected, every one of them noticed, and
# all of it healed. Beside them: the same with large messages by the get path; a real bug of UCX that loses 65,536 bytes, without any injector; the same faults with
# UCI_MODE=off, where the program must find wrong bytes; faults that cannot be healed, where the job must end with a
# report and not with wrong results; seeds and limits of the injector; peers that are busy, or quiet for long, which is no damage; frames that are lost, late or come twice; programs
# that write to buffers of sends. Ends with the line
# "N passed, N failed, N skipped"; exit status 1 if any failed.
#
#   (default)         every kind x target x rate once, MPI, transport and program changing from job to job
#   --quick           every kind x target once, the rate changing too, and waits of seconds under one MPI only: 70 seconds or less
#   --full            every kind x target x rate x MPI x transport x program: an hour or so
#   --mpi LIST        openmpi,mpich (default both)
#   --tls LIST        values of UCX_TLS with spaces between (default "posix,self posix,cma,self tcp,self")
#   --kinds LIST      bitflip,burst,zero,stale,swap,truncate (default all)
#   --targets LIST    payload,header,tree,ack,memory,any (default all)
#   --rates LIST      default 1e-4,1e-2,1
#   --programs LIST   those of tests/mpi to use (default storm and a dozen others)
#   --seed N          of the injector (default 1)
#   --only REGEX      only jobs whose line (see --list) matches
#   --preload PATH    default build/libucx_integrity.so
#   --timeout S       limit for each job (default 60)
#   --list            the jobs, and nothing else
#   --help            this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"
# shellcheck source=tests/faults/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mpis=openmpi,mpich
transports=$all_tls
kinds=bitflip,burst,zero,stale,swap,truncate
targets=payload,header,tree,ack,memory,any
rates=1e-4,1e-2,1
programs=storm,p2p_blocking,coll_blocking,p2p_nonblocking,datatypes,wildcard,mprobe,ordering,coll_nonblocking,probe
programs+=,persistent,eager_deadlock,self
seed=1
selection=default
only='.*'
preload=$uci_root/build/libucx_integrity.so
limit=60
list=

jobs=()     # "type program mpi tls kind target rate"

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --quick)    selection=quick ;;
        --full)     selection=full ;;
        --mpi)      mpis=${2:?}; shift ;;
        --tls)      transports=${2:?}; shift ;;
        --kinds)    kinds=${2:?}; shift ;;
        --targets)  targets=${2:?}; shift ;;
        --rates)    rates=${2:?}; shift ;;
        --programs) programs=${2:?}; shift ;;
        --seed)     seed=${2:?}; shift ;;
        --only)     only=${2:?}; shift ;;
        --preload)  preload=${2:?}; shift ;;
        --timeout)  limit=${2:?}; shift ;;
        --list)     list=1 ;;
        -h|--help)  usage_of "$0"; exit ;;
        *)          die "unknown option '$1' (see --help)" ;;
        esac
        shift
    done
}

# --- which jobs ---

add_job() {
    [[ "$*" =~ $only ]] || return 0
    jobs+=("$*")
}

# add_rotating TURN_RATES: take turns with MPI, transport and program (and rate, if TURN_RATES), shifted by one after
# as many jobs as there are kinds, so that no kind stays with the same ones.
add_rotating() {
    local mpi_list tls_list program_list kind_list rate_list kind target rate program n=0 column shift_by
    read -ra mpi_list <<<"${mpis//,/ }"
    read -ra tls_list <<<"$transports"
    read -ra program_list <<<"${programs//,/ }"
    read -ra kind_list <<<"${kinds//,/ }"
    read -ra rate_list <<<"${rates//,/ }"
    for target in ${targets//,/ }; do
        for kind in ${kinds//,/ }; do
            for rate in ${1:-${rates//,/ }}; do
                shift_by=$((n / ${#kind_list[@]})) column=$((n % ${#kind_list[@]}))
                program=${program_list[$((n % ${#program_list[@]}))]}
                [ -z "$1" ] || rate=${rate_list[$(((column + 2 * shift_by + 1) % ${#rate_list[@]}))]}
                add_job heal "$program" \
                    "${mpi_list[$(((column + shift_by) % ${#mpi_list[@]}))]}" \
                    "${tls_list[$(((column / 2 + shift_by) % ${#tls_list[@]}))]}" "$kind" "$target" "$rate"
                n=$((n + 1))
            done
        done
    done
}

# Large messages by the get path, where faults are injected at the other end.
add_fetch() {
    local kind target
    for kind in ${kinds//,/ }; do
        add_job fetch storm "$1" tcp,self "$kind" payload 1e-1
    done
    for target in header tree ack; do
        add_job fetch p2p_nonblocking "$1" tcp,self bitflip "$target" 1e-1
    done
    add_job fetch p2p_nonblocking "$1" tcp,self any payload+repair 1e-1
    add_job fetch storm "$1" tcp,self any any 1e-2
}

# The same by the bounce path, non-contiguous messages too.
add_bounce() {
    local target
    for target in payload header tree ack; do
        add_job bounce p2p_nonblocking "$1" tcp,self any "$target" 1e-1
    done
    add_job bounce datatypes "$1" tcp,self any any 1e-2
    add_job bounce p2p_nonblocking "$1" tcp,self any payload+memory+repair 1e-1
}

add_full() {
    local mpi tls program kind target rate
    for mpi in ${mpis//,/ }; do
        for tls in $transports; do
            for program in ${programs//,/ }; do
                for target in ${targets//,/ }; do
                    for kind in ${kinds//,/ }; do
                        for rate in ${rates//,/ }; do
                            add_job heal "$program" "$mpi" "$tls" "$kind" "$target" "$rate"
                        done
                    done
                done
            done
        done
    done
}

select_jobs() {
    local mpi
    for mpi in ${mpis//,/ }; do
        add_job bug-plain lost_bytes "$mpi" posix,self - - -
        add_job bug-with-uci lost_bytes "$mpi" posix,self - - -
        add_job off p2p_blocking "$mpi" posix,self any payload 1
        add_job unhealable p2p_blocking "$mpi" posix,self bitflip payload+repair 1
        # header and payload of one small message, whose digest is then that of another one
        add_job heal eager_deadlock "$mpi" posix,self bitflip any 1e-1
        # Open MPI waits in a worker of osc/ucx for a rank that needs a repair by pml/ucx
        add_job heal rma "$mpi" posix,self any any 1e-2
        add_job changed changed "$mpi" posix,self bitflip payload 1
        add_job changed-abort changed "$mpi" posix,self bitflip payload 1
        add_job kept changed "$mpi" posix,self any memory 5e-1
        add_job patience outstanding "$mpi" posix,self any header 1e-3
        # these wait for seconds, by UCI's own clock, whatever MPI it is
        if [[ $selection != quick || $mpi = "${mpis%%,*}" ]]; then
            add_job patience quiet "$mpi" posix,self any header 5e-2
            add_job order sleeper "$mpi" tcp,self any header 5e-2
        fi
        if [[ $selection != quick || $mpi = "${mpis##*,}" ]]; then
            add_job order crossing "$mpi" posix,cma,self any any 1e-2
            add_job hours quiet "$mpi" posix,self - - -
        fi
        add_job answers synchronous "$mpi" posix,cma,self any ack 1e-1
        add_job order ordering "$mpi" posix,self any frame 1e-2
        add_job order storm "$mpi" tcp,self any frame+header 1e-2
        add_fetch "$mpi"
        add_bounce "$mpi"
        [ "$selection" != quick ] || continue
        add_job off storm "$mpi" tcp,self bitflip payload 1e-2
        add_job unhealable storm "$mpi" tcp,self any payload+repair 1
        add_job seed p2p_blocking "$mpi" posix,self any payload 1e-2
        add_job count p2p_blocking "$mpi" tcp,self any payload 1
    done
    case $selection in
    quick) add_rotating turn ;;
    full)  add_full ;;
    *)     add_rotating '' ;;
    esac
    [ ${#jobs[@]} -gt 0 ] || die "nothing fits these options"
}

# --- the jobs: each sets verdict and reason, as run_program does ---

# Settings under which UCX 1.13.1 to 1.20.1 counts a fragment's length in 16 bits.
bug_settings=(UCX_POSIX_SEG_SIZE=128k UCX_RNDV_THRESH=inf)

# The bug must show without UCI: else the next job would prove nothing.
run_bug-plain() {
    run_program lost_bytes "$2" "$3" 2 '' "$limit" "1" "${bug_settings[@]}"
    must_say 'received 34464 of 100000 .*wrong contents'
}

run_bug-with-uci() {
    run_program lost_bytes "$2" "$3" 2 "$preload" "$limit" "1" "${bug_settings[@]}"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_clean[@]}" || refuse_stats
}

# Without protection the same faults must reach the program. Small messages are spared: MPI lives on them.
run_off() {
    local program=$1 mpi=$2 tls=$3 kind=$4 target=$5 rate=$6
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "$(scale_of "$program")" UCI_MODE=off \
        "$(fault_setting "$kind" "$target" "$rate" ,min=1000)"
    must_say 'CHECK FAILED .*(wrong contents|wrong status)'
}

# What repairs bring is damaged too: the job must end, by UCI's own report, before the program sees a wrong byte.
run_unhealable() {
    local program=$1 mpi=$2 tls=$3 kind=$4 target=$5 rate=$6
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "$(scale_of "$program")" \
        "$(fault_setting "$kind" "$target" "$rate" ,min=1000)"
    must_say 'UCI +(ERROR|FATAL)'
    if grep -q 'wrong contents' "$run_log"; then
        refuse "the program saw wrong bytes"
    fi
}

# As heal, with messages that are fetched.
run_fetch() {
    local -x UCI_PATH=get
    run_heal "$@"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 'get_messages > 0' || refuse_stats
}

run_bounce() {
    local -x UCI_PATH=bounce
    run_heal "$@"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 'bounce_messages > 0' || refuse_stats
}

# The program writes to buffers of pending sends: told as such, and never as damage that was repaired.
run_changed() {
    run_heal "$@"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 'source_changed > 0' || { refuse_stats; return; }
    grep -q 'UCI WARN  source changed: the program has written to bytes 0\.\.' "$run_log" || refuse 'no line says what was changed'
}

run_changed-abort() {
    run_program "$1" "$2" "$3" 2 "$preload" "$limit" 1 UCI_ON_CHANGED=abort "$(fault_setting "$4" "$5" "$6" ,min=1000)"
    must_say 'UCI FATAL .*UCI_ON_CHANGED=abort'
}

# Messages that are complete for their sender, and damaged where they lie.
run_kept() {
    run_heal "$@"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 'buffered_messages > 0' || refuse_stats
}

# Questions that have no answer yet.
run_patience() {
    local program=$1 mpi=$2 tls=$3 ranks=2
    [ "$program" != quiet ] || ranks=3
    run_program "$program" "$mpi" "$tls" "$ranks" "$preload" "$limit" 0.35 "$(fault_setting "$4" "$5" "$6")"
    [ "$verdict" = PASS ] || return 0
    check_stats "$ranks" "${stats_always[@]}" 'mismatched_control > 0' || refuse_stats
}

# Whole frames are lost, late, or come twice, as no UCX has it: nothing is damaged, and none of it noticed but by the link.
run_order() {
    local ranks=2
    [ "$1" != sleeper ] || ranks=3
    run_program "$1" "$2" "$3" "$ranks" "$preload" "$limit" 1 "$(fault_setting "$4" "$5" "$6")"
    [ "$verdict" = PASS ] || return 0
    check_stats "$ranks" "${stats_always[@]}" 'faults_injected > 0' 'frames_resent > 0' || refuse_stats
}

# Answers are damaged: what is asked again is little, and nobody waits at the end for answers that nobody wants.
run_answers() {
    run_program "$1" "$2" "$3" 2 "$preload" "$limit" 0.25 "$(fault_setting "$4" "$5" "$6")"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" 'mismatched_control > 0' \
        'control_sent <= 1.25 * messages_received + 8 * faults_injected' || refuse_stats
}

# A peer that is quiet for three quarters of an hour, in 2 seconds.
run_hours() {
    local clock=$work_dir/fast_clock.so
    gcc -O2 -Wall -Wextra -Werror -shared -fPIC "$uci_root/tests/faults/fast_clock.c" -o "$clock" -ldl || die "fast_clock.c does not compile"
    run_program "$1" "$2" "$3" 3 "$preload:$clock" "$limit" 0.2 FAST_CLOCK=1750
    [ "$verdict" = PASS ] || return 0
    check_stats 3 "${stats_always[@]}" "${stats_clean[@]/retransmitted_bytes == 0/control_sent > 40}" || refuse_stats
}

# The same seed must bring the same faults.
run_seed() {
    local first
    run_heal "$@"
    [ "$verdict" = PASS ] || return 0
    first=$(stats_value faults_injected)
    run_heal "$@"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "faults_injected == $first" || refuse "the same seed gave $first faults, then others: $stats_line"
}

# count=3: that many faults in each process and no more.
run_count() {
    local program=$1 mpi=$2 tls=$3 kind=$4 target=$5 rate=$6
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "$(scale_of "$program")" \
        "$(fault_setting "$kind" "$target" "$rate" ,count=3)"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_faulty[@]}" 'faults_injected == 6' ||
        refuse_stats
}

# --- running them ---

compile_selected() {
    local mpi names
    mapfile -t names < <(printf '%s\n' "${jobs[@]}" | awk '{ print $2 }' | sort -u)
    for mpi in ${mpis//,/ }; do
        compile_programs "$mpi" "${names[@]}"
    done
}

run_job() {
    local type program mpi tls kind target rate
    read -r type program mpi tls kind target rate <<<"$1"
    stats_line='' reason=''
    "run_$type" "$program" "$mpi" "$tls" "$kind" "$target" "$rate"
    printf '%-4s %5s s  %-12s %-16s %-7s %-14s %-8s %-14s %-5s %s\n' "$verdict" "$duration" "$type" "$program" "$mpi" \
        "$tls" "$kind" "$target" "$rate" "${reason:-$(head -n 1 <<<"$stats_line")}"
    count_job "$1" "$1"
}

main() {
    local job begin
    parse_options "$@"
    select_jobs
    if [ -n "$list" ]; then
        printf '%s\n' "${jobs[@]}"
        return
    fi
    preload=$(check_preload "$preload")
    [ -n "$preload" ] || die "faults need a preload"
    say "preload: $preload"
    compile_selected
    say "running ${#jobs[@]} jobs"
    begin=$(clock)
    for job in "${jobs[@]}"; do
        run_job "$job"
    done
    end_of_jobs "$begin"
}

main "$@"
