#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tools/demo.sh [options]
#
# The main job: Debian's unmodified HPC Challenge (hpcc) over Open MPI and UCX, with the input that hpcc ships as its
# example, three times: as it is; with faults injected and protection off; with the same faults and UCI on.
# Installs what it needs, builds the library, ends with a table. Exit status 0: the faults broke the second run
# and not the third.
#
#   --np N        ranks (default 4, the example's 2 x 2 grid; another number changes the grid, and nothing else)
#   --size N      order of the HPL matrix (default: the example's own)
#   --tls LIST    UCX_TLS of all three runs (default posix,cma,self)
#   --fault SPEC  UCI_FAULT of the second and third (default: a bit flipped in 5 % of what messages above 8 KiB are
#                 moved in; smaller ones carry indices, which crash hpcc before it can check anything)
#   --timeout S   limit of one run in seconds (default 120)
#   --keep        keep the folder of inputs, outputs and statistics, and say where it is
#   --help        this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

example=/usr/share/doc/hpcc/examples/_hpccinf.txt
library=$uci_root/build/libucx_integrity.so
np=4
size=
tls=posix,cma,self
fault=rate=5e-2,kind=bitflip,target=payload,seed=1,min=8193
timeout=120
keep=

parse_options() {
    set_options np size tls fault timeout keep! -- "$@"
    case $np in
    ''|*[!0-9]*|0|1) die "--np takes a number of at least 2, not '$np'" ;;
    esac
}

# The process grid of $np ranks, as square as it gets: sets rows and columns.
set_grid() {
    for ((rows = 1, columns = np; (rows + 1) * (rows + 1) <= np; )); do
        rows=$((rows + 1))
    done
    while [ $((np % rows)) -ne 0 ]; do
        rows=$((rows - 1))
    done
    columns=$((np / rows))
}

# hpcc's own example; only the grid (unless it fits) and the size (if asked) are replaced.
write_input() {
    local rows columns
    set_grid
    { cat "$example" 2>/dev/null || zcat "$example.gz"; } |
        sed -E "s/^[0-9]+( +Ps)$/$rows\1/; s/^[0-9]+( +Qs)$/$columns\1/; ${size:+s/^[0-9]+( +Ns)$/$size\1/}" >"$1"
    grep -qE "^$rows +Ps$" "$1" || die "hpcc's example input does not look as expected: $example"
}

# hpcc_command PRELOAD: set the array command_line. The library goes into the ranks alone, not into mpirun.
hpcc_command() {
    command_line=(timeout -k 10 "$timeout" mpirun.openmpi --allow-run-as-root --oversubscribe -np "$np"
                  --mca pml ucx --mca opal_common_ucx_tls any -x "UCX_TLS=$tls")
    [ -z "$1" ] || command_line+=(-x "LD_PRELOAD=$1")
    command_line+=(hpcc)
}

# run_hpcc NAME LABEL PRELOAD [VARIABLE=VALUE...]: one run in a folder of its own; status and wall time beside hpcc's
# output. A failure is a result, not an error: the table judges it.
run_hpcc() {
    local dir=$work/$1 label=$2 preload=$3 begin status=0
    shift 3
    mkdir "$dir"
    write_input "$dir/hpccinf.txt"
    hpcc_command "$preload"
    begin=$(clock)
    run_step "$label" "$dir/log.txt" env -C "$dir" "$@" "${command_line[@]}" || status=$?
    printf '{"status": %d, "wall": %s, "ranks": %d, "limit": %d}\n' \
           "$status" "$(since "$begin")" "$np" "$timeout" >"$dir/run.json"
}

clean_up() {
    if [ -n "$keep" ]; then
        say "inputs, outputs and statistics: $work"
    else
        rm -rf "$work"
    fi
}

main() {
    parse_options "$@"
    "$uci_root/tools/install_deps.sh" build demo
    build_uci "$uci_root/build"
    work=$(mktemp -d -t uci-demo.XXXXXX)
    trap clean_up EXIT
    unset "${!UCI_FAULT@}" "${!UCI_STATS@}"
    say "HPC Challenge on $np ranks over UCX ($tls)"
    say "faults: $fault"
    run_hpcc plain "1. plain UCX" ""
    run_hpcc off "2. faults, protection off" "$library" \
             UCI_MODE=off "UCI_FAULT=$fault" "UCI_STATS=$work/off/stats.%p.json"
    run_hpcc on "3. the same faults, UCI on" "$library" \
             UCI_MODE=repair "UCI_FAULT=$fault" "UCI_STATS=$work/on/stats.%p.json"
    python3 "$uci_root/tools/demo_table.py" "$work"
}

main "$@"
