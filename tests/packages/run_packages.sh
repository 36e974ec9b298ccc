#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/packages/run_packages.sh [options]
#
# The Debian packages of debian/, built in a root folder with nothing but what they ask for, judged by lintian, installed in
# another one and used there: an Open MPI job with faults that are healed, the tools, a program with libuci, modulefiles under
# Lmod, the profile script as a user's login shell reads it, shell completion. Then RPMs from packaging/rpm, built without
# looking at their dependencies, which Debian calls otherwise. The recipes for Spack and EasyBuild are only compiled, as
# Python. Needs root and the network; 2 GB, which are removed at the end. Ends with the line "N passed, N failed, N skipped".
#
#   --optimize       as users would: -O3 and LTO; takes minutes
#   --debian SUITE   another Debian (bookworm)
#   --roots DIR      where the root folders are made (UCI_PACKAGES_DIR, or /var/cache/uci-packages)
#   --keep           leave them there, with the packages in build/src
#   --reuse          take the build's root folder that --keep has left
#   --help           this text
set -euo pipefail
# shellcheck source=tests/roots.sh
source "$(dirname "${BASH_SOURCE[0]}")/../roots.sh"

optimize='' debian=bookworm keep='' reuse=''
roots=${UCI_PACKAGES_DIR:-/var/cache/uci-packages}
logs=$uci_root/build/packages-logs
library=/usr/lib/x86_64-linux-gnu/libucx_integrity.so
version=$(uci_version)
passed=0 failed=0

remove_roots() {
    [ -n "$keep" ] || rm -rf --one-file-system "$roots/build" "$roots/use"
}

# check ROOT LABEL COMMAND: a shell command in a root folder, which must succeed
check() {
    local root=$roots/$1 label=$2 log=$logs/${2//[^a-z]/-}.log
    if run_in_debian "$root" "$3" >"$log" 2>&1 </dev/null; then
        passed=$((passed + 1))
        say "ok   $label"
    else
        failed=$((failed + 1))
        say "FAIL $label ($log)"
        tail -n 15 "$log" | cut -c1-200 | sed 's/^/    /'
    fi
}

build_dependencies() {
    awk '/^Build-Depends:/ { inside = 1; sub(/^[^:]*:/, "") } inside && /^[A-Z]/ { exit }
         inside { gsub(/\([^)]*\)|\[[^]]*\]|,/, ""); print }' "$uci_root/debian/control" | tr -s ' \n' '\n' |
        sed '/^$/d; s/^debhelper-compat$/debhelper/'
}

make_roots() {
    local wanted
    mapfile -t wanted < <(build_dependencies)
    if [ -z "$reuse" ] || [ ! -d "$roots/build" ]; then
        make_debian "$debian" "$roots/build" "$logs/build.root.log" build-essential fakeroot lintian rpm python3 "${wanted[@]}"
    fi
    make_debian "$debian" "$roots/use" "$logs/use.root.log" openmpi-bin libopenmpi-dev gcc libc6-dev pkg-config python3 ucx-utils \
        lmod bash-completion ca-certificates
    cp -L /etc/resolv.conf /etc/hosts "$roots/use/etc/"
    rm -rf --one-file-system "$roots/build/src"
    copy_sources "$roots/build/src/uci"
}

build_debian() {
    check build "Debian packages are built" "cd /src/uci && export DEB_BUILD_OPTIONS='${optimize:-noopt} parallel=$(nproc)' &&
        dpkg-buildpackage -us -uc -b"
    check build "lintian has nothing to say" "cd /src && lintian --fail-on error,warning,info *.changes"
    mkdir -p "$roots/use/packages"
    cp "$roots"/build/src/*.deb "$roots/use/packages"
    rm -f "$roots"/use/packages/*dbgsym*
}

# The job is one of tests/mpi: it looks at what it receives
install_debian() {
    check use "they are installed" "apt-get update && apt-get -y --no-install-recommends install libisal2 libjansson4 /packages/*.deb"
    mkdir -p "$roots/use/src"
    cp "$uci_root"/tests/mpi/*.[ch] "$roots/use/src"
    check use "a program is built" "mpicc.openmpi -std=gnu11 -O1 -o /src/p2p /src/p2p_blocking.c && chmod -R a+rX /src"
}

# job ENVIRONMENT: two ranks, whose statistics go to /tmp/stats; then what they must say
job() {
    say "rm -rf /tmp/stats; mkdir -m 1777 /tmp/stats; export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_TLS=posix,self
        $1 UCI_STATS=/tmp/stats/%p.json timeout 120 mpirun.openmpi --oversubscribe -np 2 --mca pml ucx --mca opal_common_ucx_tls any /src/p2p"
}

healed='python3 - <<END
import glob, json
ranks = [json.load(open(name)) for name in glob.glob("/tmp/stats/*.json")]
total = lambda name: sum(rank[name] for rank in ranks)
assert len(ranks) == 2 and total("messages_sent") > 0, ranks
assert total("mismatched_chunks") == total("repaired_chunks") > 0 == total("unrepaired_chunks"), ranks
END'

use_debian() {
    check use "uci_info finds library, UCX and settings" "uci_info -v && uci_info -cf && UCI_CONFIG_FILE=/usr/share/uci/uci.conf uci_info -c"
    check use "a job with faults is healed, by the library's name alone" \
        "$(job "LD_PRELOAD=libucx_integrity.so UCI_FAULT=rate=0.05,kind=any,target=any,seed=1") && $healed"
    check use "uci_perftest measures" \
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 uci_perftest --mpi openmpi --tls posix,self --test lat --sizes 8 --launches 1 --rounds 2 --block 2"
    check use "uci_tune measures" "uci_tune --quick"
    check use "uci_info --check: on, and off" "LD_PRELOAD=libucx_integrity.so uci_info --check && ! uci_info --check"
    check use "uci_run: every rank is protected" "rm -rf /tmp/run; export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        UCI_FAULT=rate=0.05,seed=1 timeout 120 uci_run -n 2 --require --folder /tmp/run /src/p2p || [ \$? -eq 122 ]"
    check use "uci_report: text with what uci-tools depends on" "uci_report --text /tmp/run | grep -q 'arrived damaged'"
    check use "uci_report: the page with what uci-tools recommends" "apt-get -y --no-install-recommends install python3-jinja2 node-d3-axis node-d3-scale node-d3-selection &&
        uci_report -o /tmp/run.html /tmp/run && grep -qi '</html>' /tmp/run.html"
    check use "uci_top and uci_check start" "uci_top --once /tmp/run && uci_check sum -o /tmp/src.uci /src && uci_check verify /tmp/src.uci"
    check use "a program is built with libuci-dev" "gcc -o /src/buffer /usr/share/doc/libuci-dev/examples/buffer.c \$(pkg-config --cflags --libs uci) && /src/buffer"
    check use "Lmod: module load uci, and the other one" \
        "source /etc/profile.d/lmod.sh && module use /usr/share/uci/modulefiles && module load uci && [ \"\$LD_PRELOAD\" = $library ] &&
         module unload uci && module load uci/$version-plugin && [ \"\$UCX_PLUGIN_PATH\" = ${library%/*}/uci ] && [ -z \"\${LD_PRELOAD:-}\" ]"
    check use "completion is found by the command's name" "shopt -s extglob; source /usr/share/bash-completion/bash_completion
        _completion_loader uci_tune; _uci_complete uci_tune --pl; [ \"\${COMPREPLY[*]}\" = --plot ]"
    check use "pkg-config tells the library" "[ \"\$(pkg-config --variable preload ucx_integrity)\" = $library ]"
    use_as_user
    check use "they are removed without a trace" "apt-get -y purge '^libucx-integrity\$' '^uci-.*' '^libuci.*' && [ -z \"\$(find /usr -name '*uci_*' -o -name '*ucx_integrity*' -o -name 'libuci.*' -o -path /usr/share/uci)\" ]"
}

use_as_user() {
    check use "profile script: a user's job is protected" "rm -rf /tmp/stats; useradd -m -s /bin/bash user && ln -s /usr/share/uci/uci.sh /etc/profile.d/uci.sh
        cat >/src/job.sh <<'END'
$(job "UCI_FAULT=rate=0.05,seed=1")
END
        su - user -c 'bash /src/job.sh' && $healed"
    check use "profile script: ~/.no-uci keeps out" "touch ~user/.no-uci && rm -rf /tmp/stats && su - user -c 'bash /src/job.sh' && [ -z \"\$(ls /tmp/stats)\" ]"
    check use "set-user-ID programs are not disturbed" "rm ~user/.no-uci; [ -z \"\$(su - user -c 'passwd --status; mount >/dev/null' 2>&1 | grep -i 'ld.so')\" ]"
}

build_rpm() {
    check build "RPMs are built" "mkdir -p /root/rpmbuild/SOURCES && cd /src && rm -rf uci-$version && cp -a uci uci-$version &&
        tar czf /root/rpmbuild/SOURCES/uci-$version.tar.gz uci-$version &&
        rpmbuild -bb --nodeps --define 'meson_options -Db_lto=${lto:-false}' uci/packaging/rpm/uci.spec &&
        rpm -qlp /root/rpmbuild/RPMS/*/*.rpm | grep -q '/libucx_integrity.so'"
    check build "the recipes for Spack and EasyBuild are Python" \
        "cd /src/uci/packaging && python3 -c 'import sys; [compile(open(name).read(), name, \"exec\") for name in sys.argv[1:]]' spack/package.py easybuild/*.eb"
}

main() {
    set_options optimize! debian roots keep! reuse! -- "$@"
    [ "$(id -u)" -eq 0 ] || die "root folders need root"
    [ -z "$optimize" ] || optimize=optimize lto=true
    mkdir -p "$logs"
    trap remove_roots EXIT
    make_roots
    build_debian
    install_debian
    use_debian
    build_rpm
    say "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
}

main "$@"
