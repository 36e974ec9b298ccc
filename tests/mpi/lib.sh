# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Building and running the MPI test programs: shared by run_mpi.sh, tests/faults/run_faults.sh and others, which may set programs_dir
# to a folder of their own. Sourced, never run.
#
# A program's comment says how it is run:
#   @ranks N...                 numbers of ranks it is meant for
#   @args [MPI] N: ARGUMENTS    arguments with N ranks, for one MPI or both (the more special line wins)
#   @skip MPI TLS REASON        what plain UCX or that MPI cannot do; * is any, TLS one transport of the list
#   @faultless N REASON         what can't be repaired with N ranks
#   @expect TLS CONDITION       on the summed counters, with TLS in the list and no settings of UCI's

# shellcheck source=tests/watchdog.sh
source "$(dirname "${BASH_SOURCE[0]}")/../watchdog.sh"

lib_dir=$uci_root/tests/mpi
programs_dir=$lib_dir
work_dir=${TEST_BUILD_DIR:-$uci_root/build}/mpi
logs_dir=$work_dir/logs
rank_wrapper=()   # put in front of each rank's program: sets what differs from rank to rank
launch_options=() # more options for mpirun
# A folder for UCX_PLUGIN_PATH: UCI gets in as a UCX module (UCX 1.22 or later), and nothing is preloaded
plugin=
# shellcheck disable=SC2034
all_tls='posix,self posix,cma,self tcp,self'
cores=$(nproc)
use_debian_python # it judges each job's statistics

# meta PROGRAM KEY: the rest of its "@KEY" lines.
meta() {
    sed -n "s/^ \* @$2 //p" "$programs_dir/$1.c"
}

# arguments_of PROGRAM MPI NP
arguments_of() {
    meta "$1" args | awk -v mpi="$2" -v np="$3:" '
        $1 == np              { if (!special) { $1 = ""; args = $0 } }
        $1 == mpi && $2 == np { $1 = $2 = ""; args = $0; special = 1 }
        END                   { print args }'
}

# skip_reason PROGRAM MPI TLS: why not, or nothing.
skip_reason() {
    local mpi tls reason
    while read -r mpi tls reason; do
        if [[ $mpi == '*' || $mpi == "$2" ]] && [[ $tls == '*' || ,$3, == *,$tls,* ]]; then
            say "$reason"
            return
        fi
    done < <(meta "$1" skip)
}

# faultless_reason PROGRAM NP SETTING...: why not, if these inject faults, or nothing.
faultless_reason() {
    local ranks reason
    [[ " ${*:3}" == *' UCI_FAULT='* ]] || return 0
    while read -r ranks reason; do
        [ "$ranks" != "$2" ] || say "$reason"
    done < <(meta "$1" faultless)
}

# expectations_of PROGRAM TLS: its conditions with these transports, a line each.
expectations_of() {
    local tls condition
    while read -r tls condition; do
        [[ ,$2, != *,$tls,* ]] || say "$condition"
    done < <(meta "$1" expect)
}

# compile_one MPI PROGRAM: gcc takes MPI_STATUSES_IGNORE and MPI_UNWEIGHTED for arrays that are too small.
compile_one() {
    local mpi=$1 name=$2 libraries
    read -ra libraries < <(meta "$name" link) || libraries=()
    "mpicc.$mpi" -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror \
        -Wno-stringop-overflow -Wno-stringop-overread "$programs_dir/$name.c" -o "$work_dir/$mpi/$name.$run_mark" \
        ${libraries[@]+"${libraries[@]}"} -lpthread && mv "$work_dir/$mpi/$name.$run_mark" "$work_dir/$mpi/$name"
}

is_current() {
    local source
    for source in "$programs_dir/$2.c" "$programs_dir"/*.h "$lib_dir"/*.h; do
        [ "$work_dir/$1/$2" -nt "$source" ] || return
    done
}

# compile_programs MPI PROGRAM...: those that are not up to date, as many at once as there are cores.
compile_programs() {
    local mpi=$1 name begin stale=()
    shift
    command -v "mpicc.$mpi" >/dev/null || die "mpicc.$mpi is missing (Debian: libopenmpi-dev openmpi-bin, libmpich-dev mpich)"
    mkdir -p "$work_dir/$mpi"
    for name; do
        is_current "$mpi" "$name" || stale+=("$name")
    done
    [ ${#stale[@]} -gt 0 ] || return 0
    say "compiling ${#stale[@]} programs for $mpi ..."
    begin=$(clock)
    export -f compile_one meta
    export programs_dir work_dir run_mark
    # shellcheck disable=SC2016  # that shell expands them
    printf '%s\0' "${stale[@]}" | xargs -0 -P "$cores" -I{} bash -c 'compile_one "$1" "$2"' _ "$mpi" {} ||
        die "a program does not compile"
    say "compiled in $(since "$begin") s"
}

# check_preload PATHS: PATHS (with spaces or colons between) as LD_PRELOAD wants them; 'none' gives nothing.
check_preload() {
    local path paths=()
    [ "$1" != none ] || return 0
    for path in ${1//:/ }; do
        [ -f "$path" ] || die "no library '$path' (build it first, or use --preload none)"
        paths+=("$(realpath "$path")")
    done
    (IFS=:; say "${paths[*]}")
}

# openmpi_major: 4 for Open MPI 4.1.4.
openmpi_major() {
    mpirun.openmpi --version | sed -n '1s/.* \([0-9]*\)\..*/\1/p'
}

# launcher MPI NP TLS PRELOAD [NAME=VALUE]...: set the array launch_line. mpirun itself is not preloaded, but Open MPI's from 5 on:
# processes that are spawned get mpirun's environment there, and not what -x sets.
launcher() {
    local mpi=$1 np=$2 tls=$3 preload=$4 setting
    shift 4
    case $mpi in
    openmpi)
        # all through UCX: no other pml, one-sided over ucx, no byte transfer of its own, no shared memory collectives
        launch_line=(mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -np "$np" --mca pml ucx
                     --mca opal_common_ucx_tls any --mca osc ucx --mca btl self --mca coll '^sm'
                     -x "UCX_TLS=$tls" ${launch_options[@]+"${launch_options[@]}"})
        [ "$np" -le "$cores" ] || launch_line+=(--mca mpi_yield_when_idle 1)
        for setting; do
            launch_line+=(-x "$setting")
        done
        [ -z "$preload" ] || launch_line+=(-x "LD_PRELOAD=$preload")
        [ "$(openmpi_major)" -lt 5 ] ||
            launch_line=(env "UCX_TLS=$tls" "$@" ${preload:+"LD_PRELOAD=$preload"} "${launch_line[@]}")
        ;;
    mpich)
        launch_line=(mpirun.mpich ${launch_options[@]+"${launch_options[@]}"} -np "$np" -genv MPIR_CVAR_NOLOCAL 1 -genv UCX_TLS "$tls")
        for setting; do
            launch_line+=(-genv "${setting%%=*}" "${setting#*=}")
        done
        [ -z "$preload" ] || launch_line+=(-genv LD_PRELOAD "$preload")
        ;;
    *)
        die "unknown MPI '$mpi' (openmpi or mpich)"
        ;;
    esac
}

# Shared memory that killed processes left behind: no process maps it any more.
drop_left_shared_memory() {
    local file
    for file in /dev/shm/ucx_shm_posix_* /dev/shm/vader_segment.*; do
        if [ -n "$(find "$file" -mmin +1 -user "$(id -u)" 2>/dev/null)" ] && ! grep -qsF "$file" /proc/[0-9]*/maps; then
            rm -f "$file"
        fi
    done
}

# What one run writes while it works; several may run at the same time.
run_dir=$work_dir/$run_mark

trap 'end_marked; rm -rf "$run_dir"' EXIT
trap 'exit 130' INT TERM

# run_limited SECONDS LOG COMMAND...: as COMMAND; 124 if it took too long: its log says where, and it was ended.
run_limited() {
    local log=$2 status=0
    watched "$1" "${@:3}" >"$log" 2>&1 </dev/null || status=$?
    [ "$status" -ne 124 ] || drop_left_shared_memory
    return "$status"
}

# What a rank says last must not depend on its launcher: after MPI_Abort MPICH's ends without reading the ranks' pipes
# once more (7 of 600 runs on busy cores said nothing at all). So stderr goes into a file, where ranks share its folder.
# shellcheck disable=SC2016  # for the shell of the rank
own_stderr=(sh -c '[ ! -d "$CHECK_FOLDER" ] || exec 2>>"$CHECK_FOLDER/stderr"; exec "$@"' rank)

# run_program PROGRAM MPI TLS NP PRELOAD LIMIT ARGUMENTS [NAME=VALUE]...: run it once. Sets
#   verdict   PASS, SKIP, FAIL or HANG        reason    why not PASS
#   duration  in seconds                      run_log   its output; run_stats: the folder of its UCI_STATS files
# shellcheck disable=SC2034  # what it sets is for the callers
run_program() {
    local name=$1 mpi=$2 tls=$3 np=$4 preload=$5 limit=$6 arguments=$7 status=0 begin
    local launch_line=()
    shift 7
    run_log=$run_dir/log
    run_stats=$run_dir/stats
    rm -rf "$run_dir"
    mkdir -p "$run_stats" "$run_dir/meet"
    set -- "$@" "CHECK_FOLDER=$run_dir/meet" # see check.h
    [ -z "$plugin" ] || set -- "$@" "UCX_PLUGIN_PATH=$plugin"
    [ -z "$preload$plugin" ] || set -- "$@" "UCI_STATS=$run_stats/%r.%p.json"
    launcher "$mpi" "$np" "$tls" "$preload" "$@"
    read -ra arguments <<<"$arguments"
    begin=$(clock)
    run_limited "$limit" "$run_log" "${launch_line[@]}" "${own_stderr[@]}" \
        ${rank_wrapper[@]+"${rank_wrapper[@]}"} "$work_dir/$mpi/$name" "${arguments[@]}" || status=$?
    [ ! -f "$run_dir/meet/stderr" ] || cat "$run_dir/meet/stderr" >>"$run_log"
    duration=$(since "$begin")
    judge "$name" "$status" "$limit"
}

# judge PROGRAM STATUS LIMIT: only exit status 0 and the program's own last word are a pass.
# shellcheck disable=SC2034
judge() {
    verdict=FAIL
    reason="exit status $2"
    if [ "$2" -eq 124 ]; then
        verdict=HANG
        reason="ended after $3 s"
    elif [ "$2" -eq 0 ] && grep -qx "PASS $1" "$run_log"; then
        verdict=PASS
        reason=
    elif [ "$2" -eq 0 ] && grep -q "^SKIP $1: " "$run_log"; then
        verdict=SKIP
        reason=$(sed -n "s/^SKIP $1: //p" "$run_log")
    elif [ "$2" -eq 0 ]; then
        reason="exit status 0, but no line 'PASS $1'"
    fi
}

# check_stats PROCESSES EXPRESSION...: do the counters of the last run fulfil all of them? Sets stats_line.
# shellcheck disable=SC2034
check_stats() {
    local processes=$1
    shift
    stats_line=$(python3 "$lib_dir/stats.py" --processes "$processes" "$run_stats" "$@" 2>&1)
}

# Conditions for stats.py: hooks were in and nothing was lost; and then without or with injected faults.
# shellcheck disable=SC2034
{
    stats_always=('messages_received > 0' 'messages_sent > 0' 'unrepaired_chunks == 0'
                  'mismatched_chunks == repaired_chunks + unrepaired_chunks + source_changed')
    stats_clean=('mismatched_chunks == 0' 'mismatched_headers == 0' 'mismatched_control == 0' 'mismatched_roots == 0'
                 'source_changed == 0' 'retransmitted_bytes == 0' 'faults_injected == 0')
    stats_faulty=('repaired_chunks == mismatched_chunks - source_changed')
}

# stats_value EXPRESSION: its value over the summed counters of the last run.
stats_value() {
    python3 "$lib_dir/stats.py" --value "$1" "$run_stats"
}

passed=0 failed=0 skipped=0
failures=() # which, and why

# count_job NAME LOG_NAME: count the last run by its verdict; of one that failed the log is kept, under that name.
count_job() {
    case $verdict in
    PASS) passed=$((passed + 1)) ;;
    SKIP) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1))
        failures+=("$1: $verdict, $reason")
        [ -z "${stats_line:-}" ] || say "    $(head -n 1 <<<"$stats_line")"
        keep_log "$2" 30
        ;;
    esac
}

# end_of_case NAME BEGIN LOG...: count it, and show it: it has failed if something is in `wrong`. Of its logs the last lines are shown then.
# shellcheck disable=SC2154 # `wrong` and `stats_line` are the caller's
end_of_case() {
    local name=$1 begin=$2
    shift 2
    if [ ${#wrong[@]} = 0 ]; then
        passed=$((passed + 1))
        say "ok   $name, $(since "$begin") s  $stats_line"
    else
        failed=$((failed + 1))
        failures+=("$name: $(printf '%s; ' "${wrong[@]}")log: $*")
        say "FAIL $name, $(since "$begin") s"
        { tail -qn 5 "$@" | cut -c1-200; printf '%s\n' "$stats_line" "${wrong[@]}"; } | sed 's/^/     /'
    fi
}

# end_of_jobs BEGIN [NOTE]: the last lines of a script: what has failed, seconds since BEGIN, counts. Status 1 if anything failed.
end_of_jobs() {
    say
    [ ${#failures[@]} -eq 0 ] || printf 'failed: %s\n' "${failures[@]}"
    say "$(since "$1") s${2:+; $2}"
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

# keep_log NAME LINES: keep the last run's log as NAME.log in logs_dir, and show its end.
keep_log() {
    local kept=$logs_dir/${1//[ \/]/.}.log
    mkdir -p "$logs_dir"
    mv "$run_log" "$kept"
    tail -n "$2" "$kept" | cut -c1-220 | sed 's/^/    | /'
    say "    whole log: $kept"
}
