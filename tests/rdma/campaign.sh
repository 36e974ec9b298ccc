#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/rdma/campaign.sh --list REGEX                the jobs
#        tests/rdma/campaign.sh REGEX PRELOAD LOGS          run them; in the guest
#
# A job is a line "group program transports mpi [arguments]". Groups:
#   clean   MPI programs: large, unaligned, non-contiguous, many in flight, buffers freed and reused. No false alarm.
#   heal    injected faults (kind target rate): counted, noticed, healed, every byte right
#   asleep  the sender sleeps outside MPI while the receiver heals the message: by RDMA reads alone
#   region  gets are granted a wrong region, as after a stale registration: healed by copy, and the records say so
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

    "asleep asleep        rc,self    openmpi"
    "asleep asleep        rc,self    mpich"
    "region bulk          rc,self    openmpi"
    "region bulk          rc,self    mpich"
)
groups=(clean heal asleep region)
columns=('rc,self' 'ud,self' 'rc,ud,self')
declare -A cells=()     # "group tls" -> passed, total

# --- the jobs: each sets verdict and reason, as run_program does ---

run_clean() {
    local program=$1 mpi=$2 tls=$3 scale=${4:-1}
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "$scale"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_clean[@]}" || refuse_stats
}

slow_wire() {
    local i
    for i in 0 1; do
        tc qdisc replace dev "veth$i" root netem limit 100000 "$@"
    done
}

plain_wire() {
    local i
    for i in 0 1; do
        tc qdisc del dev "veth$i" root 2>/dev/null || true
    done
}

# slow_down_when_met DELAY: slow the wire down when both ranks are there, and tell them.
slow_down_when_met() {
    while [ ! -e "$run_dir/meet/rank.0" ] || [ ! -e "$run_dir/meet/rank.1" ]; do
        sleep 0.05
    done
    slow_wire delay "$1"
    touch "$run_dir/meet/slow"
}

run_asleep() {
    local program=$1 mpi=$2 tls=$3 watcher
    slow_down_when_met 500ms &
    watcher=$!
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" 1 UCX_RC_VERBS_TIMEOUT=8s \
        "$(fault_setting any payload 0.5 ,min=600000,max=600000)"
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    plain_wire
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_faulty[@]}" 'mismatched_chunks > 0' \
        'repaired_by_get == mismatched_chunks' 'repaired_by_copy == 0' || refuse_stats
    stats_line="$stats_line; $(grep -h '^received ' "$run_log")"
}

# All chunks arrive damaged, and all gets read elsewhere. (A sender that closes hands over copies before it is asked.)
run_region() {
    local program=$1 mpi=$2 tls=$3
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 1000000 8" "UCI_EVENTS=$run_dir/events" \
        "$(fault_setting bitflip payload+region 1 ,min=1000000)"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_faulty[@]}" 'mismatched_chunks >= 8 * 17' \
        'mismatched_gets >= 4 * 17' 'repaired_by_get == 0' 'repaired_by_copy == mismatched_chunks' || refuse_stats
    grep -q 'repaired by copy, after 17 gets that brought wrong bytes' "$run_log" || refuse "the log does not say so"
    check_events 'len(events) == 8' \
        'all(event["verdict"] == "repaired" and event["healed_by"] == "copy" for event in events)' \
        'sum(event["gets_wrong"] == 17 for event in events) >= 4'
}

# check_events CONDITION...: over the records of the last run.
check_events() {
    python3 "$uci_root/tests/rdma/events.py" "$run_dir/events" "$@" >>"$run_log" 2>&1 || refuse "the records do not say so"
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
