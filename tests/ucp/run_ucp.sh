#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/ucp/run_ucp.sh [options]
#
# Programs that call libucp themselves, with the same expectations on plain UCX and with the library preloaded: each
# over several transports, in several modes, with faults that must heal, with peers that are not alike, and with
# faults that nothing can heal. Ends with the line "N passed, N failed, N skipped"; exit status 1 if anything failed.
#
#   --preload LIBS   what to preload (build/libucx_integrity.so)
#   --tls LIST       transports, separated by spaces ("posix,self posix,cma,self tcp,self self")
#   --quick          on plain UCX over the first transport only: what shows there that the programs expect what UCX does is shown again
#                    over the others, of which UCI has no part; sealed programs over tcp, and over the others one of them; sealed with faults over the
#                    first and tcp; and fewer connections are made in a row where UCI is on one side, or endpoints are shared; where faults are to heal in one
#                    process UCI's time passes eight times as fast (quick_clock.c)
#   --endings        only conversations that end at every step (ending.c): at more of them, by each path, with more faults; 15 minutes
#   --filter TEXT    only cases whose name contains TEXT; names look like "faults/tcp,self/match"
#   --timeout S      seconds for one program (30)
#   --jobs N         so many cases at once (1): nearly all of them are one process that takes one core
#   --part I/N       only each N-th case, from the I-th on (from 0): what --jobs runs N of
#   --keep           keep the output of what passed too
#   --help           this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/ucp
build=${TEST_BUILD_DIR:-$uci_root/build}
out=$build/test-ucp
preload=$build/libucx_integrity.so
tls="posix,self posix,cma,self tcp,self self"
programs=(forms records match order requests flags others memory lifecycle windows surface sleep failure threads siblings
          am_messages am_handlers am_kept am_rendezvous am_reply am_order am_requests am_workers am_threads am_processes am_ends streams
          rma_sizes rma_atomics rma_order rma_regions rma_processes left_processes
          sock_messages sock_ends)
filter='' timeout=30 keep=0 endings=0 quick=0 jobs=1 part=0/1
case_number=0 passed=0 failed=0 skipped=0

# faults that heal; not truncated frames where their length is what is asked (a probe, a truncated receive)
heal="rate=0.1,kind=any,target=any,seed=11"
heal_rarely="rate=0.02,kind=any,target=any,seed=14"
heal_headers="rate=0.3,kind=zero,target=header,seed=12"
heal_match="rate=0.2,kind=bitflip+burst+zero+stale+swap,target=any,seed=13"
hopeless="rate=1,target=payload+repair"

# sources PROGRAM: set `files` to what it is made of: am_test.c is about active messages, rma_test.c about one-sided operations, sock_test.c about
# connections by socket address, two_test.c about two processes.
sources() {
    files=("$here/$1.c" "$here/ucp_test.c")
    [[ $1 != am_* ]] || files+=("$here/am_test.c")
    [[ $1 != rma_* ]] || files+=("$here/rma_test.c")
    [[ $1 != sock_* ]] || files+=("$here/sock_test.c")
    [[ $1 != *_processes && $1 != ending ]] || files+=("$here/two_test.c")
}

# compile TARGET SOURCE ARGUMENT...: unless that was done; -O1 is as good for what only calls UCX.
compile() {
    [ ! -e "$1" ] || [ -n "$(find "$2" "$here"/*.h -newer "$1")" ] || return 0
    gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wno-unused-parameter -Werror -o "$1" "${@:2}" "${flags[@]}"
}

# What programs share, contents among it, is compiled once for all of them.
build_programs() {
    local flags program files objects
    mkdir -p "$out"
    read -ra flags < <(pkg-config --cflags --libs ucx)
    for program in ucp am rma sock two; do
        compile "$out/${program}_test.o" "$here/${program}_test.c" -O2 -c
    done
    for program in "${programs[@]}" unlike policy tree ending late staged; do
        sources "$program"
        objects=("${files[@]/%_test.c/_test.o}")
        objects=("${objects[@]/#"$here"/"$out"}")
        [ -z "$(find "${objects[@]:1}" -newer "$out/$program" 2>&1)" ] || rm -f "$out/$program"
        compile "$out/$program" "${files[0]}" "${objects[@]:1}" -lpthread
    done
    compile "$out/quick_clock.so" "$here/quick_clock.c" -O2 -shared -fPIC
    compile "$out/host_gpu.so" "$here/host_gpu.c" -O2 -shared -fPIC
}

# preload_with_faults PROGRAM: set `preload_quick`; with --quick UCI's time passes faster (quick_clock.c), where that can't make it give up on who is only slow.
preload_with_faults() {
    preload_quick=$preload
    if [ "$quick" = 1 ] && ! [[ $1 =~ _processes$|_ends$|^(sleep|threads|am_threads|lifecycle|failure|siblings)$ ]]; then
        preload_quick="$out/quick_clock.so $preload"
    fi
}

# run_program LOG [NAME=VALUE]... PROGRAM [ARGUMENT]...: with UCX quiet, and told not to catch signals, and without the thread of its virtual file
# system, which begins when UCX is loaded: a process that forks meanwhile leaves the child a lock of UCX's that nobody opens (plain UCX 1.18: 20 of
# 500 runs of left_processes hung in ucp_init). Before 1.18 UCX's
# asynchronous thread may call the handler of a connection by socket address that is gone (openucx/ucx#9942, docs/compatibility.md), and before 1.14
# it stops at an assertion that it has taken back since (9ccaf31bb6; docs/design.md, "UCX's own bugs") where a connection is opened while the other
# side's worker goes: such a program is run once more, and that is said.
run_program() {
    local status=0 bug
    try_program "$@" || status=$?
    bug=$(bug_of_ucx "$status" "$@")
    if [ -n "$bug" ]; then
        say "     ${1##*/}: ended by signal $((status - 128)), as UCX $bug sometimes is; once more" >&2
        status=0
        try_program "$@" || status=$?
    fi
    return "$status"
}

# bug_of_ucx STATUS LOG...: which versions have the bug that has ended this program, if it is a known one and this UCX has it.
bug_of_ucx() {
    local status=$1 log=$2
    [ "$status" -gt 128 ] || return 0
    if [[ " $* " == *" sock_"* ]] && ! pkg-config --atleast-version 1.18 ucx; then
        say "before 1.18 (openucx/ucx#9942)"
    elif [[ " $* " == *" ending "* ]] && ! pkg-config --atleast-version 1.14 ucx &&
        grep -q 'ucp_request.c:684 *Assertion .*UCP_WIREUP_MSG_EP_REMOVED' "$log"; then
        say "before 1.14 (its commit 9ccaf31bb6)"
    fi
}

try_program() {
    local log=$1 environment=()
    shift
    while [[ $1 == *=* ]]; do
        environment+=("$1")
        shift
    done
    "$uci_root/tests/watchdog.sh" "$timeout" env UCX_LOG_LEVEL=fatal UCX_HANDLE_ERRORS=none UCX_VFS_ENABLE=n UCI_LOG_LEVEL=error \
        "${environment[@]}" "$out/$1" "${@:2}" >"$log" 2>&1 </dev/null
}

# wanted NAME: is this case chosen? Its time begins here.
wanted() {
    case_begin=$(clock)
    [[ $1 == *"$filter"* ]] || return 1
    case_number=$((case_number + 1))
    [ $((case_number % ${part#*/})) -eq "${part%/*}" ]
}

# verdict NAME LOG OK: count, and show what went wrong.
verdict() {
    local name=$1 log=$2 ok=$3
    if [ "$ok" = 1 ]; then
        passed=$((passed + 1))
        say "ok   $name: $(since "$case_begin") s"
        [ "$keep" = 1 ] || rm -f "$log"
    else
        failed=$((failed + 1))
        say "FAIL $name ($log)"
        grep -v '^ok ' "$log" | head -n 6 | cut -c1-200 | sed 's/^/     /' || true
    fi
}

# plain_case NAME [NAME=VALUE]... PROGRAM...: must end with status 0.
plain_case() {
    local name=$1 log ok=1
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift
    run_program "$log" "$@" || ok=0
    verdict "$name" "$log" "$ok"
}

# waiting_case NAME [NAME=VALUE]... PROGRAM...: as plain_case, for what hardly computes: it runs beside those that follow, until end_waiting.
waiting=()
waiting_case() {
    local name=$1
    wanted "$name" || return 0
    shift
    run_program "$out/${name//\//-}.log" "$@" &
    waiting+=("$! $case_begin $name")
}

end_waiting() {
    local one pid name ok
    for one in ${waiting[@]+"${waiting[@]}"}; do
        read -r pid case_begin name <<<"$one"
        ok=1
        wait "$pid" || ok=0
        verdict "$name" "$out/${name//\//-}.log" "$ok"
    done
    waiting=()
}

run_transports() {
    local tls program
    for tls in $all_tls; do
        for program in "${programs[@]}"; do
            [[ $quick = 1 && $tls != "${all_tls%% *}" ]] || plain_case "plain/$tls/$program" UCX_TLS="$tls" "$program"
            plain_case "uci/$tls/$program" UCX_TLS="$tls" LD_PRELOAD="$preload" "$program"
        done
    done
}

run_modes() {
    local tls=${all_tls%% *} mode program
    for mode in off detect; do
        for program in "${programs[@]}"; do
            plain_case "$mode/$tls/$program" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_MODE=$mode "$program"
        done
    done
    for program in "${programs[@]}"; do
        plain_case "small/$tls/$program" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_EAGER_MAX=64 UCI_CHUNK_SIZE=256 \
            UCI_LOG_SIZE=1m UCI_DIGEST=crc32c "$program"
    done
}

run_faults() {
    local tls program spec
    for tls in $all_tls; do
        for program in "${programs[@]}"; do
            spec=$heal
            [ "$program" != match ] || spec=$heal_match
            [[ $program != forms && $program != records ]] || spec=$heal_rarely
            preload_with_faults "$program"
            plain_case "faults/$tls/$program" UCX_TLS="$tls" LD_PRELOAD="$preload_quick" UCI_FAULT="$spec" "$program"
        done
    done
    # Whole frames lost: the receiver sees nothing amiss, only the sender can ask
    plain_case "frames/${all_tls%% *}/siblings" UCX_TLS="${all_tls%% *}" LD_PRELOAD="$preload" UCI_FAULT=rate=0.1,target=frame,seed=1 siblings
    for program in match requests lifecycle; do
        preload_with_faults "$program"
        plain_case "headers/${all_tls%% *}/$program" UCX_TLS="${all_tls%% *}" LD_PRELOAD="$preload_quick" \
            UCI_FAULT="$heal_headers" "$program"
    done
}

# A process that seals is what it was to its program, over whatever its messages go. Connections that can't be sealed are refused.
run_sealed() {
    local tls program settings=(UCI_SEAL=encrypt "UCI_SEAL_SCOPE=all" "UCI_KEY_FILE=$own/key")
    make_keys
    for tls in $all_tls; do
        for program in "${programs[@]}"; do
            [[ $quick = 1 && $tls != tcp,self && $program != forms ]] ||
                plain_case "sealed/$tls/$program" UCX_TLS="$tls" LD_PRELOAD="$preload" "${settings[@]}" "$program"
        done
        plain_case "sealed-net/$tls/match" UCX_TLS="$tls" LD_PRELOAD="$preload" "${settings[@]}" UCI_SEAL_SCOPE=net match
        [[ $quick != 1 || $tls = "${all_tls%% *}" || $tls = tcp,self ]] || continue
        preload_with_faults requests
        plain_case "sealed-faults/$tls/requests" UCX_TLS="$tls" LD_PRELOAD="$preload_quick" "${settings[@]}" UCI_FAULT="$heal" requests
        plain_case "sealed-faults/$tls/forms" UCX_TLS="$tls" LD_PRELOAD="$preload_quick" "${settings[@]}" UCI_SEAL=sign \
            UCI_FAULT="$heal_rarely" forms
    done
    refused_case sealed/socket-address "refuses the connection with .*UCI_SEAL" \
        UCX_TLS=tcp,self LD_PRELOAD="$preload" "${settings[@]}" UCI_CONNECT_WAIT=0 surface by_socket_address
}

make_keys() {
    local name
    for name in key other.key; do
        rm -f "$own/$name"
        (umask 077 && printf '%s\n' "$(od -An -N32 -v -tx1 /dev/urandom | tr -d ' \n')" >"$own/$name")
    done
}

# refused_case NAME TEXT [NAME=VALUE]... PROGRAM...: must fail, in time, and say why.
refused_case() {
    local name=$1 text=$2 log ok=1 status=0
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift 2
    run_program "$log" "$@" || status=$?
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && grep -q "UCI ERROR .*$text" "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

# refused NAME WHAT [NAME=VALUE]... ARGUMENTS...: both sides must fail to connect, and one must say why.
refused() {
    local name=$1 what=$2 log ok=1
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift 2
    run_program "$log" "$@" || ok=0
    grep -q "UCI ERROR .*refuses .*: .*$what" "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

run_unlike() {
    local tls
    for tls in $all_tls; do
        [ "$tls" != self ] || continue
        plain_case "unlike/$tls/plain-plain" UCX_TLS="$tls" unlike talk
        plain_case "unlike/$tls/uci-uci" UCX_TLS="$tls" LD_PRELOAD="$preload" unlike talk
        plain_case "unlike/$tls/off-plain" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_MODE=off unlike talk LD_PRELOAD=
        plain_case "unlike/$tls/sizes" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_EAGER_MAX=32k UCI_CHUNK_SIZE=1k \
            unlike talk UCI_EAGER_MAX=0 UCI_DIGEST=crc64 UCI_CHUNK_SIZE=auto
        plain_case "unlike/$tls/faults" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT="$heal" unlike talk
        refused "unlike/$tls/uci-plain" "runs without UCI" UCX_TLS="$tls" LD_PRELOAD="$preload" \
            unlike refuse LD_PRELOAD=
        refused "unlike/$tls/plain-uci" "runs without UCI" UCX_TLS="$tls" unlike refuse LD_PRELOAD="$preload"
        refused "unlike/$tls/uci-off" "UCI_MODE=off" UCX_TLS="$tls" LD_PRELOAD="$preload" \
            unlike refuse UCI_MODE=off
        refused "unlike/$tls/off-uci" "UCI_MODE=off" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_MODE=off \
            unlike refuse UCI_MODE=repair
        run_unlike_seals "$tls"
        [[ $tls != *tcp* ]] || run_unlike_sockets "$tls"
    done
}

# The same by socket address, in both directions: a peer without UCI passes, with a word and counted, or is refused; unlike ones are
passes_case() {
    local name=$1 log ok=1
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift
    run_program "$log" UCI_LOG_LEVEL=warn UCI_STATS=- "$@" || ok=0
    grep -q "UCI WARN .*the connection of .* with 127.0.0.1:[0-9]* is not verified: " "$log" || ok=0
    grep -q "connections that are not verified  *1$" "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

run_unlike_sockets() {
    local way tls=$1 program with churn=1 without=LD_PRELOAD= sealed=(UCI_SEAL=encrypt UCI_SEAL_SCOPE=all "UCI_KEY_FILE=$own/key")
    [ "$quick" = 0 ] || churn=0.25
    for program in sock_messages sock_ends; do # all of them pass
        plain_case "unlike/$tls/socket/passes-$program" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_CONNECT_WAIT=0 SOCK_CHURN=$churn $program
        plain_case "unlike/$tls/socket/multi-$program" UCX_TLS="$tls" LD_PRELOAD="$preload" SOCK_MULTI=1 SOCK_CHURN=$churn $program
    done
    for way in socket socket-back; do
        with=(UCX_TLS="$tls" UNLIKE_WAY="$way" LD_PRELOAD="$preload")
        plain_case "unlike/$tls/$way/plain-plain" UCX_TLS="$tls" UNLIKE_WAY=$way unlike talk
        plain_case "unlike/$tls/$way/plain-dies" UCX_TLS="$tls" UNLIKE_WAY=$way unlike die
        plain_case "unlike/$tls/$way/uci-uci" "${with[@]}" UCI_REQUIRE=on unlike talk
        plain_case "unlike/$tls/$way/uci-dies" "${with[@]}" unlike die
        plain_case "unlike/$tls/$way/faults" "${with[@]}" UCI_REQUIRE=on UCI_FAULT="$heal" unlike talk
        plain_case "unlike/$tls/$way/sealed" "${with[@]}" "${sealed[@]}" unlike talk
        passes_case "unlike/$tls/$way/uci-plain" "${with[@]}" unlike talk "$without"
        passes_case "unlike/$tls/$way/uci-off" "${with[@]}" unlike talk UCI_MODE=off
        refused "unlike/$tls/$way/required-plain" "runs without UCI.*UCI_REQUIRE" "${with[@]}" UCI_REQUIRE=on unlike refuse "$without"
        refused "unlike/$tls/$way/sealed-plain" "runs without UCI.*UCI_SEAL" "${with[@]}" "${sealed[@]}" unlike refuse "$without"
        refused "unlike/$tls/$way/modes" "it runs with UCI_MODE=" "${with[@]}" unlike refuse UCI_MODE=detect
        refused "unlike/$tls/$way/sealed-other-key" "not authentic; it has another key" "${with[@]}" "${sealed[@]}" unlike refuse \
            "UCI_KEY_FILE=$own/other.key"
    done
}

# Who has no key, or another one, or seals in another way, is refused by both sides, with a word
run_unlike_seals() {
    local tls=$1 sealed=(UCX_TLS="$1" LD_PRELOAD="$preload" UCI_SEAL=encrypt UCI_SEAL_SCOPE=all "UCI_KEY_FILE=$own/key")
    make_keys
    plain_case "unlike/$tls/sealed" "${sealed[@]}" unlike talk
    plain_case "unlike/$tls/sealed-library" "${sealed[@]}" unlike talk UCI_SEAL_LIBRARY=openssl
    refused "unlike/$tls/sealed-other-key" "not authentic; it has another key" "${sealed[@]}" unlike refuse "UCI_KEY_FILE=$own/other.key"
    refused "unlike/$tls/sealed-plain" "runs with UCI_SEAL=off, this one with UCI_SEAL=encrypt" "${sealed[@]}" unlike refuse UCI_SEAL=off
    refused "unlike/$tls/plain-sealed" "runs with UCI_SEAL=encrypt, this one with UCI_SEAL=off" UCX_TLS="$tls" LD_PRELOAD="$preload" \
        unlike refuse UCI_SEAL=encrypt "UCI_KEY_FILE=$own/key"
    refused "unlike/$tls/sealed-signed" "runs with UCI_SEAL=sign" "${sealed[@]}" unlike refuse UCI_SEAL=sign
    refused "unlike/$tls/sealed-scope" "UCI_SEAL_SCOPE=net" "${sealed[@]}" unlike refuse UCI_SEAL_SCOPE=net
    refused "unlike/$tls/sealed-cipher" "UCI_SEAL_CIPHER=chacha20" "${sealed[@]}" UCI_SEAL_CIPHER=aes256 unlike refuse \
        UCI_SEAL_CIPHER=chacha20
}

# A GPU's memory, as far as that can be had without one
run_staged() {
    local threshold
    for threshold in 64k 1m; do
        plain_case "staged/$threshold" UCX_TLS=posix,self UCX_RNDV_THRESH=$threshold LD_PRELOAD="$preload $out/host_gpu.so" staged
    done
}

# UCX's own example of a client and a server, unmodified, by each of its ways. Debian has it in libucx-dev.
example=/usr/share/doc/libucx-dev/examples/ucp_client_server.c

build_example() {
    if [ -e "$example" ]; then
        # shellcheck disable=SC2046
        gcc -O2 -w -o "$out/ucp_client_server" "$example" $(pkg-config --cflags --libs ucx)
    else
        say "skip example: there is no $example"
    fi
}

# example_case NAME WAY [NAME=VALUE]...: its server goes on for ever, and ends when its client has.
example_case() {
    local name=$1 way=$2 log ok=1 server port=$((20000 + $$ % 10000 + 100 * ${part%/*} + (passed + failed) % 100)) # of its own in each part
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift 2
    : >"$log.server"
    env UCX_LOG_LEVEL=fatal UCX_HANDLE_ERRORS=none UCI_LOG_LEVEL=error "$@" stdbuf -oL "$out/ucp_client_server" -p "$port" -c "$way" -i 50 \
        -s 100000 >"$log.server" 2>&1 </dev/null &
    server=$!
    timeout 5 sh -c "until grep -q 'Waiting for connection' '$log.server'; do sleep 0.05; done" || ok=0
    run_program "$log" UCI_STATS=- "$@" ucp_client_server -a 127.0.0.1 -p "$port" -c "$way" -i 50 -s 100000 || ok=0
    kill "$server" || true # one that has died says why in its log
    wait "$server" || true
    cat "$log.server" >>"$log"
    rm "$log.server"
    # its server may find its client gone, with the last message that it sends: that one has it, and has closed by force
    ! grep -qiE "failed|not verified|passed through" <(sed '/failed to close ep/d; /server failed on FIN message/d' "$log") || ok=0
    [[ " $* " != *" LD_PRELOAD="* ]] || grep -q 'messages sent  *50$' "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

run_examples() {
    local way
    if [ ! -e "$example" ]; then
        ! wanted example || skipped=$((skipped + 1))
        return
    fi
    for way in stream tag am; do
        example_case "example/$way/plain" $way UCX_TLS=tcp,self
        example_case "example/$way/uci" $way UCX_TLS=tcp,self LD_PRELOAD="$preload" UCI_REQUIRE=on
        example_case "example/$way/all" $way LD_PRELOAD="$preload" UCI_REQUIRE=on
        example_case "example/$way/faults" $way UCX_TLS=tcp,self LD_PRELOAD="$preload" UCI_REQUIRE=on UCI_FAULT="$heal"
    done
}

# segment_case NAME EXPECTED [NAME=VALUE]... PROGRAM...: does UCI widen what UCX's tcp sends at a time (1) or not (0), without a
# warning of UCX's that a variable is not used?
segment_case() {
    local name=$1 expected=$2 log ok=1 widened=0
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift 2
    run_program "$log" LD_PRELOAD="$preload" UCX_LOG_LEVEL=warn UCI_LOG_LEVEL=debug "$@" || ok=0
    ! grep -q "UCI DEBUG UCX_TCP_TX_SEG_SIZE=64k" "$log" || widened=1
    [ "$widened" = "$expected" ] || ok=0
    ! grep -q "unused env variable: UCX_TCP" "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

run_segments() {
    local folder=$own/ucx_config
    mkdir -p "$folder"
    printf 'UCX_TCP_RX_SEG_SIZE=32k\n' >"$folder/ucx.conf"
    segment_case segment/default 1 UCX_TLS=tcp,self match
    segment_case segment/no-tcp 0 UCX_TLS=posix,self match
    segment_case segment/environment 0 UCX_TLS=tcp,self UCX_TCP_TX_SEG_SIZE=16k match
    segment_case segment/receiving 0 UCX_TLS=tcp,self UCX_TCP_RX_SEG_SIZE=16k match
    segment_case segment/prefix 0 UCX_TLS=tcp,self UCX_MPI_TCP_TX_SEG_SIZE=16k UCX_WARN_UNUSED_ENV_VARS=n match
    segment_case segment/file 0 UCX_TLS=tcp,self UCX_CONFIG_DIR="$folder" match
    printf '# UCX_TCP_TX_SEG_SIZE=1k\nUCX_TLS=tcp,self\n' >"$folder/ucx.conf"
    segment_case segment/comment 1 UCX_CONFIG_DIR="$folder" match
}

# quiet_case NAME [NAME=VALUE]... PROGRAM...: must end with status 0, and UCX must not log an error that the program has not made.
quiet_case() {
    local name=$1 log ok=1
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift
    run_program "$log" UCX_LOG_LEVEL=error "$@" || ok=0
    ! grep -q "UCX  ERROR" "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

run_quiet() {
    local tls threshold
    for tls in $all_tls; do
        [ "$tls" != self ] || continue
        for threshold in inf auto; do
            quiet_case "quiet/$tls/plain-$threshold" UCX_TLS="$tls" UCX_RNDV_THRESH=$threshold lifecycle senders_leave_first
            quiet_case "quiet/$tls/uci-$threshold" UCX_TLS="$tls" UCX_RNDV_THRESH=$threshold LD_PRELOAD="$preload" \
                lifecycle senders_leave_first
        done
    done
}

# policy_case NAME CODE ENDS [NAME=VALUE]... ARGUMENTS...: exit status CODE, a report, what is not repaired counted, and the end reached or not.
policy_case() {
    local name=$1 code=$2 ends=$3 log status=0 ok=1
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift 3
    (ulimit -c 0; run_program "$log" "UCI_STATS=$log.json" "$@") || status=$?
    [ "$status" -eq "$code" ] || ok=0
    grep -q '"unrepaired_chunks": [1-9]' "$log.json" || { ok=0; say "     unrepaired_chunks is 0" | tee -a "$log"; }
    rm -f "$log.json"
    grep -q "UCI ERROR .*can't be delivered intact" "$log" || ok=0
    [ "$(grep -c '^end$' "$log")" -eq "$ends" ] || ok=0
    [ $ok = 1 ] || say "     exit status $status, expected $code" | tee -a "$log"
    verdict "$name" "$log" "$ok"
}

run_policies() {
    local tls=${all_tls%% *} io_error=-3 sizes=(8 8192 30000 200000) one
    for one in $all_tls; do
        waiting_case "policy/$one/packer" UCX_TLS="$one" LD_PRELOAD="$preload" UCI_ON_ERROR=error records packer_that_ends
    done
    policy_case policy/error 0 1 UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT=$hopeless UCI_ON_ERROR=error \
        policy $io_error "${sizes[@]}"
    policy_case policy/log 0 1 UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT=$hopeless UCI_ON_ERROR=log \
        policy 0 "${sizes[@]}"
    policy_case policy/abort 134 0 UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT=$hopeless UCI_ON_ERROR=abort \
        policy 0 "${sizes[@]}"
    policy_case policy/default 134 0 UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT=$hopeless policy 0 200000
    policy_case policy/detect 0 1 UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT=rate=1 UCI_MODE=detect \
        UCI_ON_ERROR=error policy $io_error "${sizes[@]}"
    policy_case policy/detect-abort 134 0 UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT=rate=1 UCI_MODE=detect \
        policy 0 8
    end_waiting
}

# tree_case NAME CONDITION [NAME=VALUE]...: 3 messages of 8192 chunks; all must end, those that end well with the right
# bytes; CONDITION is over the counters, and `right` and `failed`.
tree_case() {
    local name=$1 condition=$2 log ok=1
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift 2
    run_program "$log" LD_PRELOAD="$preload" UCI_CHUNK_SIZE=256 UCI_ON_ERROR=error UCI_STATS="$log.json" "$@" \
        tree $((8192 * 256)) 3 || ok=0
    python3 - "$log" "$condition" <<'END' || ok=0
import json, re, sys
log, condition = sys.argv[1:]
end = re.search(r"^(\d+) right, (\d+) failed$", open(log).read(), re.M)
values = json.load(open(log + ".json")) | {"right": int(end[1]), "failed": int(end[2])}
if not eval(condition, values):
    shown = {name: values[name] for name in re.findall(r"[a-z_]{4,}", condition) if name in values}
    sys.exit(f"     {condition}: {shown}")
END
    [ $ok = 0 ] || rm -f "$log.json"
    verdict "$name" "$log" "$ok"
}

# Chunks that are whole and wrong, so that only the root tells: what is looked at is a path of 4 levels below the top for
# each, 50 nodes in this tree, and not all 8192 leaves (65,536 bytes). Then answers that lie, and are lost.
run_tree() {
    local name tls settings wrong='right == 3 and mismatched_chunks == repaired_chunks == faults_injected'
    local paths='tree_nodes <= 50 * faults_injected'
    while read -r name tls settings; do
        # shellcheck disable=SC2086  # settings are words
        tree_case "tree/$name/one" "$wrong == 1 and mismatched_roots == 1 and $paths and tree_bytes < 1000" \
            UCX_TLS=$tls $settings UCI_FAULT=rate=1e-3,target=leaf,count=1,min=1m
        # shellcheck disable=SC2086
        tree_case "tree/$name/some" "$wrong > 9 and 0 < mismatched_roots <= 3 and $paths and tree_bytes < 30000" \
            UCX_TLS=$tls $settings UCI_FAULT=rate=1e-3,target=leaf,min=1m
        # shellcheck disable=SC2086
        tree_case "tree/$name/all" "$wrong == 3 * 8192 and mismatched_roots == 3" \
            UCX_TLS=$tls $settings UCI_FAULT=rate=1,target=leaf,min=1m
        # shellcheck disable=SC2086
        tree_case "tree/$name/lies" "right == 3 and mismatched_chunks == repaired_chunks and mismatched_control > 0" \
            UCX_TLS=$tls $settings UCI_FAULT=rate=0.1,target=leaf+repair,min=100
        # many gets, all in vain, and over tcp with UCX 1.23 a quarter of a millisecond each
        # shellcheck disable=SC2086
        tree_case "tree/$name/only-lies" "failed > 0 and mismatched_control > 10" \
            UT_LIMIT=28 UCX_TLS=$tls $settings UCI_FAULT=rate=0.7,target=leaf+repair,min=100
        # shellcheck disable=SC2086
        plain_case "tree/$name/forms" UCX_TLS="$tls" LD_PRELOAD="$preload" $settings UCI_FAULT=rate=0.1,target=leaf,seed=5 \
            forms
    done <<'END'
direct posix,self
stream tcp,self UCI_PATH=stream
END
    # all digests of a message that was fetched, lost: not they come again, but the root, and that matches
    tree_case tree/get/leaves "right == 3 and mismatched_control == 3 and tree_nodes == 0 and tree_bytes < 1000" \
        UCX_TLS=tcp,self UCI_PATH=get UCI_FAULT=rate=1,target=header,min=40k,max=100k
    tree_case tree/get/both "right == 3 and repaired_chunks == mismatched_chunks > 9" \
        UCX_TLS=tcp,self UCI_PATH=get UCI_FAULT=rate=0.2,target=header+payload,min=40k,seed=6
}

# A forked child has the parent's counters in its memory, and must not report them.
run_fork() {
    local name=fork/statistics log=$out/fork-statistics.log ok=1
    wanted "$name" || return 0
    run_program "$log" UCX_TLS="${all_tls%% *}" LD_PRELOAD="$preload" UCI_STATS=- failure forked || ok=0
    [ "$(grep -c '^UCI statistics of ' "$log")" -eq 1 ] || ok=0
    verdict "$name" "$log" "$ok"
}

# lost_case NAME SAYS [NAME=VALUE]...: records that can't be written are counted, and said: of the first, and how many at the end. The
# messages are healed all the same.
lost_case() {
    local name=$1 says=$2 log ok=1
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift 2
    run_program "$log" UCX_TLS="${all_tls%% *}" LD_PRELOAD="$preload" UCI_FAULT="$heal_match" UCI_LOG_LEVEL=warn UCI_STATS=- \
        "$@" match || ok=0
    [ "$(grep -c "UCI WARN .*an event could not be written to UCI_EVENTS=.*: $says" "$log")" -eq 1 ] || ok=0
    [ "$(grep -c "UCI WARN .*[0-9] events in all could not be written to .*: $says" "$log")" -eq 1 ] || ok=0
    grep -q 'events that could not be written  *[1-9]' "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

run_lost() {
    local pipe=$own/pipe
    rm -f "$pipe"
    mkfifo "$pipe"
    lost_case lost/full "No space left on device" UCI_EVENTS=/dev/full
    lost_case lost/pipe "nobody reads from it" UCI_EVENTS="$pipe"
    lost_case lost/folder "Is a directory" UCI_EVENTS="$out"
    rm -f "$pipe"
}

# Buffers that are not the host's are counted: one of 24 messages' two sides, or both; and said once.
run_memory() {
    local name=memory/statistics log=$out/memory-statistics.log ok=1
    wanted "$name" || return 0
    run_program "$log" UCX_TLS="${all_tls%% *}" LD_PRELOAD="$preload" UCI_STATS=- UCI_LOG_LEVEL=info memory device_to_ || ok=0
    grep -q "sent from or received into a GPU's memory *72$" "$log" || ok=0
    [ "$(grep -c 'is of memory type ' "$log")" -eq 1 ] || ok=0
    verdict "$name" "$log" "$ok"
}

# counted_case NAME [CONDITION]... -- [NAME=VALUE]... PROGRAM...: the statistics say CONDITION, and exactly what the program says it did.
counted_case() {
    local name=$1 log ok=1 conditions=() did
    wanted "$name" || return 0
    log=$out/${name//\//-}.log
    shift
    while [ "$1" != -- ]; do
        conditions+=("$1")
        shift
    done
    rm -rf "$log.stats"
    mkdir "$log.stats"
    run_program "$log" LD_PRELOAD="$preload" UCI_STATS="$log.stats/%p.json" "${@:2}" || ok=0
    read -ra did < <(sed -n 's/^did: //p' "$log") || true
    while [ ${#did[@]} -gt 0 ]; do
        if [ "${did[0]}" = am ]; then # which are verified
            conditions+=("user_am_sent == ${did[1]}" "passthrough_am == 0")
        elif [ "${did[0]}" = stream ]; then
            conditions+=("stream_sent == ${did[1]}" "passthrough_stream == 0")
        elif [[ ${did[0]} =~ ^(put|get|atomic)$ ]]; then # in memory that both reach, all are counted as one
            conditions+=("${did[0]}_sent == ${did[1]} or rma_memory > 0" "passthrough_${did[0]} == 0")
        else
            conditions+=("passthrough_${did[0]} == ${did[1]}")
        fi
        did=("${did[@]:2}")
    done
    python3 "$uci_root/tests/mpi/stats.py" "$log.stats" "${conditions[@]}" >>"$log" || ok=0
    [ $ok = 0 ] || rm -rf "$log.stats"
    verdict "$name" "$log" "$ok"
}

# What passes is counted, by way, wherever the endpoint is from; what UCI sends for tag messages is not, and with UCI_MODE=off nothing is.
run_counted() {
    local tls test ways twenty
    for tls in $all_tls; do
        for test in active_messages remote_memory atomics stream without_tags; do
            counted_case "counted/$tls/$test" "passthrough_messages == 0" -- UCX_TLS="$tls" others "$test"
        done
    done
    tls=${all_tls%% *}
    ways=$(printf 'passthrough_%s == ' am put get atomic stream bytes messages)0
    counted_case counted/tags "$ways" "messages_sent > 0" -- UCX_TLS="$tls" match
    counted_case counted/tags-faults "$ways" "repaired_chunks > 0" -- UCX_TLS="$tls" UCI_FAULT="$heal" order
    counted_case counted/old-forms "user_am_sent == 1" "rma_memory == 16" "stream_sent == 2" "$ways" -- UCX_TLS="$tls" surface
    twenty=("passthrough_messages == 20" "passthrough_bytes == 2 * (4 ** 10 - 1) // 3")
    counted_case counted/socket-address "$ways" "messages_sent == 20" "unverified_connections == 0" -- UCX_TLS=tcp,self surface by_socket_address
    counted_case counted/socket-passes "${twenty[@]}" "messages_sent == 0" "unverified_connections == 4" -- UCX_TLS=tcp,self UCI_CONNECT_WAIT=0 \
        surface by_socket_address
    counted_case counted/off-faults "${twenty[@]}" -- UCX_TLS=tcp,self UCI_MODE=off UCI_FAULT=rate=1e-9 surface by_socket_address
    counted_case counted/off "$ways" -- UCX_TLS="$tls" UCI_MODE=off surface
}

# A question that crosses the answer is no reason to send anything twice.
unasked_case() {
    local name=$1 log=$out/${1//\//-}.log ok=1
    wanted "$name" || return 0
    shift
    run_program "$log" UCI_STATS=- "$@" late || ok=0
    grep -q 'messages received  *4$' "$log" || ok=0
    ! grep -qE '(mismatched|retransmitted)  *[0-9]' "$log" || ok=0
    verdict "$name" "$log" "$ok"
}

run_late() {
    local tls first=${all_tls%% *} sealed=(UCI_SEAL=encrypt UCI_SEAL_SCOPE=all "UCI_KEY_FILE=$own/key")
    make_keys
    waiting_case "late/plain" UCX_TLS="$first" late
    waiting_case "late/off" UCX_TLS="$first" LD_PRELOAD="$preload" UCI_MODE=off late
    waiting_case "late/detect" UCX_TLS="$first" LD_PRELOAD="$preload" UCI_MODE=detect late
    waiting_case "late/small" UCX_TLS="$first" LD_PRELOAD="$preload" UCI_EAGER_MAX=64 UCI_CHUNK_SIZE=256 UCI_LOG_SIZE=1m UCI_DIGEST=crc32c late
    waiting_case "late/headers" UCX_TLS="$first" LD_PRELOAD="$preload" UCI_FAULT="$heal_headers" late
    for tls in $all_tls; do
        waiting_case "late/$tls/faults" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_FAULT="$heal_match" late
        waiting_case "late/$tls/sealed" UCX_TLS="$tls" LD_PRELOAD="$preload" "${sealed[@]}" late
    done
    for tls in $all_tls; do
        unasked_case "late/$tls" UCX_TLS="$tls" LD_PRELOAD="$preload"
    done
    end_waiting
}

# Messages that wait for others when their endpoint is closed: behind those that UCX buffers, and by force.
run_windows() {
    local preload_or_none
    for preload_or_none in '' "$preload"; do
        plain_case "windows/${preload_or_none:+uci-}closed" UCX_TLS=posix,self UCX_RNDV_THRESH=4m LD_PRELOAD="$preload_or_none" \
            windows before_a_close
        plain_case "windows/${preload_or_none:+uci-}forced" UCX_TLS=posix,tcp,self LD_PRELOAD="$preload_or_none" \
            windows before_a_forced_close
        plain_case "windows/${preload_or_none:+uci-}tcp-closed" UCX_TLS=posix,tcp,self UCX_RNDV_THRESH=4m \
            LD_PRELOAD="$preload_or_none" windows before_a_close
    done
}

# What UCX drops because it comes to an endpoint that has just closed is asked for then, and not after seconds.
run_close() {
    local tls path
    for tls in $all_tls; do
        for path in stream get bounce; do
            timeout=5 plain_case "close/$tls/$path" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_PATH=$path lifecycle closes_
        done
    done
    plain_case close/shared-memory-and-tcp UCX_TLS=posix,tcp,self LD_PRELOAD="$preload" lifecycle closes_without_a_word
}

# A send that is over needs nobody who sent it, whatever path larger ones go.
run_left() {
    local tls path
    for tls in $all_tls; do
        [ "$tls" != self ] || continue
        for path in get bounce; do
            plain_case "left/$tls/$path" UCX_TLS="$tls" LD_PRELOAD="$preload" UCI_PATH=$path left_processes
        done
    done
}

# Conversations that end at every step. Not on plain UCX, which hangs where both sides close over tcp at different times.
run_endings() {
    local tls fault
    for tls in $all_tls; do
        [ "$tls" != self ] || continue
        for fault in none ack any+repair; do
            [ "$fault" != any+repair ] || [ "$tls" = tcp,self ] || continue
            ending_case "$tls" auto "$fault" 2 '' # 2: also between strangers
        done
    done
}

# The same, longer: everything with everything.
run_all_endings() {
    local tls fault path talk
    for tls in $all_tls; do
        [ "$tls" != self ] || continue
        for path in auto stream get bounce; do
            for fault in none ack header any any+repair; do
                for talk in small synchronous moderate large huge several both_ways nothing_said; do
                    ending_case "$tls" "$path" "$fault" 12 "$talk"
                done
            done
        done
    done
}

# ending_case TLS PATH TARGET STEPS TALK: faults at every decision; not those of repairs, which then could not heal. Up to 1 MiB a send ends though nobody
# receives. There are hundreds of workers: UCX writes to all of the buffers that each begins with, 4 MiB if it is not told otherwise.
ending_case() {
    local tls=$1 path=$2 target=$3 name=ending/$1/$2/$3${5:+/$5} settings=("ENDING_STEPS=$4" UCX_RNDV_THRESH=1m UCX_POSIX_RX_BUFS_GROW=64)
    [ "$path" = auto ] || settings+=("UCI_PATH=$path")
    case $target in
    none)       ;;
    any+repair) settings+=("UCI_FAULT=rate=0.03,target=any+repair,seed=15") ;;
    *)          settings+=("UCI_FAULT=rate=1,target=$target") ;;
    esac
    timeout=180 plain_case "$name" UCX_TLS="$tls" LD_PRELOAD="$preload" "${settings[@]}" ending ${5:+"$5"}
}

run_cases() {
    if [ "$endings" = 1 ]; then
        run_all_endings
        return
    fi
    run_transports
    run_modes
    run_faults
    run_sealed
    run_unlike
    run_examples
    run_segments
    run_staged
    run_quiet
    run_policies
    run_tree
    run_fork
    run_memory
    run_counted
    run_lost
    run_late
    run_windows
    run_close
    run_left
    run_endings
}

# run_parts OPTION...: --jobs of them at once, each a process with a count of its own.
run_parts() {
    local i pids=() p f s
    trap 'kill "${pids[@]}"' INT TERM
    for ((i = 0; i < jobs; i++)); do
        rm -f "$out/part.$i/count"
        "$0" "$@" --jobs 1 --part "$i/$jobs" &
        pids+=($!)
    done
    for ((i = 0; i < jobs; i++)); do
        wait "${pids[i]}" || true
        p=0 f=1 s=0 # of one that did not come to its end
        [ ! -e "$out/part.$i/count" ] || read -r p f s <"$out/part.$i/count"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    done
}

main() {
    local begin
    set_options preload tls filter timeout keep! quick! endings! jobs part -- "$@"
    all_tls=$tls own=$out/part.${part%/*}
    [ -e "${preload##* }" ] || die "no ${preload##* }: build first (ninja -C build)"
    mkdir -p "$own"
    if [ "${part#*/}" -gt 1 ]; then
        run_cases
        echo "$passed $failed $skipped" >"$own/count"
        return
    fi
    begin=$(clock)
    build_programs
    build_example
    if [ "$jobs" -gt 1 ]; then
        run_parts "$@"
    else
        run_cases
    fi
    say "$(since "$begin") s"
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
