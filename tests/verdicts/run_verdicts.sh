#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/verdicts/run_verdicts.sh [options]
#
# Does UCI name the right cause? Jobs that do just one thing wrong each: a program that writes to the buffer of a pending send, or
# receives two messages into one buffer at a time (overwrite.c), attackers that damage shared memory or what recv() brings
# (tests/faults/foreign), and the injector. Each job's records (UCI_EVENTS) must say what it was, and nothing else. Beside that:
# UCI_CAPTURE, UCI_ON_MISMATCH=pause, and a file that can't be written.
# Ends with the line "N passed, N failed, N skipped"; exit status 1 if any failed.
#
#   --mpi LIST        openmpi,mpich (default both)
#   --only REGEX      only cases whose line (see --list) matches
#   --preload PATH    default build/libucx_integrity.so
#   --timeout S       limit for each job (default 60)
#   --list            the cases, and nothing else
#   --help            this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"
# shellcheck source=tests/faults/foreign/attackers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../faults/foreign/attackers.sh"

verdicts_dir=$uci_root/tests/verdicts
programs_dir=$verdicts_dir

mpi=openmpi,mpich
only='.*'
preload=$uci_root/build/libucx_integrity.so
timeout=60
list=

# Case, what the program does (overwrite.c) and with how many bytes, UCX_TLS, UCI_PATH, more settings
cases=(
    "clean       never   1048576  posix,self      auto    UCI_CHECK_SOURCES=1"
    "clean       never   1048576  tcp,self        get     UCI_CHECK_SOURCES=1"
    "clean       never   4000     tcp,self        auto    UCI_CHECK_SOURCES=1"
    "changed     steady  4194304  posix,cma,self  get"
    "changed     steady  4194304  tcp,self        get"
    "changed     thread  4194304  posix,cma,self  get"
    "changed     thread  4194304  tcp,self        get"
    "changed     thread  8388608  tcp,self        stream"
    "undone      undone  4194304  posix,cma,self  get"
    "overlap     overlap 4194304  tcp,self        get"
    "late        once    4194304  posix,self      direct  UCI_CHECK_SOURCES=1"
    "late        once    4194304  tcp,self        bounce  UCI_CHECK_SOURCES=1"
    "late        steady  4194304  tcp,self        stream  UCI_CHECK_SOURCES=1"
    "late        steady  4194304  posix,self      get     UCI_CHECK_SOURCES=1"
    "unseen      once    4194304  tcp,self        bounce"
    "untold      asleep  4096     posix,self      auto    UCI_CHECK_SOURCES=1"
    "untold      asleep  4096     tcp,self        auto    UCI_CHECK_SOURCES=1"
    "told        asleep  20000    posix,self      direct"
    "told        asleep  20000    posix,self      direct  UCI_FAULT=rate=0.5,target=payload,kind=bitflip,min=20000,max=20000"
    "told        asleep  20000    posix,self      direct  UCI_CHECK_SOURCES=1"
    "told        asleep  4194304  posix,cma,self  get     UCI_CHECK_SOURCES=1"
    "told        asleep  4194304  tcp,self        stream  UCI_CHECK_SOURCES=1"
    "memory      never   1048576  posix,self      direct  UCI_FAULT=rate=0.05,target=payload,kind=any"
    "memory      never   4000     posix,self      auto    UCI_FAULT=rate=0.3,target=payload,kind=bitflip+burst+zero+stale"
    "transport   never   4194304  tcp,self        get     UCX_NET_DEVICES=lo UCI_FAULT=rate=0.05,target=payload,kind=bitflip+burst"
    "transport   never   4194304  tcp,self        stream  UCX_NET_DEVICES=lo UCI_FAULT=rate=0.05,target=payload,kind=bitflip+burst"
    "transport   never   4194304  tcp,self        bounce  UCX_NET_DEVICES=lo UCI_FAULT=rate=0.05,target=payload,kind=bitflip+burst"
    "transport   never   4000     tcp,self        auto    UCX_NET_DEVICES=lo UCI_FAULT=rate=0.3,target=payload,kind=bitflip+burst"
    "unknown     never   4194304  tcp,self        get     UCI_FAULT=rate=0.05,target=payload,kind=zero"
    "length      never   4000     tcp,self        auto    UCI_FAULT=rate=0.3,target=payload,kind=truncate"
    "region      never   4194304  posix,cma,self  get     UCI_FAULT=rate=1,target=payload+region,kind=bitflip,min=100000"
    "lost        never   1048576  tcp,self        get     UCI_MODE=detect UCI_ON_ERROR=log UCI_FAULT=rate=0.05,target=payload,min=100000"
    "flip        traffic 0        posix,self      auto"
    "wire        traffic 0        tcp,self        stream"
    "capture     never   1048576  posix,self      auto    UCI_FAULT=rate=0.05,target=payload,kind=any"
    "pause       never   1048576  posix,self      auto    UCI_ON_MISMATCH=pause UCI_FAULT=rate=1,count=1,target=payload,min=100000"
    "unwritable  never   4000     posix,self      auto    UCI_EVENTS=/nonexistent/folder/%p"
    "collective  bcast   0        posix,self      auto    UCI_FAULT=rate=1,target=payload,min=700,max=800"
)

# A line for each
wants() {
    printf '%s\n' "${@//$'\n'/ }"
}

# What must be true of the records of a case (events.py). All of them: those of overwrite.c's answers, which are small, included.
wanted_of() {
    local large='[event for event in events if event["length"] > 5000]'
    case $1 in
    clean)     wants 'events == []' ;;
    changed)   # a thread that has no turn between the digest and the repair's look leaves the buffer as it was digested: nobody can tell then, and
               # the record says what may have been, or what else its program has done
               wants 'any(event["cause"] == "source_changed" for event in events)' \
                   'all(event["verdict"] == "source changed" for event in events if event["cause"] == "source_changed")' \
                   'all(event["cause"] == "source_changed" or event["cause"] == "unknown" and "as it was digested" in event["evidence"]
                        and ("its program has changed the buffers" in event["evidence"] or "put everything back" in event["evidence"])
                        for event in events)' \
                   'all(event["role"] == "receiver" and event["path"] in ("get", "stream") and event["ranges"] for event in events)' ;;
    undone)    wants 'all(event["cause"] in ("source_changed", "unknown", "ucx") for event in events)' \
                   'all("put" in event["evidence"] for event in events if event["cause"] != "source_changed")' ;;
    overlap)   wants 'any("another receive, tag 0x" in event["evidence"] for event in events)' \
                   'all(event["cause"] == "unknown" and "into the same memory" in event["evidence"] for event in events)' ;;
    late)      wants 'any(event["role"] == "sender" for event in events)' \
                   'all(event["cause"] == "source_changed" and event["path"] in ("direct", "bounce", "stream", "get") for event in events)' \
                   'all(event["ranges"][0][1] == 0 for event in events if event["role"] == "sender")' ;;
    unseen)    wants 'events == []' ;;
    untold)    wants 'len(events) <= 1' ;; # in frames, which are copied within the call; but for the first message, if it comes before HELLO
    told)      # by the sender, if the receiver has it as it was sent; by the receiver, if he has it as it is now. What the injector hits is in slots, but for
               # the first, which goes unasked
               wants 'all(event["cause"] in ("source_changed", "transport" if event["path"] == "stream" else "memory") for event in events)' \
                   'all("arrived as they were" in event["evidence"] for event in events if event["role"] == "sender")' ;;
    memory)    wants 'len(events) > 0' 'all(event["cause"] == "memory" for event in events)' \
                   'all(event["device"] is None and (event["path"], event["carrier"]) in (("direct", None), ("frame", "mailbox"))
                        for event in events)' ;;
    transport) wants 'len(events) > 0' 'all(event["cause"] == "transport" and event["device"] == "lo" for event in events)' \
                   'all(event["class"] in ("bit flip", "burst") for event in events)' ;;
    unknown)   wants "len($large) > 0" "all(event[\"cause\"] == \"unknown\" and \"put everything back\" in event[\"evidence\"]
                                          or event[\"wrong_bytes\"] <= 64 for event in $large)" ;;
    length)    wants 'len(events) > 0' 'all(event["cause"] == "ucx" and event["class"] == "truncated" for event in events)' ;;
    region)    wants "len($large) > 0" "all(event[\"cause\"] == \"ucx\" and event[\"healed_by\"] == \"copy\" for event in $large)" \
                   "all(event[\"gets_wrong\"] > 0 and \"gets ended well\" in event[\"evidence\"] for event in $large)" ;;
    lost)      wants "len($large) > 0" "all(event[\"verdict\"] == \"not repaired\" and event[\"cause\"] == \"unknown\" for event in $large)" \
                   'all(event["good"] == "" and event["reason"] != "" for event in events)' ;;
    flip)      # what UCX's own segments bring by stream or get is hit as well, over more than 64 bytes or by zeros: as UCX's mistakes look
               wants 'any(event["cause"] == "memory" for event in events)' \
                   'all(event["cause"] == "memory" for event in events if event["path"] == "direct" or event["carrier"] == "mailbox")' \
                   'all(event["cause"] in ("memory", "transport") or event["path"] in ("stream", "get")
                        and (event["class"] not in ("bit flip", "burst") or event["last"] - event["first"] >= 64) for event in events)' ;;
    wire)      wants 'len(events) > 0' 'any(event["cause"] == "transport" for event in events)' \
                   'all(event["cause"] in ("transport", "unknown") for event in events)' ;;
    capture)   wants 'len(events) > 0' 'all(event["capture"] is not None for event in events)' ;;
    pause)     wants 'len(events) == 1' ;;
    collective) wants 'len(events) > 0' 'all(event["mpi"]["collective"] == "bcast" for event in events)' ;;
    unwritable) ;;
    esac
}

# True of all records
always=('all(event["schema"] == 2 and set(event) == fields for event in events)'
        'all(event["cause"] in ("source_changed", "transport", "memory", "ucx", "unknown") for event in events)'
        'all(len(event["evidence"]) > 20 and event["evidence"].isprintable() for event in events)'
        'all({event["rank"], event["peer_rank"]} == {0, 1} and event["core"] >= 0 for event in events)'
        'all(event["job"].startswith(("prrte:", "hydra:")) and event["time"] > 1.7e9 for event in events)'
        'all(event["mpi"]["library"] in ("Open MPI", "MPICH") for event in events)'
        'all(len(event["bad"]) <= 128 and len(event["good"]) in (0, len(event["bad"])) for event in events)'
        'all(first <= last < event["length"] or event["length"] == 0 for event in events for _, first, last, *_ in event["ranges"])'
        'all(len(event["stack"]) > 3 and all("+0x" in place for place in event["stack"]) for event in events)')

refuse() {
    verdict=FAIL
    reason=${reason:+$reason; }$1
}

# check_events CONDITION...: over the records of the last run.
check_events() {
    cat "$run_dir"/events.* >"$run_dir/all.events" 2>/dev/null || true
    python3 "$uci_root/tests/rdma/events.py" "$run_dir/all.events" "$@" >>"$run_log" 2>&1 || refuse "the records do not say so"
}

# run_overwrite MPI TLS HOW BYTES [NAME=VALUE]...
run_overwrite() {
    local one=$1 tls=$2 how=$3 bytes=$4 rounds=8
    shift 4
    [[ " $* " != *count=1* ]] || rounds=2
    run_program overwrite "$one" "$tls" 2 "$preload" "$timeout" "$how $bytes $rounds" \
        "UCI_EVENTS=$run_dir/events.%h.%p.jsonl" "$@"
}

# run_until_recorded WHAT COMMAND...: again if it has no record with WHAT. An attacker may have hit what had been received already, or
# headers; a thread that writes may have had no turn (6 times in a row beside two other loads), or none between the digest and the repair's look.
run_until_recorded() {
    local what=$1 try
    shift
    for ((try = 0; try < 20; ++try)); do
        rm -f "$run_dir"/events.*
        "$@"
        [ "$verdict" = PASS ] && ! grep -qs "$what" "$run_dir"/events.* || return 0
    done
}

# run_foreign MPI TLS ATTACK [NAME=VALUE]...: with an attacker that shares no code with UCI
run_foreign() {
    local one=$1 tls=$2 attack=$3 key libraries=("$preload") settings
    shift 3
    key=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
    settings=("FOREIGN_KEY=$key" "UCI_EVENTS=$run_dir/events.%h.%p.jsonl" "$@")
    if [ "$attack" = flip ]; then
        start_flip "$key" mixed 1 "$timeout" /dev/null
    else
        libraries+=("$work_dir/foreign_wire.so")
        settings+=(FOREIGN_WIRE=recv FOREIGN_WIRE_KIND=flip "FOREIGN_WIRE_COUNTS=$run_dir")
    fi
    run_program foreign_traffic "$one" "$tls" 2 "$(IFS=:; say "${libraries[*]}")" "$timeout" "2 1" "${settings[@]}"
    end_attacker
}

# A debugger's or a shell's way out: the process says who waits, and goes on.
run_paused() {
    local waker pid
    (
        for ((i = 0; i < timeout * 10; ++i)); do
            pid=$(sed -n 's/.*waits for a debugger.*or after kill -CONT \([0-9]*\)$/\1/p' "$run_dir/meet/stderr" 2>/dev/null |
                  head -n 1) || true
            if [ -n "$pid" ]; then
                touch "$run_dir/paused"
                sleep 0.3
                kill -CONT "$pid"
                exit
            fi
            sleep 0.1
        done
    ) &
    waker=$!
    run_overwrite "$@" UCI_LOG_LEVEL=warn
    wait "$waker" || true
    [ -e "$run_dir/paused" ] || refuse "nobody has waited"
    grep -q 'UCI WARN .* goes on$' "$run_log" || refuse "nobody says that he goes on"
}

# Both versions of a chunk differ where the record says, and have the names it says.
check_captures() {
    python3 "$verdicts_dir/captures.py" "$run_dir/all.events" "$run_dir/capture" >>"$run_log" 2>&1 ||
        refuse "what was captured is not what was recorded"
}

# What is told of a message is what has come: one that came as it was sent can have a sender's record, one that came as it is now a
# receiver's, and neither the other's. What was written before UCI has read the buffer is what was sent, and nobody can tell.
check_told() {
    # shellcheck disable=SC2094  # it is read before anything is added to it
    python3 - "$run_log" "$run_dir/all.events" "$1" >>"$run_log" 2>&1 <<'END' || refuse "what was told of changed buffers is not what came"
import json, re, sys
log, events, case = sys.argv[1:]
as_sent, as_now, rounds = map(int, re.search(r"delivered: (\d+) as sent, (\d+) as now, of (\d+)", open(log).read()).groups())
changed = [event["role"] for event in map(json.loads, open(events)) if event["cause"] == "source_changed"]
senders, receivers = changed.count("sender"), changed.count("receiver")
print(f"told: {senders} by the sender, {receivers} by the receiver; came: {as_sent} as sent, {as_now} as now, of {rounds}")
assert as_sent + as_now == rounds and senders <= as_sent and receivers <= as_now
assert as_sent >= rounds - 1 if case == "untold" else changed or as_now == rounds
END
}

# run_case MPI CASE HOW BYTES TLS PATH [NAME=VALUE]...
run_case() {
    local one=$1 case=$2 how=$3 bytes=$4 tls=$5 path=$6 conditions
    shift 6
    case $case in
    flip)      run_until_recorded '"cause": *"memory"' run_foreign "$one" "$tls" "$case" "UCI_PATH=$path" "$@" ;;
    wire)      run_until_recorded verdict run_foreign "$one" "$tls" "$case" "UCI_PATH=$path" "$@" ;;
    overlap)   run_until_recorded verdict run_overwrite "$one" "$tls" "$how" "$bytes" "UCI_PATH=$path" "$@" ;;
    changed)   run_until_recorded source_changed run_overwrite "$one" "$tls" "$how" "$bytes" "UCI_PATH=$path" "$@" ;;
    pause)     run_paused "$one" "$tls" "$how" "$bytes" "UCI_PATH=$path" "$@" ;;
    capture)   run_overwrite "$one" "$tls" "$how" "$bytes" "UCI_PATH=$path" "UCI_CAPTURE=$run_dir/capture" "$@" ;;
    *)         run_overwrite "$one" "$tls" "$how" "$bytes" "UCI_PATH=$path" "$@" ;;
    esac
    [ "$verdict" = PASS ] || return 0
    mapfile -t conditions < <(wanted_of "$case")
    check_events "${always[@]}" ${conditions[@]+"${conditions[@]}"}
    case $case in
    capture)    check_captures ;;
    told|untold) check_told "$case" ;;
    unwritable) grep -q 'UCI WARN .*UCI_EVENTS=/nonexistent/folder/%p can.t be written: No such file' "$run_log" ||
                    refuse "it was not said at the start" ;;
    esac
}

run_and_count() {
    local words one=$1
    read -ra words <<<"$2"
    reason=
    run_case "$one" "${words[@]}"
    printf '%-5s %6s s  %-8s %s  %s\n' "$verdict" "$duration" "$one" "${words[*]}" "$reason"
    count_job "$one ${words[*]}" "verdicts $one ${words[*]:0:5}"
}

compile_all() {
    local one
    compile_attackers
    for one in ${mpi//,/ }; do
        programs_dir=$verdicts_dir
        compile_programs "$one" overwrite
        programs_dir=$foreign_dir
        compile_programs "$one" foreign_traffic
    done
}

main() {
    local line one begin
    set_options mpi only preload timeout list! -- "$@"
    if [ -n "$list" ]; then
        printf '%s\n' "${cases[@]}"
        return
    fi
    preload=$(check_preload "$preload")
    [ -n "$preload" ] || die "verdicts need a preload"
    say "preload: $preload"
    compile_all
    begin=$(clock)
    for one in ${mpi//,/ }; do
        for line in "${cases[@]}"; do
            [[ ! "$one $line" =~ $only ]] || run_and_count "$one" "$line"
        done
    done
    end_of_jobs "$begin"
}

main "$@"
