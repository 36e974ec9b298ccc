#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/soak/run_soak.sh [options]
#
# MPI jobs of two ranks that go on for hours (soak.c: all kinds of traffic, every byte checked), while their memory, descriptors, shared memory,
# messages kept and time for a round are looked at (soak.py). A job passes if no byte is wrong, what was found damaged has been repaired, and none of
# these has grown from the second quarter of its time to the last one. Ends with the line "N passed, N failed, N skipped"; exit status 1 if any failed.
#
#   --hours H       for all jobs, each of which has an equal part (default 8)
#   --only REGEX    only jobs whose line (see --list) matches
#   --seed N        of what attackers do (default 1)
#   --folder DIR    where logs, tables and the picture go (default build/soak)
#   --list          the jobs, and nothing else
#   --help          this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"
# shellcheck source=tests/faults/foreign/attackers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../faults/foreign/attackers.sh"

here=$uci_root/tests/soak
programs_dir=$here
build=$work_dir/..
preload=$build/libucx_integrity.so
hours=8 only='.*' seed=1 folder=$build/soak list=

# MPI, UCX_TLS, what attacks it: nothing; UCI's own injector; another process in the shared memory; a library under recv(); and plain UCX, to compare
jobs=(
    "openmpi posix,cma,self nothing"
    "openmpi posix,cma,self faults"
    "mpich   posix,self     memory"
    "mpich   tcp,self       faults"
    "openmpi tcp,self       wire"
    "openmpi posix,cma,self plain"
)
watcher=
trap 'end_watcher; end_attacker; end_marked; rm -rf "$run_dir"' EXIT

end_watcher() {
    [ -n "$watcher" ] || return 0
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    watcher=
}

# soak MPI TLS ATTACK SECONDS NAME: run one job, looked at. Sets what run_program sets.
soak() {
    local mpi=$1 tls=$2 attack=$3 seconds=$4 name=$5 key live=$folder/$5.live libraries=("$preload") settings
    key=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
    rm -rf "$live"
    mkdir -p "$live"
    settings=("UCI_LIVE=$live" "SOAK_JOB=$key")
    case $attack in
    faults) settings+=("UCI_FAULT=rate=1e-4,kind=any,target=any,seed=$seed") ;;
    memory) start_flip "$key" mixed "$seed" 60 "$folder/$name.attack" soak --seconds "$((seconds + 60))" --pause 5000 ;;
    wire)
        libraries+=("$work_dir/foreign_wire.so")
        settings+=(FOREIGN_WIRE=recv "FOREIGN_WIRE_COUNTS=$folder" "FOREIGN_WIRE_SEED=$seed")
        ;;
    plain) libraries=() ;;
    esac
    [[ $attack != memory && $attack != wire ]] || settings+=("FOREIGN_KEY=$key")
    rank_wrapper=()
    [ "$mpi" != mpich ] || rank_wrapper=(setarch -R) # else one rank in two leaks datatypes of MPICH's: docs/compatibility.md
    "$here/soak.py" watch "$folder/$name.tsv" --mark "SOAK_JOB=$key" --log "$run_dir/log" --live "$live" --top "$build/tools/uci_top" \
        --every "$(((seconds + 119) / 120))" &
    watcher=$!
    run_program soak "$mpi" "$tls" 2 "$(IFS=:; say "${libraries[*]}")" "$((seconds + 300))" "$seconds" "${settings[@]}"
    end_watcher
    end_attacker
    cp "$run_log" "$folder/$name.log"
    rm -rf "$live"
}

# judge_soak ATTACK NAME: what was noticed was repaired, something was if it is attacked, and nothing has grown.
judge_soak() {
    local conditions=("${stats_always[@]}")
    [ "$verdict" = PASS ] || return 0
    case $1 in
    plain) conditions=() ;;
    nothing) conditions+=("${stats_clean[@]}") ;;
    *) conditions+=("${stats_faulty[@]}" 'mismatched_chunks > 0') ;;
    esac
    if [ ${#conditions[@]} -gt 0 ] && ! check_stats 2 "${conditions[@]}"; then
        verdict=FAIL reason=$stats_line
        return
    fi
    [ "$1" = plain ] || say "  $stats_line"
    if ! "$here/soak.py" judge "$folder/$2.tsv" >"$folder/$2.judged"; then
        verdict=FAIL reason='something grows'
    fi
    sed 's/^/  /' "$folder/$2.judged"
}

main() {
    local line mpi tls attack name seconds chosen=() titles=()
    while [ $# -gt 0 ]; do
        case $1 in
        --hours) hours=$2; shift 2 ;;
        --only) only=$2; shift 2 ;;
        --seed) seed=$2; shift 2 ;;
        --folder) folder=$2; shift 2 ;;
        --list) list=1; shift ;;
        --help) usage_of "$0"; exit 0 ;;
        *) die "unknown option '$1' (see --help)" ;;
        esac
    done
    for line in "${jobs[@]}"; do
        [[ ! $line =~ $only ]] || chosen+=("$line")
    done
    [ ${#chosen[@]} -gt 0 ] || die "no job matches '$only'"
    [ -z "$list" ] || { printf '%s\n' "${chosen[@]}"; exit 0; }
    seconds=$(awk -v hours="$hours" -v jobs="${#chosen[@]}" 'BEGIN { print int(hours * 3600 / jobs) }')
    mkdir -p "$folder"
    compile_attackers
    compile_programs openmpi soak
    compile_programs mpich soak
    for line in "${chosen[@]}"; do
        read -r mpi tls attack <<<"$line"
        name=$mpi.${tls//,/-}.$attack
        say "$mpi, $tls, $attack, for $seconds s, until $(date -d "+$seconds seconds" +%T):"
        soak "$mpi" "$tls" "$attack" "$seconds" "$name"
        judge_soak "$attack" "$name"
        say "$verdict $mpi $tls $attack ${reason:+($reason; $folder/$name.log)}"
        count_job "$line" "$name"
        titles+=("$mpi $tls $attack=$folder/$name.tsv")
    done
    "$here/soak.py" plot "$folder/soak.svg" "${titles[@]}"
    say "the picture: $folder/soak.svg"
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
