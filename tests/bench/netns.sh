#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/bench/netns.sh RATE [options of uci_perftest]     (RATE as tc has it: 10gbit)
#        tests/bench/netns.sh --down
#
# Two network namespaces joined by a veth pair that is shaped to RATE in both directions, a rank in each, and
# uci_perftest between them over tcp: a network with a bandwidth of its own, unlike loopback. Needs root, and has one
# rank on core 0 and one on core 1. The namespaces go when it ends; --down removes what an interrupted run left.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

names=(uci-a uci-b)
addresses=(10.71.0.1 10.71.0.2)

down() {
    local name
    for name in "${names[@]}"; do
        ip netns del "$name" 2>/dev/null || true
        rm -rf "/etc/netns/$name"
    done
    rm -f "${agent:-}" "${pin:-}"
}

# Each end has the same name in its namespace, since UCX is told one name for both.
up() {
    local i
    for i in 0 1; do
        ip netns add "${names[i]}"
        mkdir -p "/etc/netns/${names[i]}"
        printf '127.0.0.1 localhost\n%s %s\n' "${addresses[0]}" "$(hostname)" >"/etc/netns/${names[i]}/hosts"
    done
    ip link add uci0 netns "${names[0]}" type veth peer name uci0 netns "${names[1]}"
    for i in 0 1; do
        ip -n "${names[i]}" address add "${addresses[i]}/24" dev uci0
        ip -n "${names[i]}" link set lo up
        ip -n "${names[i]}" link set uci0 up
        tc -n "${names[i]}" qdisc add dev uci0 root tbf rate "$1" burst 1mb latency 5ms
    done
}

# UCX takes an interface only when it is running, which the kernel says a moment after both ends are up.
wait_until_up() {
    local i tries
    for i in 0 1; do
        for ((tries = 0; tries < 50; tries++)); do
            ip -n "${names[i]}" link show uci0 | grep -q 'state UP' && continue 2
            sleep 0.1
        done
        die "the interface in namespace ${names[i]} does not come up"
    done
}

# What a launcher calls instead of ssh: agent [options] HOST COMMAND...
write_agent() {
    agent=$(mktemp -t uci-agent.XXXXXX)
    cat >"$agent" <<-EOT
	#!/bin/bash
	while [ "\${1#-}" != "\$1" ]; do shift; done
	case \$1 in
	${addresses[0]}) name=${names[0]} ;;
	*) name=${names[1]} ;;
	esac
	shift
	exec ip netns exec "\$name" bash -c "\$*"
	EOT
    chmod +x "$agent"
}

# In front of each rank: a core for each, since launchers that take this for two machines bind both to the first one.
write_pin() {
    pin=$(mktemp -t uci-pin.XXXXXX)
    cat >"$pin" <<-EOT
	#!/bin/bash
	[ "\$(ip netns identify \$\$)" = "${names[0]}" ] && core=0 || core=1
	exec taskset -c "\$core" "\$@"
	EOT
    chmod +x "$pin"
}

# The two launchers take different options: one run each.
measure() {
    local mpi=$1 launcher
    shift
    case $mpi in
    openmpi) launcher="--mca plm_rsh_agent $agent --mca oob_tcp_if_include uci0 --mca btl ^tcp $pin" ;;
    mpich)   launcher="-launcher rsh -launcher-exec $agent -iface uci0 $pin" ;;
    esac
    UCX_NET_DEVICES=uci0 ip netns exec "${names[0]}" "$uci_root/build/tools/uci_perftest" --mpi "$mpi" --tls tcp,self \
        --hosts "$(IFS=,; echo "${addresses[*]}")" --mpirun-args "$launcher" "$@"
}

main() {
    local rate=${1:-} mpi
    case $rate in
    ''|-h|--help) usage_of "$0"; exit ;;
    --down)       down; exit ;;
    esac
    shift
    [ "$(id -u)" -eq 0 ] || die "network namespaces need root"
    down
    trap down EXIT
    up "$rate"
    wait_until_up
    write_agent
    write_pin
    for mpi in openmpi mpich; do
        say
        say "$mpi, veth shaped to $rate:"
        measure "$mpi" "$@"
    done
}

main "$@"
