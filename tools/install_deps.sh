#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tools/install_deps.sh GROUP...
#
# Install from Debian what GROUP needs and what is missing; says and asks nothing when all is there.
# groups: build   compiler, Meson, Ninja and the libraries of UCI and its unit tests
#         test    both MPIs, and the checkers of the test suites, a debugger, and what makes network namespaces
#         report  what uci_report draws its page with, and names functions with
#         browser a headless browser, for the tests of that page
#         demo    HPC Challenge and Open MPI
#         bench   valgrind, LAMMPS, HPC Challenge, and what makes network namespaces
#         rdma    qemu and what makes a guest with soft-RoCE devices
#         programs  NetPIPE and LAMMPS with its examples
#         slurm   Slurm's daemons
#         gtest   what builds UCX's own unit tests from Debian's source
#         mpich   what builds MPICH's own tests from Debian's source
#         compat  what makes root folders of other Debian suites
#         model   spin
#         soak    gnuplot
#         arm64   a cross compiler for 64-bit Arm, and what runs its programs here
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

declare -A packages=(
    [build]="gcc libc6-dev binutils meson ninja-build pkg-config git
             libucx-dev libibverbs-dev libxxhash-dev libisal-dev libssl-dev libcriterion-dev libjansson-dev libncurses-dev"
    [test]="openmpi-bin libopenmpi-dev mpich libmpich-dev ucx-utils abigail-tools
            g++ gfortran openssh-client openssh-server
            python3 python3-mpi4py python3-prometheus-client python3-clang clang clang-format clang-tidy libclang-rt-14-dev shellcheck strace gdb iproute2 nftables openssl procps locales"
    [report]="python3 python3-jinja2 node-d3-axis node-d3-scale node-d3-selection elfutils"
    [browser]="chromium chromium-driver python3-selenium fonts-dejavu-core"
    [demo]="hpcc openmpi-bin python3"
    [bench]="valgrind lammps lammps-examples hpcc openmpi-bin iproute2"
    [rdma]="qemu-system-x86 busybox-static cpio kmod xz-utils iproute2 procps ibverbs-providers ibverbs-utils"
    [programs]="netpipe-openmpi netpipe-mpich2 lammps lammps-examples"
    [slurm]="slurmctld slurmd slurm-client munge mpich libmpich-dev python3"
    [gtest]="autoconf automake libtool make g++ libibverbs-dev debian-archive-keyring xz-utils python3"
    [mpich]="make debian-archive-keyring xz-utils"
    [compat]="mmdebstrap"
    [model]="spin"
    [soak]="gnuplot-nox"
    [arm64]="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static mmdebstrap")
[ "$(uname -m)" != x86_64 ] || packages[build]+=" libipsec-mb-dev" # there is none for others

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# wanted_packages GROUP...: their packages, one a line.
wanted_packages() {
    local group
    for group in "$@"; do
        [ -n "${packages[$group]:-}" ] ||
            die "unknown group '$group' (build, test, report, browser, demo, bench, rdma, programs, slurm, gtest, mpich, model, soak, compat or arm64)"
        xargs -n 1 <<<"${packages[$group]}"
    done
}

missing_packages() {
    local package
    while read -r package; do
        is_installed "$package" || printf '%s\n' "$package"
    done
}

# Whoever may not install is told what to install.
find_apt() {
    type apt-get dpkg-query >/dev/null 2>&1 ||
        die "this is not Debian; please install what these packages hold: $*"
    apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300)
    [ "$(id -u)" -eq 0 ] && return
    sudo -n true 2>/dev/null ||
        die "neither root nor sudo without a password; please run: apt-get install $*"
    apt=(sudo -n "${apt[@]}")
}

update_lists() {
    must_step "updating the package lists" "$log" "${apt[@]}" update
}

install_packages() {
    run_step "installing ${#missing[@]} packages" "$log" "${apt[@]}" --no-install-recommends install "${missing[@]}"
}

main() {
    local log missing apt groups
    case ${1:-} in
    ''|-h|--help) usage_of "$0"; exit ;;
    esac
    groups=$(wanted_packages "$@")
    mapfile -t missing < <(missing_packages <<<"$groups" | sort -u)
    [ ${#missing[@]} -gt 0 ] || return 0
    say "missing packages: ${missing[*]}"
    find_apt "${missing[@]}"
    log=$(mktemp -t uci-install.XXXXXX)
    apt-cache show "${missing[@]}" >/dev/null 2>&1 || update_lists
    if ! install_packages; then
        update_lists
        install_packages || { tail -n 30 "$log" >&2; die "apt-get install failed (whole log: $log)"; }
    fi
    rm -f "$log"
}

main "$@"
