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

packages_build=(gcc libc6-dev binutils meson ninja-build pkg-config git
                libucx-dev libibverbs-dev libxxhash-dev libisal-dev libssl-dev libcriterion-dev libjansson-dev libncurses-dev)
[ "$(uname -m)" != x86_64 ] || packages_build+=(libipsec-mb-dev) # there is none for others
packages_test=(openmpi-bin libopenmpi-dev mpich libmpich-dev ucx-utils abigail-tools
               g++ gfortran openssh-client openssh-server
               python3 python3-mpi4py python3-prometheus-client python3-clang clang clang-format clang-tidy libclang-rt-14-dev shellcheck strace gdb iproute2 nftables openssl procps)
packages_report=(python3 python3-jinja2 node-d3-axis node-d3-scale node-d3-selection elfutils)
packages_browser=(chromium chromium-driver python3-selenium fonts-dejavu-core)
packages_demo=(hpcc openmpi-bin python3)
packages_bench=(valgrind lammps lammps-examples hpcc openmpi-bin iproute2)
packages_rdma=(qemu-system-x86 busybox-static cpio kmod xz-utils iproute2 procps ibverbs-providers ibverbs-utils)
packages_programs=(netpipe-openmpi netpipe-mpich2 lammps lammps-examples)
packages_slurm=(slurmctld slurmd slurm-client munge mpich libmpich-dev python3)
packages_gtest=(autoconf automake libtool make g++ libibverbs-dev debian-archive-keyring xz-utils python3)
packages_mpich=(make debian-archive-keyring xz-utils)
packages_compat=(mmdebstrap)
packages_model=(spin)
packages_soak=(gnuplot-nox)
packages_arm64=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static mmdebstrap)

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# wanted_packages GROUP...: their packages, one a line.
wanted_packages() {
    local group
    for group in "$@"; do
        case $group in
        build) printf '%s\n' "${packages_build[@]}" ;;
        test)  printf '%s\n' "${packages_test[@]}" ;;
        report) printf '%s\n' "${packages_report[@]}" ;;
        browser) printf '%s\n' "${packages_browser[@]}" ;;
        demo)  printf '%s\n' "${packages_demo[@]}" ;;
        bench) printf '%s\n' "${packages_bench[@]}" ;;
        rdma)  printf '%s\n' "${packages_rdma[@]}" ;;
        programs) printf '%s\n' "${packages_programs[@]}" ;;
        slurm) printf '%s\n' "${packages_slurm[@]}" ;;
        gtest) printf '%s\n' "${packages_gtest[@]}" ;;
        mpich) printf '%s\n' "${packages_mpich[@]}" ;;
        soak) printf '%s\n' "${packages_soak[@]}" ;;
        model) printf '%s\n' "${packages_model[@]}" ;;
        compat) printf '%s\n' "${packages_compat[@]}" ;;
        arm64) printf '%s\n' "${packages_arm64[@]}" ;;
        *)     die "unknown group '$group' (build, test, report, browser, demo, bench, rdma, programs, slurm, gtest, mpich, model, soak, compat or arm64)" ;;
        esac
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
