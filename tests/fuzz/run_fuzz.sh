#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/fuzz/run_fuzz.sh [options] [SECONDS]      after "meson setup build"
#
# Fuzz whatever parses bytes that others wrote, SECONDS each (60), with ASan and UBSan, from the kept corpus. What is
# new is kept in build/fuzz/corpus; what crashes, in build/fuzz/crashes. Ends with the line "N passed, N failed, N
# skipped"; exit status 1 if anything crashed, or a seed is not what its name says. To look at a crash again: build/fuzz/fuzz_NAME FILE.
#
#   --quick          3 seconds each
#   --jobs N         so many at a time (as there are cores)
#   --only NAME      one of frame, settings, ucx_config, peer, greeting, control, sealed, profile, manifest, exchange, live, rma, twin_batch,
#                    twin_card, world
#   --build          make the fuzzers, and run none
#   --keep           add what covers more to tests/fuzz/corpus, for a commit: give it a name that says what it exercises; of control
#                    that of a function that it reaches, without uci_
#   --help           this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/fuzz
out=$uci_root/build/fuzz
seconds=60 keep=0 build_only=0
harnesses=(frame settings ucx_config peer greeting control sealed profile manifest exchange live twin_batch twin_card rma world)
# of the tools and of libuci, what parses and needs no OpenMP
parsers=(tools/check/check_{complain,list,manifest,diff,peer}.c libuci/uci_tree_pack.c)
# a misaligned load is none on the machines we know; the owner of a harness's source is compiled into it; seeds are named after functions
flags=(-std=gnu11 -D_GNU_SOURCE -O1 -fno-inline -g -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror -fno-omit-frame-pointer
       -I"$uci_root/core" -I"$uci_root/core/api" -I"$uci_root/pipeline" -I"$uci_root/ucx_plugin" -I"$uci_root/build/core"
       -I"$uci_root/tools" -I"$uci_root/libuci" -I"$uci_root/tests/unit" -I"$uci_root/tests/unit/random"
       -fno-sanitize-recover=all -fno-sanitize=alignment)
passed=0 failed=0
cores=$(nproc)

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --quick)   seconds=3 ;;
        --build)   build_only=1 ;;
        --only)    harnesses=("$2"); shift ;;
        --jobs)    cores=$2; shift ;;
        --keep)    keep=1 ;;
        -h|--help) usage_of "$0"; exit ;;
        [0-9]*)    seconds=$1 ;;
        *)         die "unknown option '$1' (see --help)" ;;
        esac
        shift
    done
}

# beside COMMAND...: in the background, as soon as fewer of these run than there are cores. Its files say how it went.
beside() {
    while [ "$(jobs -rp | wc -l)" -ge "$cores" ]; do
        wait -n || true
    done
    "$@" &
}

compile_object() {
    clang "${flags[@]}" -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=alignment -c -o "$2" "$1"
}

# Objects of core and pipeline, made once and again when their source, or any header, is newer.
build_objects() {
    local source object newest wanted=" "
    newest=$(find "$uci_root/core" "$uci_root/pipeline" "$uci_root/ucx_plugin" "$uci_root/tools" "$uci_root/libuci" \( -name '*.h' -o -name '*.inl' \) \
                  -printf '%T@ %p\n' | sort -rn | awk 'NR == 1 { print $2 }')
    mkdir -p "$out/objects"
    for source in "$uci_root"/core/*/*.c "$uci_root"/pipeline/*/*.c "${parsers[@]/#/$uci_root/}"; do
        object=$out/objects/$(basename "${source%.c}").o
        wanted+="$object "
        if [ "$object" -nt "$source" ] && [ "$object" -nt "$newest" ]; then
            continue
        fi
        rm -f "$object"
        beside compile_object "$source" "$object"
    done
    wait
    for object in $wanted; do
        [ -e "$object" ] || die "$object was not compiled"
    done
    for object in "$out"/objects/*.o; do
        [[ $wanted == *" $object "* ]] || rm "$object" # of a source that is gone
    done
}

# The source that a harness includes is left out of what it is linked with.
build_harness() {
    local name=$1 included objects=() object more=()
    included=$(sed -n 's|^#include "../../[a-z_/]*/\([a-z_]*\)\.c"|\1|p' "$here/fuzz_$name.c")
    for object in "$out"/objects/*.o; do
        [ "$(basename "${object%.o}")" = "$included" ] || objects+=("$object")
    done
    # worlds are the unit tests' own
    [ "$name" != world ] || more=("$uci_root"/tests/unit/random/{active,data,faults,onesided,oracle,protocol,scenario,streamed,world}.c "$uci_root/tests/unit/fake_ucx.c")
    rm -f "$out/fuzz_$name"
    clang "${flags[@]}" -fsanitize=fuzzer,address,undefined -fno-sanitize=alignment -o "$out/fuzz_$name" \
        "$here/fuzz_$name.c" ${more[@]+"${more[@]}"} "${objects[@]}" -lpthread -ldl -lm
}

# run_harness NAME: its log, and a file NAME.ok if nothing crashed
run_harness() {
    local name=$1 log=$out/fuzz_$1.log corpus=$out/corpus/$1
    mkdir -p "$corpus" "$out/crashes" "$here/corpus/$name"
    rm -f "$out/$name.ok"
    ASAN_OPTIONS=detect_leaks=0 timeout -k 5 $((seconds + 60)) "$out/fuzz_$name" -max_total_time="$seconds" \
        -timeout=10 -rss_limit_mb=2000 -max_len=4096 -artifact_prefix="$out/crashes/$name-" -print_final_stats=1 \
        "$corpus" "$here/corpus/$name" >"$log" 2>&1 && touch "$out/$name.ok"
}

judge_harness() {
    local name=$1 log=$out/fuzz_$1.log
    if [ -e "$out/$name.ok" ]; then
        passed=$((passed + 1))
        say "ok   $name: $(sed -n 's/stat::number_of_executed_units: *//p' "$log") runs"
    else
        failed=$((failed + 1))
        say "FAIL $name ($log)"
        grep -E 'ERROR|SUMMARY|runtime error|^ +#[0-9] .* in uci_|Test unit written' "$log" | head -n 12 || true
    fi
    [ "$keep" = 0 ] || "$out/fuzz_$name" -merge=1 "$here/corpus/$name" "$out/corpus/$name" >>"$log" 2>&1
}

# A seed of control is named after a function that it reaches, NAME and NAME_2 after uci_NAME: else its bytes might come to mean something else, unseen
judge_seeds() {
    local seeds=$here/corpus/control lost
    lost=$(comm -23 <(ls "$seeds") <(
        { nm "$out/fuzz_control"; ASAN_OPTIONS=detect_leaks=0 FUZZ_REACHED=1 "$out/fuzz_control" "$seeds"/* 2>&1 || true; } | awk '
            NF == 3            { address[$3] = $1 }
            $1 == "Running:"   { sub(/.*\//, "", $2); seed = name = $2; sub(/_[0-9]+$/, "", name) }
            NF == 1 && $1 == address["uci_" name] { print seed }' | sort -u) | tr '\n' ' ')
    if [ -z "$lost" ]; then
        passed=$((passed + 1))
        say "ok   control: its seeds reach what they are named after"
    else
        failed=$((failed + 1))
        say "FAIL control: seeds that do not reach the function uci_NAME that they are named after: $lost"
    fi
}

main() {
    local name
    parse_options "$@"
    command -v clang >/dev/null || die "no clang: apt-get install clang libclang-rt-14-dev"
    [ -e "$uci_root/build/core/version.h" ] || die "first: meson setup build"
    build_objects
    for name in "${harnesses[@]}"; do
        beside build_harness "$name"
    done
    wait
    [ "$build_only" = 0 ] || return 0
    for name in "${harnesses[@]}"; do
        beside run_harness "$name"
    done
    wait
    for name in "${harnesses[@]}"; do
        judge_harness "$name"
        [ "$name" != control ] || judge_seeds
    done
    say "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
