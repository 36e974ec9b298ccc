#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tools/run_preflight.sh [BUILD_DIR]
#
# uci_run --preflight, here and on two hosts (network namespaces, root): what differs is told, of the right node, and nothing is left.
# Ends with "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

tools=$(realpath "${1:-$uci_root/build}")/tools
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
limited=("$uci_root/tests/watchdog.sh" 150)
unset "${!UCI_@}" "${!SLURM_@}" "${!PBS_@}" LD_PRELOAD UCX_PLUGIN_PATH
export XDG_CACHE_HOME=$work/cache UCI_CONFIG_FILE='' UCX_TLS=tcp,self
mkdir "$work/jobs"

# preflight [ARGUMENT...]: its answer for scripts is in $work/answer.json, and it leaves nothing else.
preflight() {
    local status=0
    rm -f "$work/answer.json"
    (cd "$work/jobs" && "${limited[@]}" "$tools/uci_run" --preflight --json "$work/answer.json" "$@") || status=$?
    [ -z "$(ls -A "$work/jobs")" ] || die "a folder is left"
    return "$status"
}

# on_hosts MPI A,B,... [ARGUMENT...]: what runs there is started by $before
before=
on_hosts() {
    local arguments=(--mpi "$1" --hosts "$2" "${@:3}") of_mpirun=$before
    [ "$1" = mpich ] || of_mpirun="--bind-to none $before"
    arguments+=(--mpirun-args "$of_mpirun")
    (cd "$work/jobs" && rm -f "$work/answer.json" && "$uci_root/tools/two_hosts.sh" "${limited[@]}" "$tools/uci_run" --preflight \
        --json "$work/answer.json" "${arguments[@]}")
}

# answer CONDITION: a Python expression over the last answer
answer() {
    python3 -c 'import json, sys
answer = json.load(open(sys.argv[1]))
wrong = {name: found["text"] for found in answer["findings"] if found["level"] == "wrong" for name in found["nodes"]}
assert eval(sys.argv[2], {"wrong": wrong}, answer), (answer["findings"], answer["no_answer"])' "$work/answer.json" "$1"
}

here() {
    says "Ready: 1 node" 0 preflight "${@}" && answer 'ready and len(nodes) == 1 and not no_answer' &&
        answer 'all(node["uci"]["state"] == "on" and node["uci"]["protocol"] and node["mpi"] and node["shm"] for node in nodes.values())'
}

# A host of which the batch system tells, twice
by_batch_system() {
    printf '%s\n%s\n' "$(hostname)" "$(hostname)" >"$work/nodes"
    PBS_NODEFILE=$work/nodes here --mpi mpich
}

both_alike() {
    says "Ready: 2 nodes" 0 on_hosts "$1" uci-a,uci-b && grep -q '^uci-a,uci-b ' "$work/said" && answer 'ready and sorted(nodes) == ["uci-a", "uci-b"]'
}

# As by a profile of that host's
other_mode() {
    local before=$work/profile
    cat >"$work/profile" <<'END'
#!/bin/bash
[ "$(hostname)" != uci-b ] || export UCI_MODE=detect
exec "$@"
END
    chmod +x "$work/profile"
    says "Not ready: uci-b" 1 on_hosts "$1" uci-a,uci-b &&
        answer 'not ready and list(wrong) == ["uci-b"] and "UCI_MODE=detect, the others" in wrong["uci-b"]'
}

other_key() {
    (umask 077; printf '%s\n' "$(printf '1%.0s' {1..64})" >"$work/key.uci-a"; printf '%s\n' "$(printf '2%.0s' {1..64})" >"$work/key.uci-b")
    UCI_KEY_FILE=$work/key.%h says "another key in its key file" 1 on_hosts "$1" uci-a,uci-b --seal && answer 'list(wrong) == ["uci-b"]' &&
        ! grep -q 1111111111 "$work/answer.json" &&
        UCI_KEY_FILE=$work/key.uci-a says "Ready: 2 nodes" 0 on_hosts "$1" uci-a,uci-b --seal
}

job_key() {
    says "Ready: 2 nodes" 0 on_hosts "$1" uci-a,uci-b --seal && answer 'len({node["key"]["print"] for node in nodes.values()}) == 1 and ready' &&
        [ -z "$(ls -A "$work/jobs")" ]
}

absent() {
    says "Not ready: uci-z" 1 on_hosts "$1" uci-a,uci-z && answer 'list(nodes) == ["uci-a"] and list(no_answer) == ["uci-z"] and no_answer["uci-z"]'
}

# ask_nobody MPI LINE: a host that is not reached; in the place of ssh is LINE, of a shell that writes its process id to $work/pid
ask_nobody() {
    local arguments=(-launcher-exec "$work/ssh")
    [ "$1" = mpich ] || arguments=(--mca plm_rsh_agent "$work/ssh")
    mkdir -p "$work/tmp"
    printf '#!/bin/bash\n%s\n' "$2" >"$work/ssh"
    chmod +x "$work/ssh"
    cd "$work/jobs" && TMPDIR=$work/tmp exec "$tools/uci_run" --preflight --seal --mpi "$1" --hosts uci-z --mpirun-args "${arguments[*]}"
}

# No key, no folder, and no process
nothing_is_left() {
    [ -z "$(find "$work/jobs" "$work/tmp" -mindepth 1)" ] && [ -s "$work/pid" ] && ! kill -0 "$(cat "$work/pid")"
}

# ended MPI SIGNAL STATUS
ended() {
    local pid status=0
    rm -f "$work/pid"
    ask_nobody "$1" "echo \$\$ >$work/pid; exec sleep 300" &
    pid=$!
    until [ -s "$work/pid" ]; do sleep .1; kill -0 "$pid" || return 1; done
    ls "$work"/jobs/.uci-preflight-*/key && kill "-$2" "$pid" || return 1
    wait "$pid" || status=$?
    [ "$status" -eq "$3" ] && nothing_is_left
}

# As the ssh of an mpirun that has given up
left_behind() {
    rm "$work/pid"
    (says "Not ready: uci-z" 1 ask_nobody openmpi "setsid sleep 300 >/dev/null 2>&1 & echo \$! >$work/pid; exit 1")
    nothing_is_left
}

main() {
    local mpi label
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    check "uci_run --preflight: what it makes of the answers of nodes" python3 "$uci_root/tests/tools/test_preflight.py" "$tools"
    for mpi in openmpi mpich; do
        check "uci_run --preflight, $mpi" here --mpi "$mpi"
    done
    check "uci_run --preflight: hosts of the batch system" by_batch_system
    check "uci_run --preflight: settings that UCI does not start with" env UCI_MODE=maybe bash -c "! $(printf '%q ' "$tools/uci_run" --preflight --folder "$work/jobs/new") |
        tee /dev/stderr | grep -q 'Ready'"
    check "uci_run --preflight: SIGTERM, mpich" ended mpich TERM 143
    check "uci_run --preflight: SIGINT, openmpi" ended openmpi INT 130
    check "uci_run --preflight: what mpirun leaves behind" left_behind
    check "uci_run --preflight: no hosts" says "names no host" 125 preflight --hosts ,
    check "uci_run --preflight: --dry-run" says "starts no job" 125 preflight --dry-run
    check "uci_run without a program" says "arguments are required: program" 125 "$tools/uci_run" -n 2
    for mpi in openmpi mpich; do
        label="uci_run --preflight on two hosts, $mpi"
        if [ "$(id -u)" -ne 0 ]; then
            skip "$label" "network namespaces are made by root"
            continue
        fi
        check "$label" both_alike "$mpi"
        check "$label: one of another mode" other_mode "$mpi"
        check "$label: one with another key" other_key "$mpi"
        check "$label: with a key made for the job" job_key "$mpi"
        check "$label: one that does not exist" absent "$mpi"
    done
    end_of_checks
}

main "$@"
