# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Root folders with a Debian of their own: making one, running commands in it. Needs root. Sourced, never run.

# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../tools/common.sh"

# make_debian SUITE ROOT LOG PACKAGE...: a new one with these packages, what they need, and else only what apt can't do without.
# Takes less than a minute and the network.
make_debian() {
    local suite=$1 root=$2 log=$3
    shift 3
    "$uci_root/tools/install_deps.sh" compat
    rm -rf --one-file-system "$root"
    mkdir -p "$(dirname "$root")"
    must_step "making a root folder for $suite" "$log" mmdebstrap --variant=minbase --mode=root \
        --include="$(IFS=,; say "$*")" --aptopt='Acquire::Check-Valid-Until "false"' \
        --aptopt='Apt::Install-Recommends "false"' "$suite" "$root"
}

# run_in_debian ROOT COMMAND [NAME=VALUE]...: a shell command in it, with nothing in its environment but these. ROOT/uci, if it
# is there, is the sources, read-only. The mounts are in a name space of their own and go with it.
run_in_debian() {
    local root=$1 command=$2
    shift 2
    # shellcheck disable=SC2016  # that shell expands them
    unshare --mount --propagation private bash -euc '
        root=$1 sources=$2 command=$3
        shift 3
        mount --bind "$root" "$root" # its own / must be a mount point, for ip netns
        mount -t proc proc "$root/proc"
        mount --bind /sys "$root/sys"
        mount --bind /dev "$root/dev"
        mount --bind /dev/shm "$root/dev/shm"
        if [ -d "$root/uci" ]; then
            mount --bind "$sources" "$root/uci"
            mount -o remount,bind,ro "$root/uci"
        fi
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@" bash -c "$command"' \
        bash "$root" "$uci_root" "$command" "$@"
}
