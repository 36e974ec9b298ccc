#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/arm64/run_arm64.sh [TEST...]
#
# Compile core/ for 64-bit Arm with Debian's cross compiler and run its unit tests (by default digest, merkle, cost_model,
# profile and tuner) under qemu's user mode emulation: are the NEON kernels right, and does all of core compile there?
# Says nothing about speed, and nothing of pipeline/, ucx_plugin/ or MPI.
#
# Criterion starts itself anew for each test, so the kernel must know that qemu runs such programs (binfmt_misc). Debian's
# services do that at boot; where they have not, as in a container, this script does for as long as it runs, as root.
#
# Needs gcc-aarch64-linux-gnu, qemu-user-static and mmdebstrap, which are installed if they are missing; the libraries for
# arm64 are unpacked into a folder of the build, nothing of them is installed. Ends with "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

work=${TEST_BUILD_DIR:-$uci_root/build}/arm64
libraries=$work/root
packages=libc6-dev,libgcc-12-dev,libcriterion-dev,libjansson-dev,libxxhash-dev,libisal-dev,libssl-dev

unpack_libraries() {
    mmdebstrap --quiet --arch=arm64 --variant=extract "--include=$packages" "$(. /etc/os-release; say "$VERSION_CODENAME")" \
        "$libraries.new" && mv "$libraries.new" "$libraries"
}

# compile_test NAME: core, for what it is on this architecture, and the test. A calibration, which must be over after 20 ms, takes
# 8 ms where the processor does it and 22 here: so it may take 100.
compile_test() {
    aarch64-linux-gnu-gcc "--sysroot=$libraries" -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter \
        -Wno-missing-field-initializers -Werror -D_GNU_SOURCE -ftls-model=initial-exec \
        -DUCI_TUNER_BUDGET_NS=100000000ul "-I$work" "-I$uci_root/core" "-I$uci_root/core/api" \
        "${sources[@]}" "$uci_root/tests/unit/test_$1.c" -o "$work/test_$1" \
        -lcriterion -ljansson -lm -lpthread -ldl
}

run_test() {
    QEMU_LD_PREFIX=$libraries "$work/test_$1" --jobs 1 --timeout 300
}

binfmt=/proc/sys/fs/binfmt_misc
mounted=

register_qemu() {
    [ ! -e "$binfmt/qemu-aarch64" ] || return 0
    if [ ! -e "$binfmt/register" ]; then
        mount -t binfmt_misc none "$binfmt" || die "cannot mount $binfmt: run this as root, or install binfmt-support"
        mounted=yes
    fi
    trap unregister_qemu EXIT
    cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$binfmt/register" || die "cannot register qemu-aarch64: run this as root"
}

unregister_qemu() {
    echo -1 >"$binfmt/qemu-aarch64"
    [ -z "$mounted" ] || umount "$binfmt"
}

main() {
    local name passed=0 failed=0 tests=("$@")
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    [ ${#tests[@]} -gt 0 ] || tests=(digest merkle cost_model profile tuner)
    mkdir -p "$work"
    "$uci_root/tools/install_deps.sh" arm64
    [ -d "$libraries" ] || must_step "unpacking libraries for arm64" "$work/log" unpack_libraries
    register_qemu
    sed -e 's/@version@/0/; s/@revision@/arm64/' "$uci_root/core/version.h.in" >"$work/version.h"
    mapfile -t sources < <(find "$uci_root/core" -name '*.c' ! -name merkle_build.c)
    for name in "${tests[@]}"; do
        if run_step "compiling test_$name" "$work/$name.log" compile_test "$name" &&
            run_step "running test_$name" "$work/$name.log" run_test "$name"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            say "FAIL $name"
        fi
        tail -n 15 "$work/$name.log" | cut -c1-200
    done
    say "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
