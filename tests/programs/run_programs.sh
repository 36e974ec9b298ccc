#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/programs/run_programs.sh [options]
#
# Programs from Debian, unmodified, and one of OpenSHMEM, each on plain UCX, with UCI preloaded, and with UCI and injected faults:
#
#   openshmem openshmem.c in this folder, under Open MPI's OpenSHMEM: one-sided, atomics, collectives; contents checked
#   netpipe   NPopenmpi and NPmpich2 with their integrity option: ping-pong of all sizes, contents checked by the program
#   lammps    molecular dynamics of two inputs that ship with it, on 2 or 4 ranks (Open MPI): every line of physics that
#             it prints must be the one that plain UCX gave
#
# (HPC Challenge is what tools/demo.sh runs.) With UCI the statistics must show messages in every rank, and with faults that
# all of them healed. Installs what is missing. Ends with the line "N passed, N failed, N skipped"; exit status 1 if anything
# failed.
#
#   --preload LIBS   what to preload (build/libucx_integrity.so)
#   --tls LIST       transports, separated by spaces ("posix,self posix,cma,self tcp,self")
#   --fault SPEC     UCI_FAULT of the third kind of run (rate=1e-2,kind=any,target=any)
#   --filter TEXT    only cases whose name contains TEXT; names look like "lammps/tcp,self/melt-4/uci"
#   --timeout S      seconds for one program (120)
#   --help           this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

build=${TEST_BUILD_DIR:-$uci_root/build}
out=$build/test-programs
preload=$build/libucx_integrity.so
tls='posix,self posix,cma,self tcp,self'
fault=rate=1e-2,kind=any,target=any
filter='' timeout=120
examples=/usr/share/lammps/examples

# program_case NAME HOW MPI RANKS TLS CHECK COMMAND...: HOW is plain, uci or faults; CHECK LOG must hold.
program_case() {
    local name=$1/$2 how=$2 mpi=$3 ranks=$4 transport=$5 check=$6 log launch_line conditions status=0 begin
    local settings=() library='' wrong=()
    shift 6
    [[ $name == *"$filter"* || $how == plain ]] || return 0
    log=$out/${name//\//-}.log
    run_stats=$out/stats
    rm -rf "$run_stats"
    mkdir -p "$run_stats"
    conditions=("${stats_always[@]}" "${stats_clean[@]}")
    if [ "$how" = faults ]; then
        settings+=("UCI_FAULT=$fault")
        conditions=("${stats_always[@]}" "${stats_faulty[@]}" 'faults_injected > 0')
    fi
    if [ "$how" != plain ]; then
        library=$preload
        settings+=("UCI_STATS=$run_stats/%r.%p.json" UCI_LOG_LEVEL=error)
    fi
    launcher "$mpi" "$ranks" "$transport" "$library" ${settings[@]+"${settings[@]}"}
    begin=$(clock)
    (cd "$out" && "$uci_root/tests/watchdog.sh" "$timeout" "${launch_line[@]}" "$@") >"$log" 2>&1 </dev/null || status=$?
    [ "$status" = 0 ] || wrong+=("exit status $status$([ "$status" != 124 ] || say " (not over after $timeout s)")")
    "$check" "$log" "${log%-"$how".log}-plain.log" || wrong+=("its output fails the check $check")
    stats_line=
    [ "$how" = plain ] || check_stats "$ranks" "${conditions[@]}" || wrong+=("$(tail -n +2 <<<"$stats_line" | paste -sd';')")
    end_of_case "$name" "$begin" "$log"
}

# Every size was checked, none failed.
integrity_passed() {
    [ "$(grep -c 'Integrity check passed' "$1")" -ge 30 ] && ! grep -q 'Integrity check failed' "$1"
}

# The lines of physics (step, temperature, energies, pressure) are those of the plain run, to the last digit.
same_physics() {
    [ "$(physics "$1" | wc -l)" -ge 5 ] && [ "$(physics "$1")" = "$(physics "$2")" ]
}

physics() {
    awk '/^Loop time/ { on = 0 } on; /^Step|^-+ Step|^Per MPI rank/ { on = 1 }' "$1" | grep -v 'CPU ='
}

# three_runs NAME MPI RANKS TLS CHECK COMMAND...
three_runs() {
    local name=$1 how
    shift
    for how in plain uci faults; do
        program_case "$name" $how "$@"
    done
}

run_netpipe() {
    local transport=$1
    three_runs "netpipe/$transport/openmpi" openmpi 2 "$transport" integrity_passed NPopenmpi -i -n 20 -u 1000000 -o np.out
    three_runs "netpipe/$transport/mpich" mpich 2 "$transport" integrity_passed NPmpich2 -i -n 20 -u 1000000 -o np.out
}

said_pass() {
    grep -qx 'PASS openshmem' "$1"
}

# Over ucx all of it; its collectives are those of MPI. UCI has a part in both.
run_openshmem() {
    local transport=$1 ranks launch_options=(--mca spml ucx)
    for ranks in 2 4; do
        three_runs "openshmem/$transport/$ranks" openmpi $ranks "$transport" said_pass "$out/openshmem"
    done
}

build_openshmem() {
    oshcc -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wno-deprecated-declarations \
        "$uci_root/tests/programs/openshmem.c" -o "$out/openshmem"
}

run_lammps() {
    local transport=$1
    three_runs "lammps/$transport/melt-2" openmpi 2 "$transport" same_physics \
        lmp -in "$examples/melt/in.melt" -log none
    three_runs "lammps/$transport/peptide-4" openmpi 4 "$transport" same_physics \
        lmp -in "$examples/peptide/in.peptide" -log none
}

main() {
    local transport begin
    set_options preload tls fault filter timeout -- "$@"
    "$uci_root/tools/install_deps.sh" programs
    [ -e "$preload" ] || die "no $preload: build first (ninja -C build)"
    mkdir -p "$out"
    cp "$examples/peptide/data.peptide" "$out"
    begin=$(clock)
    build_openshmem
    for transport in $tls; do
        run_openshmem "$transport"
        run_netpipe "$transport"
        run_lammps "$transport"
    done
    end_of_jobs "$begin"
}

main "$@"
