#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/model/run_model.sh [--deep]
#
# Check the models of the link, the mailbox, the conversation and the repair of a message with spin: in every order of what can happen, with every choice of
# faults, what is delivered is what was sent, in order, once; nothing leaves a log, or memory, before its receiver has it; a close ends with all that was sent
# received, or with a peer that leaves too; and on a wire that has done its worst, beside a process that has ended or failed, nothing waits for ever (weakly fair).
# Types of messages, states and the conversation's table are those of the code. Each bug that is put in on purpose has to be found, else the model proves nothing.
# Ends with "N passed, N failed, N skipped".
#
#   --deep   more messages and faults: a quarter of an hour and 8 GB more
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/model
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
memory=6000 # MB that a check may take
optimise=-O0 # most of these programs run for less time than it takes to optimise them

# States of the last check, and how long it took
note_of() {
    sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p; s/^pan: elapsed time \([0-9.]*\) .*/\1 s/p' "$1" | paste -sd, | sed 's/,/, /'
}

# verify MODEL [-DNAME=VALUE...]: status 0 if nothing is wrong. The tables are in $work.
verify() {
    local model=$1
    shift
    rm -f "$work"/pan* "$work"/*.trail
    (cd "$work" && cp "$here/$model.pml" . && spin -a "$@" "$model.pml" && gcc "$optimise" -w -DVECTORSZ=2048 -DMEMLIM="$memory" -DCOLLAPSE -DNFAIR=4 -o pan pan.c &&
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
    python3 "$here/tables.py" "$@" >"$work/tables.pml"
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
    check_bug "who has failed is asked" 'acceptance cycle' conversation -DRETURNS=0 -DDEATHS=1 -DBUG_FAILED_IS_ASKED
    check "conversation: one ends at any step, and is not waited for" verify conversation -DRETURNS=0 -DDEATHS=1 -DPROMPT
    check_bug "a BYE of who has failed is waited for, until the deadline" 'assertion violated' conversation -DRETURNS=0 -DDEATHS=1 -DPROMPT -DBUG_FAILED_IS_WAITED_FOR
    bug_in_table "a BYE that was lost is not said again" 'acceptance cycle' LEFT_LEAVING LEAVE_AGAIN NOTHING LEFT_LEAVING
    bug_in_table "who is back is not noticed" 'acceptance cycle' CLOSING_GONE BACK NOTHING CLOSING_GONE
    bug_in_table "coming back is not said" 'acceptance cycle' LEFT_GONE OPEN NOTHING OPEN_HERE
    bug_in_table "what can't be" 'assertion violated' CLOSING_HERE LEAVE NEVER CLOSING_LEAVING
}

mailbox() {
    check "mailbox: 3 messages, 2 attacks" verify mailbox -DATTACKS=2
    check "mailbox: 3 messages, 1 attack, 1 lost, 1 early timer" verify mailbox -DFAULTS=1 -DEARLY=1
    check "mailbox: 4 messages, 1 attack, old contents put back" verify mailbox -DMESSAGES=4 -DREPLAYS=1
    check "mailbox: 3 messages, 1 attack, 2 lost" verify mailbox -DFAULTS=2
    check "mailbox: 4 messages, from active messages to the box, 2 attacks, 1 early timer" verify mailbox -DMESSAGES=4 -DBY_AM=0 -DATTACKS=2 -DEARLY=1
    check "mailbox: 4 messages, nobody writes there, 3 early timers" verify mailbox -DMESSAGES=4 -DATTACKS=0 -DEARLY=3
}

mailbox_bugs() {
    check_bug "a box that is given away with its old key" 'assertion violated' mailbox -DATTACKS=0 -DBUG_KEY_REUSED
    check_bug "a header that is not bound to its place" 'assertion violated' mailbox -DBUG_HEADER_UNBOUND
    check_bug "one seal for both words of the first line" 'assertion violated' mailbox -DBUG_SEAL_ONE_KEY
    check_bug "a mark before what it stands for" 'assertion violated' mailbox -DATTACKS=0 -DBUG_MARK_FIRST
    check_bug "a sender that waits for no room" 'assertion violated' mailbox -DATTACKS=0 -DMESSAGES=4 -DBUG_NO_ROOM_NEEDED
    check_bug "a lap that begins before all has been taken" 'assertion violated' mailbox -DATTACKS=0 -DMESSAGES=4 -DBUG_REWIND_EARLY
    check_bug "a lap that is left after one look" 'assertion violated' mailbox -DATTACKS=0 -DMESSAGES=4 -DBUG_ONE_LOOK
    check_bug "a carrier that is changed too early" 'assertion violated' mailbox -DATTACKS=0 -DBY_AM=0 -DBUG_CARRIER_CHANGE
    check_bug "a frame in memory that nobody compares" 'assertion violated' mailbox -DBUG_PAYLOAD_BELIEVED
    check_bug "a sender that never says where it is" 'acceptance cycle' mailbox -DBUG_NO_SENT
}

repair() {
    local path way

    check "slots: 3 chunks, 1 attack, 2 faults" verify repair -DPATH=1 -DCHUNKS=3 -DATTACKS=1 -DFAULTS=2
    check "slots: 3 chunks, 2 attacks" verify repair -DPATH=1 -DCHUNKS=3 -DATTACKS=2 -DFAULTS=0
    check "stream: 3 chunks, 3 faults, 1 early timer" verify repair -DPATH=2 -DCHUNKS=3 -DFAULTS=3 -DEARLY=1
    check "fetched: 3 chunks, 3 faults, 1 early timer" verify repair -DPATH=3 -DCHUNKS=3 -DFAULTS=3 -DEARLY=1
    check "fetched, digests in the offer: 3 chunks, 3 faults" verify repair -DPATH=3 -DINLINE=1 -DCHUNKS=3 -DFAULTS=3
    check "stream: a chunk whose digest fits, 3 faults, 1 early timer" verify repair -DPATH=2 -DFORGES=1 -DFAULTS=3 -DEARLY=1
    check "stream: from memory that can't be read from afar, 3 faults" verify repair -DPATH=2 -DREMOTE=0 -DFAULTS=3
    check "stream: from a copy that may be damaged, 3 faults" verify repair -DPATH=2 -DCOPIED=1 -DFAULTS=3
    check "stream: 5 faults, up to the policy" verify repair -DPATH=2 -DFAULTS=5
    check "slots: S ends at any step, 1 attack" verify repair -DPATH=1 -DCHUNKS=3 -DATTACKS=1 -DDIES=1
    check "slots: R ends at any step, 1 attack" verify repair -DPATH=1 -DCHUNKS=3 -DATTACKS=1 -DDIES=2
    check "slots: the connection fails at any step, 1 attack" verify repair -DPATH=1 -DCHUNKS=3 -DATTACKS=1 -DFAILS=1
    for path in 2 3; do
        way=$([ "$path" -eq 2 ] && echo stream || echo fetched)
        check "$way: S ends at any step, 2 faults, 1 early timer" verify repair -DPATH="$path" -DCHUNKS=3 -DFAULTS=2 -DEARLY=1 -DDIES=1
        check "$way: R ends at any step, 2 faults, 1 early timer" verify repair -DPATH="$path" -DCHUNKS=3 -DFAULTS=2 -DEARLY=1 -DDIES=2
        check "$way: the connection fails at any step, 2 faults, 1 early timer" verify repair -DPATH="$path" -DCHUNKS=3 -DFAULTS=2 -DEARLY=1 -DFAILS=1
    done
    check "fetched: the connection fails, and fetches with it, some bytes having come" verify repair -DPATH=3 -DFAULTS=2 -DEARLY=1 -DFAILS=1 -DTORN=1
    check_bug "a fetch that failed is not looked at" 'assertion violated' repair -DPATH=3 -DEARLY=1 -DFAILS=1 -DTORN=1 -DBUG_TORN_NOT_LOOKED_AT
}

repair_bugs() {
    check_bug "a chunk that nobody compares" 'assertion violated' repair -DPATH=2 -DBUG_BELIEVED
    check_bug "a root that nobody compares" 'assertion violated' repair -DPATH=2 -DFORGES=1 -DBUG_NO_ROOT
    check_bug "a chunk that is overwritten when it was right" 'assertion violated' repair -DPATH=3 -DFAULTS=3 -DEARLY=1 -DBUG_OVERWRITTEN
    check_bug "memory that is given back with FIN, though UCX reads it" 'assertion violated' repair -DPATH=3 -DFAULTS=2 -DBUG_FREED_WITH_FIN
    check_bug "a message that ends while it is being read" 'assertion violated' repair -DPATH=3 -DFAULTS=2 -DBUG_END_WHILE_READ
    check_bug "an acknowledgement that is the mark" 'assertion violated' repair -DPATH=1 -DATTACKS=1 -DBUG_ACK_IS_MARK
    check_bug "a slot that is marked before it is filled" 'assertion violated' repair -DPATH=1 -DBUG_MARK_FIRST
    check_bug "a sender that always takes itself for merely slow" 'acceptance cycle' repair -DPATH=1 -DCHUNKS=3 -DATTACKS=1 -DBUG_MERELY_SLOW
    check_bug "a sender that does not ask" 'acceptance cycle' repair -DPATH=2 -DBUG_NO_QUERY
    check_bug "a receiver that does not ask" 'acceptance cycle' repair -DPATH=2 -DBUG_NO_ASK
    check_bug "a ladder of one rung" 'acceptance cycle' repair -DPATH=2 -DREMOTE=0 -DBUG_NO_NEXT_RUNG
    check_bug "a failure after which what was being read is waited for" 'acceptance cycle' repair -DPATH=3 -DFAULTS=0 -DFAILS=1 -DBUG_READ_FAILED
}

deep() {
    memory=14000
    optimise=-O1
    check "link: 5 messages, 3 faults" verify link -DMESSAGES=5 -DFAULTS=3 -DEARLY=1
    check "link: 4 messages, 4 faults" verify link -DMESSAGES=4 -DFAULTS=4 -DEARLY=1
    check "conversation: both come back, 1 message, 2 faults" verify conversation -DFAULTS=2
    check "mailbox: 3 messages, 1 attack, 2 early timers" verify mailbox -DEARLY=2
    check "mailbox: 4 messages, 1 attack, 1 early timer" verify mailbox -DMESSAGES=4 -DEARLY=1
    check "mailbox: 4 messages, 2 attacks" verify mailbox -DMESSAGES=4 -DATTACKS=2
    check "mailbox: 3 messages, 3 attacks" verify mailbox -DATTACKS=3
    check "slots: 3 chunks, 2 attacks, 1 fault, 1 early timer" verify repair -DPATH=1 -DCHUNKS=3 -DATTACKS=2 -DEARLY=1
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
    check "conversation: one ends at any step, 2 faults" verify conversation -DRETURNS=0 -DDEATHS=1 -DFAULTS=2
    check "conversation: one ends at any step, in silence, 2 faults" verify conversation -DRETURNS=0 -DDEATHS=1 -DFAULTS=2 -DNOTICED=0
    conversation_bugs
    mailbox
    mailbox_bugs
    repair
    repair_bugs
    [ "${1:-}" != --deep ] || deep
    end_of_checks
}

main "$@"
