#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/run.sh [options] [SUITE]...
#
# Install what is missing, build, and run test suites; without SUITE, those not marked -, which is what CI runs. Ends with
# a table of the suites and the line "N passed, N failed, N skipped"; exit status 1 if anything failed. Suites marked + take one
# core each: one more of them run at once than there are cores, and each is shown as soon as those in front of it are over.
#
#   --list   the suites and how long they take here (2 cores), and nothing else
#   --help   this text, then the list
set -euo pipefail

# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../tools/common.sh"

build=$uci_root/build
asan=$uci_root/build-asan
logs=$build/test-logs
suite_limit=900     # seconds, for those that CI runs
long_limit=7200     # and for the others

# name; in CI: by itself (*), beside others (+), or not (-); duration here; what it does. Of those beside others the longest come first
suites=(
    "unit       * 30s  unit tests of every layer (Criterion)"
    "ucp        + 6min programs that call libucp themselves: every hook, plain and with UCI; in short"
    "calls      + 2min uci_run --debug and --profile: programs that break one rule of MPI's each, hang, or are right, both MPIs, C and Fortran's three bindings"
    "tools      + 3min uci_run, uci_info --check, uci_tune, uci_perftest: do what they say, refuse what they should"
    "asan       + 4min unit tests with ASan and UBSan"
    "fuzz       + 90s  fuzzers of whatever parses bytes, 3 s each"
    "check      + 30s  uci_check: damage at known places is found, here and over two hosts; libuci's examples, as installed"
    "report     + 2min uci_report: synthetic and real jobs, a history of many, its pages in a headless browser (Debian's Chromium); Grafana's dashboard"
    "signatures + 40s  types of messages compared: each constructor, each form of point to point, each collective, both MPIs, C and Fortran's three bindings"
    "seal       + 1min sealed messages, and a man in the middle of UCX's tcp: nothing to read, no wrong byte; where keys are (root)"
    "live       + 40s  statistics that survive: jobs that are killed, abort or run into their limit, and what uci_top says of them"
    "site       + 2min what meson install lands, example uci.conf, modulefiles, profile script, completion, a build without tests, what is in it (SPDX), two versions and a link, ABIs"
    "attach     + 20s  the ways into a process: preload, UCX module, objects and MPIs that are opened late"
    "layers     + 30s  include rules, who writes which state, exported symbols, silence in other programs, the table of UCX's functions, and versions"
    "format     + 5s   clang-format on C, shellcheck on scripts"
    "mpi        * 2min real programs under Open MPI and MPICH, over every transport; in short"
    "sealed     * 40s  some of mpi's programs with all messages sealed, as they are and with faults: what is rejected comes again"
    "faults     * 90s  injected faults: counted, healed, contents right; every kind and target once"
    "foreign    * 1min attacks from outside: a process that damages shared memory, a library under recv and process_vm_readv; in short"
    "ending     * 20s  MPI programs that end in every way: early, late, with the last control messages damaged"
    "asan_mpi   * 1min a part of mpi with ASan and UBSan"
    "verdicts   * 30s  one thing wrong in each job, and the cause that its records must name"
    "cases      * 1min symptoms of public reports: a UCX with one bug each, and the cause, path and class that are named for it"
    "twins      * 2min programs run two and three times at once: a rank that computes wrong is found, named and corrected; followed, killed, refused; in short"
    "allreduce  * 2min all-reduces by node on two and four hosts (network namespaces, root): results to the last bit, damage in shared memory; in short"
    "random     - 3min random programs and 10^7 random faults over a UCX of the test's own; what fails is made smaller, and told"
    "rdma       - 10min RDMA for real: soft-RoCE devices in a guest, MPI programs and faults over rc and ud; docs/rdma.md"
    "gpu        - 5min messages from and to a GPU's memory, both MPIs and UCX's own interface, plain, with UCI, with faults; on a machine with a GPU of NVIDIA's (tests/gpu/)"
    "slurm      - 1min the examples for Slurm, in a Slurm of one node of its own (root): damage drains the node"
    "gtest      - 60min UCX's own unit tests of ucp, built from Debian's source (network once): what passes on plain UCX passes under UCI"
    "mpich      - 40min MPICH's own tests of one-sided communication, from Debian's source (network once), both MPIs; plain, with UCI, with faults"
    "osu        - 30min OSU's micro-benchmarks from the source at \$UCI_OSU_SOURCE (not in Debian), both MPIs and OpenSHMEM, looking at their bytes; the same ways"
    "compat     - 40min Debian trixie and sid in root folders: their UCX, compilers and MPIs (root; network once)"
    "fresh      - 20min README's two commands, in both orders, on a minimal Debian in root folders (root, network)"
    "packages   - 15min Debian packages built, judged by lintian, installed and used in root folders; RPMs built (root, network); two builds of a commit are the same bytes"
    "programs   - 10min programs from Debian, unmodified: NetPIPE, LAMMPS, UCX's examples and ucx_perftest; plain, with UCI, with faults"
    "endings    - 15min 600 ways to end, drawn at random, and two processes that end at every step, in every way"
    "seals      - 30min the same, every attack by itself with many seeds, and on UCX's own headers"
    "mpi_faults - 12min mpi again, with one fault in a hundred decisions, of any kind at any place"
    "machines   - 14min no memory at each allocation, little room in /dev/shm, signals, a rank that is stopped"
    "marathon   - 10min random worlds and fuzzers for \$UCI_HOURS, also on many machines and in parts, and a page about them; tests/marathon/run_marathon.py --help"
    "soak       - 8h   jobs that go on for \$UCI_HOURS: what they take does not grow; attacked by our injector and from outside; tests/soak/run_soak.sh --help"
    "tsan       - 2min programs with many threads under ThreadSanitizer; docs/design.md, Threads"
    "campaign   - 17min faults of every kind, target and rate; then all attacks from outside, and all of twins under both MPIs"
    "arm64      - 2min core's unit tests on 64-bit Arm, emulated: NEON kernels (root; network once)"
    "model      - 4min the link, mailboxes, the conversation and repairs, by the code's tables, checked by spin in every order of events; bugs put in on purpose are found"
    "tidy       - 30s  clang-tidy"
    "bench      - 2min plain UCX against UCI, interleaved; quick, and no judgement"
)

suite_field() {
    awk -v name="$1" -v field="$2" '$1 == name { print $field }' <(printf '%s\n' "${suites[@]}")
}

list_suites() {
    printf '  %s\n' "${suites[@]}"
}

# --- suites: each runs, shows what it does, and closes with its count, "N passed, N failed, N skipped" ---

suite_unit() {
    run_meson_tests "$build"
}

suite_layers() {
    local status=0
    python3 "$uci_root/tests/layering.py" "$build" || status=1
    python3 "$uci_root/tests/call_surface.py" "$build" || status=1
    python3 "$uci_root/tests/doc_tables.py" || status=1
    "$uci_root/tests/bench/results.py" check || status=1
    python3 "$uci_root/tests/versions.py" || status=1
    /usr/bin/python3 "$uci_root/tests/ownership.py" "$build" || status=1
    return "$status"
}

suite_format() {
    mapfile -t sources < <(project_files '*.c' '*.h' '*.inl')
    mapfile -t scripts < <(project_files '*.sh' '.ci/run' 'tests/rdma/init' 'packaging/completion/*')
    passed=0 failed=0
    [ ${#sources[@]} -gt 0 ] || die "git lists no sources"
    count_check "clang-format, ${#sources[@]} files" check_format "${sources[@]}"
    count_check "shellcheck, ${#scripts[@]} files" at_once 8 shellcheck -x -P "$uci_root" -- "${scripts[@]}"
    say "$passed passed, $failed failed, 0 skipped"
}

# Names the files and not each place: clang-format -i is the cure anyway.
check_format() {
    at_once 40 clang-format --dry-run --Werror -- "$@" 2>&1 | awk -F: '/ error: / { places[$1]++ }
        END { for (file in places) { print file ": " places[file] " places"; wrong = 1 } exit wrong }'
}

# The commands are gcc's: options of link-time optimisation that clang does not have are none of the code's faults.
suite_tidy() {
    local tidy=(clang-tidy --quiet -p "$build" --extra-arg=-Wno-ignored-optimization-argument)
    mapfile -t sources < <(project_files 'core/*.c' 'pipeline/*.c' 'ucx_plugin/*.c' 'tools/*.c')
    passed=0 failed=0
    count_check "clang-tidy sees a fault that is there" tidy_sees_faults "${tidy[@]}"
    # shellcheck disable=SC2016  # that shell expands it
    at_once 1 bash -c 'if "$@" </dev/null; then echo "ok   clang-tidy ${!#}"; else echo "FAIL clang-tidy ${!#}"; fi' tidy "${tidy[@]}" \
            -- "${sources[@]}" | tee "$logs/tidy.lines"
    passed=$((passed + $(grep -c '^ok ' "$logs/tidy.lines"))) failed=$((${#sources[@]} + 1 - passed))
    say "$passed passed, $failed failed, 0 skipped"
}

# tidy_sees_faults COMMAND...: with the build's own options (of the file whose name is most like this one's) it tells of a null pointer that is
# used, and of nothing else.
tidy_sees_faults() {
    local work found
    work=$(mktemp -d)
    printf 'int uci_fault(int *word);\nint uci_fault(int *word)\n{\n    return (word == 0) ? *word : 0;\n}\n' >"$work/fault.c"
    found=$("$@" --config-file="$uci_root/.clang-tidy" "$work/fault.c" 2>/dev/null | grep -o ' \[clang-[a-zA-Z.-]*')
    rm -rf "$work"
    [ "$found" = ' [clang-analyzer-core.NullDereference' ]
}

suite_tools() {
    local status=0
    "$uci_root/tools/install_deps.sh" report
    "$uci_root/tests/tools/run_tools.sh" "$build" || status=1
    "$uci_root/tests/tools/run_job.sh" "$build" || status=1
    "$uci_root/tests/tools/run_twins.sh" "$build" || status=1
    "$uci_root/tests/tools/run_preflight.sh" "$build" || status=1
    return "$status"
}

suite_check() {
    "$uci_root/tests/tools/run_check.sh" "$build"
}

suite_report() {
    "$uci_root/tools/install_deps.sh" report browser
    "$uci_root/tests/tools/run_report.sh" "$build"
}

suite_site() {
    local status=0
    "$uci_root/tests/site/run_site.sh" "$build" || status=1
    "$uci_root/tests/site/run_upgrade.sh" "$build" || status=1
    "$uci_root/tests/abi/run_abi.sh" "$build" || status=1
    return "$status"
}

suite_mpi() {
    "$uci_root/tests/mpi/run_mpi.sh" --quick --preload "$build/libucx_integrity.so"
}

# sealed_mpi OPTION...: all that the programs say is sealed, and that is counted
sealed_mpi() {
    "$uci_root/tests/mpi/run_mpi.sh" --preload "$build/libucx_integrity.so" --tls "posix,self tcp,self" --np 2 --timeout 60 \
        --env UCI_SEAL_SCOPE=all --env "UCI_KEY_FILE=$logs/seal.key" --expect 'sealed_records > 0' "$@"
}

suite_sealed() {
    local status=0
    (umask 077 && printf '%s\n' "$(od -An -N32 -v -tx1 /dev/urandom | tr -d ' \n')" >"$logs/seal.key")
    sealed_mpi --env UCI_SEAL=encrypt --filter 'p2p_nonblocking|mprobe|threads' --expect 'sealed_rejected == 0' || status=1
    sealed_mpi --env UCI_SEAL=sign --filter wildcard --expect 'sealed_rejected == 0' || status=1
    sealed_mpi --env UCI_SEAL=encrypt --filter p2p_nonblocking --expect 'sealed_rejected > 0' \
        --env UCI_FAULT=rate=0.01,kind=any,target=payload+header+ack+repair || status=1
    rm -f "$logs/seal.key"
    return "$status"
}

suite_ending() {
    "$uci_root/tests/mpi/run_ending.sh" --quick --preload "$build/libucx_integrity.so"
}

suite_live() {
    "$uci_root/tests/mpi/run_live.sh" --build "$build"
}

suite_endings() {
    local status=0
    "$uci_root/tests/mpi/run_ending.sh" --count 600 --preload "$build/libucx_integrity.so" || status=1
    "$uci_root/tests/ucp/run_ucp.sh" --endings --jobs "$(nproc)" --preload "$build/libucx_integrity.so" || status=1
    return "$status"
}

suite_mpi_faults() {
    "$uci_root/tests/mpi/run_mpi.sh" --preload "$build/libucx_integrity.so" --timeout 120 \
                                     --env UCI_FAULT=rate=1e-2,kind=any,target=any,seed=1
}

suite_ucp() {
    "$uci_root/tests/ucp/run_ucp.sh" --quick --jobs "$(own_cores)" --preload "$build/libucx_integrity.so"
}

suite_attach() {
    "$uci_root/tests/attach/run_attach.sh"
}

suite_tsan() {
    build_uci "$uci_root/build-tsan" -Db_sanitize=thread -Db_lundef=false -Db_lto=false -Dc_args=-Wno-tsan # of a fence of one-sided operations
    "$uci_root/tests/tsan/run_tsan.sh"
}

suite_slurm() {
    "$uci_root/tools/install_deps.sh" slurm
    "$uci_root/tests/slurm/run_slurm.sh" "$build"
}

suite_compat() {
    "$uci_root/tests/compat/run_compat.sh"
}

suite_fresh() {
    "$uci_root/tests/fresh/run_fresh.sh"
}

suite_packages() {
    local status=0
    "$uci_root/tests/packages/run_packages.sh" || status=1
    "$uci_root/tests/reproducible/run_reproducible.sh" || status=1
    return "$status"
}

suite_programs() {
    local status=0
    "$uci_root/tests/programs/run_programs.sh" --preload "$build/libucx_integrity.so" || status=1
    "$uci_root/tests/programs/run_ucx_programs.sh" --preload "$build/libucx_integrity.so" || status=1
    return "$status"
}

suite_gtest() {
    "$uci_root/tests/gtest/build_gtest.sh" "$build/gtest"
    "$uci_root/tests/gtest/run_gtest.py" --build "$build"
}

suite_mpich() {
    "$uci_root/tests/mpich/build_mpich_tests.sh" "$build/mpich-tests"
    "$uci_root/tests/mpich/run_mpich_tests.py" --folder "$build/mpich-tests" --preload "$build/libucx_integrity.so"
}

suite_osu() {
    [ -n "${UCI_OSU_SOURCE:-}" ] || die "UCI_OSU_SOURCE=FOLDER is missing: osu-micro-benchmarks 7, unpacked, from https://mvapich.cse.ohio-state.edu/benchmarks/"
    "$uci_root/tests/osu/build_osu.sh" "$UCI_OSU_SOURCE" "$build/osu"
    "$uci_root/tests/osu/run_osu.py" --folder "$build/osu" --preload "$build/libucx_integrity.so"
}

# Another seed each time; it is printed, and each world that fails tells how to run it again
suite_random() {
    local seed=${UCI_TEST_SEED:-$(date +%s)}
    passed=0 failed=0
    count_check "10^7 random faults, seed $seed" "$build/tests/unit/random/test_random" --faults all --faults-total 1e7 \
                                                 --seed "$seed" --processes "$(nproc)" --failures 5 --verbose --cells
    say "$passed passed, $failed failed, 0 skipped"
}

suite_gpu() {
    local ucx=${UCI_GPU_UCX:-$build/gpu/ucx}
    [ -e "$ucx/lib/libucp.so.0" ] || "$uci_root/tests/gpu/build_ucx.sh" "$build/gpu"
    "$uci_root/tests/gpu/run_gpu.sh" --ucx "$ucx" --preload "$build/libucx_integrity.so"
}

suite_marathon() {
    build_asan
    ninja -C "$asan" tests/unit/random/test_random >/dev/null
    "$uci_root/tests/fuzz/run_fuzz.sh" --build
    "$uci_root/tests/marathon/run_marathon.py" --folder "${UCI_MARATHON_FOLDER:-$build/marathon}" --hours "${UCI_HOURS:-0.15}"
}

suite_soak() {
    "$uci_root/tools/install_deps.sh" soak
    "$uci_root/tests/soak/run_soak.sh" --hours "${UCI_HOURS:-8}"
}

suite_fuzz() {
    "$uci_root/tests/fuzz/run_fuzz.sh" --quick --jobs "$(own_cores)"
}

suite_faults() {
    "$uci_root/tests/faults/run_faults.sh" --quick --preload "$build/libucx_integrity.so"
}

suite_foreign() {
    "$uci_root/tests/faults/foreign/run_foreign.sh" --quick --preload "$build/libucx_integrity.so"
}

suite_verdicts() {
    "$uci_root/tests/verdicts/run_verdicts.sh" --preload "$build/libucx_integrity.so"
}

suite_cases() {
    "$uci_root/tests/verdicts/run_cases.sh" --preload "$build/libucx_integrity.so"
}

suite_twins() {
    "$uci_root/tests/twins/run_twins.sh" --build "$build" --quick
}

suite_allreduce() {
    "$uci_root/tests/allreduce/run_allreduce.sh" --build "$build" --quick
}

suite_calls() {
    "$uci_root/tests/calls/run_calls.py" --build "$build"
}

suite_signatures() {
    "$uci_root/tests/signatures/run_signatures.sh" --build "$build"
}

suite_seal() {
    "$uci_root/tests/seal/run_seal.sh" --build "$build"
}

suite_seals() {
    "$uci_root/tests/seal/run_seal.sh" --build "$build" --seeds 6 --first "${UCI_TEST_SEED:-1}"
}

suite_campaign() {
    local status=0
    "$uci_root/tests/faults/run_faults.sh" --preload "$build/libucx_integrity.so" || status=1
    "$uci_root/tests/faults/foreign/run_foreign.sh" --seconds 6 --preload "$build/libucx_integrity.so" || status=1
    "$uci_root/tests/twins/run_twins.sh" --build "$build" || status=1
    return "$status"
}

suite_machines() {
    "$uci_root/tests/machines/run_machines.sh" --build "$build"
}

suite_rdma() {
    "$uci_root/tests/rdma/run_rdma.sh" --preload "$build/libucx_integrity.so"
}

suite_model() {
    "$uci_root/tools/install_deps.sh" model
    "$uci_root/tests/model/run_model.sh"
}

suite_arm64() {
    "$uci_root/tests/arm64/run_arm64.sh"
}

# What build-asan/ is made with, and for: nothing but tests uses it. vzeroupper, for which a test of the digests looks, is left out at -O1
# without expensive optimizations; at -O3 it takes twice as long to compile. With sanitizers a calibration takes longer than the 20 ms after which
# it is given up. No memory is an error for the caller to see, as without ASan. Its stacks want lines, and nothing else of debug information.
build_asan() {
    build_uci "$asan" -Db_sanitize=address,undefined -Db_lundef=false -Db_lto=false -Doptimization=1 \
        '-Dc_args=-g1 -fexpensive-optimizations -DUCI_TUNER_BUDGET_NS=100000000ul' -- "$@" meson-test-prereq libucx_integrity.so
    export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
}

suite_asan() {
    build_asan -j "$(own_cores)"
    run_meson_tests "$asan" --timeout-multiplier 5 --num-processes "$(own_cores)"
}

suite_asan_mpi() {
    build_asan
    "$uci_root/tests/mpi/run_mpi.sh" --preload "$(gcc -print-file-name=libasan.so) $asan/libucx_integrity.so" \
                                     --tls posix,self --scale 0.2 --timeout 120
}

suite_bench() {
    "$uci_root/tests/bench/run_bench.sh" --quick
    say "1 passed, 0 failed, 0 skipped"
}

# --- what the suites share ---

# How many cores a suite has that takes one where it runs beside others.
own_cores() {
    if [ -n "${suites_beside:-}" ]; then
        say 1
    else
        nproc
    fi
}

# Sources of the project, committed or about to be: never what a build made.
project_files() {
    git -C "$uci_root" -c safe.directory="$uci_root" ls-files --cached --others --exclude-standard -- "$@"
}

# at_once NUMBER COMMAND... -- FILE...: COMMAND for so many files each, as many at a time as there are cores.
at_once() {
    local number=$1 command=()
    shift
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    shift
    printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -n "$number" "${command[@]}"
}

count_check() {
    local label=$1
    shift
    if "$@" </dev/null; then
        passed=$((passed + 1))
        say "ok   $label"
    else
        failed=$((failed + 1))
        say "FAIL $label"
    fi
}

run_meson_tests() {
    local dir=$1
    shift
    meson test -C "$dir" --no-rebuild --print-errorlogs "$@" || true
    python3 "$uci_root/tests/count_meson.py" "$dir/meson-logs/testlog.json"
}

# start_suite NAME: in a process of its own, so that an error in it is its own, within a time limit. How long it took is the last line of
# a file, as others may run beside it: one that takes one core waits until a core is free, which is a byte in a pipe.
start_suite() {
    local name=$1 limit=$long_limit
    [ "$(suite_field "$name" 2)" = - ] || limit=$suite_limit
    [[ $name != marathon && $name != soak ]] || limit=0 # as long as it is told to go on
    : >"$logs/$name.log"
    rm -f "$logs/$name.times"
    (
        if [ "$(suite_field "$name" 2)" = + ]; then
            read -rn 1 -u "$free_cores"
            export OMPI_MCA_mpi_yield_when_idle=1 # ranks that wait leave the cores to the other suites
        fi
        begin=$(clock)
        status=0
        timeout -k 10 "$limit" "$0" --only "$name" >"$logs/$name.log" 2>&1 </dev/null {free_cores}>&- &
        timeout_pid=$!
        trap 'kill "$timeout_pid"; wait "$timeout_pid"; exit 130' INT TERM
        wait "$timeout_pid" || status=$?
        since "$begin" >"$logs/$name.time"
        [ "$(suite_field "$name" 2)" != + ] || printf + >&"$free_cores"
        exit "$status"
    ) &
    suite_pids[$name]=$!
}

# show_suite NAME: its log as it grows, until it is over.
show_suite() {
    local name=$1 status=0
    say
    say "=== $name ($(suite_field "$name" 3) or so) ==="
    tail -n +1 -f --pid="${suite_pids[$name]}" "$logs/$name.log"
    wait "${suite_pids[$name]}" || status=$?
    unset "suite_pids[$name]"
    add_result "$name" "$status" "$(cat "$logs/$name.time")" "$logs/$name.log"
}

show_suites() {
    local name
    for name; do
        show_suite "$name"
    done
}

# What this script itself is told: a job's ranks would warn of settings that they don't know.
unexport_own() {
    export -n UCI_GPU_UCX UCI_HOURS UCI_MARATHON_FOLDER UCI_OSU_SOURCE UCI_TEST_SEED
}

# run_suites NAME...: an interrupt here ends all of them.
run_suites() {
    local name beside=() free_cores
    local -A suite_pids=()
    mkfifo "$logs/cores"
    exec {free_cores}<>"$logs/cores"
    rm "$logs/cores"
    printf '%*s' $(($(nproc) + 1)) '' >&"$free_cores" # one more: now and then each waits for a clock
    for name; do
        [ "$(suite_field "$name" 2)" != + ] || beside+=("$name")
    done
    [ ${#beside[@]} -lt 2 ] || export suites_beside=1
    beside=()
    trap 'kill "${suite_pids[@]}"; wait "${suite_pids[@]}"; exit 130' INT TERM
    for name; do
        if [ "$(suite_field "$name" 2)" = + ]; then
            beside+=("$name")
        else
            show_suites ${beside[@]+"${beside[@]}"}
            beside=()
        fi
        start_suite "$name"
        [ ${#beside[@]} -gt 0 ] || show_suite "$name"
    done
    show_suites ${beside[@]+"${beside[@]}"}
    exec {free_cores}>&-
    trap - INT TERM
}

# Add the closing lines of a suite's log; a suite that failed without counting a failure is one.
add_result() {
    local name=$1 status=$2 duration=$3 log=$4 counts note=
    counts=$(awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
                  END { print p + 0, f + 0, s + 0 }' "$log")
    read -r passed failed skipped <<<"$counts"
    if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
        failed=1
        note="ended with status $status"
        [ "$status" -ne 124 ] || note="stopped by its limit of time"
    fi
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
    table+=("$(printf '%-10s %8d %8d %8d %9s s %6s  %s' "$name" "$passed" "$failed" "$skipped" "$duration" "$(cores_busy "$name" "$duration")" "$note")")
}

# cores_busy NAME SECONDS: how many it kept busy, on average, by what `times` said at its end; nothing if it was killed.
cores_busy() {
    [ ! -s "$logs/$1.times" ] ||
        awk -F '[ ms]+' -v wall="$2" 'NR == 2 { printf "%.1f", ($1 * 60 + $2 + $3 * 60 + $4) / (wall + 0.01) }' "$logs/$1.times"
}

print_summary() {
    say
    printf '%-10s %8s %8s %8s %11s %6s\n' suite passed failed skipped time cores
    printf '%s\n' "${table[@]}"
    say
    say "$total_passed passed, $total_failed failed, $total_skipped skipped"
}

main() {
    local chosen=() table=() total_passed=0 total_failed=0 total_skipped=0 name
    case ${1:-} in
    --only)    cd "$uci_root"; use_debian_python; unexport_own; only=$2; trap 'times >"$logs/$only.times"' EXIT; "suite_$only"; exit ;;
    --list)    list_suites; exit ;;
    -h|--help) usage_of "$0"; say; list_suites; exit ;;
    esac
    mapfile -t chosen < <(printf '%s\n' "${suites[@]}" | awk '$2 != "-" { print $1 }')
    [ $# -eq 0 ] || chosen=("$@")
    for name in "${chosen[@]}"; do
        [ -n "$(suite_field "$name" 1)" ] || die "no suite '$name'; there are:"$'\n'"$(list_suites)"
    done
    "$uci_root/tools/install_deps.sh" build test
    build_uci "$build"
    mkdir -p "$logs"
    run_suites "${chosen[@]}"
    print_summary
    [ "$total_failed" -eq 0 ]
}

main "$@"
