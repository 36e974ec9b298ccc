#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tools/run_job.sh [BUILD_DIR]
#
# uci_run, uci_info --check and UCI_REQUIRE: do they start the right job, find every rank without UCI, tell what was damaged, and
# end with the exit status that their manuals say? Ends with "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

tools=$(realpath "${1:-$uci_root/build}")/tools
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
library=${tools%/tools}/libucx_integrity.so
limited=("$uci_root/tests/watchdog.sh" 60)
unset "${!UCI_@}" LD_PRELOAD UCX_PLUGIN_PATH
export XDG_CACHE_HOME=$work/cache UCI_CONFIG_FILE='' UCX_TLS=posix,self OMPI_MCA_rmaps_base_oversubscribe=1

compile_pairs() {
    local mpi
    for mpi in openmpi mpich; do
        "mpicc.$mpi" -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-stringop-overflow "$uci_root/tests/tools/pairs.c" -o "$work/pairs.$mpi"
        "mpicc.$mpi" -std=gnu11 -O1 -w -shared -fPIC "$uci_root/tests/tools/pairs.c" -o "$work/pairs.$mpi.so"
    done
    gcc -std=gnu11 -O1 -Wall -Wextra -Werror "$uci_root/tests/tools/opener.c" -o "$work/opener" -ldl
    gcc -std=gnu11 -O2 -shared -fPIC -o "$work/libucx_integrity_as_module.so" "$uci_root/tests/attach/as_module.c"
}

# run_pairs MPI RANKS [OPTION...] [-- ARGUMENT]: a job whose summary is in $work/job.json, in a folder of its own. In front of its program comes $wrapper.
wrapper=()
run_pairs() {
    local mpi=$1 ranks=$2 options=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    rm -rf "$work/job" "$work/job.json"
    "${limited[@]}" "$tools/uci_run" -n "$ranks" --folder "$work/job" --json "$work/job.json" ${options[@]+"${options[@]}"} \
        ${wrapper[@]+"${wrapper[@]}"} "$work/pairs.$mpi" "${@:2}"
}

# summary CONDITION: a Python expression over the JSON of the last job.
summary() {
    python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))
assert eval(sys.argv[2], {}, job), {name: job[name] for name in job if name in sys.argv[2]}' "$work/job.json" "$1"
}

clean_job() {
    says "Nothing was damaged: 40 messages" 0 run_pairs "$1" 4 --require && summary 'messages_sent == messages_received == 40' &&
        summary 'ranks == ranks_with_uci == 4 and not ranks_without_messages and damaged_chunks == 0' &&
        summary 'bytes_sent == 20 * (2 ** 20 + 100)' && [ "$(find "$work/job" -name 'stats.*.json' | wc -l)" -eq 4 ]
}

repaired_job() {
    UCI_FAULT=rate=0.1,peer=3 says "on purpose (UCI_FAULT); all were repaired" 122 run_pairs "$1" 4 && summary 'by_verdict == {"repaired": records}' &&
        summary 'worst_ranks[0][0].startswith("rank 3 (") and len(worst_ranks) == 1 and counters["faults_injected"] > 0' &&
        summary 'worst_pairs[0][0].startswith("rank 2 (") and exit_code == 122 and job_status == 0'
}

unrepaired_job() {
    UCI_ON_ERROR=$1 UCI_FAULT=rate=1,target=payload+repair,min=1m says "could not be repaired" 123 run_pairs openmpi 2 &&
        summary 'by_verdict["not repaired"] > 0 and (job_status == 0) == '"$2"
}

# The job fills the disk, and fails: how it ended is told all the same
full_disk() {
    local status=0
    mkdir "$work/full"
    mount -t tmpfs -o size=8m none "$work/full"
    says "exit status 3" 3 "${limited[@]}" "$tools/uci_run" -n 2 --folder "$work/full/job" "$work/pairs.openmpi" 3 "$work/full/zeros" || status=$?
    umount "$work/full"
    return $status
}

# one_verdict LEVEL STATUS TEXT MPI [OPTION...] [-- ENDING]: a job that does just one thing wrong. uci_run, its exit status, uci_report and uci_top
# say the same of it: the worst level and the same sentences, the text among them; and only what is intact has a green page.
one_verdict() {
    says "$3" "$2" run_pairs "$4" 2 "${@:5}" && summary "level == '$1' and exit_code == $2" &&
        "$tools/uci_report" --json "$work/job" >"$work/report.json" && "$tools/uci_top" --once --json "$work/job" >"$work/top.json" &&
        "$tools/uci_report" "$work/job" -o "$work/page.html" && python3 - "$work" <<'END'
import json, sys
job, report, top = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("job", "report", "top"))
verdict, page = report["verdict"], open(f"{sys.argv[1]}/page.html").read()
assert (job["level"], job["verdict"]) == (verdict["level"], verdict["sentence"]), (job["verdict"], verdict)
assert ('<header class="banner clean">' in page) == (verdict["level"] == "clean") == ("Intact</p>" in page)
assert "UCI_CHECK_SOURCES=on" not in str(verdict["next"]) or not report["statistics"]["sums"]["sources_checked"], verdict["next"]
levels = {one["level"] for one in top["jobs"]}  # it knows neither of exit statuses, nor of messages under way, nor of ranks that left nothing
assert levels <= {verdict["level"], *{"failed": ("clean",), "partly": ("clean",), "unprotected": ("unknown", "clean")}.get(verdict["level"], ())}, levels
END
}

# by_limit LEVEL...: the same of a job that would never end
by_limit() {
    local limited=(timeout --preserve-status 5)
    one_verdict "$@"
}

# in_shell COMMAND...: of its own
in_shell() (
    "$@"
)

# Five jobs of which two stay, and the first, to which something was added
runs_stay() {
    local number first
    mkdir "$work/runs" && cd "$work/runs"
    for number in 1 2 3 4 5; do
        "$tools/uci_run" --keep 2 -- true >/dev/null 2>&1 || return 1
        [ "$number" -gt 1 ] || { first=$(ls uci-runs) && touch "uci-runs/$first/my notes"; }
    done
    [ "$(find uci-runs -mindepth 1 -maxdepth 1 | wc -l)" -eq 4 ] && [ -e "uci-runs/$first/my notes" ]
}

# A uci_run of another container has the same number, and has begun in the same second: exec keeps the number, and the second is one of the next ones
folder_of_its_own() {
    mkdir "$work/alike" && cd "$work/alike"
    # shellcheck disable=SC2016
    bash -c 'for later in 0 1 2 3 4; do mkdir -p "uci-runs/$(date -d "$later seconds" +%Y%m%d-%H%M%S)-$$"; done; exec "$@"' _ "$tools/uci_run" -- true || return
    find uci-runs -name ended.json | grep -E '^uci-runs/[0-9]+-[0-9]+-[0-9]+-2/ended.json$'
}

# In a folder that users share: `uci-runs` is another user's, who has put a link to a file of ours where the end is noted
others_were_first() {
    mkdir -p "$work/shared/uci-runs" "$work/shared/own" && cd "$work/shared"
    chown 65534 uci-runs
    echo ours >victim
    ln -s ../victim own/ended.json.room
    "$tools/uci_run" -- true >/dev/null 2>&1 && [ -z "$(ls uci-runs)" ] && [ "$(find "uci-runs.$(id -u)" -name ended.json | wc -l)" -eq 1 ] &&
        "$tools/uci_run" --folder own -- true >/dev/null 2>&1 && [ "$(cat victim)" = ours ] && [ -f own/ended.json ] && [ ! -L own/ended.json ]
}

# quick_job REDIRECTION [OPTION...]: one that ends with status $ends, or what the options say
quick_job() {
    rm -rf "$work/quick"
    bash -c "exec \"\$@\" $1" _ "$tools/uci_run" --attach preload --folder "$work/quick" "${@:2}" -- sh -c "exit ${ends:-0}"
}

# Who asked for JSON that can't be written hears of it; the job's own status comes first, and the summary all the same
lost_output() {
    ends=7 says "cannot write to standard output: No space left" 7 quick_job ">/dev/full" --json - && grep -q "UCI summary" "$work/said" &&
        says "cannot write to standard output: Bad file" 125 quick_job ">&-" --json - && grep -q "UCI summary" "$work/said" &&
        says "cannot write /no/such/file" 125 quick_job "" --json /no/such/file &&
        says "cannot write to standard output" 125 quick_job ">/dev/full" --dry-run &&
        { ends=7 quick_job "2>/dev/full" || [ $? -eq 7 ]; } &&
        quick_job "2>&-" --json - >"$work/closed.json" && python3 -m json.tool "$work/closed.json"
}

# What comes in front of jq in the manual
documented_json() {
    local line
    line=$(sed -n 's/^\.Dl \(.*\); jq .*/\1/p' "$uci_root/docs/man/uci_run.1")
    mkdir "$work/manual" && cd "$work/manual" && ln -s "$work/pairs.mpich" program && PATH=$tools:$PATH bash -c "$line" && python3 -m json.tool job.json
}

# The name of a file is a user's
escapes_in_name() {
    mkdir "$work/escapes" && touch "$work/escapes/stats."$'\e[31m.json' && PYTHONPATH=$tools python3 -c 'import sys, uci_summary
print(*uci_summary.Summary(sys.argv[1]).unreadable())' "$work/escapes" | grep -F 'stats.\x1b[31m.json'
}

# The program's own arguments, also where the first is "--"
own_arguments() {
    "$tools/uci_run" -n 2 --dry-run "$work/pairs.mpich" -- --signatures 2>/dev/null | grep -F "$work/pairs.mpich -- --signatures" &&
        "$tools/uci_run" -n 2 --dry-run -- "$work/pairs.mpich" -- a 2>/dev/null | grep -F "$work/pairs.mpich -- a"
}

unsaid() {
    "$tools/uci_info" --check >/dev/full
}

# That there be no live files is for users to say
live_off() {
    says "UCI_LIVE off" 0 "$tools/uci_run" -n 2 --dry-run -x UCI_LIVE=off "$work/pairs.mpich" && ! grep "not used" "$work/said" &&
        UCI_LIVE=off says "UCI_LIVE off" 0 "$tools/uci_run" -n 2 --dry-run -x UCI_LIVE "$work/pairs.mpich"
}

# What does not know its MPI may start MPICH's ranks
nolocal_of_script() {
    says "MPIR_CVAR_NOLOCAL=1" 0 "$tools/uci_run" --attach preload --dry-run -- sh -c env &&
        MPIR_CVAR_NOLOCAL=0 says "" 0 "$tools/uci_run" --attach preload --dry-run -- sh -c env && ! grep NOLOCAL "$work/said"
}

# In scripts empty values are of variables that are not set: nothing is started
bad_values() {
    local values
    for values in "--folder=|its value is empty" "--hosts=|names no host" "--still=nan|expected seconds" "-x==3|'=3' names no variable"; do
        says "${values#*|}" 125 "$tools/uci_run" -n 2 --dry-run "${values%%|*}" "$work/pairs.mpich" || return
    done
}

no_folder() {
    local -x PATH=/usr/bin:$PATH # pyenv's python3 says something of its own
    mkdir "$work/gone" && cd "$work/gone" && rmdir "$work/gone" && says "the current folder is gone" 125 "$tools/uci_run" -n 2 "$work/pairs.mpich" &&
        says "the current folder is gone" 125 "$tools/uci_run" -n 2 --folder here "$work/pairs.mpich"
}

# with NAME=VALUE COMMAND...
with() {
    local -x "${1%%=*}=${1#*=}"
    "${@:2}"
}

check_verdicts() {
    local mpi=$1 killed=9
    [ "$mpi" = mpich ] || killed=137
    check "one verdict: nothing is damaged, $mpi" one_verdict clean 0 "Nothing was damaged: 20 messages" "$mpi" --require
    check "one verdict: all is repaired, $mpi" with UCI_FAULT=rate=0.3,seed=1 one_verdict repaired 122 "on purpose (UCI_FAULT); all were repaired" "$mpi"
    check "one verdict: UCI's own headers are damaged, $mpi" with UCI_FAULT=rate=0.5,target=ack one_verdict repaired 122 "of UCI's own headers" "$mpi"
    check "one verdict: damage stays, $mpi" with UCI_ON_ERROR=log with UCI_FAULT=rate=1,target=payload+repair,min=1m \
        one_verdict lost 123 "could not be repaired" "$mpi"
    check "one verdict: the program changes its buffers, $mpi" with UCI_CHECK_SOURCES=on with UCI_PATH=get \
        with UCX_TLS=posix,cma,self one_verdict source 121 "1 of 21 messages was changed by the program" "$mpi" -- overwrite
    check "one verdict: types do not match, $mpi" one_verdict types 117 "1 message was received as other types" "$mpi" --signatures -- types
    check "one verdict: UCI_MODE=off, and faults, $mpi" with UCI_MODE=off with UCI_FAULT=rate=1 one_verdict unknown 0 "UCI_MODE was off" "$mpi"
    check "one verdict: a rank is killed, $mpi" one_verdict failed "$killed" "ended without a word" "$mpi" -- kill
    check "one verdict: MPI_Abort, $mpi" one_verdict failed 3 "The job failed: exit status 3" "$mpi" -- abort
    check "one verdict: an error of MPI, $mpi" one_verdict failed 6 "The job failed: exit status 6" "$mpi" -- error
    check "one verdict: the program fails, $mpi" one_verdict failed 7 "The job failed: exit status 7" "$mpi" -- 7
    check "one verdict: it hangs, and is ended, $mpi" by_limit failed 143 "had then waited" "$mpi" -- hang
    check "one verdict: a rank never comes to a barrier, $mpi" by_limit failed 143 "ended from outside, by SIGTERM" "$mpi" -- absent
    check "one verdict: a rank never comes to a broadcast, $mpi" one_verdict partly 0 "1 message was sent and never received" "$mpi" -- unheard
    check "one verdict: a rank leaves nothing, $mpi" with UCI_LIVE=off one_verdict unknown 0 "Of 1 rank (1) nothing is known" "$mpi" -- leave
    check "one verdict: and is required, $mpi" with UCI_LIVE=off one_verdict unprotected 120 "Of 1 rank (1) nothing is known" "$mpi" --require -- leave
}

own_status() {
    says "exit status 7" 7 run_pairs "$1" 2 -- 7
}

# pml/ob1 never calls UCX, whatever is preloaded: each process says so, and with UCI_REQUIRE=on fails, but not before its output is written
bypassed() {
    one_verdict "$1" "$2" "Nothing was verified. MPI's messages do not go through UCX: Open MPI's pml is ob1;" openmpi "${@:3}" --mpirun-args '--mca pml ob1' &&
        grep -q 'UCI WARN  rank [01] .* is not protected by UCI' "$work/said" && summary 'messages_sent == 0 and ranks_without_messages'
}

# Debian's default, without uci_run; and what is printed is there
bypassed_by_default() {
    local line=("${limited[@]}" mpirun.openmpi --allow-run-as-root -np 2 --mca pml ob1 -x "LD_PRELOAD=$library")
    says "pml is ob1" 0 "${line[@]}" "$work/pairs.openmpi" &&
        [ "$(grep -c 'UCI WARN  rank 0 .* is not protected by UCI' "$work/said")" -eq 1 ] && says "it fails for that" 1 "${line[@]}" -x UCI_REQUIRE=on "$work/pairs.openmpi" &&
        grep -q '^rank [01] of 2$' "$work/said" && ! "${line[@]}" -x UCI_MODE=off "$work/pairs.openmpi" 2>&1 | grep UCI
}

without_uci() {
    says "Nothing was verified: no rank had UCI" "$1" "$tools/uci_run" "${@:2}" --folder "$work/none" -- true && rm -r "$work/none"
}

# Without counters that survive, as these have left the job behind their backs
one_silent() {
    UCI_LIVE=off says "Of 1 rank (1) nothing is known: without UCI" "$1" run_pairs mpich 2 "${@:2}" -- leave && summary 'ranks_without_statistics == [1]'
}

killed_job() {
    local status=0
    run_pairs "$1" 2 -- kill >"$work/said" 2>&1 || status=$?
    cat "$work/said"
    summary "(1 in ranks_without_statistics or killed) and job_status == exit_code == $status != 0" &&
        grep -q 'ended before they could tell\|ended without a word' "$work/said"
}

# Its counters survive, and uci_top reads them
killed_is_counted() {
    run_pairs mpich 2 -- kill >"$work/said" 2>&1 && return 1
    cat "$work/said"
    summary 'not ranks_without_statistics and any(name.startswith("rank 1 (") for name in killed) and messages_received == 20'
}

# A record is made by either side: of UCI_CHECK_SOURCES by the sender
sender_record() {
    mkdir "$work/sent" && printf '%s\n' >"$work/sent/events.a.1.jsonl" \
        '{"schema": 2, "verdict": "source changed", "cause": "source_changed", "role": "sender", "rank": 0, "host": "a", "peer_rank": 1, "peer_host": "b"}' &&
        PYTHONPATH=$tools python3 -c 'import sys, uci_summary
job = uci_summary.Summary(sys.argv[1]).record([])
assert job["worst_pairs"] == [("rank 0 (a) -> rank 1 (b)", 1)] and job["worst_ranks"] == [("rank 1 (b)", 1)], job
assert dict(job["worst_hosts"]) == {"a": 1, "b": 1} and job["by_cause"] == {"source_changed": 1}, job' "$work/sent"
}

# summary_of LATE NOW [COUNTERS]: what a job that has changed so many chunks, as its senders and its receivers count, says of itself
summary_of() {
    rm -rf "$work/changed" && mkdir "$work/changed" && printf '%s\n' >"$work/changed/stats.a.1.json" \
        '{"schema": 1, "rank": 0, "host": "a", "pid": 1, "messages_sent": 9, "messages_received": 9, "mismatched_chunks": '"$2"',
          "source_changed": '"$2"', "source_changed_late": '"$1${3:+, $3}"'}' &&
        PYTHONPATH=$tools python3 -c 'import pathlib, sys, uci_summary
from jobreport.ending import note_end
note_end(pathlib.Path(sys.argv[1]), 0, 1, False)
summary = uci_summary.Summary(sys.argv[1])
print(summary.exit_code(), *(": ".join(line) for line in summary.lines()), sep="\n")' "$work/changed"
}

# What the sender alone has seen is said as well: the receiver has it as it was
changed_at_sender() {
    summary_of 39 0 >"$work/said" && cat "$work/said" && grep -qx 121 "$work/said" &&
        grep -q '^verdict: 39 parts of messages were changed by the program while being sent; nothing else was damaged' "$work/said" &&
        grep -qx 'changed: 39 parts of messages, by the program, while being sent; 0 of them arrived as they were after that' "$work/said" &&
        summary_of 0 0 >"$work/said" && grep -qx 0 "$work/said" && ! grep -q '^changed' "$work/said"
}

# What passed through is named, and bytes if they were counted
passed_through() {
    summary_of 0 0 '"passthrough_messages": 1, "passthrough_put": 12, "passthrough_get": 0, "passthrough_bytes": 4096' >"$work/said" &&
        grep -q 'not verified: 1 message, 12 puts (4 KiB)\.$' "$work/said" &&
        summary_of 0 0 '"passthrough_messages": 2' >"$work/said" &&
        grep -q 'not verified: 2 messages (bytes not counted)\.$' "$work/said" &&
        summary_of 0 0 '"passthrough_put": 0, "passthrough_bytes": 0' >"$work/said" && grep -q 'not verified: none\.$' "$work/said"
}

# A program that opens its MPI has it out of the global scope, where what stands in between would not find it
opened_mpi() {
    rm -rf "$work/job"
    says "1 do not match" 117 "${limited[@]}" "$tools/uci_run" --mpi "$1" --signatures -n 2 --folder "$work/job" "$work/opener" "$work/pairs.$1.so" types &&
        rm -rf "$work/job" && says "1 do not match" 117 "${limited[@]}" "$tools/uci_run" --signatures=all --folder "$work/job" -- "mpirun.$1" "${@:2}" -np 2 \
            "$work/opener" "$work/pairs.$1.so" types
}

# One that is linked with it needs no more, and gets none
linked_mpi() {
    "$tools/uci_run" --signatures -n 2 --dry-run "$work/pairs.$1" 2>"$work/how" | grep "libuci_mpi_$1.so" >"$work/line" && ! grep 'libmpi[^ ]*\.so' "$work/line"
}

# By hand: what is missing is told before anything of MPI is used
opened_by_hand() {
    local companion=${tools%/tools}/mpi/libuci_mpi_$1.so
    says "libuci_mpi: this program opens its MPI itself" 134 env LD_PRELOAD="$library:$companion" "$work/opener" "$work/pairs.$1.so"
}

# Each of the programs gets its variables
several_programs() {
    rm -rf "$work/job"
    says "40 messages" 0 "${limited[@]}" "$tools/uci_run" --folder "$work/job" -- "mpirun.$1" "${@:2}" -np 2 "$work/pairs.$1" : -np 2 "$work/pairs.$1"
}

# run_contained RANKS [OPTION...] [-- ARGUMENT]: as run_pairs, under MPICH; each rank is process 1 of a pid namespace of its own, on one host.
run_contained() {
    local wrapper=(unshare -pf --mount-proc)
    UCX_TLS=tcp,self MPIR_CVAR_NOLOCAL=1 run_pairs mpich "$1" --mpi mpich "${@:2}"
}

in_containers() {
    says "$1" "$2" run_contained 4 --require "${@:3}" && ! grep -E 'UCI (WARN|ERROR)' "$work/said" &&
        summary 'ranks == ranks_with_uci == 4 and not ranks_without_messages and not killed and messages_sent == messages_received == 40' &&
        [ "$(find "$work/job" -name 'stats.*.1.[0-3].json' | wc -l)" -eq 4 ] && [ "$(find "$work/job" -name '*.live' | wc -l)" -eq 4 ]
}

# Also of damage, and of calls
damaged_in_containers() {
    UCI_LOG_LEVEL=error UCI_FAULT=rate=0.3,seed=1 in_containers "all were repaired" 122 --profile &&
        summary 'records == by_verdict["repaired"] > 0 and counters["repaired_chunks"] >= records' &&
        [ "$(find "$work/job" -name 'calls.*.1.[0-3]' | wc -l)" -eq 4 ]
}

# The other rank's counters are not taken for its
left_container() {
    says "1 process still runs" 0 run_contained 2 -- leave && summary 'not ranks_without_statistics and messages_received == 20'
}

# What is printed can be pasted
pasted() {
    "$tools/uci_run" -n 2 --dry-run --folder "$work/paste d" -x 'A=b c' "$work/pairs.$1" >"$work/line" 2>"$work/how" &&
        [ ! -e "$work/paste d" ] && grep -q "mpirun.$1 " "$work/line" && mkdir "$work/paste d" &&
        "${limited[@]}" bash "$work/line" && [ "$(find "$work/paste d" -name 'stats.*.json' | wc -l)" -eq 2 ]
    rm -rf "$work/paste d"
}

# What a rank is told of the key, in $work/told, and that it is what it should be while the job runs
sealed_job() {
    rm -rf "$work/job"
    # shellcheck disable=SC2016 # the job's shell shall see them
    "$tools/uci_run" --seal"$1" --folder "$work/job" "${@:2}" -- bash -c '
        [ "$(stat -c "%a %u" "$UCI_KEY_FILE")" = "600 $(id -u)" ] && grep -qxE "[0-9a-f]{64}" "$UCI_KEY_FILE" &&
            cat "$UCI_KEY_FILE" >"$TOLD.key" && env >"$TOLD.env" && { cat /proc/[0-9]*/cmdline >"$TOLD.args" 2>/dev/null || true; }' >/dev/null 2>"$work/said" || { cat "$work/said"; return 1; }
}

# The key is in no environment and no command line, and gone at the end
key_is_kept() {
    export TOLD=$work/told
    sealed_job "" && grep -qx UCI_SEAL=encrypt "$TOLD.env" && grep -qx "UCI_KEY_FILE=$work/job/key" "$TOLD.env" && [ ! -e "$work/job/key" ] &&
        ! grep -qF "$(cat "$TOLD.key")" "$TOLD.env" "$TOLD.args" "$work/said" && ! grep -rqF "$(cat "$TOLD.key")" "$work/job" || return 1
    mv "$TOLD.key" "$TOLD.first"
    sealed_job "=sign" --seal-scope all && grep -qx UCI_SEAL=sign "$TOLD.env" && grep -qx UCI_SEAL_SCOPE=all "$TOLD.env" &&
        ! cmp -s "$TOLD.key" "$TOLD.first"
}

own_key_stays() {
    (umask 077 && tr '0-9' 'a' <"$work/told.first" >"$work/own.key")
    UCI_KEY_FILE=$work/own.key sealed_job "" && cmp "$work/told.key" "$work/own.key" && [ ! -e "$work/job/key" ]
}

# A key that somebody has put there is not ours
planted_key() {
    rm -rf "$work/job" && mkdir "$work/job" && echo planted >"$work/job/key" &&
        says "is there already" 125 "$tools/uci_run" --seal --folder "$work/job" -- true && grep -qx planted "$work/job/key"
}

terminated_has_no_key() {
    rm -rf "$work/job"
    "$tools/uci_run" --seal --folder "$work/job" -- bash -c 'echo started; exec sleep 60' >"$work/said" 2>&1 &
    local pid=$!
    for _ in {1..100}; do
        grep -q started "$work/said" && break
        sleep 0.1
    done
    [ -s "$work/job/key" ] && kill -TERM "$pid" && { wait "$pid" || true; } && [ ! -e "$work/job/key" ]
}

# A batch system warns, then the connection breaks: the job hears of both, its key goes, and its end is told
hung_up() {
    local pid
    rm -rf "$work/job" "$work/warned"
    # shellcheck disable=SC2016 # for the job's shell
    WARNED=$work/warned setsid "$tools/uci_run" --seal --folder "$work/job" -- bash -c 'trap "touch $WARNED" USR1; echo started
        until [ -e "$WARNED" ]; do sleep 0.1; done; exec sleep 60' >"$work/said" 2>&1 &
    pid=$!
    until grep -q started "$work/said"; do sleep 0.1; done
    kill -USR1 "$pid"
    until [ -e "$work/warned" ]; do sleep 0.1; kill -0 "$pid" || return 1; done
    kill -HUP -- "-$pid"
    wait "$pid"
    [ $? -eq 129 ] && grep -q "ended from outside, by SIGHUP" "$work/said" && [ ! -e "$work/job/key" ] && [ -e "$work/job/ended.json" ]
}

# What is printed makes a key, and removes it
pasted_seal() {
    # shellcheck disable=SC2016
    "$tools/uci_run" --seal --dry-run --folder "$work/paste d" -- sh -c 'grep -cxE "[0-9a-f]{64}" "$UCI_KEY_FILE"' >"$work/line" 2>"$work/how" &&
        [ ! -e "$work/paste d" ] && [ "$(bash "$work/line")" = 1 ] && [ -d "$work/paste d" ] && [ ! -e "$work/paste d/key" ]
    rm -rf "$work/paste d"
}

# info TEXT STATUS [NAME=VALUE...]
info() {
    says "$1" "$2" env "${@:3}" "$tools/uci_info" --check
}

# What it asks is no job that uci_top and a monitor should know
info_leaves_nothing() {
    env LD_PRELOAD="$library" UCI_LIVE="$work/info-live" UCI_STATS="$work/info-stats" "$tools/uci_info" --check && ! ls -d "$work"/info-*
}

info_json() {
    env LD_PRELOAD="$library" UCI_CHUNK_SIZE=8k "$tools/uci_info" --check --json >"$work/check.json" && python3 - "$work/check.json" "$library" <<'END'
import json, sys
check = json.load(open(sys.argv[1]))
assert check["on"] and check["way"] == "preloaded" and check["uci_library"] == sys.argv[2]
assert check["settings"]["UCI_CHUNK_SIZE"] == {"value": "8k", "source": "environment"}
assert {mpi["name"] for mpi in check["mpis"]} >= {"Open MPI", "MPICH"}
assert all(mpi["uci_library"] == sys.argv[2] for mpi in check["mpis"])
END
}

# A uci.conf that nobody remembers
info_conf() {
    printf 'UCI_MODE=off\n' >"$work/uci.conf"
    info "UCI_MODE=off # $work/uci.conf:1" 3 LD_PRELOAD="$library" UCI_CONFIG_FILE="$work/uci.conf"
}

# A ucx.conf in the current folder is read by UCX last
info_ucx_conf() (
    mkdir -p "$work/conf"
    cd "$work/conf"
    printf '# site\nUCX_PLUGIN_PATH = /no/such/folder\n' >ucx.conf
    info "UCX_PLUGIN_PATH=/no/such/folder (./ucx.conf)" 1 UCX_TLS=self
)

require() {
    "${limited[@]}" mpirun.mpich -np 2 -genv LD_PRELOAD "$library" -genv UCI_REQUIRE 1 -genv "$1" "$2" "$work/pairs.mpich" >"$work/said" 2>&1 &&
        return 1
    cat "$work/said"
    grep -qF "is not protected by UCI: $3" "$work/said"
}

# UCX before 1.22 can be made to load it under this name, but too late: without UCI_REQUIRE the process goes on without UCI
require_module() {
    ln -sf "$library" "$work/libuct_rdmacm.so.0"
    set -- LD_PRELOAD="$work/libucx_integrity_as_module.so" TEST_MODULE_PATH="$work/libuct_rdmacm.so.0"
    says "UCI stays out of this process" 0 env "$@" "$tools/uci_probe" &&
        says "is not protected by UCI: under this name" 134 bash -c '"$@"; exit' _ env "$@" UCI_REQUIRE=1 "$tools/uci_probe"
}

banner() {
    says "UCI $(uci_version) on: 2 ranks, mode repair, digest auto" 0 "${limited[@]}" mpirun.mpich -np 2 -genv LD_PRELOAD "$library" -genv UCI_REQUIRE 1 \
        -genv UCI_BANNER 1 "$work/pairs.mpich" && [ "$(grep -c '^UCI ' "$work/said")" -eq 1 ]
}

silent_peer() {
    says "UCI_FAULT damages nothing: peer=99, but the ranks of this job are 0 to 1" 0 "${limited[@]}" mpirun.mpich -np 2 \
        -genv LD_PRELOAD "$library" -genv UCI_FAULT rate=1,peer=99 "$work/pairs.mpich" && [ "$(grep -c 'damages nothing' "$work/said")" -eq 1 ]
}

one_file() {
    says "the 2 ranks of this job write to one file, UCI_STATS=$work/one.json" 0 "${limited[@]}" mpirun.mpich -np 2 \
        -genv LD_PRELOAD "$library" -genv UCI_STATS "$work/one.json" "$work/pairs.mpich" && [ "$(grep -c 'write to one file' "$work/said")" -eq 1 ]
}

# What the receiver fetches, it damages itself: the rank that the message is for is its own. Rank 0 receives nothing.
fetched_peer() {
    local target=$1 condition=$2
    UCI_PATH=get UCX_TLS=posix,cma,self UCI_FAULT=rate=0.3,min=1m,target=$target,peer=1 says "$3" "$4" run_pairs mpich 2 &&
        summary "$condition"
}

main() {
    local mpi
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    compile_pairs
    for mpi in openmpi mpich; do
        check "uci_run: nothing is damaged, $mpi" clean_job "$mpi"
        check "uci_run: all is repaired, $mpi" repaired_job "$mpi"
        check "uci_run: the program's exit status, $mpi" own_status "$mpi"
        check "uci_run: a rank is killed, $mpi" killed_job "$mpi"
        check "uci_run --dry-run can be pasted, $mpi" pasted "$mpi"
    done
    for mpi in openmpi mpich; do
        check_verdicts "$mpi"
    done
    for mpi in openmpi mpich; do
        check "uci_run --signatures: a program that is linked with its MPI, $mpi" linked_mpi "$mpi"
        check "a program that opens its MPI, by hand, $mpi" opened_by_hand "$mpi"
    done
    check "uci_run --signatures: a program that opens its MPI, openmpi" opened_mpi openmpi --allow-run-as-root
    check "uci_run --signatures: a program that opens its MPI, mpich" opened_mpi mpich
    check "uci_run: two programs, openmpi" several_programs openmpi --allow-run-as-root --oversubscribe
    check "uci_run: two programs, mpich" several_programs mpich
    check "uci_run: a rank that was killed is counted" killed_is_counted
    check "uci_run: a record of the sender names the right pair" sender_record
    check "uci_run: buffers that changed, as their senders saw" changed_at_sender
    check "uci_run: what passed through" passed_through
    if unshare -pf --mount-proc true 2>/dev/null; then
        check "uci_run: ranks in containers" in_containers "Nothing was damaged: 40 messages" 0
        check "uci_run: ranks in containers, damage and calls" damaged_in_containers
        check "uci_run: a rank leaves its container without a word" left_container
    else
        skip "uci_run: ranks in containers" "pid namespaces are made by root"
    fi
    if [ "$(id -u)" -eq 0 ]; then
        check "uci_run: a job that fills the disk" full_disk
        check "uci_run: a folder that users share" in_shell others_were_first
    else
        skip "uci_run: a job that fills the disk" "a file system is mounted by root"
        skip "uci_run: a folder that users share" "root makes it another user's"
    fi
    check "uci_run: damage that stays, and is let through" unrepaired_job log True
    check "uci_run: damage that stays, and ends the job" unrepaired_job abort False
    check "uci_run: no rank has UCI" without_uci 0
    check "uci_run --require: no rank has UCI" without_uci 120 --require
    check "one verdict: messages go past UCX" bypassed unknown 0
    check "one verdict: and are required not to" bypassed unprotected 120 --require
    check "one verdict: the same by UCI_REQUIRE" with UCI_REQUIRE=on bypassed unprotected 120
    check "messages go past UCX without uci_run" bypassed_by_default
    check "uci_run: one rank says nothing" one_silent 0
    check "uci_run --require: one rank says nothing" one_silent 120 --require
    check "uci_run --require: UCI_MODE=off" env UCI_MODE=off bash -c '! "$@"' _ "$tools/uci_run" -n 2 --folder "$work/off" --require "$work/pairs.mpich"
    check "uci_run: the folders of the last jobs stay" in_shell runs_stay
    check "uci_run: another job has the same default folder" in_shell folder_of_its_own
    check "uci_run: a folder of another job" says "holds what another job has left" 125 "$tools/uci_run" -n 2 --folder "$work/job" "$work/pairs.mpich"
    check "uci_run: the wrong MPI" says "is linked with MPICH" 125 "$tools/uci_run" -n 2 --mpi openmpi "$work/pairs.mpich"
    check "uci_run: no program" says "there is no program" 127 "$tools/uci_run" -n 2 /no/such
    check "uci_run: no library" says "there is no library" 125 "$tools/uci_run" -n 2 --library /no/such.so "$work/pairs.mpich"
    check "uci_run --attach module" says "UCX 1.22 or later does" 125 "$tools/uci_run" -n 2 --attach module "$work/pairs.mpich"
    check "uci_run --mpirun-args with half a quotation" says "argument --mpirun-args: ' is not quoted as for a shell" 125 "$tools/uci_run" -n 2 --mpirun-args "'" \
        "$work/pairs.mpich"
    check "uci_run --debug: nothing is watched" says "calls of MPI were not watched" 0 "$tools/uci_run" --debug -n 1 --mpi mpich --folder "$work/unwatched" true
    check "uci_run: output that nobody reads" lost_output
    check "uci_run: JSON as the manual has it" in_shell documented_json
    check "uci_run: escape sequences in the name of a file" escapes_in_name
    check "uci_run: a program whose first argument is --" own_arguments
    check "uci_run: MPICH's ranks that a script starts" nolocal_of_script
    check "uci_run -x UCI_EVENTS" says "-x UCI_EVENTS: uci_run sets it itself" 125 "$tools/uci_run" -n 2 --dry-run -x UCI_EVENTS=e "$work/pairs.mpich"
    check "uci_run: UCI_STATS in the environment" with UCI_STATS=s says "UCI_STATS of this environment is not used" 0 \
        "$tools/uci_run" -n 2 --dry-run "$work/pairs.mpich"
    check "uci_run: UCI_LIVE in the environment" with UCI_LIVE=/tmp says "UCI_LIVE of this environment is not used" 0 \
        "$tools/uci_run" -n 2 --dry-run "$work/pairs.mpich"
    check "uci_run -x UCI_LIVE=off" with UCI_LIVE=auto live_off
    check "uci_run --profile -x UCI_CALLS" says "-x UCI_CALLS: uci_run sets it itself" 125 "$tools/uci_run" -n 2 --dry-run --profile -x UCI_CALLS=c "$work/pairs.mpich"
    check "uci_run: values that are no good" bad_values
    check "uci_run: the name of the program is empty" says "is a variable not set?" 127 "$tools/uci_run" -n 2 ""
    check "uci_run: the current folder is gone" in_shell no_folder
    check "uci_run -n 0" says "1 rank at least" 125 "$tools/uci_run" -n 0 "$work/pairs.mpich"
    check "uci_run: on already" says "on already: preloaded" 0 env LD_PRELOAD="$library" "$tools/uci_run" -n 2 --dry-run "$work/pairs.mpich"
    check "uci_info --check: off" info "uci: off" 1
    check "uci_info --check: a full disk is not off" says "cannot write" 2 unsaid
    check "uci_info --check: preloaded" info "how: preloaded (LD_PRELOAD)" 0 LD_PRELOAD="$library"
    check "uci_info --check: as a module" info "how: as a UCX module" 0 LD_PRELOAD="$work/libucx_integrity_as_module.so" \
        TEST_MODULE_PATH="${tools%/tools}/ucx_plugin/libucs_uci.so.0"
    check "uci_info --check: a library that is not there" info "LD_PRELOAD names /no/such.so" 1 LD_PRELOAD=/no/such.so
    check "uci_info --check: a module folder that does nothing" info "UCX_PLUGIN_PATH=/no/such (environment)" 1 UCX_PLUGIN_PATH=/no/such
    check "uci_info --check: the same from a ucx.conf" info_ucx_conf
    check "uci_info --check: UCI_MODE=off in a uci.conf" info_conf
    check "uci_info --check: UCI_DIGEST=none" info "UCI_DIGEST=none checks nothing" 3 LD_PRELOAD="$library" UCI_DIGEST=none
    check "uci_info --check: UCX fails" info "can't be started here" 4 UCX_TLS=nonsense
    check "uci_info --check: leaves no files" info_leaves_nothing
    check "uci_info --check --json" info_json
    check "uci_run --seal: a key that only its user can read, and that is told nobody" key_is_kept
    check "uci_run --seal: with a key of the user's" own_key_stays
    check "uci_run --seal: a key that was there" planted_key
    check "uci_run --seal: terminated" terminated_has_no_key
    check "uci_run --seal: warned, and hung up" hung_up
    check "uci_run --seal --dry-run" pasted_seal
    check "uci_run --seal=maybe" says "either alone, --seal=encrypt or --seal=sign" 125 "$tools/uci_run" --seal=maybe -n 2 true
    check "uci_info -s" says "seal library: openssl 3" 0 env UCI_SEAL_LIBRARY=openssl "$tools/uci_info" -s
    check "uci_info -s: a library that has not got the cipher" says "seal library: none" 1 env UCI_SEAL_LIBRARY=ipsec-mb UCI_SEAL_CIPHER=chacha20 \
        "$tools/uci_info" -s
    check "uci_info --json alone" says "--json is for use with --check" 2 "$tools/uci_info" --json
    check "UCI_REQUIRE: UCI_MODE=off" require UCI_MODE off UCI_MODE=off
    check "UCI_REQUIRE: UCI_DIGEST=none" require UCI_DIGEST none UCI_DIGEST=none
    check "UCI_REQUIRE: a module that can't be attached" require_module
    check "UCI_BANNER" banner
    check "UCI_FAULT: a peer that nobody is" silent_peer
    check "UCI_STATS: one file of all ranks is told" one_file
    check "UCI_FAULT: peer= reaches what is fetched" fetched_peer payload 'counters["faults_injected"] > 0' "all were repaired" 122
    check "UCI_FAULT: peer= reaches repairs by get" fetched_peer payload+repair 'counters["mismatched_gets"] > 0' "all were repaired" 122
    end_of_checks
}

main "$@"
