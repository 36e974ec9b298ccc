#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/mpi/run_live.sh [options]
#
# Statistics that survive: jobs under both MPIs that are killed, abort, leave by _exit() or run into their time limit (dying.c). What
# uci_top reads from their live files afterwards must be what the ranks have noted themselves; and, of a job that runs, already. Also
# its other views, and files that are none. Ends with the line "N passed, N failed, N skipped"; exit status 1 if any failed.
#
#   --mpi LIST        openmpi,mpich (default both)
#   --build DIR       what was built (default build)
#   --timeout S       limit for each job (default 60)
#   --help            this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mpi=openmpi,mpich build=$uci_root/build timeout=60
ranks=4
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
trap 'end_marked; umount "$work/full" 2>/dev/null || true; [ ! -e "$work/syslog" ] || rm -f /dev/log; rm -rf "$work" "$run_dir"' EXIT

note_of() {
    head -n 1 "$1"
}

top() {
    "$build/tools/uci_top" "$@"
}

# job MPI END [NAME=VALUE]...: run it; its live files are in $work/live, its notes in $work/notes.
job() {
    local one_mpi=$1 end=$2 limit=$timeout end_is_wanted=
    shift 2
    rm -rf "$work/live" "$work/notes"
    mkdir "$work/notes"
    if [ "$end" = limit ]; then
        limit=4 end_is_wanted=1
    fi
    run_program dying "$one_mpi" posix,self "$ranks" "$preload" "$limit" "1 1 end=$end folder=$work/notes" "UCI_LIVE=$work/live" "$@"
}

# survives MPI END [NAME=VALUE]...
survives() {
    local tries=20
    job "$@"
    while ((tries-- > 0)) && top --once "$work/live" | grep -q '([1-9][0-9]* running'; do
        sleep 0.1 # mpirun may be gone before the ranks that it has killed are
    done
    top --once --json "$work/live" | python3 "$lib_dir/live.py" "$2" "$ranks" "$work/notes"
}

# While it runs: every look is whole
is_seen_running() {
    local one_mpi=$1 pid looks=0
    rm -rf "$work/live"
    job "$one_mpi" limit &
    pid=$!
    while kill -0 "$pid" 2>/dev/null && [ "$looks" -lt 10 ]; do
        sleep 0.2
        if [ "$(find "$work/live" -name '*.live' 2>/dev/null | wc -l)" -ne "$ranks" ] || [ ! -s "$work/notes/0" ]; then
            continue
        fi
        sleep 0.5
        top --once --json "$work/live" | python3 "$lib_dir/live.py" running "$ranks" "$work/notes" || return
        top --once --interval 0.3 "$work/live" | grep -q "$ranks of $ranks ranks here ($ranks running); [0-9.]*[kM]\? messages/s" || return
        looks=$((looks + 1))
        [ "$looks" -lt 2 ] || break
    done
    wait "$pid" || true
    [ "$looks" -ge 2 ]
}

# A file system that is full, as /dev/shm may be: the job runs without
has_no_room() {
    local one_mpi=$1
    mkdir -p "$work/full"
    mount -t tmpfs -o size=8k,mode=0755 uci-test "$work/full" || return
    job "$one_mpi" finish "UCI_LIVE=$work/full"
    umount "$work/full"
    cat "$run_log"
    grep -q 'UCI WARN  no live file with UCI_LIVE=.*/full: No space left on device' "$run_log" && [ "$verdict" != HANG ] &&
        ! grep -qi 'bus error\|signal' "$run_log"
}

# Files that are removed under a running job harm nobody
survives_removal() {
    local one_mpi=$1 pid
    rm -rf "$work/live"
    job "$one_mpi" finish &
    pid=$!
    until [ "$(find "$work/live" -name '*.live' 2>/dev/null | wc -l)" -eq "$ranks" ] || ! kill -0 "$pid" 2>/dev/null; do
        sleep 0.05
    done
    rm -rf "$work/live"
    wait "$pid"
    cat "$run_log"
    ! grep -qi 'bus error\|signal\|UCI ERROR' "$run_log"
}

# A job that runs stands above one that was damaged and is gone; each can be had by itself
sorts_and_selects() {
    local one_mpi=$1 pid status=0 name
    rm -rf "$work/live"
    job "$one_mpi" finish "UCI_LIVE=$work/live" UCI_FAULT=rate=0.05,seed=3 UCI_LOG_LEVEL=error
    mv "$work/live" "$work/kept"
    job "$one_mpi" limit &
    pid=$!
    until [ "$(find "$work/live" -name '*.live' 2>/dev/null | wc -l)" -eq "$ranks" ] || ! kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
    done
    cp "$work/kept"/*.live "$work/live"
    top --once "$work/live" >"$work/text"
    grep '^job' "$work/text" | cut -c1-120
    [ "$(grep '^job' "$work/text" | head -n 1 | grep -c ' so far; ')" -eq 1 ] && [ "$(grep -c '^job' "$work/text")" -eq 2 ] &&
        grep '^job' "$work/text" | tail -n 1 | grep -q 'damaged and repaired;' || status=1
    name=$(sed -n 's/^job \([^,]*\),.*/\1/p' "$work/text" | tail -n 1)
    for name in "$name" "${name#*:}"; do
        [ "$(top --once --job "$name" "$work/live" | grep -c '^job .* damaged and repaired;')" -eq 1 ] &&
            [ "$(top --once --job "$name" "$work/live" | grep -c '^job')" -eq 1 ] || status=1
    done
    [ "$(top --once --user "$(id -un)" "$work/live" | grep -c '^job')" -eq 2 ] &&
        top --once --user 4000000000 "$work/live" | grep -q "^$((2 * ranks)) processes of other users or jobs are not shown" || status=1
    wait "$pid" || true
    return "$status"
}

# Ranks with messages that were damaged on purpose stand on top
shows_damage() {
    survives "$1" kill UCI_FAULT=rate=0.01,seed=3 UCI_LOG_LEVEL=error || return
    top --once --json "$work/live" >"$work/look.json"
    python3 - "$work/look.json" <<'PYTHON'
import json, sys
processes = json.load(open(sys.argv[1]))["jobs"][0]["processes"]
damaged = [process["damaged"] for process in processes]
sys.exit(0 if damaged == sorted(damaged, reverse=True) and damaged[0] > 0
         and sum(p["counters"]["faults_injected"] for p in processes) >= sum(p["counters"]["mismatched_chunks"] for p in processes) else 1)
PYTHON
}

# A chunk that was damaged, and neither repaired nor given up when its process was killed, was not repaired
tells_unfinished() {
    rm -rf "$work/cut"
    cp -r "$work/live" "$work/cut"
    python3 - "$work/cut" <<'PYTHON'
import pathlib, struct, sys
path = next(pathlib.Path(sys.argv[1]).iterdir())  # core/live/live_layout.h
data = bytearray(path.read_bytes())
names, number, blocks, size, _, counters = struct.unpack_from("6I", data, 24)
index, = (i for i in range(number) if data[names + 32 * i:names + 32 * (i + 1)].rstrip(b"\0") == b"mismatched_chunks")
place = blocks + counters + 8 * index
struct.pack_into("Q", data, place, struct.unpack_from("Q", data, place)[0] + 1)
path.write_bytes(data)
PYTHON
    top --once "$work/cut" | grep '^job .* ended without a word, or by UCI;' &&
        top --once --json "$work/cut" | grep '"level": "failed"'
}

# A program that writes to the buffers of its sends has not damaged anything, and its node is not to be drained for it
tells_changes_apart() {
    local one_mpi=$1
    rm -rf "$work/live"
    run_program overwrite "$one_mpi" posix,cma,self 2 "$preload" "$timeout" "steady 4194304 8" UCI_PATH=get "UCI_LIVE=$work/live"
    top --once --json "$work/live" >"$work/look.json"
    python3 - "$work/look.json" <<'PYTHON'
import json, sys
job = json.load(open(sys.argv[1]))["jobs"][0]
print(f"{job['source_changed']} changed, {job['damaged']} damaged")
sys.exit(0 if job["source_changed"] > 0 and job["damaged"] == 0 else 1)
PYTHON
}

# In a place of our own for /dev/log, which must not be there: lines of a process are limited
tells_system_log() {
    local one_mpi=$1 pid
    python3 - "$work/syslog" <<'PYTHON' &
import os, socket, sys
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
log.settimeout(60)
with open(sys.argv[1], "w") as lines:
    while b"end of test" not in (line := log.recv(4096)):
        lines.write(line.decode() + "\n")
os.unlink("/dev/log")
PYTHON
    pid=$!
    while [ ! -e "$work/syslog" ] && kill -0 "$pid"; do
        sleep 0.1
    done
    job "$one_mpi" finish UCI_SYSLOG=on UCI_FAULT=rate=0.1,seed=3 UCI_LOG_LEVEL=error
    logger 'end of test' && wait "$pid" || return
    tail -n 3 "$work/syslog"
    ! grep -v 'UCI: ' "$work/syslog" &&
        grep -Eq '^<12>.*UCI: message of [0-9]+ bytes from rank [0-9] \(.*:[0-9]+\) to rank [0-9] \(.*\), job .*, arrived damaged: repaired, cause ' \
            "$work/syslog" &&
        grep -Eq 'UCI: [0-9]+ more lines of this process were left out' "$work/syslog" &&
        [ "$(grep -c 'arrived damaged' "$work/syslog")" -le $((10 * ranks)) ]
}

# Python's reader of the format is a package of the system's Python
metrics_are_valid() {
    top --once --openmetrics "$work/uci.prom" "$work/live" && /usr/bin/python3 - "$work/uci.prom" <<'PYTHON'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
text = open(sys.argv[1]).read()
families = {family.name: family for family in openmetrics(text)}
sent = families["uci_messages_sent"].samples
states = {sample.labels["state"]: sample.value for sample in families["uci_processes"].samples}
print(f"{len(families)} families, {sent[0].value:.0f} messages sent, {states}")
assert text.endswith("# EOF\n") and len(sent) == 1 and sent[0].value > 0 and sum(states.values()) == 4
assert any(sample.name == "uci_messages_sent_total" for family in prometheus(text) for sample in family.samples)
PYTHON
}

# Processes that know of no job have the same labels, and so one line together: two of another host, which were heard of just now
adds_up_metrics() {
    rm -rf "$work/elsewhere"
    mkdir "$work/elsewhere"
    find "$work/live" -name '*.live' | head -n 2 | xargs -I{} cp {} "$work/elsewhere"
    python3 - "$work/elsewhere" <<'PYTHON'
import pathlib, struct, sys, time
for path in pathlib.Path(sys.argv[1]).iterdir():  # core/live/live_layout.h
    data, now = bytearray(path.read_bytes()), time.time_ns()
    block, = struct.unpack_from("I", data, 32)
    struct.pack_into("I", data, 48, 0)  # running
    struct.pack_into("Q", data, 80, now)
    struct.pack_into("64s40s320s", data, 104, b"elsewhere", b"another boot", b"")
    struct.pack_into("QQQQ", data, block, 0, now, 1, 1000)  # one worker, with 1000 bytes in its log
    path.write_bytes(data)
PYTHON
    top --once --openmetrics - "$work/elsewhere" | grep '^uci_log_bytes{job_id="none",program="dying",uid=".*"} 2000$'
}

# One user's file must not cost a monitor the metrics of all: counters with the names of other metrics
keeps_metrics_apart() {
    rm -rf "$work/hostile"
    mkdir "$work/hostile"
    find "$work/live" -name '*.live' | head -n 1 | xargs -I{} cp {} "$work/hostile"
    python3 - "$work/hostile" <<'PYTHON' &&
import pathlib, struct, sys
for path in pathlib.Path(sys.argv[1]).iterdir():  # core/live/live_layout.h
    data = bytearray(path.read_bytes())
    names, = struct.unpack_from("I", data, 24)
    for number, name in enumerate((b"processes", b"log_bytes", b"messages_sent_total", b"bytes_sent_created", b"others"), start=4):
        struct.pack_into("32s", data, names + 32 * number, name)
    path.write_bytes(data)
PYTHON
    top --once --openmetrics "$work/hostile.prom" "$work/hostile" && /usr/bin/python3 - "$work/hostile.prom" <<'PYTHON'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
families = {family.name: family.type for family in openmetrics(open(sys.argv[1]).read())}
assert families["uci_processes"] == families["uci_log_bytes"] == "gauge" and families["uci_others"] == "counter", families
PYTHON
}

# Nor its time: 300 files with 50 counters each that nobody else has; the first 64 are told
bounds_metrics() {
    rm -rf "$work/hostile"
    mkdir "$work/hostile"
    python3 - "$(find "$work/live" -name '*.live' | head -n 1)" "$work/hostile" <<'PYTHON' &&
import pathlib, struct, sys
data = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
names, = struct.unpack_from("I", data, 24)
for process in range(300):
    for number in range(50):
        struct.pack_into("32s", data, names + 32 * number, b"c%05dx%03d" % (process, number))
    (pathlib.Path(sys.argv[2]) / pathlib.Path(sys.argv[1]).name.replace(".live", f".{process}.live")).write_bytes(data)
PYTHON
    timeout 5 "$build/tools/uci_top" --once --openmetrics "$work/hostile.prom" "$work/hostile" >/dev/null &&
        [ "$(grep -c '^# TYPE uci_c0' "$work/hostile.prom")" -eq 64 ]
}

# Who names his job as another user's is called has not joined it
keeps_users_apart() {
    local one
    one=$(find "$work/live" -name '*.live' | head -n 1)
    rm -rf "$work/users"
    mkdir "$work/users"
    cp "$one" "$work/users/1.live"
    python3 - "$one" "$work/users/2.live" <<'PYTHON' &&
import pathlib, struct, sys
data = bytearray(pathlib.Path(sys.argv[1]).read_bytes())  # core/live/live_layout.h
struct.pack_into("I", data, 100, struct.unpack_from("I", data, 100)[0] + 1)
pathlib.Path(sys.argv[2]).write_bytes(data)
PYTHON
    top --once --all "$work/users" >"$work/out"
    [ "$(grep -c '^job' "$work/out")" -eq 2 ] && top --once --all --openmetrics - "$work/users" | grep -c '^uci_bytes_sent_total{' | grep -qx 2
}

skips_what_is_none() {
    local one
    one=$(find "$work/live" -name '*.live' | head -n 1)
    head -c 500 "$one" >"$work/live/short.live"
    head -c 4000 /dev/urandom >"$work/live/garbage.live"
    : >"$work/live/empty.live"
    { head -c 8 "$one"; printf '\x09'; tail -c +10 "$one"; } >"$work/live/newer.live"
    ln -s "$one" "$work/live/link.live"
    mkfifo "$work/live/pipe.live"
    top --once "$work/live" >"$work/text"
    cat "$work/text"
    [ "$(grep -c '^skipped ' "$work/text")" -eq 6 ] && grep -q 'short.live: it is cut off' "$work/text" &&
        grep -q 'newer.live: it is of a newer version' "$work/text" && grep -q 'link.live: it is a symbolic link' "$work/text" &&
        grep -q "$ranks of $ranks ranks" "$work/text" && ! grep -q $'\033' "$work/text"
}

# Names are their users', who may be anybody to root
shows_names_as_text() {
    rm -rf "$work/named"
    mkdir "$work/named"
    : >"$work/named/$(printf 'x\033[31m\377\ny').live"
    top --once "$work/named" | grep -F '/named/x?[31m??y.live: it is too short' &&
        top --once --json "$work/named" | python3 -c 'import json, sys; assert len(json.load(sys.stdin)["skipped"]) == 1'
}

# What goes to UCX, here all of a program whose connections are not waited for
shows_what_passes() {
    local flags line
    flags=$(pkg-config --cflags --libs ucx)
    # shellcheck disable=SC2086
    gcc -std=gnu11 -D_GNU_SOURCE -O2 -o "$work/surface" "$uci_root"/tests/ucp/{surface,ucp_test}.c $flags -lpthread
    env UCX_TLS=tcp,self UCI_CONNECT_WAIT=0 UCI_LOG_LEVEL=error "UCI_LIVE=$work/passing" LD_PRELOAD="$preload" "$work/surface" by_socket_address
    line=$(top --once "$work/passing" | grep '^job ')
    say "$line"
    [[ $line == *'; '*'B passed, not verified' ]] &&
        top --once --json "$work/passing" | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["jobs"][0]["passthrough_bytes"] == 0)'
}

# On a terminal there is a screen, and 'q' ends it
has_a_screen() {
    (sleep 1.5; printf q) | TERM=xterm timeout 20 script -qec "$build/tools/uci_top -i 0.5 $work/live" "$work/typed" >/dev/null &&
        grep -qa 'ranks here' "$work/typed" && grep -qa 'q: end' "$work/typed" && say "$(wc -c <"$work/typed") bytes"
}

# A terminal that goes ends it, even where SIGHUP, which would, is ignored: it took all of a core, for ever
ends_with_its_terminal() {
    python3 - "$build/tools/uci_top" "$work/live" <<'PYTHON'
import os, pty, signal, subprocess, sys, time
master, terminal = pty.openpty()
process = subprocess.Popen([sys.argv[1], "-i", "100", sys.argv[2]], stdin=terminal, stdout=terminal, stderr=terminal, env={**os.environ, "TERM": "xterm"},
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), start_new_session=True)
os.close(terminal)
os.read(master, 1)
time.sleep(0.5)
os.close(master)
try:
    process.wait(20)
except subprocess.TimeoutExpired:
    process.kill()
    sys.exit("it does not end")
PYTHON
}

test_mpi() {
    local one_mpi=$1 end
    compile_programs "$one_mpi" dying
    (programs_dir=$uci_root/tests/verdicts && compile_programs "$one_mpi" overwrite) # in front of the call it would stay: it is exported there
    for end in kill abort exit limit finish; do
        check "$one_mpi, $end" survives "$one_mpi" "$end"
    done
    check "$one_mpi, while it runs" is_seen_running "$one_mpi"
    check "$one_mpi, files removed meanwhile" survives_removal "$one_mpi"
    if [ "$(id -u)" -eq 0 ] && mkdir -p "$work/probe" && mount -t tmpfs -o size=8k uci-test "$work/probe" 2>/dev/null; then
        umount "$work/probe"
        check "$one_mpi, no room for the files" has_no_room "$one_mpi"
    else
        skip "$one_mpi, no room for the files" "a file system can't be mounted here"
    fi
    check "$one_mpi, changes by the program" tells_changes_apart "$one_mpi"
    check "$one_mpi, damage" shows_damage "$one_mpi"
    check "$one_mpi, damage that was not repaired when the job ended" tells_unfinished
    check "$one_mpi, what runs stands first, and jobs by name" sorts_and_selects "$one_mpi"
}

main() {
    local one_mpi
    set_options mpi build timeout -- "$@"
    preload=$(check_preload "$build/libucx_integrity.so")
    for one_mpi in ${mpi//,/ }; do
        test_mpi "$one_mpi"
    done
    if [ "$(id -u)" -eq 0 ] && [ ! -e /dev/log ]; then
        check "the system's log" tells_system_log "${mpi%%,*}"
    else
        skip "the system's log" "this machine has one, or may not be given one"
    fi
    check "OpenMetrics" metrics_are_valid
    check "OpenMetrics of processes without a job" adds_up_metrics
    check "OpenMetrics of counters with names of others" keeps_metrics_apart
    check "OpenMetrics of more counters than anybody has" bounds_metrics
    check "two users' jobs of one name" keeps_users_apart
    check "what passes" shows_what_passes
    check "a screen" has_a_screen
    check "a screen whose terminal goes" ends_with_its_terminal
    check "files that are none" skips_what_is_none
    check "names of files that are no text" shows_names_as_text
    check "no such folder" says "cannot read the folder /no/such" 1 top --once /no/such
    check "no such user" says "there is no user nobody-of-this-name" 2 top --user nobody-of-this-name
    check "no such number of a user" says "there is no user 4294967296" 2 top --once --user 4294967296
    check "no such option" says "uci_top --help" 2 top --wrong
    check "a bad interval" says "expected 0.1 to 86400 seconds" 2 top --interval 0
    check "metrics that can't be written" says "cannot write /no/such/file" 1 top --once --openmetrics /no/such/file "$work/live"
    end_of_checks
}

main "$@"
