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

[ $# = 1 ] || die "usage: tests/gtest/build_gtest.sh FOLDER"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
version=$(dpkg-query -W -f '${source:Version}' libucx0)
program=$folder/ucx/test/gtest/gtest
[ "$(cat "$folder/built" 2>/dev/null)" != "$version" ] || exit 0

# fetch_source: the source package, from where this machine gets its packages; its configuration of apt stays as it is.
fetch_source() {
    local apt=$folder/apt options uri suite
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
    # shellcheck disable=SC2016 # apt expands these
    read -r uri suite < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
                          awk '/debian.org/ && !/security/ { print; exit }')
    [ -n "${suite:-}" ] || die "no Debian archive among this machine's package sources"
    printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$uri" "$suite" >"$apt/parts/source.list"
    options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache"
             -o APT::Sandbox::User=root -qq)
    apt-get "${options[@]}" update
    (cd "$folder" && rm -rf ucx && apt-get "${options[@]}" source --download-only "ucx=$version")
    mkdir "$folder/ucx"
    tar -xf "$folder"/ucx_*.orig.tar.* -C "$folder/ucx" --strip-components 1
    tar -xf "$folder"/ucx_*.debian.tar.* -C "$folder/ucx"
}

# build_source: as Debian configures it, without what needs more packages; only what the tests are linked with.
build_source() {
    local part
    cd "$folder/ucx"
    ./autogen.sh
    ./configure --enable-gtest --enable-mt --with-verbs --without-rdmacm --disable-numa --disable-logging --enable-cma --without-java --without-go \
                --enable-devel-headers
    for part in src/ucm src/ucs src/uct src/ucp src/tools/perf test/gtest/ucs/test_module test/gtest/ucm/test_dlopen test/gtest/common/googletest; do
        make -j"$(nproc)" -C "$part" CFLAGS='-O1 -g0 -w' CXXFLAGS='-O1 -g0 -w'
    done
    make -j"$(nproc)" -C test/gtest CXXFLAGS='-O0 -g0 -w' gtest
}

# Errors end the script (set -e), wherever they are.
say_failure() {
    [ "$(cat "$folder/built" 2>/dev/null)" = "$version" ] || say "build_gtest.sh: that failed, see $folder/build.log: $(tail -n 2 "$folder/build.log")" >&3
}

"$uci_root/tools/install_deps.sh" gtest
say "UCX's gtest $version is built in $folder, log: $folder/build.log"
exec 3>&2
trap say_failure EXIT
fetch_source >"$folder/build.log" 2>&1
build_source >>"$folder/build.log" 2>&1
[ -x "$program" ]
echo "$version" >"$folder/built"
