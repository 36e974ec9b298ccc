# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Building, starting and ending the attackers of this folder: shared by run_foreign.sh and tests/verdicts. Sourced, never run; after
# tests/mpi/lib.sh.
# shellcheck disable=SC2154  # what that has set

foreign_dir=$uci_root/tests/faults/foreign
attacker= # flip.c, while it runs
trap 'end_attacker; end_marked; rm -rf "$run_dir"' EXIT

compile_attackers() {
    local flags=(-std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror)
    mkdir -p "$work_dir"
    gcc "${flags[@]}" "$foreign_dir/flip.c" -o "$run_dir.flip" && mv "$run_dir.flip" "$work_dir/foreign_flip"
    gcc "${flags[@]}" -fPIC -fvisibility=hidden -shared "$foreign_dir/wire.c" -o "$run_dir.wire" -ldl &&
        mv "$run_dir.wire" "$work_dir/foreign_wire.so"
}

# start_flip KEY MODE SEED SECONDS LOG [PROGRAM [OPTION...]]: flip.c waits that long for a job with FOREIGN_KEY=KEY.
start_flip() {
    "$work_dir/foreign_flip" --mark "FOREIGN_KEY=$1" --program "${6:-foreign_traffic}" --key "$1" --mode "$2" --seed "$3" --wait "$4" \
        "${@:7}" >"$5" 2>&1 &
    attacker=$!
}

# end_attacker: it ends with the job by itself; not if the job never was.
end_attacker() {
    [ -n "$attacker" ] || return 0
    kill -TERM "$attacker" 2>/dev/null || true
    wait "$attacker" 2>/dev/null || true
    attacker=
}
