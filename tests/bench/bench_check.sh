#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/bench/bench_check.sh [options]
#
# How fast is uci_check against plain reading (dd, as many as threads, each its part of the file)? In turns; the best of all rounds
# counts, as neighbours only make slower.
#
#   --folder FOLDER  where the file is made (default /tmp)
#   --size MIB       of the file (default 1024)
#   --rounds N       default 9
#   --build FOLDER   default build
#   --help           this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

folder=/tmp size=1024 rounds=9 build=$uci_root/build

# Read all of the file, THREADS parts at the same time
read_plainly() {
    local threads=$1 part
    for ((part = 0; part < threads; ++part)); do
        dd if="$file" of=/dev/null bs=256k count=$((size * 4 / threads)) skip=$((part * size * 4 / threads)) status=none &
    done
    wait
}

digest() {
    "$build/tools/uci_check" sum -q -t "$1" "$file" >/dev/null
}

# Out of the page cache
forget() {
    dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none
}

# GB/s of COMMAND...
speed_of() {
    local begin
    begin=$(clock)
    "$@"
    awk -v begin="$begin" -v end="$(clock)" -v size="$size" 'BEGIN { print size * 1048576 / (end - begin) / 1e9 }'
}

# measure FROM THREADS: a row of the table
measure() {
    local from=$1 threads=$2 round
    for ((round = 0; round < rounds; ++round)); do
        [ "$from" = memory ] || forget
        printf 'plain %s\n' "$(speed_of read_plainly "$threads")"
        [ "$from" = memory ] || forget
        printf 'check %s\n' "$(speed_of digest "$threads")"
    done | awk -v label="$from, $threads" '$2 > best[$1] { best[$1] = $2 }
        END { printf "| %s | %.2f | %.2f | %.2f |\n", label, best["plain"], best["check"], best["check"] / best["plain"] }'
}

main() {
    local file threads
    set_options folder size rounds build -- "$@"
    file=$(mktemp "$folder/uci_check.XXXXXX")
    # shellcheck disable=SC2064 # the name of now
    trap "rm -f '$file'" EXIT
    head -c "$((size * 1048576))" /dev/urandom >"$file"
    say "| from, threads | plain reading, GB/s | uci_check, GB/s | ratio |"
    say "|---|---|---|---|"
    for threads in 1 2; do
        measure memory "$threads"
        measure disk "$threads"
    done
}

main "$@"
