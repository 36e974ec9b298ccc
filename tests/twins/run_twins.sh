#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/twins/run_twins.sh [options]
#
# Twins (UCI_TWINS): programs with known results, run twice and three times at once. Are they the same if nothing is wrong? Is a rank found, and
# named, whose arithmetic is wrong now and then (failing_node.c), and a message that is damaged after its verification (UCI_FAULT,
# target escape)? Is the result right with --correct? Is a program followed that takes what comes first, and one that is random not taken for a
# fault? What becomes of the others if a twin dies, and of twins that are none? Ends with "N passed, N failed, N skipped".
#
#   --build DIR       what to test (build/)
#   --mpi LIST        openmpi,mpich (default both)
#   --quick           the second MPI has one job of each program, each kind of fault corrected, and what depends on its launcher. What is below the MPI, who
#                     else there is and what becomes of damage that nobody corrects, the first one has shown
#   --only REGEX      only checks whose name matches
#   --timeout S       seconds for each job (60)
#   --help            this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

build=$uci_root/build
mpi=openmpi,mpich
only='.*'
timeout=60
quick=0
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"

flags=(-std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror)

# gcc takes MPI_STATUSES_IGNORE for an array that is too small, and knows fma() of constants
compile_all() {
    local one name
    for one in ${mpi//,/ }; do
        mkdir -p "$work/$one"
        for name in ring farm random alltoall types tags slow forks; do
            "mpicc.$one" "${flags[@]}" -fno-builtin-fma -Wno-stringop-overflow -Wno-stringop-overread \
                "$uci_root/tests/twins/$name.c" -o "$work/$one/$name" -lm -lucp
        done
    done
    for name in failing_node late_card dying_twin; do
        gcc "${flags[@]}" -shared -fPIC "$uci_root/tests/twins/$name.c" -o "$work/$name.so" -ldl
    done
}

# check_one NAME COMMAND...: unless --only leaves it out; in a folder of its own, with the time that it took.
check_one() {
    local name=$1 begin
    shift
    [[ $name =~ $only ]] || return 0
    begin=$(clock)
    check "$name" "$@"
    [ -z "${TWINS_TIMES:-}" ] || say "     $(since "$begin") s"
}

# run_twins MPI TWINS RANKS [OPTION...] PROGRAM [ARGUMENT...]: a job, behind the words of run_prefix, whose summary is in $work/job.json; PROGRAM is one of those here.
run_twins() {
    local one=$1 twins=$2 ranks=$3 options=()
    shift 3
    while [[ $1 == -* ]]; do
        options+=("$1")
        shift
    done
    rm -rf "$work/job" "$work/job.json"
    "$uci_root/tests/watchdog.sh" "$timeout" ${run_prefix[@]+"${run_prefix[@]}"} "$tools/uci_run" --twins "$twins" -n "$ranks" --folder "$work/job" --json "$work/job.json" \
        --require ${options[@]+"${options[@]}"} "$work/$one/$1" "${@:2}"
}

# summary CONDITION: a Python expression over the JSON of the last job; `level` and `sums` are those of the twins.
summary() {
    python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))
twins = job["twins"] or {}
names = {**job, **twins, "twins": twins}
assert eval(sys.argv[2], {}, names), {name: names[name] for name in names if name in sys.argv[2]}' "$work/job.json" "$1"
}

# result_is TWIN TEXT: what this twin has printed.
result_is() {
    grep -qxE "$2" "$work/job/twin.$1.stdout" || { say "twin $1 has printed:"; cat "$work/job/twin.$1.stdout"; return 1; }
}

all_are_right() {
    local twin
    for twin in $(seq 0 $(($2 - 1))); do
        result_is "$twin" "$1: right" || return
    done
}

# --- nothing is wrong ---

# same MPI TWINS RANKS [OPTION...] PROGRAM [ARGUMENT...]
same() {
    local twins=$2 word
    says "are the same in all" 0 run_twins "$@" || return
    summary "level == 'same' and sums['compared'] > 30 and sums['differed'] == sums['corrected'] == sums['alone'] == sums['unlike'] == 0" &&
        summary "processes == [$3] * $2 and minority == [0] * $2 and not culprits and all(one['state'] == 'same' for one in stdout)" || return
    for word in "${@:4}"; do
        [[ $word == -* ]] || { all_are_right "$word" "$twins"; return; }
    done
}

# As collectives that do not block: what has no room is counted, said once, and not called intact
too_many_tags() {
    UCI_TWINS_LOG=64k says "as far as it was verified" 0 run_twins "$1" 2 2 tags 450 &&
        summary "level == 'same in part' and sums['compared'] > 50 and sums['no_room'] > 100" &&
        [ "$(grep -c "over the limit" "$work/said")" -le 4 ] && all_are_right tags 2
}

# The order in which workers are done is another one in each run
followed() {
    same "$@" && summary "sums['choices_followed'] > 0 and sums['choices_given_up'] == 0"
}

# One twin is done before the other one sees its card: it is looked for all the same, and hears what it waits for
late_card() {
    LATE_CARD=0,1500 LD_PRELOAD=$work/late_card.so UCI_TWINS_WAIT=600 same "$@" && grep -q "times no card" "$work/job/twin.0.stderr"
}

# A child is no twin: neither what it asks the system nor its own use of UCX reaches anybody
forked() {
    same "$1" 2 2 --same-time forks "$2" && ! grep -E 'UCX +(WARN|ERROR)|UCI (WARN|ERROR)' "$work/said" "$work/job/twin."?.stderr
}

# --- a processor that computes wrong ---

# From its AFTER-th multiplication on rank 1 of twin 1 is wrong now and then: of a farm on a busy machine it may get few tasks
failing() {
    FAILING_NODE=1,1,${failing_after:-2000},3000,5 LD_PRELOAD=$work/failing_node.so "$@"
}

# The twin's own result is wrong, and what its rank 1 has sent is where it began
failing_is_detected() {
    failing says "The two twins differ" 119 run_twins "$@" &&
        summary "level == 'differs' and sums['differed'] == sums['split'] > 0 and sums['corrected'] == 0 and 'three twins' in str(next)" &&
        result_is 0 "$4: right" && result_is 1 "$4: [1-9][0-9]* wrong"
}

failing_is_named() {
    failing says "Rank 1 of twin 1" 119 run_twins "$@" &&
        summary "level == 'differs' and sums['differed'] == minority[1] > 0 and minority[0] == minority[2] == sums['corrected'] == 0" &&
        summary "[(one['twin'], one['rank']) for one in culprits] == [(1, 1)] and first['sender'] == 1" &&
        result_is 0 "$4: right" && result_is 1 "$4: [1-9][0-9]* wrong" && result_is 2 "$4: right"
}

# Nobody gets a wrong message, so that only what the rank itself has computed stays wrong
failing_is_corrected() {
    failing says "all were corrected" 118 run_twins "$1" 3 "$2" --correct "${@:3}" &&
        summary "level == 'corrected' and sums['differed'] == sums['corrected'] == minority[1] > 0 and sums['split'] == 0" &&
        summary "[(one['twin'], one['rank']) for one in culprits] == [(1, 1)] and [origin[:2] for origin in origins] == [[1, 1]]" &&
        all_are_right "$3" 3
}

# --- a message that is damaged after its verification ---

# escaping TWIN RANK AFTER COMMAND...
escaping() {
    UCI_FAULT="rate=1,count=1,target=escape,min=8,twin=$1,rank=$2,after=$3" "${@:4}"
}

counted_one_fault() {
    summary "[one['counters']['faults_injected'] for one in jobs] == [0, 1, 0][:$1] and not any(one['damaged_chunks'] for one in jobs)"
}

escape_is_detected() {
    escaping 1 1 20 says "The two twins differ" 119 run_twins "$@" && counted_one_fault 2 && summary "sums['differed'] > 0" &&
        result_is 0 "$4: right" && result_is 1 "$4: [1-9][0-9]* wrong"
}

escape_is_named() {
    escaping 1 1 20 says "of twin 1" 119 run_twins "$@" && counted_one_fault 3 && summary "first['receiver'] == 1" &&
        summary "sums['differed'] == minority[1] > 0 and minority[0] == minority[2] == 0" && result_is 1 "$4: [1-9][0-9]* wrong"
}

# It is the only one: the content that the others have takes its place
escape_is_corrected() {
    escaping 1 1 20 says "all were corrected" 118 run_twins "$1" 3 "$2" --correct "${@:3}" && counted_one_fault 3 &&
        summary "sums['differed'] == sums['corrected'] == minority[1] == 1 and first['receiver'] == 1" && all_are_right "$3" 3
}

# Each twin has its own damage: no two are the same
escapes_everywhere() {
    UCI_FAULT=rate=0.05,target=escape,kind=burst,min=8 says "differ" 119 run_twins "$1" 3 2 ring && summary "sums['differed'] > 10"
}

# --- what is no fault ---

not_deterministic() {
    says "This is no sign of a fault" 0 run_twins "$1" "$2" 3 random &&
        summary "level == 'not deterministic' and not culprits and not [job for job in jobs if job['damaged_chunks']]" && all_are_right random "$2"
}

# --- a twin that dies ---

# It is killed in the middle, as by a node that fails
killed() {
    UCI_TWINS_WAIT=8 says "twin 1 has failed" "$2" run_twins "$1" "${@:3}" ring 200 200 1 1 50 || return
    summary "statuses[0] == 0 and statuses[1] != 0 and all(status == 0 for status in statuses[2:]) and 'twin 1: it had gone' in str(notes)" &&
        summary "level == 'same' and sums['compared'] > 50 and sums['differed'] == 0" && result_is 0 "ring: right"
}

# As it is connected to: its card was there, its memory is not any more. The other process of that twin is killed too, or is told by its MPI that this one
# has gone, and aborts: the status is of whichever came first.
killed_early() {
    local status=0
    DYING_TWIN=1 LD_PRELOAD=$work/dying_twin.so UCI_TWINS_WAIT=8 run_twins "$1" 2 2 ring 200 200 >"$work/said" 2>&1 || status=$?
    cat "$work/said"
    [ "$status" -ne 0 ] && grep -qF "twin 1 has failed" "$work/said" &&
        summary "statuses[0] == 0 and statuses[1] != 0 and 'twin 1: it had gone' in str(notes)" && result_is 0 "ring: right"
}

# Somebody ends it, as a batch system does
ended_from_outside() {
    local run_prefix=(timeout --preserve-status -s TERM 4)
    says "ended from outside, by SIGTERM" 143 run_twins "$1" 2 2 ring 50 2000000
}

# Without anybody to talk to: nothing is compared, which --require takes for a failure
alone() {
    local status=0
    UCI_TWINS=$work/alone,0/2 UCI_TWINS_WAIT=2 UCI_TWINS_REPORT=$work/alone.%r.json says "never came" 0 \
        "$tools/uci_run" -n 2 --folder "$work/alone.job" "$work/$1/ring" 50 20 || status=$?
    grep -q '"verdict": "alone"' "$work/alone.0.json" || status=1
    rm -rf "$work/alone" "$work"/alone.*
    return $status
}

# It was left behind while it slept, and asks for the right content of a message when nobody gives it any more
left_behind() {
    rm -rf "$work/slow_meet" && mkdir "$work/slow_meet"
    SLOW_MEET=$work/slow_meet UCI_TWINS_WAIT=2 escaping 2 1 5 says "twin 2 has failed" 119 run_twins "$1" 3 2 --correct slow &&
        grep -q "has waited 2 seconds (UCI_TWINS_WAIT) for twin 0" "$work/job/twin.2.stderr" &&
        grep -q "could not be corrected: the twin that has it is gone" "$work/job/twin.2.stderr" && result_is 0 "slow: right"
}

# --- twins that are none ---

# by_hand MPI TWIN TWINS RANKS PROGRAM...: one twin; what it says is in a file hand.*.log.
by_hand() {
    local folder
    folder=$(mktemp -d "$work/hand.XXXX")
    UCI_TWINS=$work/meet,$2/$3 UCI_TWINS_WAIT=3 "$uci_root/tests/watchdog.sh" "$timeout" \
        "$tools/uci_run" -n "$4" --folder "$folder" "$work/$1/$5" "${@:6}" >"$folder.log" 2>&1
}

# refused TEXT FIRST... -- SECOND...: two jobs by hand, as by_hand. Who finds first that the other is no twin stops, and says TEXT; the other may
# find nobody then, and goes on alone.
refused() {
    local text=$1 first=() stopped=0
    shift
    while [ "$1" != -- ]; do
        first+=("$1")
        shift
    done
    rm -rf "$work/meet" "$work"/hand.*
    "${first[@]}" &
    "${@:2}" || stopped=1
    wait $! || stopped=1
    grep -h ' UCI ' "$work"/hand.*.log
    [ $stopped -eq 1 ] && grep -hE ' (ERROR|FATAL) ' "$work"/hand.*.log | grep -qE -- "$text"
}

# of_another_version COMMAND...: with a library that says it is of another version.
of_another_version() {
    local version
    version=$("$tools/uci_info" -v | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
    python3 -c 'import sys
library, other, version = sys.argv[1:]
data = open(library, "rb").read()
assert data.count(version.encode()) > 0
open(other, "wb").write(data.replace(version.encode(), version[:-1].encode() + b"9"))' "$build/libucx_integrity.so" "$work/other.so" "$version"
    "$@"
}

with_other_library() {
    UCI_TWINS=$work/meet,1/2 UCI_TWINS_WAIT=5 "$uci_root/tests/watchdog.sh" "$timeout" "$tools/uci_run" -n 2 --library "$work/other.so" \
        --folder "$work/hand.1" "$work/$1/ring" 50 20 >"$work/hand.1.log" 2>&1
}

with_other_digest() {
    UCI_DIGEST=crc32c by_hand "$@"
}

bad_input() {
    says "$1" 125 "$tools/uci_run" "${@:2}"
}

# --- what is run ---

# What does not depend on the MPI in any way is done with one
# --- twins on hosts of their own ---

# Twins 0 and 2 on one host, 1 on the other one: by tcp, and it is known which host was wrong
between_hosts() {
    local run_prefix=("$uci_root/tools/two_hosts.sh")
    UCX_TLS=tcp,self failing says "all were corrected" 118 run_twins "$1" 3 2 --correct --hosts-of-twin=uci-a --hosts-of-twin=uci-b \
        --hosts-of-twin=uci-a ring &&
        summary "level == 'corrected' and sums['differed'] == sums['corrected'] == minority[1] > 0" &&
        summary "[(one['twin'], one['rank'], one['host']) for one in culprits] == [(1, 1, 'uci-b')]" && all_are_right ring 3
}

check_hosts() {
    local label="$1: between two hosts, corrected"
    if [ "$(id -u)" -ne 0 ]; then
        skip "$label" "network namespaces are made by root"
        return
    fi
    check_one "$label" between_hosts "$1"
}

check_refusals() {
    local one=$1
    check_one "refused: another program" refused program by_hand "$one" 0 2 2 ring 50 20 -- by_hand "$one" 1 2 2 alltoall 50 20
    check_one "refused: other arguments" refused arguments by_hand "$one" 0 2 2 ring 50 20 -- by_hand "$one" 1 2 2 ring 51 20
    check_one "refused: another number of ranks" refused ranks by_hand "$one" 0 2 2 ring 50 20 -- by_hand "$one" 1 2 3 ring 50 20
    check_one "refused: another number of twins" refused twins by_hand "$one" 0 2 2 ring 50 20 -- by_hand "$one" 1 3 2 ring 50 20
    check_one "refused: another digest" refused UCI_DIGEST by_hand "$one" 0 2 2 ring 50 20 -- with_other_digest "$one" 1 2 2 ring 50 20
    check_one "refused: another version" of_another_version refused version by_hand "$one" 0 2 2 ring 50 20 -- with_other_library "$one"
    check_one "refused: twice the same twin" refused "is rank [01] of twin 0 already" by_hand "$one" 0 2 2 ring 50 20000 -- by_hand "$one" 0 2 2 ring 50 20000
    check_one "refused: types that shall be compared" bad_input "--signatures is not" --twins 2 --signatures -n 2 "$work/$one/ring"
    check_one "refused: two that shall correct" bad_input "--correct" --twins 2 --correct -n 2 "$work/$one/ring"
}

# Types of messages would be a part of their digests: they are not compared, and that is told
beside_signatures() {
    LD_PRELOAD=$build/mpi/libuci_mpi_$1.so same "$1" 2 2 ring && grep -q "not compared in jobs that have twins" "$work/job/twin.1.stderr"
}

# What depends on the MPI: its datatypes, its collectives, its launcher
check_mpi() {
    local one=$1 dead=137
    [ "$one" = openmpi ] || dead=9 # what its mpirun makes of a rank that was killed
    check_one "$one: ring, 3 twins of 2, correct" same "$one" 3 2 --correct ring
    check_one "$one: ring, beside signatures" beside_signatures "$one"
    check_one "$one: types and large messages, 3 twins of 2, correct" same "$one" 3 2 --correct types 256
    check_one "$one: alltoall, 2 twins of 4" same "$one" 2 4 alltoall 1024 100
    check_one "$one: farm, 3 twins of 3, correct" followed "$one" 3 3 --correct farm all 30
    check_one "$one: forked children ask for the time" forked "$one" time
    check_one "$one: forked children use UCX" forked "$one" context
    check_one "$one: a failing node, 3 twins" failing_is_named "$one" 3 3 ring
    check_one "$one: a failing node, types, corrected" failing_is_corrected "$one" 3 types
    failing_after=20 check_one "$one: a failing worker of the farm, corrected" failing_is_corrected "$one" 3 farm all 100
    check_one "$one: an escape, corrected" escape_is_corrected "$one" 3 ring
    check_one "$one: an escape in a derived datatype, corrected" escape_is_corrected "$one" 2 types 128 40
    check_one "$one: a program that is random, 2 twins" not_deterministic "$one" 2
    check_one "$one: one of two is killed" killed "$one" "$dead" 2 2
    check_one "$one: one of two is killed early" killed_early "$one" "$dead"
    check_one "$one: one of three is killed, correct" killed "$one" "$dead" 3 2 --correct
    check_one "$one: ended from outside" ended_from_outside "$one"
    check_one "$one: alone" alone "$one"
}

# What does not
check_more() {
    local one=$1 dead=137
    [ "$one" = openmpi ] || dead=9
    check_one "$one: ring, 2 twins of 2" same "$one" 2 2 ring
    check_one "$one: ring, 3 twins of 4" same "$one" 3 4 ring 100 50
    check_one "$one: ring, a card that is seen late" late_card "$one" 2 2 ring
    check_one "$one: types and large messages, 2 twins of 3" same "$one" 2 3 types
    check_one "$one: alltoall, 3 twins of 2, correct" same "$one" 3 2 --correct alltoall 20000 100
    check_one "$one: farm, 2 twins of 3" followed "$one" 2 3 farm
    check_one "$one: farm, 3 twins of 4" followed "$one" 3 4 farm all 30
    check_one "$one: more tags than there is room for" too_many_tags "$one"
    check_one "$one: a failing node, 2 twins" failing_is_detected "$one" 2 3 ring
    check_one "$one: a failing node, types, 3 twins" failing_is_named "$one" 3 3 types
    check_one "$one: a failing node, corrected" failing_is_corrected "$one" 3 ring
    check_one "$one: an escape, 2 twins" escape_is_detected "$one" 2 3 ring
    check_one "$one: an escape, 3 twins" escape_is_named "$one" 3 3 ring
    check_one "$one: escapes in all twins" escapes_everywhere "$one"
    check_one "$one: a program that is random, 3 twins" not_deterministic "$one" 3
    check_one "$one: one of three is killed" killed "$one" "$dead" 3 2
    check_one "$one: one of three is left behind, correct" left_behind "$one"
}

main() {
    local one
    set_options build mpi only timeout quick! -- "$@"
    build=$(realpath "$build")
    tools=$build/tools
    [ -x "$tools/uci_run" ] || die "no $tools/uci_run: build first (ninja -C build)"
    unset "${!UCI_@}" LD_PRELOAD UCX_PLUGIN_PATH
    export XDG_CACHE_HOME=$work/cache UCI_CONFIG_FILE='' UCX_TLS=posix,self OMPI_MCA_rmaps_base_oversubscribe=1
    compile_all
    for one in ${mpi//,/ }; do
        check_mpi "$one"
        [[ $quick = 1 && $one != "${mpi%%,*}" ]] || check_more "$one"
    done
    check_hosts "${mpi%%,*}"
    check_refusals "${mpi%%,*}"
    end_of_checks
}

main "$@"
