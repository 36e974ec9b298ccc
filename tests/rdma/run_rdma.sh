#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/rdma/run_rdma.sh [options]
#
# UCI on RDMA: boots a guest with two soft-RoCE devices (see vm.sh) and runs there, with Open MPI and MPICH over rc, ud
# and both, each rank on its own device, what campaign.sh describes. Installs the packages it needs; the kernel and the
# programs are kept between runs. Ends with a table and the line "N passed, N failed, N skipped"; exit status 1 if
# anything failed. Logs of failures stay in build/rdma/logs, the guest's own messages in build/rdma/guest.log.
#
#   --only REGEX    only jobs whose line (see --list) matches
#   --list          the jobs, and nothing else
#   --preload PATH  default build/libucx_integrity.so
#   --timeout S     limit for all of it (default 1800: an emulated guest may take half of that)
#   --help          this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

main() {
    local campaign=$uci_root/tests/rdma/campaign.sh logs=$uci_root/build/rdma/logs only='.*' limit=1800 list='' mpi names
    local preload=$uci_root/build/libucx_integrity.so
    while [ $# -gt 0 ]; do
        case $1 in
        --only)    only=${2:?}; shift ;;
        --list)    list=1 ;;
        --preload) preload=${2:?}; shift ;;
        --timeout) limit=${2:?}; shift ;;
        -h|--help) usage_of "$0"; exit ;;
        *)         die "unknown option '$1' (see --help)" ;;
        esac
        shift
    done
    if [ -n "$list" ]; then
        "$campaign" --list "$only"
        return
    fi
    "$uci_root/tools/install_deps.sh" rdma
    preload=$(check_preload "$preload")
    for mpi in openmpi mpich; do
        mapfile -t names < <("$campaign" --list "$only" | awk -v mpi="$mpi" '$4 == mpi { print $2 }' | sort -u)
        [ ${#names[@]} -eq 0 ] || compile_programs "$mpi" "${names[@]}"
    done
    rm -rf "$logs"
    mkdir -p "$logs"
    "$uci_root/tests/rdma/vm.sh" --timeout "$limit" "$campaign" "$only" "$preload" "$logs"
}

main "$@"
