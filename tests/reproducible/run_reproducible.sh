#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/reproducible/run_reproducible.sh [options]
#
# Are two builds of a commit the same bytes? HEAD is cloned twice, into folders of different names, built as for a release (LTO, debug information),
# within the sources and beside them, and installed: files, links and modes are compared. Ends with "N passed, N failed, N skipped".
#
#   --keep        leave clones, builds and installations, and say where
#   --no-lto      without link-time optimisation, which takes most of the time
#   --help        this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

keep='' no_lto=''
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"

clean_up() {
    if [ -n "$keep" ]; then
        say "clones, builds and installations: $work"
    else
        rm -rf "$work"
    fi
}

# install_into NAME SOURCES BUILD: of a clone of its own, below $work/NAME. At another time, in another locale, by another number of hands
install_into() {
    git -c safe.directory='*' clone -q --no-hardlinks "$uci_root" "$2" &&
        meson setup -Dtests=disabled --prefix /usr ${no_lto:+-Db_lto=false} "$3" "$2" && ninja -C "$3" ${4:+-j "$4"} &&
        meson install -C "$3" --no-rebuild --destdir "$work/$1"
}

# listed NAME: modes, names, and contents or destinations of what is installed
listed() (
    cd "$work/$1"
    find . -type f -exec sha256sum {} + | sort -k 2
    find . ! -type l -printf '%m %p\n' | sort
    find . -type l -printf '%p -> %l\n' | sort
)

# The place in the sources is in no file either: whoever debugs has them elsewhere
names_no_folder() {
    ! grep -rlF "$work" "$work/first" "$work/second"
}

main() {
    set_options keep! no-lto! -- "$@"
    trap clean_up EXIT
    check "a build within the sources" install_into first "$work/uci" "$work/uci/build"
    check "one beside them, in folders of other names" install_into second "$work/of/another/name/sources" "$work/made here" 1
    check "they are the same bytes, $(listed first | grep -c ' -> \|^[0-9a-f]\{64\} ') files and links" diff <(listed first) <(listed second)
    check "no file names the folder that it was built in" names_no_folder
    end_of_checks
}

main "$@"
