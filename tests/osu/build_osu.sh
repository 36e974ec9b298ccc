#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/osu/build_osu.sh SOURCE FOLDER
#
# Build OSU's micro-benchmarks from SOURCE (osu-micro-benchmarks 7, unpacked; https://mvapich.cse.ohio-state.edu/benchmarks/, not in Debian) in FOLDER,
# for the Open MPI, the MPICH and the OpenSHMEM of Open MPI that are installed, unless they are there. About 2 minutes on 2 cores.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"
# shellcheck source=tests/debian_source.sh
source "$uci_root/tests/debian_source.sh"

[ $# = 2 ] || die "usage: tests/osu/build_osu.sh SOURCE FOLDER"
if [ ! -e "$1/configure" ] || [ ! -d "$1/c/mpi/one-sided" ]; then
    die "$1 is no source of osu-micro-benchmarks 7 (configure and c/mpi/one-sided are not both there)"
fi
source=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
"$uci_root/tools/install_deps.sh" test mpich
version="$source $(sed -n 's/^PACKAGE_VERSION=//p' "$source/configure")"
! is_built "$folder" "$version" || exit 0

# build_for NAME CC CXX PART: what does not compile is left out
build_for() {
    rm -rf "${folder:?}/$1"
    mkdir "$folder/$1"
    cd "$folder/$1"
    bash "$source/configure" CC="$2" CXX="$3" --disable-dependency-tracking
    make -k -j"$(nproc)" -C "$4" || true
}

build() {
    build_for openmpi mpicc.openmpi mpicxx.openmpi c/mpi
    build_for mpich mpicc.mpich mpicxx.mpich c/mpi
    build_for openshmem oshcc oshcxx c/openshmem
    [ -x "$folder/openmpi/c/mpi/pt2pt/standard/osu_latency" ]
    [ -x "$folder/openshmem/c/openshmem/osu_oshm_put" ]
}

build_once "$folder" "$version" "OSU's micro-benchmarks" build
