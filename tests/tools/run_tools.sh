#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tools/run_tools.sh [BUILD_DIR]
#
# Do uci_tune and uci_perftest do what their manuals say? Small measurements, whose figures nobody judges: what is tested
# is that they measure, write what can be read, and refuse what they should. Also what the scripts build with, and what they
# do with a job that hangs. Ends with "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

tools=$(realpath "${1:-$uci_root/build}")/tools
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
limited=("$uci_root/tests/watchdog.sh" 120) # put in front of mpirun
quick=(--quick --max-loss 1e9)              # figures are not judged here, and the machine may be busy
export XDG_CACHE_HOME=$work/cache UCI_CONFIG_FILE=

profile_path() {
    find "$XDG_CACHE_HOME/uci" -name 'profile-*.json' 2>/dev/null
}

start_ranks() {
    local mpi=$1
    shift
    case $mpi in
    openmpi) "${limited[@]}" mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 --mca pml ucx --mca opal_common_ucx_tls any \
                 -x UCX_TLS=posix,self "$@" ;;
    mpich)   "${limited[@]}" mpirun.mpich -np 2 -genv UCX_TLS tcp,self "$@" ;;
    esac
}

tune_alone() {
    "$tools/uci_tune" "${quick[@]}" --plot "$work/alone.svg" --json "$work/alone.json" && python3 - "$work" "$(profile_path)" <<'END'
import json, sys, xml.dom.minidom
work, profile = sys.argv[1:]
svg = xml.dom.minidom.parse(f"{work}/alone.svg")
report, profile = json.load(open(f"{work}/alone.json")), json.load(open(profile))
assert len(svg.getElementsByTagName("polyline")) >= 6, "a line for each digest"
assert profile["uci_profile"] == 1 and report["profile"] == profile
assert {kernel["digest"] for kernel in profile["kernels"]} >= {"none", "xxh3", "xxh128", "fnv1a", "fletcher"}
assert all(size["chosen"] and size["chosen_ns"] >= size["best_ns"] > 0 for size in report["choices"][0]["sizes"])
END
}

tune_ranks() {
    start_ranks "$1" "$tools/uci_tune" "${quick[@]}" --json "$work/ranks.json" && python3 - "$work/ranks.json" "$(profile_path)" "$2" <<'END'
import json, sys
report, profile = (json.load(open(name)) for name in sys.argv[1:3])
transports = {path["transports"].split()[0] for path in profile["paths"]}
assert sys.argv[3] in transports, transports
assert {"eager", "stream"} <= {path["path"] for path in profile["paths"]}
assert len(report["choices"]) == 2 and all(size["chosen"] for size in report["choices"][1]["sizes"])
END
}

# A site preloads UCI into all programs: uci_tune itself, too
tune_preloaded() {
    LD_PRELOAD='' start_ranks mpich -genv LD_PRELOAD "${tools%/tools}/libucx_integrity.so" "$tools/uci_tune" "${quick[@]}" --paths-only --no-write \
        --max-size 64 | grep '^choices for path and chunk size over "tcp'
}

# What a site forces is not what a profile chooses, nor noise because something else is faster
tune_free_choice() {
    UCI_DIGEST=crc32c UCI_CHUNK_SIZE=20k UCI_PATH=bounce start_ranks mpich "$tools/uci_tune" "${quick[@]}" --no-write --max-size 64k --json - >"$work/free.json" &&
        python3 - "$work/free.json" <<'END'
import json, sys
kernels, paths = (choice["sizes"] for choice in json.load(open(sys.argv[1]))["choices"])
assert not any(size["chosen"].startswith("crc32c") for size in kernels), kernels
assert all(size["chosen"] and size["chosen_ns"] >= size["best_ns"] > 0 for size in kernels + paths), paths
END
}

# As srun --mpi=pmix starts Open MPI's ranks: without the variables of mpirun
tune_by_pmix() {
    start_ranks openmpi env -u OMPI_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS=2 "$tools/uci_tune" "${quick[@]}" --paths-only --no-write --max-size 64 |
        grep '^choices for path and chunk size over "posix'
}

# Digests and copies are those of before, paths are new ones
tune_paths_only() {
    cp "$(profile_path)" "$work/before.json" &&
        start_ranks openmpi "$tools/uci_tune" "${quick[@]}" --paths-only --json "$work/ranks.json" &&
        python3 - "$work/before.json" "$(profile_path)" "$work/ranks.json" <<'END'
import json, sys
before, after, report = (json.load(open(name)) for name in sys.argv[1:4])
assert before["kernels"] == after["kernels"] and before["paths"] != after["paths"]
assert len(report["choices"]) == 1 and report["choices"][0]["of"].startswith("path")
assert all(0 < size["fastest_ns"] <= size["slowest_ns"] for size in report["choices"][0]["sizes"])
END
}

# Between two hosts: a profile of what is between them, whichever launcher leads there
tune_hosts() {
    local command=("$tools/uci_tune" "${quick[@]}" --paths-only --max-size 1m -o "$work/hosts.json")
    rm -f "$work/hosts.json"
    case $1 in
    openmpi) "$uci_root/tools/two_hosts.sh" mpirun.openmpi --allow-run-as-root --host uci-a,uci-b -np 2 --bind-to none \
                 --mca pml ucx --mca opal_common_ucx_tls any -x UCX_TLS=tcp,self "${command[@]}" ;;
    mpich)   "$uci_root/tools/two_hosts.sh" mpirun.mpich -hosts uci-a,uci-b -ppn 1 -np 2 -genv UCX_TLS tcp,self \
                 "${command[@]}" ;;
    esac && python3 - "$work/hosts.json" <<'END'
import json, sys
profile = json.load(open(sys.argv[1]))
assert profile["kernels"], "there was no profile yet: digests and copies are measured too"
assert {path["path"] for path in profile["paths"]} == {"eager", "stream", "get", "bounce"}, "memory is not shared"
assert max(size for path in profile["paths"] for size, _ in path["ns"]) == 1 << 20
assert profile["host"] == "uci-a" and profile["registrations"]
END
}

# The same between hosts whose network is slower than what they do by themselves: the shaping is seen in the figures
perftest_hosts() {
    UCI_TWO_HOSTS_QDISC="tbf rate 1gbit burst 1mb latency 5ms" "$uci_root/tools/two_hosts.sh" "$tools/uci_perftest" \
        --mpi "$1" --hosts uci-a,uci-b --bind none --tls tcp,self --test lat,bw --sizes 256k --launches 1 --rounds 2 \
        --block 5 --no-breakdown --json "$work/perf.json" && python3 - "$work/perf.json" <<'END'
import json, sys
latency, bandwidth = json.load(open(sys.argv[1]))["points"]
assert 0 < latency["plain"] and 0 < latency["uci"]
assert 0 < bandwidth["plain"] < 135 and 0 < bandwidth["uci"] < 135, "MB/s; 125 are 1 Gbit/s"
END
}

# Who refuses a peer on another host names what runs there: its file about itself tells, in a folder that both see
refusal_names_both() {
    local what='UCI [^ ]+ \([^)]*\) of /[^ ]*libucx_integrity.so'
    mpicc.mpich -std=gnu11 -O1 -Wno-stringop-overflow "$uci_root/tests/tools/pairs.c" -o "$work/pairs" || return
    ! "$uci_root/tools/two_hosts.sh" mpirun.mpich -hosts uci-a,uci-b -ppn 1 -genv UCX_TLS tcp,self -genv UCI_LIVE "$work/shared" \
        -genv LD_PRELOAD "${tools%/tools}/libucx_integrity.so" -n 1 -env UCI_MODE repair "$work/pairs" : -n 1 -env UCI_MODE detect "$work/pairs" >"$work/refused" 2>&1 &&
        grep -E "refuses rank [01] \(uci-[ab]:[0-9]+\): it runs with UCI_MODE=.*; here ${what}[^ ]*, there ${what}" "$work/refused"
}

# A job that is killed while its hosts are there must not make all later ones fail
hosts_outlive_none() {
    local hosts=$uci_root/tools/two_hosts.sh first second status=0
    "$hosts" sh -c "touch '$work/first'; sleep 30" &
    first=$!
    until [ -e "$work/first" ]; do sleep 0.1; done
    "$hosts" true >"$work/second" 2>&1 &
    second=$!
    until grep -q "waiting for it" "$work/second"; do sleep 0.1; done
    kill -9 "$first"
    wait "$second" || status=1
    wait "$first" 2>/dev/null || true
    "$hosts" true || status=1
    flock /run/uci_two_hosts.lock test ! -e /run/netns/uci-a && return "$status" # another suite may have its hosts now, and the lock
}

check_hosts() {
    local label="between two hosts" mpi
    if [ "$(id -u)" -ne 0 ]; then
        skip "$label" "network namespaces are made by root"
        return
    fi
    for mpi in openmpi mpich; do
        check "uci_tune $label, $mpi" tune_hosts "$mpi"
        check "uci_perftest $label at 1 Gbit/s, $mpi" perftest_hosts "$mpi"
    done
    check "a refusal $label names what runs on both" refusal_names_both
    check "two_hosts.sh: one at a time, and what a killed one leaves is taken away" hosts_outlive_none
    check "two_hosts.sh: a wrong qdisc is told" says "tc refuses" 1 env UCI_TWO_HOSTS_QDISC=wrong "$uci_root/tools/two_hosts.sh" true
}

# Paths measured before, over other transports, are still there
keeps_paths() {
    grep -q '"transports": "posix' "$(profile_path)" && grep -q '"transports": "tcp' "$(profile_path)"
}

# A process of the job, too, uses the profile; the choice may differ from what is built in
job_uses_profile() {
    says "tuning: profile $(profile_path)" 0 start_ranks openmpi -x "LD_PRELOAD=${tools%/tools}/libucx_integrity.so" \
        -x UCI_LOG_LEVEL=info "$tools/uci_perftest.openmpi" lat 65536 100
}

# On a quiet machine every choice may be the best measured: the noise is made, and by chance it may spare all choices but for a percent or two
make_noise() {
    "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC "$uci_root/tests/tools/noisy_clock.c" -o "$work/noisy_clock.so"
}

# By chance the choices are now and then the best of what is judged, too: then it is no noise.
tune_noise() {
    local try
    make_noise || return 1
    for ((try = 0; try < 4; try++)); do
        ! says "no profile is written: its choices lose up to" 1 env LD_PRELOAD="$work/noisy_clock.so" \
            "$tools/uci_tune" --quick --max-loss 0.1 -o "$work/noise.json" || { [ ! -e "$work/noise.json" ] && return; }
        grep -q "^choices lose at most 0.[01] %" "$work/said" && [ -e "$work/noise.json" ] || return 1
        rm "$work/noise.json"
    done
    return 1
}

# What it gains over what is built in is counted by its own figures; a profile that was just written is what came before. A profile that chooses
# badly, of 1,000 times the time for the best, is improved on.
tune_gains() {
    local profile
    "$tools/uci_tune" "${quick[@]}" --json "$work/first.json" >"$work/first.txt" && profile=$(profile_path) && grep -q '^what changes against ' "$work/first.txt" &&
        python3 - "$profile" "$work/first.json" <<'END' &&
import json, sys
profile, report = (json.load(open(name)) for name in sys.argv[1:3])
checks = report["choices"][0]["sizes"]
assert all(size["before"] and size["before_ns"] > 0 for size in checks)
for kernel in profile["kernels"]:
    if kernel["digest"] in ("xxh3", "xxh128") and kernel["isa"] != "scalar":
        kernel["ns"] = [[size, 1000 * time] for size, time in kernel["ns"]]
json.dump(profile, open(sys.argv[1], "w"))
END
        "$tools/uci_tune" "${quick[@]}" --json "$work/second.json" >"$work/second.txt" && python3 - "$work/second.json" "$work/second.txt" <<'END'
import json, re, sys
checks, text = [check for part in json.load(open(sys.argv[1]))["choices"] for check in part["sizes"]], open(sys.argv[2]).read()
better = [check for check in checks if check["before_ns"] > 1.03 * check["chosen_ns"]]
assert "what changes against the profile of before" in text and better and f"\n{len(better)} of {len(checks)} choices" in text, text[-800:]
line = next(line for line in text.splitlines() if line.count(better[-1]["before"]) and line.count(better[-1]["chosen"]) and line.rstrip().split()[-1].isdigit())
size, gained = better[-1]["size"], int(line.split()[-1])
assert gained > 0
END
}

tune_no_folder() {
    says "No such file or directory" 1 "$tools/uci_tune" --quick -o "$work/no/such/profile.json" && [ ! -e "$work/no" ]
}

# Whoever does not write needs no folder: hosts of a job need not have the same ones
tune_folder_of_one() {
    local measure=("$tools/uci_tune" "${quick[@]}" --paths-only --max-size 64)
    "${limited[@]}" mpirun.mpich -genv UCX_TLS tcp,self -np 1 "${measure[@]}" -o "$work/first.json" : \
        -np 1 "${measure[@]}" -o "$work/no/such/profile.json" && [ -e "$work/first.json" ]
}

tune_no_folder_in_job() {
    says "No such file or directory" 1 start_ranks mpich "$tools/uci_tune" "${quick[@]}" -o "$work/no/such/profile.json"
}

tune_remove() {
    local profile
    profile=$(profile_path)
    printf 'no profile\n' >"$work/precious"
    says "it is no profile that can be read" 1 "$tools/uci_tune" --remove -o "$work/precious" && [ -e "$work/precious" ] &&
        says "profile removed: $profile" 0 "$tools/uci_tune" --remove && [ ! -e "$profile" ] &&
        says "there is no profile" 1 "$tools/uci_tune" --remove
}

# A profile with as many paths as there can be, over eight decades and a long list of transports: nothing is drawn or printed over
# something else, no two lines look the same, and tables fit on a screen
tune_crowded() {
    python3 - "$(profile_path)" "$work/crowded.json" <<'END' &&
import json, sys
profile = json.load(open(sys.argv[1]))
transports = " ".join(f"transport{number}" for number in range(7))
ways = [("eager", 0)] + [("stream", 4096 << number) for number in range(7)] + \
       [("direct", 8192 << number) for number in range(3)] + [("get", 61440), ("bounce", 61440)]
profile["paths"] = [{"transports": transports, "path": path, "chunk": chunk,
                     "ns": [[64 << number, 10.0 ** (2 + number / 2)] for number in range(19)]} for path, chunk in ways]
profile["paths"][0]["ns"][0][1] = 0.5
json.dump(profile, open(sys.argv[2], "w"))
END
        "$tools/uci_tune" --show="$work/crowded.json" --plot "$work/crowded.svg" >"$work/crowded.txt" &&
        python3 - "$work/crowded.svg" "$work/crowded.txt" <<'END'
import sys, xml.dom.minidom
svg = xml.dom.minidom.parse(sys.argv[1])
lines = [(line.getAttribute("stroke"), line.getAttribute("stroke-dasharray")) for line in svg.getElementsByTagName("polyline")][-13:]
assert len(set(lines)) == len({colour for colour, _ in lines}) == 13, lines
boxes = []
for text in svg.getElementsByTagName("text"):
    if text.hasAttribute("transform"):
        continue
    size = float(text.getAttribute("font-size") or 12)
    width = 0.56 * size * len(text.firstChild.data)
    x = float(text.getAttribute("x")) - width * {"middle": 0.5, "end": 1}.get(text.getAttribute("text-anchor"), 0)
    boxes.append((x, float(text.getAttribute("y")), x + width, size, text.firstChild.data))
for number, (left, y, right, size, text) in enumerate(boxes):
    assert 20 <= left and right <= 900, f"'{text}' leaves the picture"  # the turned "GB/s" ends at 20
    for other in boxes[:number]:
        assert abs(y - other[1]) >= min(size, other[3]) or right <= other[0] or left >= other[2], f"'{text}' is over '{other[4]}'"
widest = max(open(sys.argv[2]).read().splitlines(), key=len)
assert len(widest) <= 110, widest
END
}

alter_profile() {
    sed "$1" "$(profile_path)" >"$work/altered.json"
}

perftest() {
    "$tools/uci_perftest" --mpi "$1" --tls posix,self --test lat,bw --buffers both --sizes 8,64k --launches 1 --rounds 2 --block 2 \
        --json "$work/perf.json" --csv "$work/perf.csv" && python3 - "$work" "${2:-1}" <<'END'
import csv, json, sys
mpis = int(sys.argv[2])
result = json.load(open(f"{sys.argv[1]}/perf.json"))
points, machine = result["points"], result["machine"]
assert machine["processor"] and machine["cores"] >= 1 and all(cache["size"] for cache in machine["caches"]), machine
assert [(point["test"], point["buffers"], point["size"]) for point in points] == [
    (test, buffers, size) for test in ("lat", "bw") for buffers in ("hot", "fresh") for size in (8, 65536)] * mpis
for point in points:
    added = point["added_ns"]
    assert point["plain"] > 0 and point["uci"] > 0 and len(point["rounds"]) == 2
    causes = sum(added[cause] for cause in ("digest", "copy", "protocol", "unexplained"))
    assert abs(causes - added["total"]) < 1e-6 * abs(added["total"]) + 1e-3
assert len(list(csv.reader(open(f"{sys.argv[1]}/perf.csv")))) == 1 + 8 * 2 * 3 * mpis
END
}

# A ping-pong of buffers that are written anew compares what came last: UCI lets damage pass that it is told to log, and no more
perftest_sees_damage() {
    says "wrong data received" 1 start_ranks openmpi -x "LD_PRELOAD=${tools%/tools}/libucx_integrity.so" -x UCI_MODE=detect \
        -x UCI_ON_ERROR=log -x UCI_LOG_LEVEL=fatal -x UCI_FAULT=rate=1,target=payload,seed=1 "$tools/uci_perftest.openmpi" bw/fresh 65536 5
}

perftest_pairs() {
    "$tools/uci_perftest" --mpi mpich --pairs 2 --bind none --tls posix,self --test bw --sizes 8k --launches 1 --rounds 1 --block 2 --no-breakdown \
        --json "$work/pairs.json" && python3 - "$work/pairs.json" <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
assert result["pairs"] == 2 and result["points"][0]["uci"] > 0, result
END
}

# Of N pairs each message takes N times as long as all of them together: copies, which are a rank's own, are compared with that
perftest_adds_of_a_pair() {
    python3 - "$uci_root/tools/perftest" "$uci_root/tools/run" <<'END'
import sys
sys.dont_write_bytecode = True
sys.path[:0] = sys.argv[1:3]
import uci_perftest
for test, plain, uci in ("bw", 8000., 4000.), ("rate", 1e6, 5e5), ("lat", 1.024, 2.048):
    one, two = (uci_perftest.Point("openmpi", "tcp,self", test, 8192, "hot", pairs) for pairs in (1, 2))
    for point, factor in (one, 1), (two, 1 if test == "lat" else 2):
        point.rounds, point.copies = [{"plain": factor * plain, "uci": factor * uci, "none": factor * uci}], [0.5]
    assert one.added() == two.added() and one.added()["total"] > 999, (test, one.added(), two.added())
END
}

# One that is killed while the other job has its turn is found when it is to have the next one; who finds the port is no rank
perftest_lost_rank() {
    python3 - "$uci_root/tools/perftest" "$uci_root/tools/run" "$work" <<'END'
import socket, subprocess, sys, time
from pathlib import Path
sys.dont_write_bytecode = True
sys.path[:0] = sys.argv[1:3]
import uci_perftest
code = "import os, socket, sys; where = sys.argv[1].split(':'); s = socket.create_connection((where[0], int(where[1]))); s.send(b'0'); s.recv(1) or os._exit(0)"
turns = uci_perftest.Turns(False)
port = int(turns.address.split(":")[1])
strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
strangers[0].sendall(b"GET / HTTP/1.0\r\n")
strangers[1].close()
job = uci_perftest.Job(turns, Path(sys.argv[3]), "uci", [sys.executable, "-c", code, turns.address], 1)
job.process.kill()
job.process.wait()
try:
    for _ in range(3):
        job.measure("lat", 8, 1)
except SystemExit as end:
    assert "the job 'uci' ended in a measurement" in end.code, end.code
else:
    raise AssertionError("nobody has missed it")
END
}

# A file that fills the disk costs neither the other one nor the table
perftest_full_disk() {
    local short=("$tools/uci_perftest" --mpi mpich --tls posix --test lat --sizes 8 --launches 1 --rounds 1 --block 1 --no-breakdown)
    says "cannot write /dev/full: No space left on device" 1 "${short[@]}" --csv /dev/full --json "$work/full.json" &&
        grep -q '^1 x 1 rounds each' "$work/said" && python3 -m json.tool "$work/full.json" || return
    ! "${short[@]}" 2>"$work/said" >/dev/full && grep -q 'cannot write: No space left' "$work/said" && ! grep Traceback "$work/said" &&
        ! "${short[@]}" --json - >/dev/full
}

# What its table says of rounds that are made up: which of them tell nothing, and no more
# As by timeout(1)
perftest_terminated() {
    local pid status=0
    mkdir "$work/tmp"
    TMPDIR=$work/tmp "$tools/uci_perftest" --mpi mpich --tls posix,self --test lat &
    pid=$!
    until find "$work/tmp" -name plain.log | grep -q .; do sleep .1; kill -0 "$pid" || return 1; done
    kill -TERM "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq 143 ] && ! find "$work/tmp" -name 'uci-perftest.*' | grep .
}

perftest_tells_noise() {
    python3 - "$uci_root/tools/perftest" "$uci_root/tools/run" "$1" <<'END'
import sys
sys.dont_write_bytecode = True
sys.path[:0] = sys.argv[1:3]
import uci_perftest
def point(ratios):
    point = uci_perftest.Point("openmpi", "tcp,self", "lat", 8)
    point.rounds = [{"plain": 1.0, "uci": ratio} for ratio in ratios]
    return point
for good in [1.0, 1.01, 1.02, 1.0, 1.01], [1.1, 1.11, 1.12, 1.1, 1.1]:
    assert uci_perftest.table_row(point(good))[-1] == "" and not point(good).record()["too_noisy"]
bad = {"too_few": [1.0] * 3, "noisy": [0.9, 0.9, 1.0, 3.0, 3.0]}[sys.argv[3]]
assert uci_perftest.table_row(point(bad))[-1] == "too noisy" and point(bad).record()["too_noisy"]
assert not {"target", "goal", "aim"} & set(uci_perftest.HEADER)
END
}

# A run that its limit has ended is not one that failed
demo_timed_out() {
    local run
    for run in plain off on; do
        mkdir -p "$work/demo/$run"
        printf '{"status": %d, "wall": 120.0, "ranks": 4, "limit": 120}\n' "$([ "$run" = on ] && echo 124 || echo 1)" >"$work/demo/$run/run.json"
    done
    says "NOT AS IT SHOULD BE: timed out (faults, UCI on), so nothing is shown; give --timeout more than 120 s" 1 \
        python3 "$uci_root/tools/demo_table.py" "$work/demo" && grep -q '^hpcc  *FAILED  *FAILED  *timed out$' "$work/said"
}

configured_programs() {
    meson introspect --targets "$1" | grep -o '"uci_perftest\.[a-z]*"' | sort -u
}

# A machine where an MPI's headers are installed after UCI was configured: pkg-config is shown a folder of links, first without
# them. Options given by hand stay.
configures_again() (
    local dir=$work/configured links=$work/pkgconfig files
    mkdir "$links"
    IFS=: read -ra files <<<"$(pkg-config --variable pc_path pkg-config)"
    mapfile -t files < <(find "${files[@]}" -name '*.pc' 2>/dev/null)
    ln -sf "${files[@]}" "$links"
    rm -f "$links"/ompi*.pc
    export PKG_CONFIG_LIBDIR=$links
    meson setup -Db_lto=false "$dir" "$uci_root" || return
    ! configured_programs "$dir" | grep openmpi || return
    ln -sf "${files[@]}" "$links"
    configure_uci "$dir" && configured_programs "$dir" | grep openmpi || return
    meson introspect --buildoptions "$dir" | grep -o '"name": "b_lto", "value": false' || return
    configure_uci "$dir" >"$work/again" && [ ! -s "$work/again" ]
)

where_shows_names_as_text() {
    local pid
    bash -c "exec -a $'\\e[31mred' sleep 60" &
    pid=$!
    until grep -q red "/proc/$pid/cmdline"; do sleep 0.01; done
    "$uci_root/tools/where.sh" "$pid" >"$work/where"
    kill "$pid"
    grep -qF -- "--- process $pid: ?[31mred 60" "$work/where" && ! grep -q $'\e' "$work/where"
}

# A job that hangs is looked into before it is ended: the stacks of both ranks, and what UCI is at there.
watches() {
    local options=() status=0 limited=("$uci_root/tests/watchdog.sh" 5) log=$work/stuck.log rank
    "mpicc.$1" -std=gnu11 -g -Wall -Wextra -Werror -Wno-stringop-overflow "$uci_root/tests/tools/stuck.c" -o "$work/stuck" || return
    options=(-genv LD_PRELOAD "${tools%/tools}/libucx_integrity.so")
    [ "$1" = mpich ] || options=(-x "LD_PRELOAD=${options[2]}")
    start_ranks "$1" "${options[@]}" "$work/stuck" >"$log" 2>&1 || status=$?
    cat "$log"
    [ "$status" -eq 124 ] && grep -q '^#.* P\?MPI_Recv ' "$log" && grep -q '^#.*pause (' "$log" || return
    for rank in 0 1; do
        grep -q "UCI state of rank $rank " "$log" || return
    done
    grep -q '  receive from rank 1 .* 67108864 bytes, .* missing (first wrong: ' "$log" && ! grep -qs "$work/stuck" /proc/[0-9]*/maps &&
        grep -q '  send to rank 0 .* message [0-9]*: .*; 67108864 bytes' "$log"
}

# starve COMMAND...: as COMMAND, on one core that four others use all the time.
starve() {
    local status=0 others=()
    for _ in 1 2 3 4; do
        taskset -c 0 sh -c 'while :; do :; done' &
        others+=($!)
    done
    taskset -c 0 "$@" || status=$?
    kill "${others[@]}"
    wait "${others[@]}" 2>/dev/null
    return "$status"
}

# Half a second of work takes more than the second that it has, if others take the core; sleeping is not waiting for a core.
limits_are_of_own_time() {
    local status=0
    starve "$uci_root/tests/watchdog.sh" 1 python3 -c 'import time
while time.process_time() < 0.5: pass' || return
    starve "$uci_root/tests/watchdog.sh" 1 sleep 20 || status=$?
    [ "$status" -eq 124 ]
}

main() {
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    check "uci_tune --show without a profile" says "there is no profile" 1 "$tools/uci_tune" --show
    check "uci_tune --json where nothing can be written" says "cannot write $work/no/such.json: No such file" 1 "$tools/uci_tune" -n --json "$work/no/such.json"
    check "an option without a value" says "the value of --output is empty" 2 "$tools/uci_tune" -o ""
    check "uci_tune alone: profile, JSON, SVG" tune_alone
    check "uci_tune says what changed and gained" tune_gains
    check "uci_tune --show" says "copy with digest fused in" 0 "$tools/uci_tune" --show
    check "uci_tune under Open MPI" tune_ranks openmpi posix
    check "uci_tune under MPICH" tune_ranks mpich tcp
    check "uci_tune in a job of srun --mpi=pmix" tune_by_pmix
    check "uci_tune in a job that UCI is preloaded into" tune_preloaded
    check "uci_tune where digest, chunk and path are forced" tune_free_choice
    check "uci_tune with UCI_MODE=off" says "do not pass through UCI" 1 env UCI_MODE=off "${limited[@]}" mpirun.mpich -np 2 \
        "$tools/uci_tune" "${quick[@]}" --paths-only --no-write
    check "paths over other transports are kept" keeps_paths
    check "uci_tune --paths-only" tune_paths_only
    check "uci_tune --paths-only without a job" says "there are no paths without a job" 2 "$tools/uci_tune" --paths-only
    check "a job uses the profile" job_uses_profile
    check "plots and tables of many paths" tune_crowded
    alter_profile 's/"cores": [0-9]*/"cores": 9999/'
    check "a profile of another machine is refused" says "it is of 9999 cores" 1 "$tools/uci_tune" --show="$work/altered.json"
    check "and not overwritten" says "give another name or --force" 1 "$tools/uci_tune" "${quick[@]}" -o "$work/altered.json"
    check "but with --force" says "profile written" 0 "$tools/uci_tune" "${quick[@]}" --force -o "$work/altered.json"
    alter_profile 's/"uci_profile": 1/"uci_profile": 2/'
    check "a profile of another version is refused" says "it is of version 2" 1 "$tools/uci_tune" --show="$work/altered.json"
    head -c 1000 "$(profile_path)" >"$work/altered.json"
    check "half a profile is refused" says "is not used: line" 1 "$tools/uci_tune" --show="$work/altered.json"
    check "a profile that is noise is not written" tune_noise
    check "but with --force" says "profile written" 0 env LD_PRELOAD="$work/noisy_clock.so" \
        "$tools/uci_tune" --quick --max-loss 3 --force -o "$work/noise.json"
    check "uci_tune -o makes no folder" tune_no_folder
    check "nor does it in a job" tune_no_folder_in_job
    check "it asks for a folder where it writes" tune_folder_of_one
    check "uci_tune --remove" tune_remove
    check "uci_tune --max-loss wrong" says "is no percentage" 2 "$tools/uci_tune" --max-loss wrong
    check "uci_tune --max-size wrong" says "is no size" 2 "$tools/uci_tune" --max-size wrong
    check "uci_tune --wrong" says "Try 'uci_tune --help'" 2 "$tools/uci_tune" --wrong
    check "uci_perftest with Open MPI" perftest openmpi
    check "uci_perftest with both" perftest both 2
    check "uci_perftest: 3 rounds are too few to tell anything" perftest_tells_noise too_few
    check "uci_perftest: rounds far apart are too noisy" perftest_tells_noise noisy
    check "uci_perftest: --rounds holds with --quick" says "1 x 2 rounds each" 0 "$tools/uci_perftest" --mpi openmpi --quick --rounds 2 \
        --block 2 --test lat --sizes 8 --tls posix,self --no-breakdown
    check "uci_perftest: what is damaged in fresh buffers is seen" perftest_sees_damage
    check "uci_perftest: a rank that is killed" perftest_lost_rank
    check "uci_perftest: a full disk" perftest_full_disk
    check "uci_perftest: SIGTERM" perftest_terminated
    check "uci_perftest --csv where nothing can be written" says "cannot write $work/no/such.csv" 1 "$tools/uci_perftest" --csv "$work/no/such.csv"
    check "uci_perftest --json that is a folder" says "cannot write $work: it is a folder" 1 "$tools/uci_perftest" --json "$work"
    check "uci_perftest --csv without a name" says "its value is empty" 2 "$tools/uci_perftest" --csv ""
    check "uci_perftest --hosts without a name" says "names no host" 2 "$tools/uci_perftest" --hosts ""
    check "uci_perftest --mpirun-args with half a quotation" says "not quoted as for a shell" 2 "$tools/uci_perftest" --mpirun-args '"'
    check "uci_perftest --pairs 2: both are measured" perftest_pairs
    check "uci_perftest --pairs 2: what a message takes longer is a pair's" perftest_adds_of_a_pair
    check "uci_perftest --buffers wrong" says "invalid choice: 'cold'" 2 "$tools/uci_perftest" --buffers cold
    check "uci_perftest --pairs wrong" says "pairs and block must be positive" 2 "$tools/uci_perftest" --pairs 0
    check "uci_perftest --block of no length" says "pairs and block must be positive" 2 "$tools/uci_perftest" --block nan
    check "uci_perftest --mpi wrong" says "unknown MPI 'wrong'" 2 "$tools/uci_perftest" --mpi wrong
    check "uci_perftest --sizes wrong" says "is no size" 2 "$tools/uci_perftest" --sizes 8,wrong
    check "uci_perftest --sizes nothing" says "'' is no size" 2 "$tools/uci_perftest" --sizes 8,,64
    check "uci_perftest --sizes negative" says "'-8' is no size" 2 "$tools/uci_perftest" --sizes=-8
    check "uci_perftest --sizes too large" says "of at most 2147483647" 2 "$tools/uci_perftest" --sizes 2048m
    check "uci_perftest --sizes 0, of which there is no rate" says "bw has no messages of 0 bytes" 2 "$tools/uci_perftest" --test bw --sizes 0
    check "uci_perftest --sizes of half an element" says "vec has no messages of 4 bytes: expected multiples of 8" 2 "$tools/uci_perftest" --test vec --sizes 4
    check "uci_perftest: a latency of no bytes" says "0 rounds each" 0 "$tools/uci_perftest" --mpi mpich --tls posix,self --test lat --sizes 0 --launches 1 \
        --rounds 10 --block 1
    check "uci_perftest --test wrong" says "unknown test 'wrong'" 2 "$tools/uci_perftest" --test wrong
    check "uci_perftest --preload wrong" says "there is no library /no/such.so: build it, or give another path" 1 "$tools/uci_perftest" --preload /no/such.so
    check "demo.sh: a run at its limit has timed out" demo_timed_out
    check_hosts
    check "packages that came later are found" configures_again
    check "time limits are of what the machine gives" limits_are_of_own_time
    UCI_OSU_SOURCE=$work check "run.sh: a suite hears of its variable" says "$work is no source of osu-micro-benchmarks 7" 1 "$uci_root/tests/run.sh" osu
    check "processes to look into are numbers" says "'nobody': expected numbers of processes" 1 "$uci_root/tools/where.sh" nobody
    check "a process's name is its user's" where_shows_names_as_text
    check "a job that hangs is looked into, openmpi" watches openmpi
    check "a job that hangs is looked into, mpich" watches mpich
    end_of_checks
}

main "$@"
