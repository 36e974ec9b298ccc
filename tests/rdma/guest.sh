#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# In the guest: make two soft-RoCE devices at the ends of a virtual cable, then become the command that vm.sh was given.
# Both devices are in one kernel, yet what one sends to the other must take the cable: 10.98.0.10 (veth0, rxe0) and
# 10.98.0.11 (veth1, rxe1) reach each other through routes of their own, looked up before the kernel finds that
# both addresses are local. (Network namespaces would be simpler, but Linux 6.1 shows no soft-RoCE device in them.)
set -euo pipefail

make_cable() {
    local i
    ip link set lo up
    ip link add veth0 type veth peer name veth1
    sysctl -q net.core.netdev_max_backlog=100000 # else the cable drops packets of a burst of 4 MiB
    sysctl -q net.ipv4.conf.all.rp_filter=0
    for i in 0 1; do
        sysctl -q "net.ipv6.conf.veth$i.disable_ipv6=1" # Linux 6.1 and 6.12 panic at damaged packets of RoCE over IPv6
        sysctl -q "net.ipv4.conf.veth$i.rp_filter=0" "net.ipv4.conf.veth$i.accept_local=1"
        ip link set "veth$i" mtu 4200 up # a RoCE packet of 4096 bytes and its headers
        ip address add "10.98.0.1$i/24" dev "veth$i"
        ip route add "10.98.0.1$((1 - i))" dev "veth$i" table "100$i"
        ip rule add pref "5$i" oif "veth$i" to "10.98.0.1$((1 - i))" lookup "100$i"
    done
    ip rule add pref 100 lookup local
    ip rule del pref 0
    for i in 0 1; do
        ip neighbour replace "10.98.0.1$((1 - i))" dev "veth$i" nud permanent \
            lladdr "$(<"/sys/class/net/veth$((1 - i))/address")"
    done
}

has_gid() {
    grep -q "ffff:0a62:" "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null
}

make_devices() {
    local i try
    for i in 0 1; do
        rdma link add "rxe$i" type rxe netdev "veth$i"
    done
    for ((try = 0; try < 100; ++try)); do
        if has_gid rxe0 && has_gid rxe1; then
            return
        fi
        sleep 0.1
    done
    echo "guest: the devices got no address" >&2
    return 1
}

# gid_index DEVICE: of its IPv4 address
gid_index() {
    grep -l "ffff:0a62:" "/sys/class/infiniband/$1/ports/1/gids/"* | head -n 1 | sed 's|.*/||'
}

make_cable
make_devices
# UCX takes the packets' type from a field that only Mellanox adapters fill: on others ud waits for ever
export UCX_UD_VERBS_ETH_DGID_CHECK=n
UCX_IB_GID_INDEX=$(gid_index rxe0)
export UCX_IB_GID_INDEX
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=/dev/null
source "$SHARE/command"
