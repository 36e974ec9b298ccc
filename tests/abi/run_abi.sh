#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/abi/run_abi.sh [--write] [BUILD_DIR]
#
# Have the binary interfaces kept what others were compiled with: that of libuci (uci.h), and that between the library and a companion
# (uci_signature.h, uci_allreduce.h, uci_calls.h)? Functions, and the types of those headers that these reach, are compared with tests/abi/NAME.xml, by
# libabigail. Ends with "N passed, N failed, N skipped".
#
#   --write       make those files what BUILD_DIR has: right for what was added. What went, or changed, breaks programs: docs/upgrading.md
#   --help        this text
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

here=$uci_root/tests/abi
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"

# dump NAME OPTION... FILE: its interface, where it was compiled left out
dump() {
    abidw --no-show-locs --no-corpus-path --no-comp-dir-path --drop-private-types --exported-interfaces-only "${@:2}" |
        sed '/<elf-needed>/,/<\/elf-needed>/d' >"$work/$1.xml"
}

# notices NAME SED_SCRIPT: an interface that is what it was but for what SED_SCRIPT does to it differs, by the bit 4 of abidiff's status, and is read
notices() {
    local status=0
    sed -z "$2" "$here/$1.xml" >"$work/other.xml"
    abidiff "$here/$1.xml" "$work/other.xml" || status=$?
    [ "$status" -eq 4 ] || [ "$status" -eq 12 ]
}

# without FUNCTION, at_zero MEMBER: such scripts
without() {
    say "s/<elf-symbol name='$1'[^>]*>//"
}

at_zero() {
    say "s/layout-offset-in-bits='[0-9]*'>\(\s*<var-decl name='$1'\)/layout-offset-in-bits='0'>\1/"
}

main() {
    local build write='' name
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    --write) write=1; shift ;;
    esac
    build=$(realpath "${1:-$uci_root/build}")
    type abidw abidiff >/dev/null || die "libabigail's programs are not here (Debian: abigail-tools)"
    if [ "$(uname -m)" != x86_64 ]; then
        skip "interfaces" "what is compared with is that of x86_64"
        end_of_checks
        return
    fi
    dump libuci --headers-dir "$uci_root/libuci" --headers-dir "$uci_root/core/api" "$build/libuci/libuci.so"
    dump companion --headers-dir "$uci_root/core/api" --suppressions "$here/companion.supp" "$build/libucx_integrity.so"
    [ -z "$write" ] || { cp "$work/libuci.xml" "$work/companion.xml" "$here"; exit; }
    for name in libuci companion; do
        check "the interface of $name is what it was" abidiff "$here/$name.xml" "$work/$name.xml"
    done
    check "a function of libuci that is gone would be noticed" notices libuci "$(without uci_tree_pack)"
    check "one that a companion calls, too" notices companion "$(without uci_signatures_wait)"
    check "a member of libuci's structures that lies elsewhere would be noticed" notices libuci "$(at_zero chunk_size)"
    check "one of a companion's, too" notices companion "$(at_zero rewritten)"
    end_of_checks
}

main "$@"
