#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/seal/run_seal.sh [options]
#
# Sealed messages (UCI_SEAL) with a man in the middle: jobs between two network namespaces, whose tcp connections go through mitm.py, which
# reads, and flips, forges, truncates, drops, replays, reorders, splices and reflects what they carry. The program (patterns.c)
# sends readable text and looks at every byte. Of a sealed job a byte that is wrong, a text that could be read (UCI_SEAL=encrypt), or a job that
# hangs is a failure; of plain UCX they must be seen, or the test would prove nothing. Then what has no key, or another one; and where the key
# could be found that should be nowhere. Needs root. Ends with "N passed, N failed, N skipped".
#
#   --build DIR       what to test (build/)
#   --mpi LIST        openmpi,mpich (default both)
#   --seeds N         of each kind of attack N jobs with other seeds, for each MPI and mode, and attacks on UCX's own headers: the
#                     campaign. Without it one seed, in less than a minute
#   --first N         the first seed (1)
#   --only REGEX      only checks whose name matches
#   --timeout S       seconds for each job (60)
#   --help            this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/seal
build=$uci_root/build
mpi=openmpi,mpich
seeds=0 first=1
only='.*'
timeout=60
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"

compile_all() {
    local one
    for one in ${mpi//,/ }; do
        "mpicc.$one" -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -Wno-stringop-overflow \
            "$here/patterns.c" -o "$work/patterns.$one"
    done
}

# check_one NAME COMMAND...: unless --only leaves it out.
check_one() {
    [[ $1 =~ $only ]] || return 0
    check "$@"
}

# between_hosts COMMAND...: on two hosts that are namespaces; there is one pair of them on a machine.
between_hosts() {
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        [ -e /run/netns/uci-a ] || break
        sleep 0.5
    done
    "$uci_root/tests/watchdog.sh" "$timeout" "$uci_root/tools/two_hosts.sh" "$@"
}

# in_the_middle OPTION... -- COMMAND...: with mitm.py between the hosts; its report is in $work/mitm.json, the output in $work/out.
in_the_middle() {
    local status=0
    rm -f "$work/mitm.json"
    UCX_TLS=tcp,self UCX_WARN_UNUSED_ENV_VARS=n between_hosts python3 "$here/mitm.py" --report "$work/mitm.json" "$@" >"$work/out" 2>&1 || status=$?
    tail -n 12 "$work/out"
    return "$status"
}

# with_uci MPI OPTION...: the command line of a job of 4 ranks on two hosts, in `job`. OPTIONs are uci_run's.
with_uci() {
    local one=$1 arguments=()
    shift
    [ "$one" = mpich ] || arguments=(--mpirun-args '--bind-to none')
    # shellcheck disable=SC2054  # words with commas
    rm -rf "$work/job" "$work/job.json"
    # shellcheck disable=SC2054  # words with commas
    job=("$build/tools/uci_run" -n 4 --hosts uci-a,uci-b --attach preload --library "$build/libucx_integrity.so" --require --folder "$work/job"
         --json "$work/job.json" ${arguments[@]+"${arguments[@]}"} "$@" "$work/patterns.$one" "$rounds")
}

# middle CONDITION: a Python expression over what mitm.py has counted; `attacks` is all that it has done.
middle() {
    python3 -c 'import json, sys
counts = json.load(open(sys.argv[1]))
counts["attacks"] = sum(counts[kind] for kind in ("flip", "forge", "truncate", "drop", "replay", "reorder", "splice", "reflect", "wild"))
assert not counts["complaints"], counts["complaints"]
assert eval(sys.argv[2], {}, counts), counts' "$work/mitm.json" "$1"
}

# counted CONDITION: a Python expression over the summary of the job; counters by their names.
counted() {
    python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))
names = {**job["counters"], **job}
assert eval(sys.argv[2], {}, names), {name: names[name] for name in names if name in sys.argv[2]}' "$work/job.json" "$1"
}

passes() {
    grep -q "^PASS patterns" "$work/out" && ! grep -q WRONG "$work/out"
}

# --- what the attacker can do to who is not sealed ---

# The text is read; with flips the program gets wrong bytes, and nobody says a word
plain_ucx() {
    # shellcheck disable=SC2054
    local launch=(mpirun.openmpi --allow-run-as-root --host uci-a:2,uci-b:2 -np 4 --bind-to none --mca pml ucx --mca opal_common_ucx_tls any
                  -x UCX_TCP_PORT_RANGE -x UCX_TLS "$work/patterns.openmpi" 4)
    in_the_middle -- "${launch[@]}" && passes && middle 'plaintext > 10000 and attacks == 0' || return 1
    ! in_the_middle --attack flip --rate 0.2 -- "${launch[@]}" && grep -q WRONG "$work/out" && middle 'flip > 0'
}

# Digests find what was changed, and it is repaired; but all can be read
unsealed_uci() {
    local job rounds=4 status=0
    with_uci "$1"
    in_the_middle --attack all --rate 0.03 -- "${job[@]}" || status=$?
    passes && [ "$status" -eq 0 ] || [ "$status" -eq 122 ] && middle 'plaintext > 10000 and attacks > 5' && counted 'sealed_records == 0'
}

# --- sealed ---

unread() {
    local job rounds=4
    with_uci "$1" --seal
    in_the_middle -- "${job[@]}" && passes && middle 'plaintext == 0 and frames > 100' && counted 'sealed_records > 100 and sealed_rejected == 0'
}

# Signed messages are not secret: the search would have found them
signed() {
    local job rounds=4
    with_uci "$1" --seal=sign
    in_the_middle -- "${job[@]}" && passes && middle 'plaintext > 10000' && counted 'sealed_records > 100 and sealed_rejected == 0'
}

# attacked MPI MODE KIND SEED [ROUNDS]: every byte right, no text, and what can't be mistaken for anything else was rejected
attacked() {
    local job rounds=${5:-4} status=0 seen='plaintext == 0'
    [ "$2" = encrypt ] || seen=True
    with_uci "$1" "--seal=$2"
    in_the_middle --attack "$3" --rate 0.06 --seed "$4" -- "${job[@]}" || status=$?
    passes && { [ "$status" -eq 0 ] || [ "$status" -eq 122 ]; } && middle "attacks > 5 and $seen" || return 1
    case $3 in
    drop|reorder) ;; # nothing comes that should not
    *) counted 'sealed_rejected > 0' ;;
    esac
}

# UCX's own headers are changed as well, and UCX may break, with a word: but no wrong byte, no text, and no end that does not come
wild() {
    local job rounds=4 status=0
    with_uci "$1" "--seal"
    in_the_middle --wild --rate 0.003 --seed "$2" -- "${job[@]}" || status=$?
    ! grep -q WRONG "$work/out" && middle 'plaintext == 0' || return 1
    [ "$status" -ne 124 ] && { passes || [ "$status" -ne 0 ]; }
}

# --- who has no key ---

# two_ranks FIRST SECOND: settings of the ranks of a job on this host, a list of NAME=VALUE each.
two_ranks() {
    local launch=(mpirun.openmpi --allow-run-as-root --oversubscribe --mca pml ucx --mca opal_common_ucx_tls any)
    # shellcheck disable=SC2054
    local rank=(env UCX_TLS=tcp,self "LD_PRELOAD=$build/libucx_integrity.so")
    # shellcheck disable=SC2086  # several words
    "$uci_root/tests/watchdog.sh" "$timeout" "${launch[@]}" -np 1 "${rank[@]}" $1 "$work/patterns.openmpi" 1 : \
        -np 1 "${rank[@]}" $2 "$work/patterns.openmpi" 1 >"$work/out" 2>&1
}

# refused TEXT FIRST SECOND: the job ends with this message, and no rank gets anything
refused() {
    local status=0
    two_ranks "$2" "$3" || status=$?
    tail -n 20 "$work/out" | cut -c1-300
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && grep -q -- "$1" "$work/out" && ! grep -q "PASS\|WRONG" "$work/out"
}

make_keys() {
    (umask 077 && openssl rand -hex 32 >"$work/key" && openssl rand -hex 32 >"$work/other.key")
    cp "$work/key" "$work/open.key"
    chmod 0644 "$work/open.key"
}

check_refusals() {
    local sealed="UCI_SEAL=encrypt UCI_SEAL_SCOPE=all UCI_KEY_FILE=$work/key"
    make_keys
    check_one "refused: another key" refused "key" "$sealed" "UCI_SEAL=encrypt UCI_SEAL_SCOPE=all UCI_KEY_FILE=$work/other.key"
    check_one "refused: none" refused "UCI_SEAL" "$sealed" "UCI_SEAL=off"
    check_one "refused: signed by one, encrypted by the other" refused "UCI_SEAL" "$sealed" "$sealed UCI_SEAL=sign"
    check_one "refused: another cipher" refused "UCI_SEAL_CIPHER\|cipher" "$sealed UCI_SEAL_CIPHER=aes256" "$sealed UCI_SEAL_CIPHER=chacha20"
    check_one "refused: another scope" refused "UCI_SEAL_SCOPE\|scope" "$sealed" "$sealed UCI_SEAL_SCOPE=net"
    check_one "refused: a key that others may read" refused "has mode 0644" "$sealed" "$sealed UCI_KEY_FILE=$work/open.key"
    check_one "refused: a key that is not there" refused "does not exist on this host" "$sealed" "$sealed UCI_KEY_FILE=$work/no.key"
    check_one "libraries may differ" two_ranks "$sealed UCI_SEAL_LIBRARY=openssl" "$sealed UCI_SEAL_LIBRARY=auto"
}

# --- campaign ---

kinds=(flip forge truncate drop replay reorder splice reflect all)

check_campaign() {
    local one mode kind seed
    for ((seed = first; seed < first + seeds; seed++)); do
        for one in ${mpi//,/ }; do
            for kind in "${kinds[@]}"; do
                for mode in encrypt sign; do
                    check_one "$one: $mode, $kind, seed $seed" attacked "$one" "$mode" "$kind" "$seed" 10
                done
            done
            check_one "$one: encrypt, UCX's headers too, seed $seed" wild "$one" "$seed"
        done
    done
}

check_quick() {
    local one
    for one in ${mpi//,/ }; do
        check_one "$one: sealed: every byte right, no text" unread "$one"
        check_one "$one: encrypted, all attacks: every byte right, no text" attacked "$one" encrypt all "$first" 8
    done
    one=${mpi%%,*}
    check_one "$one: signed: every byte right" signed "$one"
    check_one "$one: signed, all attacks: every byte right" attacked "$one" sign all "$first"
}

main() {
    while [ $# -gt 0 ]; do
        case $1 in
        --build)   build=$(realpath "$2"); shift ;;
        --mpi)     mpi=$2; shift ;;
        --seeds)   seeds=$2; shift ;;
        --first)   first=$2; shift ;;
        --only)    only=$2; shift ;;
        --timeout) timeout=$2; shift ;;
        -h|--help) usage_of "$0"; exit ;;
        *)         die "unknown option '$1'; see $0 --help" ;;
        esac
        shift
    done
    [ "$(id -u)" -eq 0 ] || die "network namespaces are made by root"
    unset "${!UCI_@}" "${!UCX_@}" LD_PRELOAD
    export UCI_CONFIG_FILE='' XDG_CACHE_HOME=$work/cache OMPI_MCA_rmaps_base_oversubscribe=1 UCI_PROFILE=none
    compile_all
    if [[ $mpi == *openmpi* ]]; then
        check_one "openmpi: plain UCX: all is read, and a bit is flipped unseen" plain_ucx
    fi
    check_one "${mpi%%,*}: UCI, not sealed: every byte right, all is read" unsealed_uci "${mpi%%,*}"
    if [ "$seeds" -gt 0 ]; then
        check_campaign
    else
        check_quick
    fi
    [[ $mpi != *openmpi* ]] || check_refusals
    end_of_checks
}

main "$@"
