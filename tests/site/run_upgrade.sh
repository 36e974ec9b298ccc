#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/site/run_upgrade.sh [BUILD_DIR]
#
# What docs/upgrading.md tells a site: two versions in folders of their own, the second with another protocol, and a link that is led from one to the
# other while a job runs, and back. Ends with "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

build=$(realpath "${1:-$uci_root/build}")
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
limited=("$uci_root/tests/watchdog.sh" 60)
run=("$work/uci/current/bin/uci_run" -v --mpi mpich -n 2 --require --folder "$work/job")
protocol=$(sed -n 's/^#define UCI_PROTOCOL_VERSION \([0-9]*\)$/\1/p' "$uci_root/pipeline/base/wire.h")
unset "${!UCI_@}" LD_PRELOAD UCX_PLUGIN_PATH
export XDG_CACHE_HOME=$work/cache UCI_CONFIG_FILE='' UCX_TLS=posix,self MPIR_CVAR_NOLOCAL=1

# option NAME: Meson's, of the build
option() {
    meson introspect --buildoptions "$build" |
        python3 -c 'import json, sys; print(next(option["value"] for option in json.load(sys.stdin) if option["name"] == sys.argv[1]))' "$1"
}

# library VERSION: where it lies, by that name
library() {
    say "$work/uci/$1/$libdir/libucx_integrity.so"
}

install_old() {
    meson install -C "$build" --no-rebuild --destdir "$work/dest" && mkdir "$work/uci" && mv "$work/dest/$prefix" "$work/uci/old"
}

# The same sources, but for one number
install_new() {
    mkdir "$work/uci/new" && copy_sources "$work/sources" &&
        sed -i "s/^\(#define UCI_PROTOCOL_VERSION\) .*/\1 $((protocol + 1))/" "$work/sources/pipeline/base/wire.h" &&
        meson setup -Dtests=disabled -Dtools=disabled -Db_lto=false -Doptimization=0 "$work/build" "$work/sources" &&
        ninja -C "$work/build" libucx_integrity.so &&
        cp -a "$work/uci/old/." "$work/uci/new" && mv "$work/build/libucx_integrity.so" "$(library new)"
}

# The second rank waits until the link has been moved; then it is what it would have been. What ranks say goes to a file of their own: mpirun may
# lose it when they abort (one job of twenty)
make_program() {
    mpicc.mpich -std=gnu11 -O1 "$uci_root/tests/tools/pairs.c" -o "$work/pairs" && cat >"$work/late" <<END
#!/bin/bash
echo \$\$ >"$work/\$PMI_RANK.started"
[ "\$PMI_RANK" -eq 0 ] || while [ ! -e "$work/moved" ]; do sleep 0.1; done
exec "$work/pairs" 2>>"$work/ranks"
END
    chmod +x "$work/late"
}

# lead_to VERSION: the link, at once: there is always one
lead_to() {
    ln -s "$1" "$work/uci/next" && mv -T "$work/uci/next" "$work/uci/current"
}

# both_started: the second rank is a shell that waits, the first one is the program, with its library
both_started() {
    local pid
    [ -s "$work/1.started" ] && pid=$(cat "$work/0.started") && [ "$(readlink "/proc/$pid/exe")" = "$work/pairs" ] &&
        grep -q libucx_integrity "/proc/$pid/maps"
}

# while_moved COMMAND...: run it, and lead the link from old to new as soon as its ranks have started
while_moved() {
    local status=0
    rm -f "$work"/*.started "$work/moved" "$work/ranks"
    lead_to old
    "${limited[@]}" "$@" >"$work/said" 2>&1 &
    while ! both_started 2>/dev/null && kill -0 $!; do
        sleep 0.1
    done
    lead_to new
    touch "$work/moved"
    wait $! || status=$?
    cat "$work/said"
    return "$status"
}

# By one of the two, whoever comes first
refused() {
    local next=$((protocol + 1))
    grep -qE "refuses (a peer|rank [0-9]+ [^ ]*|[^ ]*): it speaks protocol version ($protocol of UCI, this one speaks $next|$next of UCI, this one speaks $protocol); \
start all ranks with the same build; here UCI [^ ]+ \([^)]*\) of [^ ]*libucx_integrity.so[^ ]*, there UCI [^ ]+ \([^)]*\) of [^ ]*libucx_integrity.so" "$work/ranks"
}

mixed() {
    touch "$work/moved"
    ! "${limited[@]}" mpirun.mpich -n 1 -env LD_PRELOAD "$(library old)" "$work/late" : -n 1 -env LD_PRELOAD "$(library new)" "$work/late" && refused
}

link_in_variable() {
    ! while_moved mpirun.mpich -n 2 -genv LD_PRELOAD "$(library current)" "$work/late" && refused
}

# The paths that a job is given once lead to a version, not by the link
says_one_version() {
    ! grep -F "/current/" "$work/said" && grep -F "$(library "$1")" "$work/said"
}

whole() {
    rm -rf "$work/job"
    "${limited[@]}" "${run[@]}" "$work/pairs" >"$work/said" 2>&1 && says_one_version "$1"
}

main() {
    local libdir prefix
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    libdir=$(option libdir) prefix=$(option prefix)
    check "a version is installed" install_old
    check "one of another protocol, in a folder of its own" install_new
    check "a program" make_program
    check "a job of both is refused, and told why" mixed
    check "uci_run by the link keeps its version while the link is moved" while_moved "${run[@]}" "$work/late"
    check "... by naming its folder" says_one_version old
    check "a variable that names the link mixes versions, and is refused" link_in_variable
    check "the next job has the new one" whole new
    lead_to old
    check "back: the next job has the old one" whole old
    end_of_checks
}

main "$@"
