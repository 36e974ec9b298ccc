#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/bench/run_bench.sh [MODE] [options]
#
# Install what is missing, build, and measure plain UCX against UCX with UCI. Measurements, not tests: nothing is
# judged. Give it an idle machine of two cores or more. In front of each table and behind it stands how far
# the two cores are from each other (bench_distance) and how much other processes use of them: where the distance differs, the
# rows between are of a machine that changed.
#
#   table      latency, bandwidth, message rate: build/tools/uci_perftest with [options]; the default
#   types      the same for non-contiguous types: vector, structs, blocks
#   overlap    an exchange alone, and with a computation meanwhile
#   net        tcp between two network namespaces shaped to 10 and 25 Gbit/s (root)
#   seal       the same, and not shaped, 8 bytes and 64 KiB to 16 MiB, not sealed and sealed (UCI_SEAL=encrypt): each against plain UCX (root)
#   peers      memory and start-up time of 2 to 256 endpoints; options of tests/bench/peers.py
#   count      instructions of a small message by function; options of tests/bench/count.py
#   crowd      MPI_Alltoall with more ranks than cores; options of tests/bench/crowd.py
#   apps       LAMMPS and HPC Challenge; options of tests/bench/apps.py
#   twins      what comparing twins costs LAMMPS, HPC Challenge and others; options of tests/bench/twins.py
#   allreduce  MPI_Allreduce by node against the MPI's own, plain, with UCI and sealed, over two and four network namespaces
#              (root); the model fitted to it; options of tests/bench/allreduce.py
#   heal       what healing costs: faults of each target and rate, over each transport; options of tests/bench/heal.py
#   ways       active messages, streams, put, get and atomics, by ucx_perftest; options of tests/bench/ways.py
#   results    what docs/measured.md says of this processor, with hot and with fresh buffers: measured anew, and the page made; 3 minutes
#   distance   how far the cores are from each other, now
#   report     all of these but allreduce, heal and ways: what docs/performance.md quotes, as Markdown; about 15 minutes
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

bench=$uci_root/tests/bench
table_options=(--launches 1 --rounds 8 --no-breakdown --markdown)
table_sizes=(--test "lat,bw,rate")

# ticks COLUMN...: of all processors since boot, of these columns of /proc/stat.
ticks() {
    awk -v columns="$*" '/^cpu / { n = split(columns, c); for (i = 1; i <= n; ++i) sum += $c[i]; print sum }' /proc/stat
}

# How much of the processors others use: a rank that a killed job left behind spins and would be measured too.
busy_percent() {
    local idle all
    idle=$(ticks 5 6)
    all=$(ticks 2 3 4 5 6 7 8 9)
    sleep 0.5
    idle=$(($(ticks 5 6) - idle))
    all=$(($(ticks 2 3 4 5 6 7 8 9) - all))
    idle=$((100 * idle / (all > 0 ? all : 1)))
    say $((idle < 100 ? 100 - idle : 0))
}

run_distance() {
    local busy
    busy=$(busy_percent)
    [ "$busy" -lt 10 ] || echo "warning: other processes use $busy % of this machine; what is measured here means little" >&2
    say "$("$uci_root/build/tests/bench/bench_distance"), others use $busy % of the processors"
}

# between_distances COMMAND...: run it with the distance of the cores in front and behind.
between_distances() {
    say
    say "before: $(run_distance)"
    say
    "$@"
    say
    say "after: $(run_distance)"
}

run_table() {
    between_distances "$uci_root/build/tools/uci_perftest" "$@"
}

# A table for each MPI and transport, so that a change of the machine is seen where it is.
each_table() {
    local mpi tls
    for mpi in openmpi mpich; do
        for tls in posix,self posix,cma,self tcp,self; do
            run_table "${table_options[@]}" --mpi "$mpi" --tls "$tls" "$@" 2>/dev/null
        done
    done
}

run_types() {
    run_table "${table_options[@]}" --test vec,struct,blocks "$@"
}

run_overlap() {
    run_table "${table_options[@]}" --test xchg,olap --sizes 8,8k,64k,256k,1m,4m "$@"
}

# between_hosts RATE OPTION...: two of them, their network shaped to this rate, or not if it is empty.
between_hosts() {
    local rate=$1
    shift
    UCI_TWO_HOSTS_QDISC=${rate:+tbf rate $rate burst 1mb latency 5ms} between_distances "$uci_root/tools/two_hosts.sh" \
        "$uci_root/build/tools/uci_perftest" --hosts uci-a,uci-b --bind none --tls tcp,self "${table_options[@]}" --test lat,bw "$@"
}

run_net() {
    local rate
    for rate in 10gbit 25gbit; do
        say
        say "tcp between two hosts, shaped to $rate:"
        between_hosts "$rate" --sizes 8,8k,64k,256k,1m,4m "$@"
    done
}

run_seal() {
    local rate mode folder
    folder=$(mktemp -d)
    (umask 077 && printf '%s\n' "$(od -An -N32 -v -tx1 /dev/urandom | tr -d ' \n')" >"$folder/key")
    for rate in 10gbit 25gbit ''; do
        for mode in off encrypt; do
            say
            say "tcp between two hosts, ${rate:+shaped to }${rate:-not shaped}, UCI_SEAL=$mode:"
            UCI_SEAL=$mode UCI_KEY_FILE=$folder/key between_hosts "$rate" --sizes 8,64k,256k,1m,4m,16m "$@"
        done
    done
    rm -rf "$folder"
}

run_results() {
    local file
    file=$(mktemp)
    run_table --launches 1 --rounds 10 --no-breakdown --json "$file" --buffers both --tls posix,cma,self --tls posix,self --tls tcp,self \
        --test lat,bw --sizes 8,1k,4k,8k,64k,256k,1m,4m,16m "$@"
    "$bench/results.py" add "$file"
    rm "$file"
}

run_report() {
    each_table "${table_sizes[@]}"
    each_table --test lat,bw --sizes 16m
    run_types --block 20
    run_overlap --block 20
    [ "$(id -u)" -ne 0 ] || run_net --block 20
    "$bench/peers.py"
    "$bench/count.py"
    "$bench/crowd.py"
    "$bench/apps.py"
}

main() {
    local mode=table
    case ${1:-} in
    -h|--help) usage_of "$0"; say; PYTHONPATH=$uci_root/tools/run exec python3 "$uci_root/tools/perftest/uci_perftest.py" --help ;;
    table|types|overlap|net|seal|peers|count|crowd|apps|twins|allreduce|heal|ways|results|distance|report) mode=$1; shift ;;
    esac
    "$uci_root/tools/install_deps.sh" build test
    case $mode in
    net|seal|count|apps|twins|allreduce|report) "$uci_root/tools/install_deps.sh" bench ;;
    esac
    build_uci "$uci_root/build"
    case $mode in
    peers|count|crowd|apps|twins|allreduce|heal|ways) exec "$bench/$mode.py" "$@" ;;
    distance|report)  "run_$mode" ;;
    *)                "run_$mode" "$@" ;;
    esac
}

main "$@"
