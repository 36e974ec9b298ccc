#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/site/run_site.sh [BUILD_DIR]
#
# What an administrator gets: does `meson install` land what docs/installed.md lists; are the example uci.conf and its manual page true; do modulefiles,
# profile script, pkg-config file and completion do what they say; can the library be built with no test framework, tools or
# MPI. Ends with "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

build=$(realpath "${1:-$uci_root/build}")
quick_build=(-Db_lto=false -Doptimization=1)
unset UCI_CONFIG_FILE
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
site=$work/prefix/share/uci

# An installation of its own, whose files name it
install_here() {
    meson setup "$work/build" "$uci_root" --prefix "$work/prefix" --libdir lib "${quick_build[@]}" -Dtests=disabled &&
        meson install -C "$work/build"
}

example_parses() {
    sed 's/^#\(UCI_\)/\1/' "$site/uci.conf" >"$work/uci.conf"
    diff <(UCI_CONFIG_FILE='' "$build/tools/uci_info" -c | sort) <(UCI_CONFIG_FILE=$work/uci.conf "$build/tools/uci_info" -c | sort) &&
        diff <(UCI_CONFIG_FILE='' "$build/tools/uci_info" -c | sort) <(grep '^UCI_' "$work/uci.conf" | sort)
}

# Each setting has a paragraph in uci.conf(5)
manual_is_complete() {
    diff <(UCI_CONFIG_FILE='' "$build/tools/uci_info" -c | sed -n 's/=.*//p' | sort) \
        <(sed -n 's/^\.It Ev \(UCI_[A-Z_]*\) .*/\1/p' "$uci_root/docs/man/uci.conf.5" | sort)
}

example_is_inert() {
    ! grep -v '^#' "$site/uci.conf" | grep . && UCI_CONFIG_FILE=$site/uci.conf "$build/tools/uci_info" -c >/dev/null
}

# The options that a manual reader sees in --help, found in another way than the completion does
options_of() {
    "$1" --help | grep -E '^ +-' | sed -E 's/([^ ])  .*/\1/' | grep -oE -- '(^|[ ,[])--?[A-Za-z0-9][A-Za-z0-9-]*' | grep -oE -- '-.*' | sort -u
}

# What --help lists stands in the manual page, too
is_in_manual() {
    local option
    options_of "$1" >"$work/options"
    [ -s "$work/options" ] || return
    while read -r option; do
        grep -qE -- "^\.It Fl (.*(,|Fl) )?${option#-}( |\$)" "$uci_root/docs/man/${1##*/}.1" ||
            { say "$1: $option is not in its manual page"; return 1; }
    done <"$work/options"
}

# The words are in one file; what C has compiled in is the same
version_line() {
    [ "$(cat "$site/version.txt")" = "$1 ($("$2" -v | sed -n 's/^revision: //p')), protocol $("$2" -v | sed -n 's/^protocol: //p'), built with UCX $(
        pkg-config --modversion ucx)" ]
}

says_version() {
    [ "$("$1" --version)" = "${1##*/} (UCI) $(cat "$site/version.txt")" ]
}

completes() {
    local tool=$1 option found
    PATH=$work/prefix/bin:$PATH
    # shellcheck source=packaging/completion/uci_info
    source "$work/prefix/share/bash-completion/completions/$tool"
    complete -p "$tool" || return
    options_of "$tool" >"$work/options"
    [ -s "$work/options" ] || return
    while read -r option; do
        COMPREPLY=()
        _uci_complete "$tool" "$option"
        printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$option" || { say "$tool: $option is not completed"; return 1; }
    done <"$work/options"
    for found in $(COMPREPLY=(); _uci_complete "$tool" -; printf '%s\n' "${COMPREPLY[@]}"); do
        grep -qxF -- "$found" "$work/options" || { say "$tool has no option $found"; return 1; }
    done
    COMPREPLY=()
    _uci_complete "$tool" --no-such-option
    [ ${#COMPREPLY[@]} -eq 0 ]
}

# completes_value OPTION= BEGIN VALUES: readline gives what is behind "=" alone
completes_value() {
    local COMP_LINE="uci_run -n 2 $1$2"
    local COMP_POINT=${#COMP_LINE}
    _uci_complete uci_run "$2" =
    [ "${COMPREPLY[*]}" = "$3" ] || { say "$1$2: ${COMPREPLY[*]}"; return 1; }
}

completes_values() {
    PATH=$work/prefix/bin:$PATH
    # shellcheck source=packaging/completion/uci_info
    source "$work/prefix/share/bash-completion/completions/uci_run"
    completes_value --debug= unb unbuffered && completes_value --seal= "" "encrypt sign" && completes_value --signatures= "" "all off p2p" &&
        completes_value --json= "" "" && completes_value a= "" ""
}

# after_profile USER_ID HOME [LD_PRELOAD]: what is preloaded after the profile script ran twice, in a plain POSIX shell
after_profile() {
    # shellcheck disable=SC2016  # that shell expands them
    setpriv --reuid "$1" --clear-groups env -i PATH="$PATH" HOME="$2" ${3:+LD_PRELOAD="$3"} \
        sh -euc '. "$1"; . "$1"; printf "%s\n" "${LD_PRELOAD:-}"' sh "$site/uci.sh"
}

profile_script() {
    local library=$work/prefix/lib/libucx_integrity.so other
    other=$(ldconfig -p | awk '$1 == "libm.so.6" { print $NF; exit }')
    chmod -R a+rX "$work"
    mkdir -p "$work/home" "$work/home-off"
    touch "$work/home-off/.no-uci"
    [ "$(after_profile 1000 "$work/home")" = "$library" ] && [ "$(after_profile 1000 "$work/home" "$other")" = "$library:$other" ] &&
        [ -z "$(after_profile 1000 "$work/home-off")" ] && [ -z "$(after_profile 100 "$work/home")" ]
}

# A library that is gone must not be asked for: the loader would complain in every program
profile_without_library() (
    mv "$work/prefix/lib/libucx_integrity.so" "$work/gone"
    trap 'mv "$work/gone" "$work/prefix/lib/libucx_integrity.so"' EXIT
    [ -z "$(after_profile 1000 "$work/home")" ]
)

# The two module systems exclude each other as packages, so neither is installed for this suite: tests/packages has Lmod
find_modules() {
    local init
    for init in /usr/share/modules/init/bash /etc/profile.d/lmod.sh; do
        [ ! -e "$init" ] || { modules=$init; return; }
    done
    return 1
}

# module_gives NAME TEXT: loading it sets what is expected
module_gives() {
    bash -c 'source "$3"; module use "$1"; module load "$2"; env' bash "$site/modulefiles" "$1" "$modules" |
        grep -xF -- "$2"
}

pkg_config() {
    [ "$(PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig pkg-config --variable "$1" ucx_integrity)" = "$2" ] && [ -e "$2" ]
}

# Only what the library itself needs is in sight: links to some of the machine's .pc files
builds_alone() {
    local files=() file links=$work/pkgconfig
    mkdir -p "$links"
    IFS=: read -ra files <<<"$(pkg-config --variable pc_path pkg-config)"
    for file in ucx libxxhash libisal jansson; do
        find "${files[@]}" -name "$file.pc" -exec ln -sf {} "$links" \; 2>/dev/null || true
    done
    PKG_CONFIG_LIBDIR=$links meson setup "$work/alone" "$uci_root" "${quick_build[@]}" -Dtests=disabled -Dtools=disabled &&
        ninja -C "$work/alone" && readelf -d "$work/alone/libucx_integrity.so" &&
        [ "$(meson introspect --targets "$work/alone" | grep -c '"type": "executable"')" -eq 0 ]
}

asks_for_criterion() {
    ! PKG_CONFIG_LIBDIR=$work/pkgconfig meson setup "$work/without" "$uci_root" -Dtools=disabled -Db_lto=false >"$work/said" 2>&1 &&
        grep -q 'meson setup -Dtests=disabled' "$work/said"
}

main() {
    local tool version modules=
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    check "meson install lands what docs/installed.md lists" python3 "$uci_root/tests/site/install_list.py" "$build"
    check "an installation without tests" install_here
    version=$(uci_version)
    check "uci.spdx.json: of the form of SPDX, and what files need and open" python3 "$uci_root/tests/site/check_sbom.py" "$work/prefix"
    check "uci.conf: each setting with its default" example_parses
    check "uci.conf: sets nothing as it is" example_is_inert
    check "uci.conf(5): each setting" manual_is_complete
    check "version.txt: version, revision, protocol and UCX, as uci_info has them" version_line "$version" "$work/prefix/bin/uci_info"
    for tool in "$work"/prefix/bin/uci_*; do
        [[ ${tool##*/} != *.* ]] || continue
        check "completion of ${tool##*/} is its --help" completes "${tool##*/}"
        check "manual page of ${tool##*/} has what --help has" is_in_manual "$tool"
        check "${tool##*/} --version" says_version "$tool"
    done
    check "completion of values behind =" completes_values
    check "pkg-config: the library" pkg_config preload "$work/prefix/lib/libucx_integrity.so"
    check "pkg-config: the folder for UCX" pkg_config ucx_plugin_path "$work/prefix/lib/uci"
    if find_modules; then
        check "modulefile: preload is the usual one" module_gives uci "LD_PRELOAD=$work/prefix/lib/libucx_integrity.so"
        check "modulefile: plugin" module_gives "uci/$version-plugin" "UCX_PLUGIN_PATH=$work/prefix/lib/uci"
    else
        skip "modulefiles" "neither Environment Modules nor Lmod here (Debian: environment-modules, or lmod)"
    fi
    if [ "$(id -u)" -eq 0 ]; then
        check "profile script: users, their own preloads, ~/.no-uci, not the system's" profile_script
        check "profile script: nothing without the library" profile_without_library
    else
        skip "profile script" "other users are played by root"
    fi
    check "the library alone, without Criterion, MPI and tools" builds_alone
    check "without Criterion the option is named" asks_for_criterion
    end_of_checks
}

main "$@"
