#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/model/run_model.sh [--deep]
#
# Check the models of the link and of the conversation with spin: in every order of what can happen, with every choice of faults, messages are delivered as
# they were sent, in order, once; nothing leaves a log before its receiver has it; a close ends with all that was sent received, or with a peer that leaves too;
# and on a wire that has done its worst nothing waits for ever (weakly fair). The table of the conversation is that of the code. Each bug that is put
# in on purpose has to be found, else the model proves nothing. Ends with "N passed, N failed, N skipped".
#
#   --deep   more messages and faults: 10 minutes and 8 GB more
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/model
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
memory=6000 # MB that a check may take

# States of the last check, and how long it took
note_of() {
    sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p; s/^pan: elapsed time \([0-9.]*\) .*/\1 s/p' "$1" | paste -sd, | sed 's/,/, /'
}

# verify MODEL [-DNAME=VALUE...]: status 0 if nothing is wrong. The table is in $work.
verify() {
    local model=$1
    shift
    rm -f "$work"/pan* "$work"/*.trail
    (cd "$work" && cp "$here/$model.pml" . && spin -a "$@" "$model.pml" && gcc -O1 -w -DVECTORSZ=2048 -DMEMLIM="$memory" -DCOLLAPSE -DNFAIR=4 -o pan pan.c &&
        ./pan -a -f -m1000000) >"$work/pan.out" 2>&1
    cat "$work/pan.out"
    ! grep -qE 'max search depth too small|out of memory|memory limit' "$work/pan.out" && grep -q 'errors: 0$' "$work/pan.out"
}

# finds WHAT MODEL [-D...]: spin says so, of an assertion or of something that waits for ever
finds() {
    local what=$1
    shift
    ! verify "$@" && grep -q "^pan:1: $what" "$work/pan.out"
}

table() {
    python3 "$here/tables.py" "$@" >"$work/conversation_table.pml"
}

check_bug() {
    check "found: $1" finds "$2" "${@:3}"
}

link_bugs() {
    check_bug "a log that does not keep what it should" 'assertion violated' link -DBUG_NO_LOG
    check_bug "a sender that never says what it has sent" 'acceptance cycle' link -DBUG_NO_SENT
    check_bug "a receiver that does not answer that" 'acceptance cycle' link -DBUG_SENT_IGNORED
    check_bug "an acknowledgement of what is behind a gap" 'assertion violated' link -DBUG_ACKS_HELD
    check_bug "what was there already is delivered again" 'assertion violated' link -DBUG_REPEATED_IS_NEW
    check_bug "what is behind a gap is delivered at once" 'assertion violated' link -DBUG_ORDER
    check_bug "a payload that nobody compares" 'assertion violated' link -DBUG_PAYLOAD_BELIEVED
}

# bug_in_table LABEL WHAT STATE EVENT ACTION NEXT
bug_in_table() {
    table --change "${@:3}"
    check_bug "in the table: $1" "$2" conversation
    table
}

conversation_bugs() {
    check_bug "BYE without a question" 'assertion violated' conversation -DRETURNS=0 -DBUG_BYE_AT_ONCE
    check_bug "BYE is not said again" 'acceptance cycle' conversation -DRETURNS=0 -DBUG_BYE_NOT_REPEATED
    check_bug "BYE is not asked for" 'acceptance cycle' conversation -DRETURNS=0 -DBUG_BYE_NOT_ASKED_FOR
    bug_in_table "a BYE that was lost is not said again" 'acceptance cycle' LEFT_LEAVING LEAVE_AGAIN NOTHING LEFT_LEAVING
    bug_in_table "who is back is not noticed" 'acceptance cycle' CLOSING_GONE BACK NOTHING CLOSING_GONE
    bug_in_table "coming back is not said" 'acceptance cycle' LEFT_GONE OPEN NOTHING OPEN_HERE
    bug_in_table "what can't be" 'assertion violated' CLOSING_HERE LEAVE NEVER CLOSING_LEAVING
}

deep() {
    memory=14000
    check "link: 5 messages, 3 faults" verify link -DMESSAGES=5 -DFAULTS=3 -DEARLY=1
    check "link: 4 messages, 4 faults" verify link -DMESSAGES=4 -DFAULTS=4 -DEARLY=1
    check "conversation: both come back, 1 message, 2 faults" verify conversation -DFAULTS=2
}

main() {
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    ''|--deep) ;;
    *) die "unknown argument $1 (--help)" ;;
    esac
    table
    check "link: 3 messages, 3 faults" verify link -DMESSAGES=3 -DFAULTS=3
    check "link: 3 messages, 2 faults, 3 early timers" verify link -DMESSAGES=3 -DFAULTS=2 -DEARLY=3
    link_bugs
    check "conversation: 2 messages each, 2 faults" verify conversation -DRETURNS=0 -DSENDS=2 -DFAULTS=2
    check "conversation: 1 message each, 1 fault, 2 early timers" verify conversation -DRETURNS=0 -DEARLY=2
    check "conversation: a close by force" verify conversation -DRETURNS=0 -DFORCED=1 -DFAULTS=2
    check "conversation: both come back, 1 fault" verify conversation
    conversation_bugs
    [ "${1:-}" != --deep ] || deep
    end_of_checks
}

main "$@"
