#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tools/two_hosts.sh COMMAND...
#
# Run COMMAND on the first of two hosts, "uci-a" and "uci-b", that are network namespaces of this machine, joined by a pair of
# virtual Ethernet devices. They share files, but neither network nor names, each has half of the processors, and MPI's
# launchers are led from one to the other without ssh: jobs run as between two hosts. Ranks must not be bound by mpirun, which
# sees all processors on both hosts. As root; all is taken away at the end. For example
#
#     tools/two_hosts.sh mpirun.openmpi --allow-run-as-root --host uci-a,uci-b -np 2 --bind-to none --mca pml ucx \
#         --mca opal_common_ucx_tls any -x UCX_TLS=tcp,self build/tools/uci_tune --quick --no-write
#     tools/two_hosts.sh mpirun.mpich -hosts uci-a,uci-b -ppn 1 -np 2 -genv UCX_TLS tcp,self build/tools/uci_tune -q -n
#     tools/two_hosts.sh build/tools/uci_perftest --hosts uci-a,uci-b --bind none --tls tcp,self --quick
#
# UCI_TWO_HOSTS_QDISC, if set, is what shapes the traffic on both sides (tc(8)), as in "netem delay 10us rate 10gbit", where the
# kernel has netem, or "tbf rate 10gbit burst 1mb latency 5ms".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

network=10.197.23
half=$(($(nproc) > 1 ? $(nproc) / 2 : 1))
work=

# add_host LETTER NUMBER: a namespace with its end of the cable
add_host() {
    local host=uci-$1
    ip netns add "$host"
    ip link set "uci-veth-$1" netns "$host"
    ip -n "$host" address add "$network.$2/24" dev "uci-veth-$1"
    ip -n "$host" link set lo up
    ip -n "$host" link set "uci-veth-$1" up
    if [ -n "${UCI_TWO_HOSTS_QDISC:-}" ]; then
        # shellcheck disable=SC2086  # several words
        tc -n "$host" qdisc add dev "uci-veth-$1" root $UCI_TWO_HOSTS_QDISC ||
            die "tc refuses UCI_TWO_HOSTS_QDISC='$UCI_TWO_HOSTS_QDISC': not known to this kernel, or wrong (tc(8))"
    fi
}

# UCX takes an interface only when it is running, which the kernel says a moment after both ends are up.
wait_for_cable() {
    local tries
    for ((tries = 0; tries < 50; tries++)); do
        if ip -n uci-a link show uci-veth-a | grep -q 'state UP' && ip -n uci-b link show uci-veth-b | grep -q 'state UP'; then
            return
        fi
        sleep 0.1
    done
    die "the cable between the hosts does not come up"
}

# The way onto a host, "enter HOST COMMAND...", and what launchers start instead of ssh, "agent [OPTIONS] HOST COMMANDLINE".
# "ip netns exec" has made the mounts the process's own.
write_agent() {
    printf '%s\n' '127.0.0.1 localhost' "$network.1 uci-a" "$network.2 uci-b" >"$work/hosts"
    cat >"$work/enter" <<END
#!/bin/bash
host=\$1
shift
cores=0-$((half - 1))
[ "\$host" = uci-a ] || cores=$half-$((2 * half - 1))
exec taskset -c "\$cores" ip netns exec "\$host" unshare --uts bash -c \\
    'mount --bind "$work/hosts" /etc/hosts; hostname "\$1"; shift; exec "\$@"' _ "\$host" "\$@"
END
    cat >"$work/agent" <<END
#!/bin/bash
while [[ \${1:-} == -* ]]; do shift; done
host=\$1
shift
exec "$work/enter" "\$host" bash -c "\$*"
END
    chmod +x "$work/enter" "$work/agent"
}

take_away() {
    local letter
    for letter in a b; do
        ip netns delete "uci-$letter" 2>/dev/null || true
    done
    ip link delete uci-veth-a 2>/dev/null || true
    rm -rf "$work"
}

main() {
    case ${1:-} in
    ''|-h|--help) usage_of "$0"; exit ;;
    esac
    [ "$(id -u)" -eq 0 ] || die "network namespaces are made by root"
    [ ! -e /run/netns/uci-a ] || die "there is a namespace uci-a: is another $0 at work? If not: ip netns delete uci-a"
    work=$(mktemp -d)
    trap take_away EXIT
    trap 'exit 130' INT TERM
    ip link add uci-veth-a type veth peer name uci-veth-b
    add_host a 1
    add_host b 2
    unset UCI_TWO_HOSTS_QDISC # the library would warn of a setting it does not know
    wait_for_cable
    write_agent
    export OMPI_MCA_plm_rsh_agent=$work/agent OMPI_MCA_orte_keep_fqdn_hostnames=1
    export OMPI_MCA_oob_tcp_if_include=$network.0/24 OMPI_MCA_btl=self
    export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$work/agent
    "$work/enter" uci-a "$@"
}

main "$@"
