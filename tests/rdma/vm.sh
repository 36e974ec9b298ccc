#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/rdma/vm.sh [--timeout S] COMMAND...
#
# Run COMMAND on RDMA devices, on a machine that has none: boots Debian's stock kernel in qemu, on this machine's own
# root file system (read-only), and makes two soft-RoCE devices there, rxe0 and rxe1, at the ends of a virtual cable.
# COMMAND runs as root in this source tree. It can write to build/rdma, which the two machines share, and to /tmp, /run,
# /root and /dev/shm, which are gone afterwards. Its output comes here, and into build/rdma/guest.log; so does its exit
# status (125: the guest ended without one). Booting takes about 5 s.
#
# The kernel is not installed: it is fetched from Debian's archive once, and kept, with what is made of it, in
# build/rdma/kernel. UCI_RDMA_KERNEL names another folder for that; UCI_RDMA_ACCEL another accelerator for qemu than
# tcg,thread=multi.
#
#   --timeout S   end the guest after S seconds (default 300)
#   --help        this text
# shellcheck disable=SC2317  # must_step calls them
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

guest_dir=$uci_root/tests/rdma
share=$uci_root/build/rdma
kernel=${UCI_RDMA_KERNEL:-$share/kernel}
accel=${UCI_RDMA_ACCEL:-tcg,thread=multi}
limit=300

# What the guest loads: access to the host's files, RDMA over Ethernet, a virtual cable and damage to it
modules=(virtio_pci 9pnet_virtio 9p crc32_generic ib_uverbs rdma_rxe veth sch_netem)

# --- the kernel ---

fetch_kernel() {
    local package
    [ "$(dpkg --print-architecture)" = amd64 ] || die "the guest is for amd64 only"
    package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
    [ -n "$package" ] || die "apt knows no linux-image-amd64: run 'apt-get update'"
    rm -rf "$kernel.new"
    mkdir -p "$kernel.new/package"
    (cd "$kernel.new/package" && apt-get -q download "$package")
    dpkg -x "$kernel.new/package/$package"_*.deb "$kernel.new"
    rm -r "$kernel.new/package"
    ln -sfn usr/lib "$kernel.new/lib" # where depmod looks, if the package has it there
    rm -rf "$kernel"
    mv "$kernel.new" "$kernel"
}

# module_files NAME...: their files and those they need, in the order of loading.
module_files() {
    local name
    for name; do
        modprobe -d "$kernel" -S "$version" --show-depends "$name" | awk '$1 == "insmod" { print $2 }'
    done | awk '!seen[$0]++'
}

# make_initrd FILE: /init, busybox, and the modules with the order in which to load them.
make_initrd() {
    local root file name
    root=$(mktemp -d "$share/initrd.XXXXXX")
    mkdir -p "$root"/{bin,modules,proc,sys,dev,host}
    cp /bin/busybox "$root/bin"
    install -m 755 "$guest_dir/init" "$root/init"
    depmod -b "$kernel" "$version"
    while read -r file; do
        name=${file##*/}
        case $file in
        *.xz) xz -dc "$file" >"$root/modules/${name%.xz}" ;;
        *)    cp "$file" "$root/modules" ;;
        esac
        say "${name%.xz}" >>"$root/modules/order"
    done < <(module_files "${modules[@]}")
    [ -s "$root/modules/order" ] || die "no modules found in $kernel"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$1.new"
    rm -r "$root"
    mv "$1.new" "$1"
}

prepare_kernel() {
    if [ ! -d "$kernel/boot" ]; then
        must_step "fetching a kernel" "$share/fetch.log" fetch_kernel
    fi
    version=$(basename "$kernel"/boot/vmlinuz-*)
    version=${version#vmlinuz-}
    initrd=$kernel/initrd.$(cat "$guest_dir/init" "$guest_dir/vm.sh" | sha1sum | cut -c 1-12)
    if [ ! -e "$initrd" ]; then
        rm -f "$kernel"/initrd.*
        must_step "packing the guest's initial files" "$share/initrd.log" make_initrd "$initrd"
    fi
}

# --- the guest ---

# write_command COMMAND...: what the guest is to run, with the environment that matters.
write_command() {
    local name
    {
        for name in $(compgen -e UCI_ || true) $(compgen -e UCX_ || true); do
            [ "$name" = UCI_RDMA_KERNEL ] || printf 'export %s=%q\n' "$name" "${!name}"
        done
        printf 'exec '
        printf '%q ' "$@"
        printf '\n'
    } >"$share/command"
}

# What comes over the serial line has carriage returns, and ends with the kernel's good-bye.
boot() {
    timeout --foreground -k 5 "$limit" qemu-system-x86_64 -machine q35 -accel "$accel" -cpu max -smp "$(nproc)" -m 2G \
        -nodefaults -display none -serial stdio -no-reboot \
        -kernel "$kernel/boot/vmlinuz-$version" -initrd "$initrd" \
        -append "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr random.trust_cpu=on tsc=reliable \
uci.root=$uci_root uci.share=$share" \
        -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
        -device virtio-9p-pci,fsdev=host,mount_tag=host \
        -fsdev local,id=source,path="$uci_root",security_model=none,readonly=on,multidevs=remap \
        -device virtio-9p-pci,fsdev=source,mount_tag=source \
        -fsdev local,id=share,path="$share",security_model=none -device virtio-9p-pci,fsdev=share,mount_tag=share \
        </dev/null | sed -u -e 's/\r//g' -e '/reboot: Restarting system/d' | tee "$share/guest.log"
}

main() {
    local version initrd tool status=0
    guest= # for the trap
    while [ $# -gt 0 ]; do
        case $1 in
        --timeout) limit=${2:?}; shift 2 ;;
        -h|--help) usage_of "$0"; exit ;;
        --*)       die "unknown option '$1' (see --help)" ;;
        *)         break ;;
        esac
    done
    [ $# -gt 0 ] || { usage_of "$0" >&2; exit 2; }
    for tool in qemu-system-x86_64 cpio modprobe depmod /bin/busybox; do
        command -v "$tool" >/dev/null || die "$tool is missing: run tools/install_deps.sh rdma"
    done
    mkdir -p "$share"
    exec 3>"$share/lock"
    flock -w "$limit" 3 || die "another guest of this source tree is running"
    prepare_kernel
    write_command "$@"
    rm -f "$share/status"
    # a process group of its own, so that whoever ends this script ends the guest
    set -m
    boot &
    set +m
    guest=$!
    trap 'kill -- "-$guest" 2>/dev/null || true' EXIT
    trap 'exit 130' INT TERM
    wait "$guest" || status=$?
    if [ ! -f "$share/status" ]; then
        [ "$status" -ne 124 ] || say "the guest was ended after $limit s" >&2
        say "the guest ended before its command did: see $share/guest.log" >&2
        exit 125
    fi
    exit "$(<"$share/status")"
}

main "$@"
