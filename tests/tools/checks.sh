# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Counting what scripts of tests check: sourced, after tools/common.sh. Makes $work, a folder that goes with the script, unless that has a trap of its own
# for its end; sets passed, failed and skipped.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# note_of LOG: what `check` adds to the label of what went well. Nothing, unless the script defines another one.
note_of() {
    :
}

# check LABEL COMMAND...: the command must succeed; it runs with errexit off, so it is one command or a chain of &&. What takes a second or more is told.
check() {
    local label=$1 note begin seconds
    begin=$(clock)
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        note=$(note_of "$work/log")
        seconds=$(since "$begin")
        [[ $seconds == 0.* ]] || note="${note:+$note, }$seconds s"
        say "ok   $label${note:+: $note}"
    else
        failed=$((failed + 1))
        say "FAIL $label"
        tail -n 15 "$work/log" | cut -c1-200
    fi
}

# skip LABEL REASON
skip() {
    skipped=$((skipped + 1))
    say "skip $1: $2"
}

# says TEXT STATUS COMMAND...: the command ends with STATUS and says TEXT.
says() {
    local text=$1 expected=$2 status=0
    shift 2
    "$@" >"$work/said" 2>&1 || status=$?
    cat "$work/said"
    [ "$status" -eq "$expected" ] && grep -qF -- "$text" "$work/said"
}

# end_of_checks: the last line. Status 1 if a check failed.
end_of_checks() {
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
