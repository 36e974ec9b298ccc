#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/rdma/campaign.sh --list REGEX                the jobs
#        tests/rdma/campaign.sh REGEX PRELOAD LOGS          run them; in the guest
#
# A job is a line "group program transports mpi [arguments]". Groups:
#   clean   MPI programs: large, unaligned, non-contiguous, many in flight, buffers freed and reused. No false alarm.
#   heal    injected faults (kind target rate): counted, noticed, healed, every byte right
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"
# shellcheck source=tests/faults/lib.sh
source "$uci_root/tests/faults/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
seed=1
limit=60        # seconds for each job
jobs=(
    "clean storm           rc,self    openmpi"
    "clean p2p_nonblocking rc,self    openmpi 0.3"
    "clean datatypes       rc,self    openmpi 0.5"
    "clean reuse           rc,self    openmpi 0.5"
    "clean storm           rc,self    mpich"
    "clean datatypes       rc,self    mpich 0.5"
    "clean reuse           ud,self    openmpi 0.2"
    "clean storm           ud,self    mpich 0.5"
    "clean p2p_nonblocking rc,ud,self openmpi 0.1"
    "clean storm           rc,ud,self mpich 0.5"

    "heal p2p_blocking    rc,self    openmpi bitflip  payload 1e-2"
    "heal storm           rc,self    openmpi any      payload 1"
    "heal datatypes       rc,self    mpich   burst    payload 1e-2"
    "heal storm           rc,self    openmpi stale    any     1e-2"
    "heal p2p_nonblocking rc,self    mpich   zero     header  1e-2"
    "heal reuse           rc,self    openmpi swap     tree    1e-1"
    "heal reuse           rc,self    mpich   truncate payload 1e-1"
    "heal storm           ud,self    openmpi any      any     1e-2"
    "heal p2p_blocking    ud,self    mpich   bitflip  payload 1e-1"
    "heal storm           rc,ud,self openmpi any      ack     1e-1"
    "heal reuse           rc,ud,self mpich   swap     payload 1e-1"
)
groups=(clean heal)
columns=('rc,self' 'ud,self' 'rc,ud,self')
declare -A cells=()     # "group tls" -> passed, total

# --- the jobs: each sets verdict and reason, as run_program does ---

run_clean() {
    local program=$1 mpi=$2 tls=$3 scale=${4:-1}
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "$scale"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_clean[@]}" || refuse "$(tail -n +2 <<<"$stats_line" | paste -sd';')"
}

# --- running them ---

selected_jobs() {
    printf '%s\n' "${jobs[@]}" | awk '{ $1 = $1; print }' | grep -E -- "$1" || die "no job matches '$1'"
}

run_job() {
    local group program tls mpi rest arguments
    read -r group program tls mpi rest <<<"$1"
    read -ra arguments <<<"$rest"
    stats_line='' reason=''
    "run_$group" "$program" "$mpi" "$tls" "${arguments[@]}"
    printf '%-4s %5s s  %-6s %-16s %-11s %-8s %-22s %s\n' "$verdict" "$duration" "$group" "$program" "$tls" "$mpi" \
        "$rest" "${reason:-$(head -n 1 <<<"$stats_line")}"
    count_job "$group" "$tls"
    [ "$verdict" = PASS ] || keep_log "$1" 20
}

count_job() {
    local good total
    read -r good total <<<"${cells["$1 $2"]:-0 0}"
    if [ "$verdict" = PASS ]; then
        passed=$((passed + 1)) good=$((good + 1))
    else
        failed=$((failed + 1))
    fi
    cells["$1 $2"]="$good $((total + 1))"
}

# Groups down, transports across; passed of how many.
print_table() {
    local group column cell
    printf '\n%-10s' ''
    for column in "${columns[@]}"; do
        printf '%10s' "${column%,self}"
    done
    say
    for group in "${groups[@]}"; do
        printf '%-10s' "$group"
        for column in "${columns[@]}"; do
            cell=${cells["$group $column"]:-}
            printf '%10s' "${cell:+${cell/ //}}"
        done
        say
    done
    say
}

main() {
    local begin job selected passed=0 failed=0
    if [ "$1" = --list ]; then
        selected_jobs "$2"
        return
    fi
    begin=$(clock)
    preload=$2
    mapfile -t selected < <(selected_jobs "$1")
    say "preload: $preload"
    say "running ${#selected[@]} jobs"
    for job in "${selected[@]}"; do
        run_job "$job"
    done
    print_table
    say "$(since "$begin") s"
    say "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
}

logs_dir=${3:-}
run_dir=/tmp/$run_mark
rank_wrapper=("$uci_root/tests/rdma/rank_device.sh")
main "$@"
