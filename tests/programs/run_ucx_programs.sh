#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/programs/run_ucx_programs.sh [options]
#
# UCX's own programs, unmodified, each as a server and a client, on plain UCX, with UCI preloaded, and with UCI and injected faults:
#
#   hello     ucp_hello_world, from Debian's libucx-dev: tag messages by worker address, turning, waiting and sleeping
#   sock      ucp_client_server, from there too (its server ends after one client): streams, tag messages and active messages by socket
#             address; only where there is tcp, without which UCX connects to no socket address
#   perftest  ucx_perftest: tag messages, active messages, streams, put, get and atomics, of several sizes
#
# Both have to end well and to say what they say on plain UCX; with UCI nothing may pass, or be mismatched, and with faults all that was has to be
# repaired. Ends with the line "N passed, N failed, N skipped"; exit status 1 if anything failed.
#
#   --preload LIBS   what to preload (build/libucx_integrity.so)
#   --tls LIST       transports, separated by spaces ("posix,self posix,cma,self tcp,self")
#   --fault SPEC     UCI_FAULT of the third kind of run (rate=1e-2,kind=any,target=any)
#   --filter TEXT    only cases whose name contains TEXT; names look like "perftest/tcp,self/stream_bw-64/uci"
#   --timeout S      seconds for one pair (60)
#   --help           this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

build=${TEST_BUILD_DIR:-$uci_root/build}
out=$build/test-ucx-programs
preload=$build/libucx_integrity.so
tls='posix,self posix,cma,self tcp,self'
fault=rate=1e-2,kind=any,target=any
filter='' timeout=60
examples=/usr/share/doc/libucx-dev/examples
verified=('passthrough_bytes == 0' 'unverified_connections == 0' 'messages_received + rma_memory > 0' 'unrepaired_chunks == 0')
port=10000 # below those that the kernel gives away; one for each pair

# pair LOG SERVER -- CLIENT: run both; the client again until the server listens. @return the worse status of both.
pair() {
    local log=$1 server=() status=0 served=0 tries server_id
    shift
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    timeout "$timeout" "${server[@]}" >"$log.server" 2>&1 </dev/null &
    server_id=$!
    for ((tries = 0; tries < 100; ++tries)); do
        is_listening || { sleep 0.05; continue; }
        break
    done
    timeout "$timeout" "$@" >"$log.client" 2>&1 </dev/null || status=$?
    [ "$status" = 0 ] || kill "$server_id" 2>/dev/null || true
    wait "$server_id" || served=$?
    return $((status > served ? status : served))
}

# next_port: one that no connection has, not even one that is over.
next_port() {
    port=$((port + 1))
    while ss -tanH "sport = :$port" | grep -q .; do
        port=$((port + 1))
    done
}

is_listening() {
    ss -tlnH "sport = :$port" | grep -q .
}

# case_of NAME HOW TLS SAYS SERVER... -- CLIENT...: SAYS is what both have to say
case_of() {
    local name=$1/$2 how=$2 says=$4 begin status=0 wrong=() settings=("UCX_TLS=$3" UCX_WARN_UNUSED_ENV_VARS=n) server=() log
    shift 4
    [[ $name == *"$filter"* ]] || return 0
    log=$out/${name//\//-}
    run_stats=$out/stats
    rm -rf "$run_stats"
    mkdir -p "$run_stats"
    if [ "$how" != plain ]; then
        settings+=("LD_PRELOAD=$preload" "UCI_STATS=$run_stats/%p.json" UCI_LOG_LEVEL=error)
    fi
    [ "$how" != faults ] || settings+=("UCI_FAULT=$fault")
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    begin=$(clock)
    next_port
    pair "$log" env "${settings[@]}" "${server[@]//PORT/$port}" -- env "${settings[@]}" "${@//PORT/$port}" || status=$?
    [ "$status" = 0 ] || wrong+=("exit status $status$([ "$status" != 124 ] || say " (not over after $timeout s)")")
    grep -q "$says" "$log.server" || grep -q "$says" "$log.client" || wrong+=("neither of them says '$says'")
    stats_line=
    case $how in
    uci)    check_stats 2 "${stats_clean[@]}" "${verified[@]}" || wrong+=("$(tail -n +2 <<<"$stats_line" | paste -sd';')") ;;
    faults) check_stats 2 "${stats_faulty[@]}" "${verified[@]}" || wrong+=("$(tail -n +2 <<<"$stats_line" | paste -sd';')") ;;
    esac
    end_of_case "$name" "$begin" "$log.server" "$log.client"
}

# three_runs NAME TLS SAYS SERVER... -- CLIENT...
three_runs() {
    local name=$1 how
    shift
    for how in plain uci faults; do
        case_of "$name" $how "$@"
    done
}

run_hello() {
    local way
    for way in b w f; do
        three_runs "hello/$1/$way" "$1" 'UCP TEST SUCCESS' "$out/ucp_hello_world" -$way -p PORT -s 5000 -- \
            "$out/ucp_hello_world" -$way -p PORT -s 5000 -n 127.0.0.1
    done
}

# One active message only: the example has one flag for what has come, and on plain UCX too waits for ever once two come in one turn (8 bytes
# over tcp: 2 of 3 runs).
run_sock() {
    local way times
    for way in stream tag am; do
        times=100
        [ $way != am ] || times=1
        three_runs "sock/$1/$way" "$1" 'UCP TEST SUCCESS' "$out/ucp_client_server" -l 127.0.0.1 -p PORT -c $way -i $times -s 3000 -- \
            "$out/ucp_client_server" -a 127.0.0.1 -p PORT -c $way -i $times -s 3000
    done
}

run_perftest() {
    local test size
    for test in tag_lat tag_bw ucp_am_lat ucp_am_bw stream_lat stream_bw ucp_put_lat ucp_put_bw ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap; do
        for size in 8 3000 200000; do
            case $test-$size in
            ucp_*add-[^8]* | ucp_*swap-[^8]*) continue ;; # they are of 4 or 8 bytes
            esac
            three_runs "perftest/$1/$test-$size" "$1" '^Final:' ucx_perftest -t $test -s $size -n 500 -p PORT -- \
                ucx_perftest 127.0.0.1 -t $test -s $size -n 500 -p PORT
        done
    done
}

# The example's server waits for the next client for ever: here it ends after the first.
build_examples() {
    sed "s|/\* Reinitialize the server's context.*|goto err_listener;|" "$examples/ucp_client_server.c" >"$out/ucp_client_server.c"
    gcc -O2 -g "$out/ucp_client_server.c" -I"$examples" -o "$out/ucp_client_server" -lucp -lucs
    gcc -O2 -g "$examples/ucp_hello_world.c" -I"$examples" -o "$out/ucp_hello_world" -lucp -lucs
}

main() {
    local transport begin
    set_options preload tls fault filter timeout -- "$@"
    "$uci_root/tools/install_deps.sh" build test
    [ -e "$preload" ] || die "no $preload: build first (ninja -C build)"
    mkdir -p "$out"
    begin=$(clock)
    build_examples
    for transport in $tls; do
        run_hello "$transport"
        [[ $transport != *tcp* ]] || run_sock "$transport"
        run_perftest "$transport"
    done
    end_of_jobs "$begin"
}

main "$@"
