#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/slurm/run_slurm.sh [BUILD_DIR]
#
# The examples for Slurm (docs/examples/slurm) in a Slurm of one node, with daemons, ports and folders of its own, which this starts and
# ends: a job whose messages are damaged drains the node, one without damage does not, and a ledger has both; the task prolog brings UCI
# into tasks. Needs root and tools/install_deps.sh slurm. Ends with the line "N passed, N failed, N skipped"; exit status 1 if any failed.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

build=$(realpath "${1:-$uci_root/build}")
examples=$uci_root/docs/examples/slurm
node=$(hostname -s)
base=$((20000 + $$ % 20000))
daemons=()
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
export SLURM_CONF=$work/slurm.conf

note_of() {
    tail -n 1 "$1"
}

end() {
    local pid
    for pid in "${daemons[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}
trap end EXIT

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
    local i
    for ((i = 0; i < 5 * $1; ++i)); do
        "${@:2}" >/dev/null 2>&1 && return
        sleep 0.2
    done
    return 1
}

write_conf() {
    mkdir -p "$work/state" "$work/spool"
    sed "s|^library=.*|library=$build/libucx_integrity.so|" "$examples/uci_task_prolog" >"$work/task_prolog"
    printf '#!/bin/sh\nexport SLURM_CONF=%s\nexec %s --uci-top %s --uci-share %s --ledger %s --damaged 10 --count-injected >>%s 2>&1\n' "$SLURM_CONF" \
        "$examples/uci_epilog" "$build/tools/uci_top" "$build/tools" "$work/site.ledger" "$work/epilog.log" >"$work/epilog"
    chmod 755 "$work" "$work/task_prolog" "$work/epilog"
    cat >"$SLURM_CONF" <<CONF
ClusterName=uci
FirstJobId=$((RANDOM * 1000))
SlurmctldHost=$node
SlurmUser=root
SlurmctldPort=$base
SlurmdPort=$((base + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=pmi2
ReturnToService=2
Epilog=$work/epilog
TaskProlog=$work/task_prolog
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=5 OverSubscribe=FORCE:4 State=UP
CONF
}

# start_daemons: in the foreground each, so that they end with us.
start_daemons() {
    dd if=/dev/urandom of="$work/munge.key" bs=128 count=1 2>/dev/null
    chmod 400 "$work/munge.key"
    munged --foreground --force --key-file "$work/munge.key" --socket "$work/munge.socket" --pid-file "$work/munged.pid" \
        --log-file "$work/munged.log" --seed-file "$work/munge.seed" >"$work/munged.out" 2>&1 &
    daemons+=($!)
    wait_for 10 test -S "$work/munge.socket" || return
    slurmctld -D -c >"$work/slurmctld.log" 2>&1 &
    daemons+=($!)
    slurmd -D -c -N "$node" >"$work/slurmd.log" 2>&1 &
    daemons+=($!)
    wait_for 30 is_idle
}

is_idle() {
    sinfo -h -o %T | grep -qx idle
}

is_drained() {
    sinfo -h -o %T | grep -q drain
}

# job NAME=VALUE...: two ranks that talk, under Slurm's own launcher.
job() {
    timeout 120 env "$@" UCX_TLS=posix,self MPIR_CVAR_NOLOCAL=1 UCI_LOG_LEVEL=error \
        srun --mpi=pmi2 -n 2 --overcommit "$work/ring" 1 1 end=finish "folder=$work/notes" after=200
}

stays_idle() {
    job UCI_STATS="$work/stats.%r.json" || return
    wait_for 20 is_idle || return
    [ -s "$work/stats.0.json" ] && [ -s "$work/stats.1.json" ] && ! is_drained && say "idle, and UCI was in both tasks"
}

is_let_off() {
    mkdir "$work/home"
    : >"$work/home/.no-uci"
    job "HOME=$work/home" UCI_STATS="$work/off.%r.json" || return
    [ ! -e "$work/off.0.json" ] && say "no UCI with ~/.no-uci"
}

gets_drained() {
    job UCI_FAULT=rate=0.2,seed=2 || return
    wait_for 20 is_drained || { cat "$work/epilog.log"; return 1; }
    sinfo -h -R -o '%E'
    sinfo -h -R -o '%E' | grep -Eq 'UCI: job [0-9]+: [0-9]+ damaged, 0 not repaired, at ranks [01],[01]'
}

# A line for each job that had UCI; of the one with injected faults nobody is blamed.
is_in_ledger() {
    local text
    [ "$(wc -l <"$work/site.ledger")" -eq 2 ] || return
    text=$("$build/tools/uci_report" --history "$work/site.ledger")
    say "$text"
    grep -q 'verified in 1 job' <<<"$text" && grep -q '1 job with faults injected' <<<"$text" &&
        [ -z "$("$build/tools/uci_report" --history --drain-list "$work/site.ledger")" ] && say "2 lines, 1 job counted"
}

main() {
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    if [ "$(id -u)" -ne 0 ] || ! command -v slurmctld slurmd munged mpicc.mpich >/dev/null; then
        skip Slurm "it needs root, and slurmctld, slurmd, munge and MPICH (tools/install_deps.sh slurm test)"
        end_of_checks
        return
    fi
    mkdir "$work/notes"
    mpicc.mpich -std=gnu11 -O2 -Wno-stringop-overflow -Wno-stringop-overread "$uci_root/tests/mpi/dying.c" -o "$work/ring" -lpthread
    write_conf
    check "a Slurm of one node starts" start_daemons
    check "a job without damage" stays_idle
    check "a job that opts out" is_let_off
    check "a job with damage drains the node" gets_drained
    check "the epilog keeps a ledger" wait_for 20 is_in_ledger
    [ "$failed" -eq 0 ] || tail -n 15 "$work"/*.log
    end_of_checks
}

main "$@"
