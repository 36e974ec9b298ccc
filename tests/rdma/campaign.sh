#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/rdma/campaign.sh --list REGEX                the jobs
#        tests/rdma/campaign.sh REGEX PRELOAD LOGS          run them; in the guest
#
# A job is a line "group program transports mpi [arguments]". Groups:
#   info    uci_info -d says what sysfs does of these devices, and that there are none where there are none
#   clean   MPI programs: large, unaligned, non-contiguous, many in flight, buffers freed and reused. No false alarm.
#   heal    injected faults (kind target rate): counted, noticed, healed, every byte right
#   bounce  messages through registered bounce buffers: what is not contiguous (PATH auto), anything (bounce); clean, or
#           injected faults (PATH kind target rate) healed
#   asleep  the sender sleeps outside MPI while the receiver heals the message: by RDMA reads alone
#   region  gets are granted a wrong region, as after a stale registration: healed by copy, and the records say so
#   record  damage by memory (injected) while the wire damages packets too: the records name the ports' errors
#   traffic what UCI adds to the bytes on the wire of the same messages without it (BYTES COUNT, and LIMIT where it is not 1.01)
#   repair  what repairs (of RATE of the chunks) add: the damaged chunks by RDMA reads, and next to nothing else
#   wire    packets are lost, duplicated, reordered, damaged (netem's words): no false alarm
#   late    the wire is slower than UCI's patience (DELAY): what comes late is not taken for damaged
#   slow    headers of chunks are damaged on a slow wire (DELAY): UCI asks again once it can have been answered, not before
#   cut     the wire is cut: the job ends by UCX's own error, as soon as without UCI
#   dead    a rank is killed: the job ends, by UCX's own error or the launcher's
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"
# shellcheck source=tests/faults/lib.sh
source "$uci_root/tests/faults/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
seed=1
limit=120               # seconds for each job
# as stats_clean, but what came late may have been asked for again
stats_undamaged=()
for condition in "${stats_clean[@]}"; do
    [[ $condition == retransmitted_bytes* ]] || stats_undamaged+=("$condition")
done
traffic_limit=1.01      # of bytes on the wire with UCI : without
jobs=(
    "info uci_info         rc,self    -"

    "clean storm           rc,self    openmpi 0.5"
    "clean p2p_nonblocking rc,self    openmpi 0.3"
    "clean datatypes       rc,self    openmpi 0.1"
    "clean reuse           rc,self    openmpi 0.3"
    "clean storm           rc,self    mpich 0.5"
    "clean coll_blocking   rc,self    mpich 0.3"
    "clean reuse           ud,self    openmpi 0.2"
    "clean storm           ud,self    mpich 0.5"
    "clean p2p_nonblocking rc,ud,self openmpi 0.1"
    "clean storm           rc,ud,self mpich 0.5"

    "heal p2p_blocking    rc,self    openmpi bitflip  payload 1e-2"
    "heal storm           rc,self    openmpi any      payload 1"
    "heal coll_blocking   rc,self    mpich   burst    payload 1e-1"
    "heal storm           rc,self    openmpi stale    any     1e-2"
    "heal p2p_nonblocking rc,self    mpich   zero     header  1e-2"
    "heal reuse           rc,self    openmpi swap     tree    1e-1"
    "heal reuse           rc,self    mpich   truncate payload 1e-1"
    "heal storm           ud,self    openmpi any      any     1e-2"
    "heal p2p_blocking    ud,self    mpich   bitflip  payload 1e-1"
    "heal storm           rc,ud,self openmpi any      ack     1e-1"
    "heal reuse           rc,ud,self mpich   swap     payload 1e-1"

    "bounce datatypes     rc,self    openmpi auto"
    "bounce reuse         rc,self    mpich   bounce"
    "bounce datatypes     rc,self    mpich   auto any any 1e-2"
    "bounce reuse         rc,self    openmpi bounce any payload 1e-1"

    "asleep asleep        rc,self    openmpi"
    "asleep asleep        rc,self    mpich"
    "region bulk          rc,self    openmpi"
    "region bulk          rc,self    mpich"
    "record bulk          rc,self    openmpi"

    "traffic bulk         rc,self    openmpi 4194304 16"
    "traffic bulk         rc,self    mpich   65536 512 1.02"
    "repair bulk          rc,self    openmpi 4194304 16 0.03"

    "wire bulk            rc,self    openmpi loss 1%"
    "wire bulk            rc,self    mpich   duplicate 2%"
    "wire bulk            rc,self    openmpi delay 1ms reorder 25% 50%"
    "wire bulk            rc,self    mpich   corrupt 1%"
    "wire bulk            ud,self    openmpi loss 1%"
    "wire bulk            ud,self    mpich   corrupt 1%"
    "wire bulk            rc,ud,self openmpi loss 0.5% duplicate 0.5% corrupt 0.5%"
    "late bulk            rc,self    mpich   700ms"
    "slow bulk            rc,self    mpich   20ms"
    "cut bulk             rc,self    openmpi"
    "cut bulk             ud,self    openmpi"
    "dead bulk            rc,self    mpich"
    "dead bulk            ud,self    mpich"
)
groups=(info clean heal bounce asleep region record traffic repair wire late slow cut dead)
columns=('rc,self' 'ud,self' 'rc,ud,self')
declare -A cells=()     # "group tls" -> passed, total

# --- the jobs: each sets verdict and reason, as run_program does ---

# complain MESSAGE: into the log, and the verdict
complain() {
    say "$1" >>"$run_log"
    refuse "$1"
}

# must_print LINE: in the log, alone
must_print() {
    grep -qxF -- "$1" "$run_log" || complain "no line '$1'"
}

run_info() {
    local device port counter begin
    begin=$(clock)
    verdict=PASS
    mkdir -p "$run_dir"
    run_log=$run_dir/log
    unshare -m sh -c 'mount -t tmpfs none /sys/class/infiniband && build/tools/uci_info -d' >"$run_log" 2>&1 ||
        complain "fails without devices"
    must_print 'rdma devices: none (no ports in /sys/class/infiniband)'
    build/tools/uci_info -d >"$run_log" 2>&1 || complain "fails"
    for device in rxe0 rxe1; do
        port=/sys/class/infiniband/$device/ports/1
        must_print "device: $device"
        must_print "$device usable: yes"
        must_print "$device:1 state: ACTIVE"
        must_print "$device:1 link: LinkUp, $(<"$port/link_layer"), $(<"$port/rate")"
        must_print "$device:1 mtu: 4096 of 4096"
        must_print "$device:1 gid 1: $(<"$port/gids/1"), RoCE v2, veth${device#rxe}"
        for counter in rcvd_seq_err duplicate_request completer_retry_err link_downed; do
            grep -q "^$device:1 $counter: $(<"$port/hw_counters/$counter")  " "$run_log" || complain "wrong $counter"
        done
    done
    duration=$(since "$begin")
}

run_clean() {
    local program=$1 mpi=$2 tls=$3 scale=${4:-1}
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "$scale"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_clean[@]}" || refuse_stats
}

damage_wire() {
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
    damage_wire delay "$1"
    touch "$run_dir/meet/slow"
}

run_bounce() {
    local program=$1 mpi=$2 tls=$3 path=$4 kind=${5:-} target=${6:-} rate=${7:-}
    local -a settings=("UCI_PATH=$path") conditions=("${stats_clean[@]}")
    if [ -n "$kind" ]; then
        settings+=("$(fault_setting "$kind" "$target" "$rate")")
        conditions=("${stats_faulty[@]}" 'mismatched_chunks > 0')
    fi
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" 0.2 "${settings[@]}"
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${conditions[@]}" 'bounce_messages > 0' || refuse_stats
}

run_asleep() {
    local program=$1 mpi=$2 tls=$3 watcher
    rm -rf "$run_dir/meet" # else those of the run before may be seen to have met, and what they are told is lost with their folder
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

# The wire damages packets, which the adapter notices; memory damages chunks, which UCI notices.
run_record() {
    local program=$1 mpi=$2 tls=$3
    damage_wire corrupt 2%
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 1000000 8" "UCI_EVENTS=$run_dir/events" \
        UCX_RC_VERBS_TIMEOUT=20ms "$(fault_setting bitflip payload 0.2 ,min=1000000)"
    plain_wire
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_faulty[@]}" 'mismatched_chunks > 0' || refuse_stats
    check_events 'len(events) > 0' 'all(event["class"] == "bit flip" for event in events)' \
        'any(port["rcvd_seq_err"] > 0 or port["completer_retry_err"] > 0 for port in
            [dict(rcvd_seq_err=0, completer_retry_err=0) | ports
             for event in events for ports in event["rdma_errors"].values()])'
}

# wire_bytes END: sent from that end of the cable, since boot
wire_bytes() {
    cat "/sys/class/net/veth$1/statistics/tx_bytes"
}

# count_wire: bytes on the cable, then packets, sends and retries of the devices, since boot
count_wire() {
    local device=/sys/class/infiniband sums=() name
    for name in sent_pkts rdma_sends completer_retry_err; do
        sums+=($(($(<"$device/rxe0/ports/1/hw_counters/$name") + $(<"$device/rxe1/ports/1/hw_counters/$name"))))
    done
    say $(($(wire_bytes 0) + $(wire_bytes 1))) "${sums[@]}"
}

# measure_wire COMMAND...: run it, and set bytes, packets, sends and retries to what it has sent; again if there were
# retries (the emulated machine is busy at times), since they are not ours.
measure_wire() {
    local before after try
    retries=1
    for ((try = 0; (try < 4) && (retries > 0); ++try)); do
        read -ra before < <(count_wire)
        "$@"
        read -ra after < <(count_wire)
        bytes=$((after[0] - before[0])) packets=$((after[1] - before[1])) sends=$((after[2] - before[2]))
        retries=$((after[3] - before[3]))
        [ "$verdict" = PASS ] || return 0
    done
}

run_traffic() {
    local program=$1 mpi=$2 tls=$3 size=$4 count=$5 most=${6:-$traffic_limit} bytes packets sends retries plain_bytes plain_packets plain_retries ratio
    measure_wire run_program "$program" "$mpi" "$tls" 2 '' "$limit" "1 1 $size $count" UCX_RC_VERBS_TIMEOUT=10s
    [ "$verdict" = PASS ] || return 0
    plain_bytes=$bytes plain_packets=$packets plain_retries=$retries
    measure_wire run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 $size $count" UCX_RC_VERBS_TIMEOUT=10s
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_clean[@]}" || refuse_stats
    ratio=$(awk -v with="$bytes" -v without="$plain_bytes" 'BEGIN { printf "%.4f", with / without }')
    stats_line="bytes $plain_bytes -> $bytes, x $ratio; packets $plain_packets -> $packets"
    [ $((retries + plain_retries)) -eq 0 ] || stats_line+="; retries $plain_retries -> $retries"
    awk "BEGIN { exit !($bytes <= $plain_bytes * $most + $retries * $size) }" || refuse "more than $most: $stats_line"
}

run_repair() {
    local program=$1 mpi=$2 tls=$3 size=$4 count=$5 rate=$6 bytes packets sends retries clean_bytes clean_packets clean_sends clean_retries
    local repaired again
    measure_wire run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 $size $count" UCX_RC_VERBS_TIMEOUT=10s
    [ "$verdict" = PASS ] || return 0
    clean_bytes=$bytes clean_packets=$packets clean_sends=$sends clean_retries=$retries
    measure_wire run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 $size $count" UCX_RC_VERBS_TIMEOUT=10s \
        "$(fault_setting any payload "$rate" ",min=$size")"
    [ "$verdict" = PASS ] || return 0
    repaired=$(stats_value repaired_chunks) again=$(stats_value retransmitted_bytes)
    bytes=$((bytes - clean_bytes)) packets=$((packets - clean_packets)) sends=$((sends - clean_sends))
    # 4 % are headers of 4 KiB packets and requests for them; a few sends are acknowledgements that came otherwise (7 or -3, once 21, where a repair by
    # copy takes 15 each). If the
    # machine was busy in all attempts, the adapter has read again on its own, for each retry a message at most.
    check_stats 2 "${stats_always[@]}" "${stats_faulty[@]}" "faults_injected > $count" \
        'repaired_by_get == repaired_chunks' 'mismatched_chunks <= faults_injected * 2' \
        "retransmitted_bytes <= repaired_chunks * 61440" \
        "$bytes <= retransmitted_bytes * 1.04 + 16384 + $retries * $size" "$sends <= 2 * $count + 4 * $retries" || refuse_stats
    stats_line="$repaired chunks, $again bytes: $bytes more on the wire, $packets more packets, $sends more sends"
    [ $((retries + clean_retries)) -eq 0 ] || stats_line+="; retries $clean_retries -> $retries"
}

run_wire() {
    local program=$1 mpi=$2 tls=$3
    shift 3
    damage_wire "$@"
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 300000 20" UCX_RC_VERBS_TIMEOUT=20ms
    plain_wire
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_undamaged[@]}" || refuse_stats
}

# A round trip takes longer than the second after which both sides ask.
run_late() {
    local program=$1 mpi=$2 tls=$3
    damage_wire delay "$4"
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 300000 4" UCX_RC_VERBS_TIMEOUT=8s
    plain_wire
    [ "$verdict" = PASS ] || return 0
    check_stats 2 "${stats_always[@]}" "${stats_undamaged[@]}" || refuse_stats
    stats_line="$stats_line, asked for again $(stats_value retransmitted_bytes) bytes"
}

run_slow() {
    local program=$1 mpi=$2 tls=$3 clean
    damage_wire delay "$4"
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 300000 30" UCX_RC_VERBS_TIMEOUT=8s UCI_PATH=stream
    clean=$(stats_value control_sent)
    [ "$verdict" != PASS ] ||
        run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "1 1 300000 30" UCX_RC_VERBS_TIMEOUT=8s UCI_PATH=stream \
            "$(fault_setting bitflip header 0.05 ,min=300000)"
    plain_wire
    [ "$verdict" = PASS ] || return 0
    # both sides ask about each of the 4 messages that are under way, once for each that was dropped, and are answered
    check_stats 2 "${stats_always[@]}" "${stats_faulty[@]}" 'mismatched_control > 0' \
        'retransmitted_bytes <= mismatched_control * 61440' "control_sent <= $clean + mismatched_control * 30" || refuse_stats
    stats_line="$(stats_value mismatched_control) dropped, $(stats_value retransmitted_bytes) bytes again; \
messages of UCI's $clean -> $(stats_value control_sent)"
}

# after_traffic COMMAND: when the next 8 MB have been sent; notes the time
after_traffic() {
    local begin event=$1
    begin=$(wire_bytes 0)
    until [ $(($(wire_bytes 0) - begin)) -gt 8000000 ]; do
        sleep 0.05
    done
    $event
    clock >/tmp/event
}

kill_rank_1() {
    local pid
    for pid in $(pgrep -f "^$work_dir/mpich/bulk "); do
        if grep -qzx 'PMI_RANK=1' "/proc/$pid/environ"; then
            kill -KILL "$pid"
        fi
    done
}

ucx_error='send completion with error: |unhandled timeout error'

# end_by EVENT PROGRAM MPI TLS PRELOAD ERROR: sets verdict (the job must end, and say ERROR), and how long after the event the job has ended
end_by() {
    local event=$1 program=$2 mpi=$3 tls=$4 watcher
    rm -f /tmp/event
    after_traffic "$event" 2>/tmp/event.log &
    watcher=$!
    run_program "$program" "$mpi" "$tls" 2 "$5" "$limit" "1 1 3000000 60" UCX_RC_VERBS_TIMEOUT=100ms \
        UCX_RC_VERBS_RETRY_COUNT=4 UCX_UD_VERBS_TIMEOUT=3s
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    plain_wire
    ended=
    [ ! -e /tmp/event ] || ended=$(since "$(</tmp/event)")
    must_say "$6"
    [ -n "$ended" ] || refuse "it ended before the event: $(</tmp/event.log)"
}

# The same end without UCI and with it, at most 10 s later
run_cut() {
    local program=$1 mpi=$2 tls=$3 ended plain_ended
    end_by 'damage_wire loss 100%' "$program" "$mpi" "$tls" '' "$ucx_error"
    [ "$verdict" = PASS ] || return 0
    plain_ended=$ended
    end_by 'damage_wire loss 100%' "$program" "$mpi" "$tls" "$preload" "$ucx_error"
    [ "$verdict" = PASS ] || return 0
    stats_line="by UCX's error $ended s later, $plain_ended s without UCI"
    awk "BEGIN { exit !($ended < $plain_ended + 10) }" || refuse "$stats_line"
}

# Not compared with plain UCX: over rc that waits for ever if the dead rank has to send next, since nothing is on its
# way that could fail. UCI asks after a second, which does. The launcher may be faster, and end the job itself.
run_dead() {
    local program=$1 mpi=$2 tls=$3 ended by="UCX's error" launch_options=(-disable-auto-cleanup)
    end_by kill_rank_1 "$program" "$mpi" "$tls" "$preload" "$ucx_error|TERMINATED WITH THE EXIT STRING: Killed"
    [ "$verdict" = PASS ] || return 0
    grep -Eqs "$ucx_error" "$run_log" || by='the launcher'
    stats_line="by $by $ended s later"
    awk "BEGIN { exit !($ended < 30) }" || refuse "$stats_line"
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
    count_cell "$group" "$tls"
    [ "$verdict" = PASS ] || keep_log "$1" 20
}

# count_cell GROUP TLS: in the table, too. There is no reason to skip anything here.
count_cell() {
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
        [[ " ${!cells[*]}" == *" $group "* ]] || continue
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
    local begin job selected
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
    end_of_jobs "$begin"
}

logs_dir=${3:-}
run_dir=/tmp/$run_mark
rank_wrapper=("$uci_root/tests/rdma/rank_device.sh")
main "$@"
