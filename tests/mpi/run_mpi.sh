#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/mpi/run_mpi.sh [options]
#
# Builds the MPI test programs of this folder and runs them under Open MPI and MPICH, over UCX, with UCI preloaded:
# every program x MPI x transport x number of ranks that it is meant for, one at a time. With UCI each job's statistics
# are checked too: UCI was in every process, messages went through it, nothing stayed broken, and without UCI_FAULT
# nothing was found broken. Ends with a table and the line "N passed, N failed, N skipped"; exit status 1 if any failed.
#
#   --mpi LIST        openmpi,mpich (default both)
#   --tls LIST        values of UCX_TLS with spaces between, or repeat (default "posix,self posix,cma,self tcp,self")
#   --np LIST         numbers of ranks, as 2,4 (default: what each program is meant for)
#   --quick           posix,cma,self with two ranks only: more of them say no more of what it has of its own, how two ranks move large messages
#   --filter REGEX    only programs whose whole name matches (extended regular expression)
#   --preload PATH    what to preload, several with spaces or colons between (default build/libucx_integrity.so);
#                     none: plain UCX
#   --plugin DIR      preload nothing: UCX loads UCI itself, as a module from DIR (UCX 1.22 or later)
#   --env NAME=VALUE  set in every process; repeat for more
#   --timeout S       limit for each job (default 60)
#   --scale F         amount of work instead of each program's own, 1 is normal
#   --seed N          contents and random choices (default 1)
#   --repeat N        run each N times, to find what fails rarely
#   --expect EXPR     a condition on the summed counters, as "rendezvous_messages > 0"; repeat for more
#   --expect-stats    check the statistics (default with a preload); --no-stats: do not
#   --list            what would run
#   --help            this text
#
# Logs of failures stay in build/mpi/logs.
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mpis=openmpi,mpich
transports=()
ranks=
filter='.*'
preload=$uci_root/build/libucx_integrity.so
settings=()
limit=60
scale=
seed=1
repeats=1
conditions=()
stats=auto
list=
quick=

jobs=()                 # "program mpi tls np"
declare -A cells=()     # what the table says of each
columns=()

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --mpi)          mpis=${2:?}; shift ;;
        --tls)          read -ra more <<<"${2:?}"; transports+=("${more[@]}"); shift ;;
        --np)           ranks=${2:?}; shift ;;
        --quick)        quick=1 ;;
        --filter)       filter=${2:?}; shift ;;
        --preload)      preload=${2:?}; shift ;;
        --plugin)       plugin=$(realpath "${2:?}"); preload=none; shift ;;
        --env)          [[ ${2:?} == *=* ]] || die "--env wants NAME=VALUE, not '$2'"; settings+=("$2"); shift ;;
        --timeout)      limit=${2:?}; shift ;;
        --scale)        scale=${2:?}; shift ;;
        --seed)         seed=${2:?}; shift ;;
        --repeat)       repeats=${2:?}; shift ;;
        --expect)       conditions+=("${2:?}"); shift ;;
        --expect-stats) stats=yes ;;
        --no-stats)     stats=no ;;
        --list)         list=1 ;;
        -h|--help)      usage_of "$0"; exit ;;
        *)              die "unknown option '$1' (see --help)" ;;
        esac
        shift
    done
    [ ${#transports[@]} -gt 0 ] || read -ra transports <<<"$all_tls"
    [ -n "$list" ] || preload=$(check_preload "$preload")
    [ "$stats" != auto ] || { [ -n "$preload$plugin" ] && stats=yes || stats=no; }
    [ "$stats" = no ] || [ -n "$preload$plugin" ] || die "--expect-stats needs a preload or a plugin"
}

# What the statistics must fulfil: conditions for all runs, and those for runs with or without faults.
complete_conditions() {
    local injecting=
    [[ ! " ${settings[*]:-}" == *" UCI_FAULT="?* ]] || injecting=1
    conditions+=("${stats_always[@]}")
    if [ -n "$injecting" ]; then
        conditions+=("${stats_faulty[@]}")
    else
        conditions+=("${stats_clean[@]}")
    fi
}

select_jobs() {
    local source name mpi tls np
    for mpi in ${mpis//,/ }; do
        for tls in "${transports[@]}"; do
            for source in "$programs_dir"/*.c; do
                name=$(basename "$source" .c)
                [[ $name =~ ^($filter)$ ]] || continue
                for np in $(meta "$name" ranks); do
                    [ -z "$ranks" ] || [[ ,$ranks, == *,$np,* ]] || continue
                    [ -z "$quick" ] || [ "$tls" != posix,cma,self ] || [ "$np" -le 2 ] || continue
                    jobs+=("$name $mpi $tls $np")
                done
            done
        done
    done
    [ ${#jobs[@]} -gt 0 ] || die "nothing fits these options"
}

list_jobs() {
    local job name mpi tls np reason
    for job in "${jobs[@]}"; do
        read -r name mpi tls np <<<"$job"
        reason=$(skip_reason "$name" "$mpi" "$tls")
        printf '%-20s %-8s %-15s %s ranks%s\n' "$name" "$mpi" "$tls" "$np" "${reason:+  skipped: $reason}"
    done
}

compile_selected() {
    local mpi names
    for mpi in ${mpis//,/ }; do
        mapfile -t names < <(printf '%s\n' "${jobs[@]}" | awk -v mpi="$mpi" '$2 == mpi { print $1 }' | sort -u)
        compile_programs "$mpi" "${names[@]}"
    done
}

# record JOB: note it for the table.
record() {
    local name mpi tls np column
    read -r name mpi tls np <<<"$1"
    column="$mpi $tls $np"
    [[ " ${columns[*]/%/;} " == *" $column; "* ]] || columns+=("$column")
    cells["$name/$column"]=$verdict
    [ "$verdict" != PASS ] || cells["$name/$column"]=$duration
}

# A job that is passed by its programs must have the statistics to show for it.
judge_stats() {
    local np=$1 name=$2 tls=$3 own=()
    stats_line=
    [ "$verdict" = PASS ] && [ "$stats" = yes ] || return 0
    [ ${#settings[@]} -gt 0 ] || mapfile -t own < <(expectations_of "$name" "$tls")
    check_stats "$np" "${conditions[@]}" ${own[@]+"${own[@]}"} && return
    verdict=FAIL
    reason="statistics: $(tail -n +2 <<<"$stats_line" | paste -sd';')"
    stats_line=$(head -n 1 <<<"$stats_line")
    cat "$run_stats"/*.json >>"$run_log" 2>/dev/null || true
    printf '%s\n' "$reason" "$stats_line" >>"$run_log"
}

run_job() {
    local name mpi tls np arguments
    read -r name mpi tls np <<<"$1"
    verdict=SKIP duration='' stats_line=
    reason=$(skip_reason "$name" "$mpi" "$tls")
    reason=${reason:-$(faultless_reason "$name" "$np" ${settings[@]+"${settings[@]}"})}
    if [ -z "$reason" ]; then
        arguments=$(arguments_of "$name" "$mpi" "$np")
        arguments=${scale:-${arguments:-1}}
        run_program "$name" "$mpi" "$tls" "$np" "$preload" "$limit" "$arguments $seed" ${settings[@]+"${settings[@]}"}
        judge_stats "$np" "$name" "$tls"
    fi
    printf '%-4s %6s s  %-19s %-7s %-14s %s  %s\n' "$verdict" "${duration:--}" "$name" "$mpi" "$tls" "$np" \
        "${reason:-$stats_line}"
    count_job "$1" "$1"
    record "$1"
}

# Programs down, MPI x transport x ranks across; seconds, or what went wrong.
print_table() {
    local column name mpi tls np
    say
    printf '%-19s' ''
    for column in "${columns[@]}"; do
        read -r mpi tls np <<<"$column"
        printf ' %8s' "${mpi/openmpi/ompi}/$np"
    done
    printf '\n%-19s' ''
    for column in "${columns[@]}"; do
        read -r mpi tls np <<<"$column"
        tls=${tls%,self}
        printf ' %8.8s' "${tls/posix,cma/cma}"
    done
    say
    while read -r name; do
        printf '%-19s' "$name"
        for column in "${columns[@]}"; do
            printf ' %8s' "${cells["$name/$column"]:--}"
        done
        say
    done < <(printf '%s\n' "${!cells[@]}" | cut -d/ -f1 | sort -u)
    say
}

main() {
    local job repeat begin
    parse_options "$@"
    select_jobs
    if [ -n "$list" ]; then
        list_jobs
        return
    fi
    complete_conditions
    say "preload: ${preload:-none${plugin:+, UCX module in $plugin}}${settings[*]:+; ${settings[*]}}"
    compile_selected
    say "running ${#jobs[@]} jobs"
    begin=$(clock)
    for ((repeat = 0; repeat < repeats; ++repeat)); do
        for job in "${jobs[@]}"; do
            run_job "$job"
        done
    done
    print_table
    end_of_jobs "$begin"
}

main "$@"
