#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/gpu/build_ucx.sh FOLDER [CUDA]
#
# Install in FOLDER/ucx the UCX that Debian has, from its source, with CUDA, which Debian's own is built without: unless it is there. CUDA is where the
# toolkit is, with include/ and lib64/ (default /usr/local/cuda if that is there, else what is installed: Debian's package nvidia-cuda-dev, of
# non-free, 774 MB). No GPU is needed for that. About 5 minutes on 2 cores.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"
# shellcheck source=tests/debian_source.sh
source "$uci_root/tests/debian_source.sh"

[ $# = 1 ] || [ $# = 2 ] || die "usage: tests/gpu/build_ucx.sh FOLDER [CUDA]"
cuda=${2:-}
[ -n "$cuda" ] || [ ! -d /usr/local/cuda ] || cuda=/usr/local/cuda
[ -e "${cuda:-/usr}/include/cuda.h" ] || die "no cuda.h in ${cuda:-/usr}/include: name CUDA's toolkit, or install nvidia-cuda-dev (Debian, non-free)"
mkdir -p "$1/source"
folder=$(cd "$1/source" && pwd)
version=$(dpkg-query -W -f '${source:Version}' libucx0)
! is_built "$folder" "$version" || exit 0

build() {
    local part
    fetch_debian_source ucx "$version" "$folder"
    cd "$folder/ucx"
    ./autogen.sh
    ./configure --prefix="$folder/../ucx" --with-cuda="${cuda:-guess}" LDFLAGS=-L/usr/lib/x86_64-linux-gnu/stubs --enable-mt --disable-numa \
                --disable-logging --enable-cma --with-verbs --without-rdmacm --without-java --without-go --disable-static
    for part in src/ucm src/ucs src/uct src/ucp; do
        make -j"$(nproc)" -C "$part" CFLAGS='-O2 -g0 -w'
        make -C "$part" install
    done
    [ -n "$(find "$folder/../ucx/lib/ucx" -name 'libuct_cuda.so*')" ]
}

"$uci_root/tools/install_deps.sh" gtest
build_once "$folder" "$version" "UCX with CUDA" build
