#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tools/run_check.sh [BUILD_DIR]
#
# Does uci_check find what it should, and say so by its exit status; and can programs be compiled against what is installed of
# libuci? Ends with "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

build=$(realpath "${1:-$uci_root/build}")
check=$build/tools/uci_check
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"

# A command that is to ssh what tests can have: it starts the program here, after a line of REASON if there is one
make_rsh() {
    printf '#!/bin/sh\nshift\n%s\nexec "$@"\n' "${2:-}" >"$work/$1"
    chmod +x "$work/$1"
}

make_folder() {
    mkdir -p "$work/data/sub"
    head -c 300000 /dev/urandom >"$work/data/a"
    head -c 1000 /dev/urandom >"$work/data/sub/b"
    : >"$work/data/empty"
    ln -s nowhere "$work/data/link"
    ln -s .. "$work/data/sub/circle"
    mkfifo "$work/data/pipe"
    truncate -s 8G "$work/data/sparse"
    printf x >"$work/data/new"$'\n'"line and \\ "$'\xff'
}

fresh_copy() {
    rm -rf "$work/copy"
    cp -a "$work/data" "$work/copy"
}

# change FILE OFFSET
change() {
    printf '\001\002' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

json_says() {
    local test=$1 expected=$2 status=0
    shift 2
    "$@" --json >"$work/json" || status=$?
    cat "$work/json"
    [ "$status" -eq "$expected" ] && python3 -c "
import json, sys
report = json.load(open(sys.argv[1]))
differences = {item['path']: item for item in report.get('differences', [])}
assert $test, report" "$work/json"
}

check_sum() {
    make_folder
    cd "$work"
    check "sum" says "entries" 0 "$check" sum -o list data
    check "verify, nothing changed" says "the same: 10 entries" 0 "$check" verify list
    check "the manifest to stdout is the same" cmp list <("$check" sum -q data)
    check "a manifest into a device" leaves_devices_alone
    check "names are on one line" grep -qF 'data/new\nline and \\ \xff' list
    check "a file named like that" says "the same: 1 entries" 0 "$check" compare data/new* data/new*
    check "sum --json" json_says "report['entries'] == 10 and len(report['sum']) == 16" 0 "$check" sum -o list.json data
    check "other digests have other roots" other_digest
    check "a manifest within the folder is not part of it" within
    check "holes are as what they read as" holes
}

other_digest() {
    "$check" sum -q -d crc64 data >list.crc64 && ! cmp -s list list.crc64
}

within() {
    fresh_copy
    "$check" sum -C copy -o manifest . && "$check" verify -C copy manifest && "$check" sum -C copy -o manifest . &&
        says "the same: 10 entries" 0 "$check" verify -C copy manifest
}

holes() {
    truncate -s 20M holes
    head -c 20M /dev/zero >zeros
    says "the same" 0 "$check" compare holes zeros
}

check_verify() {
    cd "$work"
    change data/a 70000
    change data/a 299999 # and a byte longer
    check "verify: changed bytes" says "changed    data/a, 300000 and 300001 bytes long, bytes 65536..131071, 262144..300000" 1 "$check" verify list
    change data/sparse 5000000000
    check "verify: a byte in the middle of 8 GiB" says "data/sparse, bytes 4999938048..5000003583" 1 "$check" verify list
    mv list.leaves away
    check "verify without leaves: changed" says "changed    data/a, 300000 and 300001 bytes long" 1 "$check" verify list
    mv away list.leaves
    rm data/link data/sub/b && mkdir data/sub/b && touch data/sub/more
    check "verify: missing" says "missing    data/link" 1 "$check" verify list
    check "verify: other type" says "other type data/sub/b, file and folder" 1 "$check" verify list
    check "verify: new" says "new        data/sub/more" 1 "$check" verify list
    check "verify --json" json_says "{d['kind'] for d in differences.values()} == {'missing', 'new', 'type', 'changed'}" 1 "$check" verify list
    ln -s elsewhere data/link
    check "verify: a link with another target" says "changed    data/link" 1 "$check" verify list
    rm -rf data
    check "verify: all gone" says "10 missing" 1 "$check" verify list
    make_folder
}

check_manifest() {
    cd "$work"
    "$check" sum -q -o list data
    sed 's/ 300000 / 300001 /' list >bad
    check "a manifest that was changed is refused" says "it is damaged: its digest is not" 2 "$check" verify bad
    head -n 5 list >bad
    check "half a manifest is refused" says "its end is missing" 2 "$check" verify bad
    check "what is no manifest is refused" says "it is not a manifest" 2 "$check" verify data/a
    check "no manifest" says "there is no such file" 2 "$check" verify nowhere
    cp list.leaves leaves
    change list.leaves 1000
    check "leaves that were changed are not used" says "list.leaves is not used: it is damaged" 0 "$check" verify list
    head -c 100 leaves >list.leaves
    check "leaves that were cut are not used" says "it is not a file of leaves, or cut short" 0 "$check" verify list
    "$check" sum -q -o other data/sub
    cp other.leaves list.leaves
    check "leaves of another manifest are not used" says "list.leaves is not used" 0 "$check" verify list
    cp leaves list.leaves
}

# A daemon's: what is opened first becomes standard input
without_stdin() {
    "$@" <&-
}

leaves_devices_alone() {
    "$check" sum -q -o /dev/null data && "$check" sum -q -o /dev/stdout data >stdout && "$check" verify stdout &&
        [ ! -e /dev/null.leaves ] && [ ! -e /dev/stdout.leaves ]
}

check_compare() {
    cd "$work"
    fresh_copy
    check "compare: the same" says "the same: 10 entries" 0 "$check" compare data copy
    change copy/a 1
    rm copy/empty && touch copy/extra
    check "compare: differs" says "differs    a, bytes 0..65535" 1 "$check" compare data copy
    check "compare: only in A" says "only in A  empty" 1 "$check" compare data copy
    check "compare: only in B" says "only in B  extra" 1 "$check" compare data copy
    check "compare: two files" says "data/a, bytes 0..65535" 1 "$check" compare data/a copy/a
    check "compare: a file and a folder" says "folder and file" 1 "$check" compare data copy/a
    check "compare: one is not there" says "nowhere: No such file or directory" 2 "$check" compare data nowhere
    check "links are not followed" says "the same: 1 entries" 0 "$check" compare data/link copy/link
}

check_hosts() {
    local far=("$check" compare --remote-program "$check")
    cd "$work"
    make_rsh rsh
    make_rsh rsh_talks "echo Welcome to this host"
    make_rsh rsh_dies "exit 3"
    check "two hosts: differs" says "differs    a, bytes 0..65535" 1 "${far[@]}" --rsh ./rsh data host:copy
    check "two hosts: bytes moved are told" says "moved: " 1 "${far[@]}" --rsh ./rsh "[::1]:data" copy
    check "two hosts: only in A" says "only in A  empty" 1 "${far[@]}" --rsh ./rsh "host:$work/data" copy
    check "two hosts: the same" json_says "report['same'] and report['moved']['sent'] > 0" 0 env UCI_CHECK_RSH=./rsh "${far[@]}" host:data data
    check "two hosts: not there at the other one" says "could not read its data" 2 "${far[@]}" --rsh ./rsh host:nowhere data
    check "two hosts: which of them complains" says "uci_check at $(hostname): nowhere: No such" 2 "${far[@]}" --rsh ./rsh host:nowhere data
    check "two hosts: not there here" says "nowhere: No such" 2 "${far[@]}" --rsh ./rsh host:data nowhere
    check "two hosts: without standard input" says "differs    a, bytes 0..65535" 1 without_stdin "${far[@]}" --rsh ./rsh data host:copy
    check "two hosts: a shell that prints" says "is too long: it is no uci_check, or its shell prints" 2 "${far[@]}" --rsh ./rsh_talks host:data data
    check "two hosts: a shell that dies" says "the other side has ended" 2 "${far[@]}" --rsh ./rsh_dies host:data data
    check "two hosts: no such shell" says "failed to start ./nowhere" 2 "${far[@]}" --rsh ./nowhere host:data data
    check "two hosts: a host that is an option" says "can't start anything at '-x'" 2 "${far[@]}" --rsh ./rsh -- -x:data data
    check "two hosts: both elsewhere" says "one of the two must be on this host" 2 "${far[@]}" a:data b:data
    check "random damage at known places" "$uci_root/tests/tools/check_damage.py" "$check" "$work/rsh" "$work/damage"
    check_ssh "${far[@]}"
}

# An sshd of our own, with keys for this test alone
start_sshd() {
    local port=$1
    ssh-keygen -q -t ed25519 -N '' -f "$work/key" && cp "$work/key.pub" "$work/authorized" && chmod 700 "$work" &&
        "$(command -v sshd || echo /usr/sbin/sshd)" -f /dev/null -h "$work/key" -p "$port" -o ListenAddress=127.0.0.1 -o StrictModes=no -o UsePAM=no \
            -o "AuthorizedKeysFile=$work/authorized" -o "PidFile=$work/sshd.pid" -E "$work/sshd.log" &&
        timeout 5 sh -c "until [ -s '$work/sshd.pid' ]; do sleep 0.05; done" # it goes into the background before it listens
}

check_ssh() {
    local label="two hosts: ssh" port=$((20000 + RANDOM % 10000)) options
    if [ ! -x /usr/sbin/sshd ]; then
        skip "$label" "no sshd"
        return
    fi
    mkdir -p /run/sshd 2>/dev/null || true
    if ! start_sshd "$port" >"$work/sshd.said" 2>&1; then
        skip "$label" "sshd does not start here: $(tail -n 1 "$work/sshd.said" "$work/sshd.log" 2>/dev/null | tail -n 1)"
        return
    fi
    options="ssh -p $port -i $work/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -q"
    check "$label" says "differs    a, bytes 0..65535" 1 "$@" --rsh "$options" "127.0.0.1:$work/data" copy
    kill "$(cat "$work/sshd.pid")"
}

# What can't be read is told, and the rest is done. Root can read everything: then it is done as another user.
unreadable() {
    local as_user=()
    [ "$(id -u)" -ne 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    rm -rf locked && mkdir -p locked/folder && touch locked/file locked/folder/inside && cp "$check" ./uci_check &&
        chmod 755 . uci_check locked && chmod 0 locked/file locked/folder || return
    says "locked/file is not checked: Permission denied" 2 "${as_user[@]}" ./uci_check sum locked &&
        says "locked/folder is not checked: Permission denied" 2 "${as_user[@]}" ./uci_check compare locked locked &&
        says "unchecked  folder" 2 "${as_user[@]}" ./uci_check compare locked locked &&
        says "unchecked  folder" 2 "${as_user[@]}" ./uci_check compare --rsh ./rsh --remote-program ./uci_check locked host:locked
}

# A file that is written to all the time
changes_while_read() {
    local status=0
    head -c 300M /dev/zero | tr '\0' x >busy
    while :; do change busy 100; done &
    says "busy is not checked: it changed while it was read" 2 "$check" sum busy || status=1
    kill $!
    wait $! 2>/dev/null || true
    rm busy
    return "$status"
}

check_odd() {
    cd "$work"
    check "what can't be read" unreadable
    check "a file that changes while it is read" changes_while_read
    check "a file whose size does not tell" says "Invalid argument" 2 "$check" sum /proc/self/status
    check "a full disk" says "cannot write" 2 full_disk
    check "progress is for terminals" progress
    check "no command" says "sum, verify or compare?" 2 "$check"
    check "a command of another program's" says "'compare A B' does what you look for; there is no command diff" 2 "$check" diff a b
    check "wrong command" says "there is no command wrong" 2 "$check" wrong
    check "wrong option" says "Try 'uci_check --help'" 2 "$check" --wrong
    check "wrong digest" says "there is no digest none" 2 "$check" sum -d none data
    check "wrong chunk size" says "a chunk size is 4k to 16m" 2 "$check" sum -c 1k data
    check "wrong threads" says "threads are 1 to 1024" 2 "$check" sum -t 0 data
    check "an empty value" says "the value of -o is empty" 2 "$check" sum -o '' data
    check "verify writes no manifest" says "no -o and no --no-leaves for verify" 2 "$check" verify -o other list
    check "verify takes the manifest's digest" says "no -d and no -c for verify" 2 "$check" verify -d crc64 list
    check "compare goes nowhere" says "-C is for sum and verify" 2 "$check" compare -C data a sub
    check "one path twice" says "some paths are given twice" 2 "$check" sum data data
    check "serve by hand" says "serve is what compare starts" 2 "$check" serve data
    check "--help" says "Exit status: 0 the same" 0 "$check" --help
}

full_disk() {
    local status=0
    "$check" --help >/dev/full || status=$?
    [ "$status" -eq 2 ] && "$check" sum -q data >/dev/full
}

# Of what takes a second or so: one file with many names; and not when stderr is no terminal
progress() {
    local number
    mkdir large
    head -c 400M /dev/zero | tr '\0' x >large/0
    for number in {1..9}; do
        ln large/0 "large/$number"
    done
    script -qec "$check sum -t 1 -o list.large large" /dev/null >seen
    "$check" sum -t 1 -o list.large large 2>unseen
    rm -r large
    grep 'GB/s, .* s left' seen && ! grep left unseen
}

# --- programs ---

install_uci() {
    DESTDIR=$work/root meson install -C "$build" --no-rebuild >/dev/null
    PKG_CONFIG_PATH=$(dirname "$(find "$work/root" -name uci.pc)")
    LD_LIBRARY_PATH=$(dirname "$(find "$work/root" -name libuci.so)")
    export PKG_CONFIG_PATH LD_LIBRARY_PATH
    flags=$(PKG_CONFIG_SYSROOT_DIR=$work/root pkg-config --cflags --libs uci)
}

# compile COMPILER NAME [FLAG...]
compile() {
    # shellcheck disable=SC2086 # flags are several words
    $1 -std=gnu11 -Wall -Wextra -Werror -Wno-stringop-overflow -o "$work/$2" "$uci_root/examples/$2.c" $flags "${@:3}"
}

# The names that programs are linked with, and nothing else of ours
exports() {
    local names
    names=$(nm -D --defined-only "$LD_LIBRARY_PATH/libuci.so" | awk '$2 != "A" { print $3 }')
    say "$names"
    [ -n "$names" ] && ! grep -v '^uci_tree_[a-z_]*@@UCI_0$' <<<"$names"
}

buffer() {
    compile cc buffer && says "bytes 983040..1048575" 0 ./buffer
}

ucp_endpoints() {
    # shellcheck disable=SC2046 # several words
    compile cc ucp_endpoints $(pkg-config --cflags --libs ucx) &&
        says "child: 1 ranges differ, the first one from 8323072 on" 0 timeout 60 ./ucp_endpoints
}

mpi_ranks() {
    compile "mpicc.$1" mpi_ranks || return
    case $1 in
    openmpi) set -- mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 --mca pml ucx --mca opal_common_ucx_tls any ;;
    mpich)   set -- mpirun.mpich -np 2 ;;
    esac
    says "rank 1: 2 ranges differ; 1408 bytes moved in 5 rounds" 0 "$uci_root/tests/watchdog.sh" 120 "$@" "$work/mpi_ranks"
}

check_programs() {
    local flags=
    cd "$work"
    check "meson install" install_uci
    check "libuci exports uci_tree_* of its version alone" exports
    check "example: a buffer" buffer
    check "example: two ranks, openmpi" mpi_ranks openmpi
    check "example: two ranks, mpich" mpi_ranks mpich
    check "example: two ucp endpoints" ucp_endpoints
    check "the headers are C++, too" cxx_headers
}

cxx_headers() {
    # shellcheck disable=SC2046,SC2086 # several words
    printf '#include <uci_ucp.h>\n#include <uci_mpi.h>\nint main() { return uci_tree_compare == nullptr; }\n' |
        g++ -Wall -Wextra -x c++ -fsyntax-only $flags $(pkg-config --cflags ucx) $(pkg-config --cflags mpich) -
}

main() {
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    check_sum
    check_verify
    check_manifest
    check_compare
    check_hosts
    check_odd
    check_programs
    end_of_checks
}

main "$@"
