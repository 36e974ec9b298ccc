#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/faults/foreign/run_foreign.sh [options]
#
# Attacks from outside, by programs that share no code with UCI and know nothing of it: another process that damages messages in
# the shared memory of a running job (flip.c), and a library under recv() and process_vm_readv() that damages what arrives (wire.c).
# Both find their place by the pattern of the payload (pattern.h). The program under attack (foreign_traffic.c) checks every byte.
#
# A job passes when the attackers say that they hit something, UCI's statistics say that it was noticed, and the end is the one
# wanted: every byte right and all of it healed; or, where nothing can heal (UCI_MODE=detect), a stop with UCI's report. Jobs without UCI
# must show wrong bytes, or the attack would prove nothing. A wrong byte that was delivered with UCI on is called silent; there must be none.
# Jobs in which nothing was hit or nothing noticed are run again, each time for longer, 5 times in all. Ends with the line "N passed, N failed, N skipped";
# exit status 1 if any failed.
#
#   --quick           a choice of the attacks, 1 second of traffic each: a minute (default)
#   --seconds N       all of them, N seconds of traffic each
#   --mpi LIST        openmpi,mpich (default both)
#   --only REGEX      only jobs whose line (see --list) matches
#   --seed N          of traffic and attackers (default 1)
#   --preload PATH    default build/libucx_integrity.so
#   --timeout S       limit for each job, beside its traffic (default 60)
#   --list            the jobs, and nothing else
#   --help            this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../mpi/lib.sh"
# shellcheck source=tests/faults/foreign/attackers.sh
source "$(dirname "${BASH_SOURCE[0]}")/attackers.sh"

programs_dir=$foreign_dir

mpi=openmpi,mpich
seconds=
quick=
only='.*'
seed=1
preload=$uci_root/build/libucx_integrity.so
timeout=60
list=

# in quick, attack, UCX_TLS, UCI_PATH, what has to come of it, more settings
#   memory/MODE   flip.c in that mode         wire/recv, wire/cma   wire.c          headers/...   the same, frame headers too
#   healed        every byte right            stopped               by UCI's report shown         wrong bytes, there is no UCI
attacks=(
    "* memory/mixed   posix,self     auto   healed"
    "- memory/fresh   posix,self     auto   healed"
    "- memory/late    posix,self     auto   healed"
    "* memory/frozen  posix,self     auto   healed"
    "- memory/random  posix,self     auto   healed"
    "- memory/fields  posix,self     auto   healed"
    "* memory/mixed   posix,self     stream healed"
    "- memory/frozen  posix,self     stream healed"
    "- memory/mixed   posix,self     get    healed"
    "- memory/mixed   posix,self     bounce healed"
    "- memory/mixed   posix,cma,self auto   healed"
    "- memory/mixed   posix,cma,self bounce healed"
    "- memory/mixed   sysv,self      auto   healed"
    "- memory/frozen  sysv,self      auto   healed"
    "* memory/lines   posix,self     auto   healed"
    "- memory/lines   posix,cma,self auto   healed"
    "- memory/mixed   posix,self     auto   healed  UCI_DIGEST=crc32c"
    "- memory/mixed   posix,self     auto   healed  UCI_DIGEST=fnv1a"
    "* memory/mixed   posix,self     auto   healed  UCI_SIGNATURES=p2p"
    "- memory/random  posix,self     auto   healed  UCI_SIGNATURES=p2p"
    "- memory/fields  posix,self     auto   healed  UCI_SIGNATURES=p2p"
    "* memory/filling posix,self     auto   healed  UCI_DIGEST=auto"
    "* memory/filling posix,self     auto   healed  UCI_DIGEST=crc64"
    "- memory/filling posix,self     auto   healed  UCI_DIGEST=xxh3"
    "- memory/filling posix,self     auto   healed  UCI_DIGEST=xxh128"
    "- memory/filling posix,self     auto   healed  UCI_DIGEST=fnv1a"
    "- memory/filling posix,self     auto   healed  UCI_DIGEST=fletcher"
    "- memory/filling posix,self     auto   healed  UCI_DIGEST=crc32c"
    "- memory/filling posix,cma,self auto   healed  UCI_DIGEST=auto"
    "- memory/filling posix,cma,self auto   healed  UCI_DIGEST=xxh3"
    "- memory/filling posix,cma,self auto   healed  UCI_DIGEST=xxh128"
    "- memory/filling posix,cma,self auto   healed  UCI_DIGEST=fnv1a"
    "- memory/filling posix,cma,self auto   healed  UCI_DIGEST=fletcher"
    "- memory/filling posix,cma,self auto   healed  UCI_DIGEST=crc32c"
    "- memory/filling posix,cma,self auto   healed  UCI_DIGEST=crc64"
    "- headers/recv   tcp,self       auto   healed  UCI_SIGNATURES=p2p"
    "* wire/cma       posix,cma,self get    healed"
    "- wire/cma       posix,cma,self bounce healed"
    "* wire/recv      tcp,self       auto   healed"
    "- wire/recv      tcp,self       stream healed"
    "- wire/recv      tcp,self       bounce healed"
    "- headers/recv   tcp,self       auto   healed"
    "- memory/mixed   posix,self     auto   stopped UCI_MODE=detect"
    "- wire/recv      tcp,self       auto   stopped UCI_MODE=detect"
    "* memory/mixed   posix,self     auto   healed  FOREIGN_WAY=am"
    "- memory/frozen  posix,self     auto   healed  FOREIGN_WAY=am"
    "- memory/mixed   posix,self     auto   healed  FOREIGN_WAY=am UCI_DIGEST=xxh3"
    "- memory/mixed   posix,self     auto   healed  FOREIGN_WAY=am UCI_DIGEST=xxh128"
    "- memory/mixed   posix,self     auto   healed  FOREIGN_WAY=am UCI_DIGEST=fnv1a"
    "- memory/mixed   posix,self     auto   healed  FOREIGN_WAY=am UCI_DIGEST=fletcher"
    "- memory/mixed   posix,self     auto   healed  FOREIGN_WAY=am UCI_DIGEST=crc32c"
    "- memory/mixed   posix,self     auto   healed  FOREIGN_WAY=am UCI_DIGEST=crc64"
    "- memory/fields  posix,self     auto   healed  FOREIGN_WAY=am"
    "- memory/mixed   posix,cma,self auto   healed  FOREIGN_WAY=am"
    "* wire/recv      tcp,self       auto   healed  FOREIGN_WAY=am"
    "- wire/cma       posix,cma,self get    healed  FOREIGN_WAY=am"
    "* wire/recv      tcp,self       -      shown   FOREIGN_WAY=am"
    "* memory/mixed   posix,self     auto   healed  FOREIGN_WAY=rma"
    "- memory/frozen  posix,self     auto   healed  FOREIGN_WAY=rma"
    "- memory/mixed   posix,self     stream healed  FOREIGN_WAY=rma"
    "- memory/mixed   posix,cma,self auto   healed  FOREIGN_WAY=rma"
    "* wire/recv      tcp,self       auto   healed  FOREIGN_WAY=rma"
    "- wire/recv      tcp,self       stream healed  FOREIGN_WAY=rma"
    "- wire/cma       posix,cma,self get    healed  FOREIGN_WAY=rma"
    "* wire/recv      tcp,self       -      shown   FOREIGN_WAY=rma"
    "* wire/recv      tcp,self       auto   healed  FOREIGN_WAY=sock UCI_REQUIRE=on"
    "- wire/recv      tcp,self       stream healed  FOREIGN_WAY=sock"
    "- headers/recv   tcp,self       auto   healed  FOREIGN_WAY=sock"
    "* wire/recv      tcp,self       -      shown   FOREIGN_WAY=sock"
    "* memory/mixed   posix,self     -      shown"
    "- memory/frozen  sysv,self      -      shown"
    "- wire/cma       posix,cma,self -      shown"
    "* wire/recv      tcp,self       -      shown"
)
outcomes_tries=5

jobs=()     # "mpi attack tls path wanted settings"
silent=0
attack_log=$run_dir.attack
trap 'end_attacker; end_marked; rm -rf "$run_dir" "$attack_log"' EXIT

select_jobs() {
    local line one in_quick rest
    for line in "${attacks[@]}"; do
        read -r in_quick rest <<<"$line"
        if [ -n "$quick" ] && [ "$in_quick" = - ]; then
            continue
        fi
        for one in ${mpi//,/ }; do
            # shellcheck disable=SC2086  # one space between words
            line=$(say $one $rest)
            [[ ! $line =~ $only ]] || jobs+=("$line")
        done
    done
    [ ${#jobs[@]} -gt 0 ] || die "nothing fits these options"
}

# --- one run ---

# hits_of ATTACK: how many the attackers of the last run have counted.
hits_of() {
    local files=("$run_dir"/wire.*)
    [[ $1 == memory/* ]] || [ -e "${files[0]}" ] || { say 0; return; }
    [[ $1 != memory/* ]] || files=("$attack_log")
    awk '/^(flip|wire): [0-9]+ hits/ { hits += $2 } END { print hits + 0 }' "${files[@]}"
}

# program_of [NAME=VALUE]...: what is attacked, by its way: messages, or active messages (am, by socket address too: sock) or one-sided operations of UCX's.
program_of() {
    [[ " $* " != *" FOREIGN_WAY=rma "* ]] || { say foreign_rma; return; }
    [[ " $* " != *" FOREIGN_WAY="* ]] || { say foreign_am; return; }
    say foreign_traffic
}

# attack MPI ATTACK TLS PATH WANTED [NAME=VALUE]...: run the job once. Sets what run_program sets, and hits.
attack() {
    local one=$1 kind=$2 tls=$3 path=$4 wanted=$5 key traffic="$seconds $seed" program libraries=() settings=()
    shift 5
    key=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
    settings=("FOREIGN_KEY=$key" "$@")
    [ "$wanted" = shown ] || libraries=("$preload")
    [[ " $* " != *" UCI_SIGNATURES="* ]] || libraries+=("$(dirname "$preload")/mpi/libuci_mpi_$one.so")
    [ "$path" = - ] || settings+=("UCI_PATH=$path")
    program=$(program_of "$@")
    # what is filled often, and in slots
    [ "$kind" != memory/filling ] || traffic+=" 8192 16384 storm"
    # what has fields in front of a long row, and is read again soon: of all sizes, half of the runs notice nothing
    [[ $kind != memory/lines && $kind != memory/fields ]] || traffic+=" 9000 16000"
    case $kind in
    memory/*)
        start_flip "$key" "${kind#*/}" "$seed" "$timeout" "$attack_log" "$program"
        ;;
    *)
        libraries+=("$work_dir/foreign_wire.so")
        settings+=("FOREIGN_WIRE=${kind#*/}" "FOREIGN_WIRE_COUNTS=$run_dir" "FOREIGN_WIRE_SEED=$seed")
        [[ $kind != headers/* ]] || settings+=(FOREIGN_WIRE_HEADERS=0.5)
        ;;
    esac
    run_program "$program" "$one" "$tls" 2 "$(IFS=:; say "${libraries[*]}")" "$((timeout + seconds))" \
        "$traffic" "${settings[@]}"
    end_attacker
    hits=$(hits_of "$kind")
}

# How many wrong messages the program has reported: at its end, or one by one before it was ended.
wrong_messages() {
    awk '/^WRONG rank/ { ++shown } /^traffic: / { told = $6 } END { print (told > shown) ? told : shown + 0 }' "$run_log"
}

refuse() {
    verdict=$1
    reason=$2
}

# judge_healed [NAME=VALUE]...: a damaged message is never one of other types.
judge_healed() {
    local signed=('signatures_compared == 0')
    [ "$verdict" = PASS ] || return 0
    [[ " $* " != *" UCI_SIGNATURES="* ]] || signed=('signatures_compared > 0' 'signatures_differ == 0')
    check_stats 2 "${stats_always[@]}" "${stats_faulty[@]}" 'source_changed == 0' "${signed[@]}" ||
        refuse FAIL "$(tail -n +2 <<<"$stats_line" | paste -sd';')"
}

judge_stopped() {
    if [ "$verdict" = PASS ]; then
        refuse FAIL "it was not stopped"
    elif [ "$verdict" = FAIL ] && grep -Eq 'UCI +FATAL' "$run_log"; then
        verdict=PASS reason=
        stats_line="stopped: $(sed -nE 's/.*(UCI +ERROR message)/\1/p' "$run_log" | head -n 1)"
    fi
}

judge_shown() {
    if [ "$verdict" = FAIL ] && [ "$wrong" -gt 0 ]; then
        verdict=PASS reason=
        stats_line="$wrong wrong messages, as there should be"
    elif [ "$verdict" = PASS ]; then
        refuse NONE "no wrong byte was seen without UCI"
    fi
}

# judge_attack WANTED [NAME=VALUE]...: verdict NONE means that the run has shown nothing, and is worth another one.
judge_attack() {
    local wanted=$1 wrong
    shift
    wrong=$(wrong_messages)
    stats_line=
    if [ "$wanted" != shown ] && [ "$wrong" -gt 0 ]; then
        silent=$((silent + wrong))
        refuse SILENT "$wrong wrong messages were delivered"
        check_stats 2 || true
    elif [ "$verdict" = HANG ] || [ "$verdict" = SKIP ]; then
        :
    elif [ "$hits" -eq 0 ]; then
        refuse NONE "nothing was hit"
    elif [ "$wanted" != shown ] && [ "$(stats_value "$noticed")" -eq 0 ]; then
        refuse NONE "$hits hits, none was noticed"
    else
        "judge_$wanted" "$@"
    fi
}

noticed='mismatched_chunks + mismatched_headers + mismatched_control'

run_job() {
    local words try first=$seconds seconds
    read -ra words <<<"$1"
    for ((try = 1; try <= outcomes_tries; ++try)); do
        seconds=$((first * try))
        attack "${words[@]}"
        judge_attack "${words[@]:4}"
        [ "$verdict" = NONE ] || break
    done
    printf '%-6s %5s s  %-8s %-14s %-15s %-7s %-8s %-20s %5s hits  %s\n' "$verdict" "$duration" "${words[@]:0:5}" \
        "${words[*]:5}" "$hits" "${reason:-$(head -n 1 <<<"$stats_line")}"
    [[ $verdict == PASS || $verdict == SKIP ]] || cat "$attack_log" >>"$run_log" 2>/dev/null || true
    count_job "$1" "foreign $1"
}

main() {
    local job begin one
    set_options quick! seconds mpi only seed preload timeout list! -- "$@"
    [ -n "$seconds" ] || quick=1
    seconds=${seconds:-1}
    [[ $seconds =~ ^[1-9][0-9]*$ ]] || die "--seconds wants a number"
    select_jobs
    if [ -n "$list" ]; then
        printf '%s\n' "${jobs[@]}"
        return
    fi
    preload=$(check_preload "$preload")
    [ -n "$preload" ] || die "attacks need a preload"
    say "preload: $preload"
    compile_attackers
    for one in ${mpi//,/ }; do
        compile_programs "$one" foreign_traffic foreign_am foreign_rma
    done
    say "running ${#jobs[@]} jobs, $seconds s of traffic each"
    begin=$(clock)
    for job in "${jobs[@]}"; do
        run_job "$job"
    done
    end_of_jobs "$begin" "silent: $silent"
}

main "$@"
