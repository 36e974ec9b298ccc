#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/attach/run_attach.sh [options]
#
# The ways UCI gets into a process: preloaded; as a module, which UCX before 1.22 does not load itself, so a small library
# does it here (as_module.c); into objects that are opened late, and linked in every way; into an MPI that Python has opened; and
# never twice; and under programs and a UCX that are newer than what it was built with. Ends with the line "N passed, N failed, N skipped"; exit status 1 if anything failed.
#
#   --filter TEXT    only cases whose name contains TEXT
#   --timeout S      seconds for one program (60)
#   --help           this text
set -euo pipefail
# shellcheck source=tests/mpi/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../mpi/lib.sh"

here=$uci_root/tests/attach
build=${TEST_BUILD_DIR:-$uci_root/build}
out=$build/test-attach
library=$build/libucx_integrity.so
module=$build/ucx_plugin/libucs_uci.so.0
as_module=$out/libucx_integrity_as_module.so # tests/ucp look for this name in LD_PRELOAD
filter='' timeout=60

# The object in every way that a linker knows: bound late, bound at once and made read-only, without a PLT.
build_all() {
    local flags
    mkdir -p "$out"
    flags=$(pkg-config --cflags --libs ucx)
    gcc -std=gnu11 -O2 -shared -fPIC -o "$as_module" "$here/as_module.c"
    gcc -std=gnu11 -O2 -D_GNU_SOURCE -o "$out/late" "$here/late.c" -lpthread -Wl,-rpath,"\$ORIGIN/objects"
    mkdir -p "$out/objects"
    # shellcheck disable=SC2086
    {
        gcc -std=gnu11 -O2 -shared -fPIC -Wl,-z,lazy,-z,norelro -o "$out/objects/liblazy.so" "$here/late_object.c" $flags
        gcc -std=gnu11 -O2 -shared -fPIC -Wl,-z,now,-z,relro -o "$out/objects/libnow.so" "$here/late_object.c" $flags
        gcc -std=gnu11 -O2 -shared -fPIC -fno-plt -Wl,-z,now -o "$out/objects/libnoplt.so" "$here/late_object.c" $flags
        gcc -std=gnu11 -O2 -shared -fPIC -o "$out/libnewer.so" "$here/newer_ucx.c" $flags
        gcc -std=gnu11 -O2 -o "$out/newer" "$here/newer.c" $flags
    }
    cp "$library" "$out/libucs_copy.so.0"
    cp "$library" "$out/libother.so"
    ln -sf "$library" "$out/libuct_rdmacm.so.0"
}

# attach_case NAME CHECK COMMAND...: the command must end with status 0, and then CHECK LOG too.
attach_case() {
    local name=$1 check=$2 log=$out/${1//\//-}.log status=0 wrong=
    shift 2
    [[ $name == *"$filter"* ]] || return 0
    "$uci_root/tests/watchdog.sh" "$timeout" env UCX_LOG_LEVEL=fatal UCX_TLS=posix,self "$@" >"$log" 2>&1 </dev/null || status=$?
    [ "$status" = 0 ] || wrong="exit status $status"
    [ -n "$wrong" ] || "$check" "$log" || wrong="its output fails the check $check"
    if [ -z "$wrong" ]; then
        passed=$((passed + 1))
        say "ok   $name"
    else
        failed=$((failed + 1))
        failures+=("$name: $wrong; log: $log")
        say "FAIL $name: $wrong"
        grep -v '^ok ' "$log" | tail -n 8 | cut -c1-200 | sed 's/^/     /' || true
    fi
}

# count_is LOG NUMBER PATTERN
count_is() {
    [ "$(grep -c -- "$3" "$1")" -eq "$2" ]
}

anything() { :; }
silent() { [ ! -s "$1" ]; }
one_refusal() { count_is "$1" 1 'UCI ERROR UCI stays out of this process' && count_is "$1" 1 'UCI ERROR'; }
is_module() { count_is "$1" 1 'UCI INFO .* as a UCX module'; }
is_preloaded() { count_is "$1" 1 'UCI INFO .* preloaded'; }
one_of_two() { one_refusal "$1" && count_is "$1" 1 'UCI INFO *UCI '; }
two_of_three() { count_is "$1" 2 'UCI ERROR UCI stays out of this process' && count_is "$1" 1 'UCI INFO *UCI '; }

run_late() {
    local objects=(liblazy.so libnow.so libnoplt.so)
    attach_case late/plain silent "$out/late" plain "${objects[@]}"
    attach_case late/preload is_preloaded UCI_LOG_LEVEL=info LD_PRELOAD="$library" "$out/late" marked "${objects[@]}"
    attach_case late/module is_module UCI_LOG_LEVEL=info LD_PRELOAD="$as_module" TEST_MODULE_PATH="$module" \
        "$out/late" marked "${objects[@]}"
    attach_case late/module-off silent LD_PRELOAD="$as_module" TEST_MODULE_PATH="$module" UCI_MODE=off \
        "$out/late" plain "${objects[@]}"
}

run_twice() {
    attach_case twice/same is_preloaded UCI_LOG_LEVEL=info LD_PRELOAD="$library:$as_module" TEST_MODULE_PATH="$module" \
        "$out/late" marked libnow.so
    attach_case twice/copy one_of_two UCI_LOG_LEVEL=info LD_PRELOAD="$library:$as_module" \
        TEST_MODULE_PATH="$out/libucs_copy.so.0" "$out/late" marked libnow.so
    attach_case twice/preloaded one_of_two UCI_LOG_LEVEL=info LD_PRELOAD="$library:$out/libother.so" \
        "$out/late" marked libnow.so
    attach_case twice/other-first one_of_two UCI_LOG_LEVEL=info LD_PRELOAD="$out/libother.so:$library" \
        "$out/late" marked libnow.so
    attach_case twice/preloaded-and-module two_of_three UCI_LOG_LEVEL=info TEST_MODULE_PATH="$out/libucs_copy.so.0" \
        LD_PRELOAD="$library:$out/libother.so:$as_module" "$out/late" marked libnow.so
    attach_case twice/modules one_of_two UCI_LOG_LEVEL=info LD_PRELOAD="$as_module" \
        TEST_MODULE_PATH="$module:$out/libucs_copy.so.0" "$out/late" marked libnow.so
    attach_case twice/once-more is_module UCI_LOG_LEVEL=info LD_PRELOAD="$as_module" TEST_MODULE_PATH="$module:$module" \
        "$out/late" marked libnow.so
}

# The real thing, where UCX has it. UCX here is opened late, by an object that is out of the global scope.
run_plugin_path() {
    if ! pkg-config --atleast-version=1.22 ucx; then
        say "     (UCX $(pkg-config --modversion ucx) loads no modules from UCX_PLUGIN_PATH)"
        return
    fi
    attach_case ucx/late is_module UCI_LOG_LEVEL=info UCX_PLUGIN_PATH="$build/ucx_plugin" \
        "$out/late" marked liblazy.so libnow.so libnoplt.so
    attach_case ucx/not-chosen silent UCX_PLUGIN_PATH="$build/ucx_plugin" UCX_MODULES=^uci "$out/late" plain libnow.so
    attach_case ucx/preloaded-too is_preloaded UCI_LOG_LEVEL=info UCX_PLUGIN_PATH="$build/ucx_plugin" \
        LD_PRELOAD="$library" "$out/late" marked libnow.so
    attach_case ucx/copy-preloaded one_of_two UCI_LOG_LEVEL=info UCX_PLUGIN_PATH="$build/ucx_plugin" \
        LD_PRELOAD="$out/libucs_copy.so.0" "$out/late" marked libnow.so
}

# UCX before 1.22 can be made to load a file of this name, but too late: it must stay out.
run_too_late() {
    attach_case refused/name one_refusal LD_PRELOAD="$as_module" TEST_MODULE_PATH="$out/libuct_rdmacm.so.0" \
        "$out/late" plain libnow.so
}

# Structures that have more at their end than UCI knows
run_newer() {
    attach_case newer/preload anything LD_PRELOAD="$library:$out/libnewer.so" "$out/newer"
    attach_case newer/off anything UCI_MODE=off UCI_FAULT=rate=1,seed=1,target=payload NEWER_MODE_OFF=1 UCI_LOG_LEVEL=error \
        LD_PRELOAD="$library:$out/libnewer.so" "$out/newer"
}

run_programs() {
    local program
    TEST_BUILD_DIR=$build "$uci_root/tests/ucp/run_ucp.sh" --filter no-case-has-this-name >/dev/null
    for program in forms requests lifecycle others threads; do
        attach_case "module/$program" anything LD_PRELOAD="$as_module" TEST_MODULE_PATH="$module" UCI_LOG_LEVEL=error \
            "$build/test-ucp/$program"
    done
}

run_mpi() {
    attach_case module/mpi anything "$uci_root/tests/mpi/run_mpi.sh" --filter 'p2p_blocking|threads' --tls posix,self \
        --np 2 --preload "$as_module" --env TEST_MODULE_PATH="$module" --scale 0.3
}

passes_with_statistics() { count_is "$1" 1 '^PASS$' && count_is "$1" 2 '^UCI statistics of '; }
passes() { count_is "$1" 1 '^PASS$' && count_is "$1" 0 UCI; }

# Debian's Python has MPI bindings that are loaded with RTLD_LOCAL, as everything that Python loads.
run_python() {
    local python=/usr/bin/python3 launch_line
    if ! $python -c 'import mpi4py' 2>/dev/null; then
        skipped=$((skipped + 3))
        say "skip python/*: no python3-mpi4py here"
        return
    fi
    launcher openmpi 2 posix,self ''
    attach_case python/plain passes "${launch_line[@]}" $python "$here/mpi4py_test.py"
    launcher openmpi 2 posix,self "$library" UCI_STATS=-
    attach_case python/preload passes_with_statistics "${launch_line[@]}" $python "$here/mpi4py_test.py"
    launcher openmpi 2 posix,self "$as_module" UCI_STATS=- TEST_MODULE_PATH="$module"
    attach_case python/module passes_with_statistics "${launch_line[@]}" $python "$here/mpi4py_test.py"
}

main() {
    local begin
    set_options filter timeout -- "$@"
    [ -e "$library" ] || die "no $library: build first (ninja -C build)"
    begin=$(clock)
    build_all
    run_late
    run_twice
    run_too_late
    run_newer
    run_plugin_path
    run_programs
    run_mpi
    run_python
    end_of_jobs "$begin"
}

main "$@"
