#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/gtest/build_gtest.sh FOLDER
#
# Build UCX's own unit tests (gtest) in FOLDER from Debian's source package of the UCX that is installed, unless they are there. The program is linked
# with what was built beside it, but made to be run with the installed libraries, and says so if that can't be. About 15 minutes on 2 cores.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"
# shellcheck source=tests/debian_source.sh
source "$uci_root/tests/debian_source.sh"

[ $# = 1 ] || die "usage: tests/gtest/build_gtest.sh FOLDER"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
version=$(dpkg-query -W -f '${source:Version}' libucx0)
program=$folder/ucx/test/gtest/gtest
! is_built "$folder" "$version" || exit 0

# build_source: as Debian configures it, without what needs more packages; only what the tests are linked with.
build_source() {
    local part
    cd "$folder/ucx"
    ./autogen.sh
    ./configure --enable-gtest --enable-mt --with-verbs --without-rdmacm --disable-numa --disable-logging --enable-cma --without-java --without-go \
                --enable-devel-headers
    for part in src/ucm src/ucs src/uct src/ucp src/tools/perf/lib test/gtest/ucs/test_module test/gtest/ucm/test_dlopen test/gtest/common/googletest; do
        make -j"$(nproc)" -C "$part" CFLAGS='-O1 -g0 -w' CXXFLAGS='-O1 -g0 -w'
    done
    make -j"$(nproc)" -C test/gtest CXXFLAGS='-O0 -g0 -w' gtest
}

build() {
    fetch_debian_source ucx "$version" "$folder"
    build_source
    [ -x "$program" ]
}

"$uci_root/tools/install_deps.sh" gtest
build_once "$folder" "$version" "UCX's gtest" build
