# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Jobs with injected faults, and what makes them pass: shared by run_faults.sh and tests/rdma. Sourced, never run; after
# tests/mpi/lib.sh. The caller sets preload, limit (seconds for a job) and seed (of the injector).
# shellcheck disable=SC2034,SC2154  # what run_program sets and the caller has set

# scale_of PROGRAM [RATE]: so that each takes about a second, with every chunk damaged too.
scale_of() {
    case $1${2:+ at $2} in
    "ordering at 1")            say 0.1; return ;;
    esac
    case $1 in
    storm)                      say 0.15 ;;
    datatypes|ordering)         say 0.5 ;;
    p2p_nonblocking|mprobe)     say 0.15 ;;
    wildcard|persistent)        say 0.3 ;;
    coll_*)                     say 0.4 ;;
    changed)                    say 2 ;;
    *)                          say 0.25 ;;
    esac
}

# fault_setting KIND TARGET RATE [MORE]
fault_setting() {
    say "UCI_FAULT=rate=$3,kind=$1,target=$2,seed=$seed${4:-}"
}

# refuse REASON: the job has not shown what it should.
refuse() {
    verdict=FAIL
    reason=$1
}

# refuse_stats: check_stats has found what is wrong.
refuse_stats() {
    refuse "$(tail -n +2 <<<"$stats_line" | paste -sd';')"
}

# must_say REGEX: a run that had to fail must have failed for the right reason.
must_say() {
    if [ "$verdict" = PASS ]; then
        refuse "it passed, but should have failed"
    elif [ "$verdict" = HANG ]; then
        :
    elif grep -Eq "$1" "$run_log"; then
        verdict=PASS reason=
    else
        refuse "it failed, but its output does not match '$1'"
    fi
}

# A lower bound of the things that the injector could hit in the last run.
units_of() {
    case $1 in
    payload)      say 'chunks_verified * 0.8' ;;
    tree)         say '(chunks_verified - eager_messages) * 0.8' ;;
    ack)          say 'rendezvous_messages' ;;
    memory)       say 'direct_messages' ;;
    *)            say 'messages_sent' ;;
    esac
}

# noticed_condition TARGET RATE: what the counters must say of faults of a target, if there were any.
noticed_condition() {
    case $1 in
    payload) say 'faults_injected == mismatched_chunks + faults_unseen' ;;   # not one of them missed
    header)
        # where every frame is hit a sender may leave a lap of its mailbox, and the next one, before its receiver finds where it is: what lies
        # there nobody looks at (1 or 2 of 5000, on a busy machine)
        if [ "$2" = 1 ]; then
            say '0.99 * faults_injected <= mismatched_headers + mismatched_control + faults_unseen <= faults_injected'
        else
            say 'faults_injected == mismatched_headers + mismatched_control + faults_unseen'
        fi ;;
    ack)     say 'mismatched_control >= 1' ;;
    memory)  say "mismatched_chunks >= 1 or direct_messages * $2 < 20" ;; # what lies in the log is not looked at
    *)       say 'mismatched_chunks + mismatched_headers + mismatched_control + mismatched_roots >= 1' ;;
    esac
}

# So few that none need be noticed: a fault in the rear copy of a frame's header, or in an acknowledgement that comes
# when its receiver has closed, does no harm and is not looked at.
few_faults() {
    case $1 in
    payload|header) say 'faults_injected == 0' ;;
    *)       say 'faults_injected < 20' ;;
    esac
}

run_heal() {
    local program=$1 mpi=$2 tls=$3 kind=$4 target=$5 rate=$6 conditions=()
    run_program "$program" "$mpi" "$tls" 2 "$preload" "$limit" "$(scale_of "$program" "$rate")" \
        "$(fault_setting "$kind" "$target" "$rate")"
    [ "$verdict" = PASS ] || return 0
    conditions=("${stats_always[@]}" "${stats_faulty[@]}"
                # with 20 or more expected, none would be a miracle
                "faults_injected > 0 or $rate * $(units_of "$target") < 20"
                "$(few_faults "$target") or $(noticed_condition "$target" "$rate")")
    [ "$program" = changed ] || conditions+=('source_changed == 0')
    check_stats 2 "${conditions[@]}" || refuse_stats
}
