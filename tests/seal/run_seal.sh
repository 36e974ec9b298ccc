#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/seal/run_seal.sh [options]
#
# Sealed messages (UCI_SEAL) with a man in the middle: jobs between two network namespaces, whose tcp connections go through mitm.py, which
# reads, and flips, forges, truncates, drops, replays, reorders, splices and reflects what they carry. The program (patterns.c)
# sends readable text and looks at every byte. Of a sealed job a byte that is wrong, a text that could be read (UCI_SEAL=encrypt), or a job that
# hangs is a failure; of plain UCX they must be seen, or the test would prove nothing. (But from who drops messages a job may wait for ever, as it would
# with no network at all: that is left to the campaign, and only bytes and text are judged.) Then what has no key, or another one; and where the
# key could be found that should be nowhere. Needs root. Ends with "N passed, N failed, N skipped".
#
#   --build DIR       what to test (build/)
#   --mpi LIST        openmpi,mpich (default both)
#   --seeds N         of each kind of attack N jobs with other seeds, for each MPI and mode, and attacks on UCX's own headers: the
#                     campaign. Without it one seed, in less than a minute
#   --first N         the first seed (1)
#   --only REGEX      only checks whose name matches
#   --timeout S       seconds for each job (90)
#   --help            this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/seal
build=$uci_root/build
mpi=openmpi,mpich
seeds=0 first=1
attacks=flip,forge,truncate,replay,reorder,splice,reflect
only='.*'
timeout=90
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

# between_hosts COMMAND...: on two hosts that are namespaces; there is one pair of them on a machine, and waiting for it takes none of the time.
between_hosts() {
    "$uci_root/tools/two_hosts.sh" "$uci_root/tests/watchdog.sh" "$timeout" "$@"
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

# Digests find what was changed, which is repaired, or told as a lie of a peer's; but all can be read
unsealed_uci() {
    local job rounds=4 status=0
    with_uci "$1"
    in_the_middle --attack "$attacks" --rate 0.03 -- "${job[@]}" || status=$?
    [ "$status" -ne 124 ] && { passes || [ "$status" -ne 0 ]; } && middle 'plaintext > 10000 and attacks > 5' && counted 'sealed_records == 0'
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
    reorder) ;; # nothing comes that should not
    *) counted 'sealed_rejected > 0' ;;
    esac
}

# Nobody can be made to send what he has given away, and UCX loses nothing: who waits for what was dropped waits
dropped() {
    local job rounds=10 status=0
    with_uci "$1" "--seal=$2"
    timeout=10 in_the_middle --attack drop --rate 0.06 --seed "$3" -- "${job[@]}" || status=$?
    ! grep -q WRONG "$work/out" && { [ "$status" -eq 124 ] || { passes && middle 'plaintext == 0 or "'"$2"'" == "sign"'; }; }
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

# --- where the key is ---

# A sealed job of two ranks on this host, scope all, that goes on until it is ended; its ranks' ids are in `ranks`
start_long_job() {
    local tries
    rm -rf "$work/job"
    mkdir -p "$work/job"
    UCX_TLS=$1 "$build/tools/uci_run" -n 2 --seal --seal-scope all --attach preload --library "$build/libucx_integrity.so" --folder "$work/job" \
        -x UCI_LOG_LEVEL=trace -x "UCI_CAPTURE=$work/job/capture" -x UCI_FAULT=rate=0.05,seed=3 "$work/patterns.openmpi" 1000000 >"$work/out" 2>&1 &
    long_job=$!
    for ((tries = 0; tries < 100; tries++)); do
        mapfile -t ranks < <(pgrep -f "^$work/patterns.openmpi 1000000" || true)
        [ ${#ranks[@]} -ne 2 ] || ! grep -q "repaired\|rejected" "$work/out" || return 0
        sleep 0.1
    done
    say "no two ranks in 10 s, or nothing was rejected"
    return 1
}

end_long_job() {
    kill -TERM "$long_job" 2>/dev/null || true
    wait "$long_job" 2>/dev/null || true
}

# Neither in a core of a rank, nor its environment and command line, nor in what it prints at the level of trace, nor in any file of the job's
key_is_hidden() {
    local job=$work/job status=1
    if start_long_job posix,self; then
        cp "$work/job/key" "$work/key.copy"
        gcore -o "$work/core" "${ranks[0]}" >"$work/gcore.log" 2>&1
        cat "/proc/${ranks[0]}/environ" "/proc/${ranks[0]}/cmdline" >"$work/environment"
        [ "$(stat -c %s "$work/core.${ranks[0]}")" -gt 1000000 ] &&
            "$here/key_search.py" "$work/key.copy" "$work/core.${ranks[0]}" "$work/environment" "$work/out" "$work/job/"*.* && status=0
    fi
    end_long_job
    [ ! -e "$job/key" ] || status=1
    rm -f "$work"/core.*
    return "$status"
}

# The search finds it where it is
search_finds() {
    (umask 077 && openssl rand -hex 32 >"$work/some.key")
    python3 -c 'import sys; sys.stdout.buffer.write(b"x" * 1000001 + bytes.fromhex(open(sys.argv[1]).read().strip()) + b"y")' "$work/some.key" >"$work/some.bytes"
    ! "$here/key_search.py" "$work/some.key" "$work/some.bytes" && cp "$work/some.key" "$work/some.text" && ! "$here/key_search.py" "$work/some.key" "$work/some.text"
}

# With scope all not even shared memory has the text; without sealing it has
shared_memory_has() {
    local found=1 try
    rm -rf "$work/job"
    UCX_TLS=posix,self "$build/tools/uci_run" -n 2 "${@:2}" --attach preload --library "$build/libucx_integrity.so" --folder "$work/job" \
        "$work/patterns.openmpi" 1000000 >"$work/out" 2>&1 &
    long_job=$!
    for ((try = 0; try < 8; try++)); do
        sleep 0.1
        mapfile -t ranks < <(pgrep -f "^$work/patterns.openmpi 1000000" || true)
        [ ${#ranks[@]} -eq 2 ] || continue
        ! shared_text "${ranks[0]}" || { found=0; break; }
    done
    [ ${#ranks[@]} -eq 2 ] || found=2
    end_long_job
    say "found: $found"
    [ "$found" -eq "$1" ]
}

# shared_text PID: is the text in any memory that it shares?
shared_text() {
    python3 - "$1" <<'END'
import sys
pid, needle = sys.argv[1], b"UCI-MITM-PLAINTEXT"
with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
    for line in maps:
        if line.split()[1].startswith("rw-s") and "/dev/" not in line.replace("/dev/shm", ""):
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            try:
                memory.seek(start)
                if needle in memory.read(end - start):
                    sys.exit(0)
            except OSError:
                pass
sys.exit(1)
END
}

check_hiding() {
    check_one "the search finds a key that is there" search_finds
    check_one "a key is in no core, environment, log or file of the job" key_is_hidden
    check_one "shared memory, not sealed: the text is there" shared_memory_has 0
    check_one "shared memory, scope all: no text" shared_memory_has 1 --seal --seal-scope all
}

# --- campaign ---

kinds=(flip forge truncate replay reorder splice reflect "$attacks")

check_campaign() {
    local one mode kind seed
    for ((seed = first; seed < first + seeds; seed++)); do
        for one in ${mpi//,/ }; do
            for mode in encrypt sign; do
                for kind in "${kinds[@]}"; do
                    check_one "$one: $mode, $kind, seed $seed" attacked "$one" "$mode" "$kind" "$seed" 10
                done
                check_one "$one: $mode, drop, seed $seed" dropped "$one" "$mode" "$seed"
            done
            check_one "$one: encrypt, UCX's headers too, seed $seed" wild "$one" "$seed"
        done
    done
}

check_quick() {
    local one
    for one in ${mpi//,/ }; do
        check_one "$one: sealed: every byte right, no text" unread "$one"
        check_one "$one: encrypted, all attacks: every byte right, no text" attacked "$one" encrypt "$attacks" "$first" 8
    done
    one=${mpi%%,*}
    check_one "$one: signed: every byte right" signed "$one"
    check_one "$one: signed, all attacks: every byte right" attacked "$one" sign "$attacks" "$first"
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
    check_one "${mpi%%,*}: UCI, not sealed: all is read, what was changed is told" unsealed_uci "${mpi%%,*}"
    if [ "$seeds" -gt 0 ]; then
        check_campaign
    else
        check_quick
    fi
    if [[ $mpi == *openmpi* ]]; then
        check_refusals
        check_hiding
    fi
    end_of_checks
}

main "$@"
