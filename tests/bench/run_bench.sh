#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/bench/run_bench.sh [options]
#
# Plain UCX against UCX with UCI, in turns of milliseconds, and the table of their ratios. A measurement, not a test:
# a missed target is shown, and does not fail. Give it an idle machine of two cores or more.
#
#   --mpi LIST      openmpi,mpich (default both)
#   --tls LIST      a UCX_TLS; repeat for more (default posix,self, then posix,cma,self, then tcp,self)
#   --test LIST     lat,bw,rate,bibw (default all): ping-pong, windowed bandwidth, message rate, both directions
#   --sizes LIST    bytes, as 8,1k,4m (default: each test's own)
#   --rounds N      launches of each job (default 3)
#   --pairs N       pairs of measurements of each size in a round (default 20)
#   --block MS      length of one measurement (default 20)
#   --preload PATH  library to measure (default build/libucx_integrity.so, which is built);
#                   'none' measures plain against plain: the noise
#   --csv FILE      write every pair
#   --markdown      print the table as Markdown
#   --quick         one round of 6 pairs
#   --help          this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/bench
out=$uci_root/build/bench
mpis=openmpi,mpich
transports=()
tests=lat,bw,rate,bibw
rounds=3
pairs=20
block=20
preload=
options=()

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --mpi)      mpis=${2:?}; shift ;;
        --tls)      transports+=(--tls "${2:?}"); shift ;;
        --test)     tests=${2:?}; shift ;;
        --sizes)    options+=(--sizes "${2:?}"); shift ;;
        --rounds)   rounds=${2:?}; shift ;;
        --pairs)    pairs=${2:?}; shift ;;
        --block)    block=${2:?}; shift ;;
        --preload)  preload=${2:?}; shift ;;
        --csv)      options+=(--csv "${2:?}"); shift ;;
        --markdown) options+=(--markdown) ;;
        --quick)    rounds=1 pairs=6 ;;
        -h|--help)  usage_of "$0"; exit ;;
        *)          die "unknown option '$1' (see --help)" ;;
        esac
        shift
    done
    [ ${#transports[@]} -gt 0 ] || transports=(--tls 'posix,self' --tls 'posix,cma,self' --tls 'tcp,self')
}

find_library() {
    case $preload in
    none) preload='' ;;
    '')   build_uci "$uci_root/build"
          preload=$uci_root/build/libucx_integrity.so ;;
    *)    preload=$(realpath -e "$preload") ;;
    esac
}

# MPICH declares MPI_STATUSES_IGNORE in a way that gcc takes for an overflow.
compile_programs() {
    local mpi
    mkdir -p "$out"
    for mpi in ${mpis//,/ }; do
        [ "$out/bench_p2p.$mpi" -nt "$here/bench_p2p.c" ] && continue
        "mpicc.$mpi" -O2 -g -Wall -Werror -Wno-stringop-overflow "$here/bench_p2p.c" -o "$out/bench_p2p.$mpi"
    done
}

main() {
    parse_options "$@"
    "$uci_root/tools/install_deps.sh" build test
    find_library
    compile_programs
    exec python3 "$here/interleave.py" --mpi "$mpis" "${transports[@]}" --test "$tests" --rounds "$rounds" \
                 --pairs "$pairs" --block "$block" --preload "$preload" --programs "$out/bench_p2p" "${options[@]}"
}

main "$@"
