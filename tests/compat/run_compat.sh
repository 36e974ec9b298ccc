#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/compat/run_compat.sh [options]
#
# Other Debian suites: makes a root folder for each (mmdebstrap), builds UCI in it against its own UCX with its own
# compiler, and runs there:
#
#   unit     the unit tests
#   layers   include rules, and docs/call-surface.md against this UCX
#   ucp      the programs that call UCX (tests/ucp)
#   attach   the ways into a process
#   mpi      the MPI programs under its Open MPI and MPICH: preloaded, and from UCX 1.22 on as a UCX module too
#   ucc      the collective ones over UCC, where this Open MPI has it
#
# An MPI program that fails is run on plain UCX too, up to three times: one that fails there as well counts as skipped. Ends
# with one table, in Markdown for docs/compatibility.md, and the line "N passed, N failed, N skipped". Needs root and,
# for the first run, the network. All takes 40 minutes on 2 cores; a run that is limited by options leaves the results
# of the others, and the table is of all that there are.
#
#   --suites LIST    Debian suites (trixie,sid)
#   --parts LIST     what to run (unit,layers,ucp,attach,mpi,ucc)
#   --mpi LIST       MPIs (openmpi,mpich)
#   --ways LIST      how UCI gets in (preload,module)
#   --tls LIST       transports, separated by spaces ("posix,self posix,cma,self tcp,self")
#   --filter REGEX   only MPI programs whose name matches
#   --timeout S      seconds for one MPI program (40)
#   --roots DIR      where the root folders are kept, 1.5 GB each (UCI_COMPAT_DIR, or /var/cache/uci-compat)
#   --renew          make the root folders anew
#   --table          run nothing: the table of the last results
#   --help           this text
set -euo pipefail
# shellcheck source=tests/roots.sh
source "$(dirname "${BASH_SOURCE[0]}")/../roots.sh"

suites=trixie,sid
parts=unit,layers,ucp,attach,mpi,ucc
mpi=openmpi,mpich
ways=preload,module
tls='posix,self posix,cma,self tcp,self'
filter='.*'
timeout=40
roots=${UCI_COMPAT_DIR:-/var/cache/uci-compat}
renew='' table=''
logs=$uci_root/build/compat-logs
packages=(libucx-dev ucx-utils openmpi-bin libopenmpi-dev mpich libmpich-dev gcc libc6-dev meson ninja-build pkg-config
          libxxhash-dev libisal-dev libssl-dev libcriterion-dev libjansson-dev libncurses-dev locales git python3 python3-mpi4py strace ca-certificates)
with_ucc='--env OMPI_MCA_coll_ucc_enable=1 --env OMPI_MCA_coll_ucc_priority=100'
passed=0 failed=0 skipped=0

# make_root SUITE: unless it is there and whole, with the same packages.
make_root() {
    local suite=$1 root=$roots/$1
    [ -z "$renew" ] || rm -rf --one-file-system "$root"
    [ "$(cat "$root/.uci-complete" 2>/dev/null)" != "${packages[*]}" ] || return 0
    make_debian "$suite" "$root" "$logs/$suite.root.log" "${packages[@]}"
    say "${packages[*]}" >"$root/.uci-complete"
}

# in_root SUITE COMMAND: a shell command in the suite, among the sources; /build is the one place written to.
in_root() {
    mkdir -p "$roots/$1/uci" "$roots/$1/build"
    run_in_debian "$roots/$1" "cd /uci && $2" TEST_BUILD_DIR=/build
}

# counted LOG: set p, f and s to the sums of the closing lines of what ran; one that shows none has failed.
counted() {
    local counts
    counts=$(awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5; n++ }
                  END { print p + 0, f + (n == 0), s + 0 }' "$1")
    read -r p f s <<<"$counts"
}

# part SUITE NAME COMMAND: run, count, and show what failed.
part() {
    local suite=$1 name=$2 log=$logs/$1.$2.log begin p f s note=
    begin=$(clock)
    in_root "$suite" "$3" >"$log" 2>&1 </dev/null || true
    counted "$log"
    [ "$f" -eq 0 ] || [ "$name" != ucp ] || plain_cases "$log"
    [ "$f" -eq 0 ] || [[ $name != mpi.* ]] || run_plain "$suite" "$log"
    [ "$f" -eq 0 ] || [ "$name" != ucc ] || run_plain "$suite" "$log" "$with_ucc"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    say "$suite $name: $p passed, $f failed, $s skipped$note, $(since "$begin") s ($log)"
    grep -aE '^(FAIL|HANG|failed:)' "$log" | head -n 20 | cut -c1-200 | sed 's/^/    /' || true
}

# fails_plain SUITE NAME MPI TLS NP LOG OPTIONS: does it fail on plain UCX, in one of three runs?
fails_plain() {
    for _ in 1 2 3; do
        in_root "$1" "tests/mpi/run_mpi.sh --filter $2 --mpi $3 --tls $4 --np $5 --preload none --timeout $timeout $7" \
            >"$6" 2>&1 </dev/null || return 0
    done
    return 1
}

# run_plain SUITE LOG [OPTIONS]: try what failed in LOG on plain UCX, with these options of run_mpi.sh. What fails there as
# well is marked in LOG, and no failure of UCI: changes f and s.
run_plain() {
    local suite=$1 log=$2 options=${3:-} verdict name mpi tls np
    while read -r verdict _ _ name mpi tls np _; do
        fails_plain "$suite" "$name" "$mpi" "$tls" "$np" "$log.plain" "$options" || continue
        sed -i "s/^$verdict\( .* $name  *$mpi  *$tls  *$np .*\)/PLAIN\1 (plain UCX too)/" "$log"
        f=$((f - 1)) s=$((s + 1)) note=" (plain UCX fails as well)"
    done < <(grep -aE '^(FAIL|HANG) .* s ' "$log")
    rm -f "$log.plain"
}

# plain_cases LOG: of the programs that call UCX some are run without UCI. What this UCX fails there (its assertions, mostly) is no failure of
# UCI, nor is it with UCI_MODE=off: changes f and s.
plain_cases() {
    local count one
    sed -i -E 's/^FAIL (plain\/|example\/[a-z]+\/plain )/PLAIN \1/' "$1"
    awk '/^PLAIN plain/ { sub("plain/", "off/", $2); print $2 }' "$1" | while read -r one; do
        sed -i "s|^FAIL $one |PLAIN $one |" "$1"
    done
    count=$(grep -c '^PLAIN ' "$1" || true)
    [ "$count" -gt 0 ] || return 0
    f=$((f - count)) s=$((s + count)) note=" (plain UCX fails $count by itself)"
}

# has PART: is it to be run?
has() {
    [[ ,$parts, == *,$1,* ]]
}

# ways_of SUITE: UCX 1.22 is the first that loads modules from elsewhere.
ways_of() {
    local way
    for way in ${ways//,/ }; do
        [ "$way" = preload ] || in_root "$1" 'pkg-config --atleast-version=1.22 ucx' || continue
        say "$way"
    done
}

run_mpi() {
    local suite=$1 way one transport how
    for way in $(ways_of "$suite"); do
        how='--preload /build/libucx_integrity.so'
        [ "$way" = preload ] || how='--plugin /build/ucx_plugin'
        for one in ${mpi//,/ }; do
            for transport in $tls; do
                part "$suite" "mpi.$one.$way.$transport" "tests/mpi/run_mpi.sh --mpi $one $how --tls $transport \
                    --filter '$filter' --timeout $timeout"
            done
        done
    done
}

# UCC has a context, workers and tags of its own. That it was used is seen by the endpoints it makes: UCC opens each when
# it first needs it.
run_ucc() {
    local suite=$1
    if ! in_root "$suite" 'ompi_info --param coll ucc --level 9 | grep -q coll_ucc_enable'; then
        say "$suite ucc: this Open MPI is built without it"
        return
    fi
    part "$suite" ucc "tests/mpi/run_mpi.sh --mpi openmpi --preload /build/libucx_integrity.so --filter 'coll_.*' \
        --timeout $timeout --tls 'posix,self tcp,self' $with_ucc"
}

run_suite() {
    local suite=$1
    say "--- $suite: $(in_root "$suite" "dpkg-query -W -f '\${Package} \${Version}, ' libucx0 openmpi-bin mpich gcc")"
    # shellcheck disable=SC2016
    run_step "building in $suite" "$logs/$suite.build.log" in_root "$suite" 'git config --global --add safe.directory /uci
        { [ -f /build/build.ninja ] || meson setup /build /uci; } && ninja -C /build' ||
        { failed=$((failed + 1)); tail -n 20 "$logs/$suite.build.log"; return; }
    ! has unit || part "$suite" unit 'meson test -C /build --no-rebuild >/dev/null
        python3 tests/count_meson.py /build/meson-logs/testlog.json'
    ! has layers || part "$suite" layers 'python3 tests/layering.py /build; python3 tests/call_surface.py /build'
    ! has ucp || part "$suite" ucp "tests/ucp/run_ucp.sh --jobs $(nproc)"
    ! has attach || part "$suite" attach 'tests/attach/run_attach.sh'
    ! has mpi || run_mpi "$suite"
    ! has ucc || run_ucc "$suite"
}

# cell LOG: "passed/run", and how many of the rest fail on plain UCX as well.
cell() {
    [ -f "$1" ] || return 0
    awk '$1 ~ /^(PASS|FAIL|HANG|PLAIN)$/ && $3 == "s" { n[$1]++; runs++ }
         END { printf "%d/%d%s", n["PASS"], runs, n["PLAIN"] ? ", plain fails " n["PLAIN"] : "" }' "$1"
}

# One row for each suite, MPI and way: passed of all that were run, by transport. Then the other parts.
print_table() {
    local suite one way transport p f s
    say
    say '| suite | MPI | UCI | posix,self | posix,cma,self | tcp,self |'
    say '|---|---|---|---|---|---|'
    for suite in ${suites//,/ }; do
        for one in openmpi mpich; do
            for way in preload module; do
                compgen -G "$logs/$suite.mpi.$one.$way.*.log" >/dev/null || continue
                printf '| %s | %s | %s |' "$suite" "$one" "$way"
                for transport in posix,self posix,cma,self tcp,self; do
                    printf ' %s |' "$(cell "$logs/$suite.mpi.$one.$way.$transport.log")"
                done
                say
            done
        done
    done
    say
    say '| suite | unit | layers | ucp | attach | ucc |'
    say '|---|---|---|---|---|---|'
    for suite in ${suites//,/ }; do
        printf '| %s |' "$suite"
        for one in unit layers ucp attach; do
            p='' f=0 s=0
            [ ! -f "$logs/$suite.$one.log" ] || counted "$logs/$suite.$one.log"
            printf ' %s |' "${p:+$p/$((p + f))}"
        done
        printf ' %s |' "$(cell "$logs/$suite.ucc.log")"
        say
    done
    say
}

main() {
    local suite
    set_options suites parts mpi ways tls filter timeout roots renew! table! -- "$@"
    if [ -n "$table" ]; then
        print_table
        return
    fi
    [ "$(id -u)" -eq 0 ] || die "root folders need root"
    mkdir -p "$logs"
    for suite in ${suites//,/ }; do
        make_root "$suite"
        run_suite "$suite"
    done
    print_table
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
