#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/mpich/build_mpich_tests.sh FOLDER
#
# Build MPICH's own tests of one-sided communication (test/mpi/rma) in FOLDER/openmpi and FOLDER/mpich, from Debian's source package of MPICH, for the
# Open MPI and the MPICH that are installed, unless they are there. A program that an MPI can't compile is left out there. About 3 minutes on 2 cores.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"
# shellcheck source=tests/debian_source.sh
source "$uci_root/tests/debian_source.sh"

[ $# = 1 ] || die "usage: tests/mpich/build_mpich_tests.sh FOLDER"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
"$uci_root/tools/install_deps.sh" test mpich
version=$(dpkg-query -W -f '${source:Version}' mpich)
! is_built "$folder" "$version" || exit 0

# What MPI-3 has removed Open MPI declares if it is asked to: MPICH's pools of datatypes, which all programs are linked with, use it.
build_for() {
    local mpi=$1 flags='-O1 -w -DOMPI_REMOVED_USE_STATIC_ASSERT=0 -DOMPI_OMIT_MPI1_COMPAT_DECLS=0'
    rm -rf "${folder:?}/$mpi"
    mkdir "$folder/$mpi"
    cp -rp "$folder/mpich_source/test/mpi" "$folder/mpich_source/confdb" "$folder/$mpi/"
    cd "$folder/$mpi/mpi"
    ./configure --with-mpi= CC=gcc "MPICC=mpicc.$mpi" MPICXX= --disable-cxx --disable-fortran --disable-f77 --disable-fc --disable-dtpools
    make -j"$(nproc)" -C util CFLAGS="$flags"
    make -k -j"$(nproc)" -C rma CFLAGS="$flags" || true
    [ -x rma/test1 ]
}

build() {
    fetch_debian_source mpich "$version" "$folder"
    rm -rf "$folder/mpich_source"
    mv "$folder/mpich" "$folder/mpich_source"
    build_for openmpi
    build_for mpich
}

build_once "$folder" "$version" "MPICH's tests" build
