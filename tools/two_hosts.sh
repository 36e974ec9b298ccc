#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tools/two_hosts.sh [-n HOSTS] COMMAND...
#
# Run COMMAND on the first of two hosts, "uci-a" and "uci-b", that are network namespaces of this machine, joined by a pair of
# virtual Ethernet devices; with -n of up to eight, "uci-a" to "uci-h", at a bridge. They share files, but neither network nor
# names, each has its part of the processors, and MPI's launchers are led from one to the other without ssh: jobs run as
# between hosts. Ranks must not be bound by mpirun, which sees all processors on all hosts. As root; all is taken away at the
# end. For example
#
#     tools/two_hosts.sh mpirun.openmpi --allow-run-as-root --host uci-a,uci-b -np 2 --bind-to none --mca pml ucx \
#         --mca opal_common_ucx_tls any -x UCX_TLS=tcp,self build/tools/uci_tune --quick --no-write
#     tools/two_hosts.sh mpirun.mpich -hosts uci-a,uci-b -ppn 1 -np 2 -genv UCX_TLS tcp,self build/tools/uci_tune -q -n
#     tools/two_hosts.sh build/tools/uci_perftest --hosts uci-a,uci-b --bind none --tls tcp,self --quick
#
# UCI_TWO_HOSTS_QDISC, if set, is what shapes the traffic that leaves each host (tc(8)), as in "netem delay 10us rate 10gbit", where the
# kernel has netem, or "tbf rate 10gbit burst 1mb latency 5ms".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

network=10.197.23
lock=/run/uci_two_hosts.lock
hosts=(a b)
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
        # BBR, where it is the default, paces by itself, and behind tbf on busy cores a packet sometimes lies for 20 s (Linux 6.18: 3 of 96 short jobs
        # stood still, their bytes in the kernel; by Reno none of 100)
        ip netns exec "$host" sysctl -qw net.ipv4.tcp_congestion_control=reno
    fi
}

# The bridge is in a namespace of its own: what filters this machine's traffic does not see it
add_cables() {
    local letter
    if [ ${#hosts[@]} -eq 2 ]; then
        ip link add uci-veth-a type veth peer name uci-veth-b
        return
    fi
    ip netns add uci-switch
    ip -n uci-switch link add uci-bridge type bridge
    ip -n uci-switch link set uci-bridge up
    for letter in "${hosts[@]}"; do
        ip link add "uci-veth-$letter" type veth peer name "uci-port-$letter"
        ip link set "uci-port-$letter" netns uci-switch
        ip -n uci-switch link set "uci-port-$letter" master uci-bridge up
    done
}

# UCX takes an interface only when it is running, which the kernel says a moment after both ends are up.
cables_are_up() {
    local letter
    for letter in "${hosts[@]}"; do
        ip -n "uci-$letter" link show "uci-veth-$letter" | grep -q 'state UP' || return
    done
}

wait_for_cables() {
    local tries
    for ((tries = 0; tries < 50; tries++)); do
        ! cables_are_up || return 0
        sleep 0.1
    done
    die "the cable between the hosts does not come up"
}

# cores_of NUMBER: the processors of a host, as taskset(1) takes them; hosts share them where there are fewer.
cores_of() {
    local all each begin
    all=$(nproc)
    each=$((all > ${#hosts[@]} ? all / ${#hosts[@]} : 1))
    begin=$((($1 - 1) * each % all))
    say "$begin-$((begin + each - 1))"
}

# The way onto a host, "enter HOST COMMAND...", and what launchers start instead of ssh, "agent [OPTIONS] HOST COMMANDLINE".
# "ip netns exec" has made the mounts the process's own.
write_agent() {
    local i
    say '127.0.0.1 localhost' >"$work/hosts"
    for i in "${!hosts[@]}"; do
        say "$network.$((i + 1)) uci-${hosts[i]}" >>"$work/hosts"
        cores_of $((i + 1)) >"$work/cores.uci-${hosts[i]}"
    done
    cat >"$work/enter" <<END
#!/bin/bash
host=\$1
shift
exec taskset -c "\$(cat "$work/cores.\$host")" ip netns exec "\$host" unshare --uts bash -c \\
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
    for letter in a b c d e f g h; do
        ip netns delete "uci-$letter" 2>/dev/null || true
        ip link delete "uci-veth-$letter" 2>/dev/null || true
    done
    ip netns delete uci-switch 2>/dev/null || true
    [ -z "$work" ] || rm -rf "$work" 2>/dev/null || { sleep 0.5; rm -rf "$work"; } # a daemon may still be at its end in there
}

# One at a time. What one that was killed could not take away has no owner, and goes.
own_hosts() {
    exec {lock_fd}>"$lock"
    if ! flock -n "$lock_fd"; then
        printf '%s: another one is at work on this machine: waiting for it, 10 minutes at most\n' "${0##*/}" >&2
        flock -w 600 "$lock_fd" || die "another one is at work on this machine still: one at a time"
    fi
    take_away
}

main() {
    local i lock_fd
    case ${1:-} in
    ''|-h|--help) usage_of "$0"; exit ;;
    -n)
        [[ ${2:-} =~ ^[2-8]$ && $# -gt 2 ]] || die "-n wants a number of hosts, 2 to 8, and a command behind it"
        hosts=(a b c d e f g h)
        hosts=("${hosts[@]:0:$2}")
        shift 2
        ;;
    esac
    [ "$(id -u)" -eq 0 ] || die "network namespaces are made by root"
    own_hosts
    work=$(mktemp -d)
    trap take_away EXIT
    trap 'exit 130' INT TERM
    add_cables
    for i in "${!hosts[@]}"; do
        add_host "${hosts[i]}" $((i + 1))
    done
    unset UCI_TWO_HOSTS_QDISC # the library would warn of a setting it does not know
    wait_for_cables
    write_agent
    export OMPI_MCA_plm_rsh_agent=$work/agent OMPI_MCA_orte_keep_fqdn_hostnames=1
    export OMPI_MCA_oob_tcp_if_include=$network.0/24 OMPI_MCA_btl=self
    # else in /tmp/ompi.HOST.USER, which a daemon of the last job, that ends late, may take away while this one makes it
    export OMPI_MCA_orte_tmpdir_base=$work
    export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$work/agent
    "$work/enter" uci-a "$@" {lock_fd}>&- # who outlives this one owns nothing
}

main "$@"
