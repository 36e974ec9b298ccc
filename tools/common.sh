# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What the scripts share: saying what happens, steps with progress, building. Sourced, never run.

uci_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# usage_of FILE: the comment block that opens FILE, after its licence.
usage_of() {
    awk 'NR > 3 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$1"
}

# set_options NAME... -- ARGUMENT...: read the options of a script. NAME is that of an option '--NAME VALUE', which sets the
# variable NAME ('-' becomes '_'); 'NAME!' is that of one without a value, which sets it to 1. Knows --help.
set_options() {
    local names='' name
    while [ "$1" != -- ]; do
        names+=" $1 "
        shift
    done
    shift
    while [ $# -gt 0 ]; do
        name=${1#--}
        if [[ $1 == -h || $1 == --help ]]; then
            usage_of "$0"
            exit
        elif [[ $1 == --?* && $names == *" $name! "* ]]; then
            printf -v "${name//-/_}" %s 1
        elif [[ $1 == --?* && $names == *" $name "* ]]; then
            [ $# -gt 1 ] || die "option '$1' wants a value (see --help)"
            printf -v "${name//-/_}" %s "$2"
            shift
        else
            die "unknown option '$1' (see --help)"
        fi
        shift
    done
}

# use_debian_python: from here on python3 is Debian's, where there is one, and keeps what it compiles in the build folder. Some suites
# start it a thousand times: the shim of a version manager (pyenv) takes ten times as long as Debian's Python to start.
use_debian_python() {
    local own=$uci_root/build/python
    export PYTHONPYCACHEPREFIX=$own/cache
    unset PYTHONDONTWRITEBYTECODE
    [ "$(command -v python3)" != /usr/bin/python3 ] && [ -x /usr/bin/python3 ] || return 0
    mkdir -p "$own" && ln -sfn /usr/bin/python3 "$own/python3" && PATH=$own:$PATH
}

# clock: now, in seconds with a fraction.
clock() {
    printf '%s' "${EPOCHREALTIME/,/.}"
}

# since BEGIN: seconds passed since BEGIN (of clock), one decimal.
since() {
    awk -v begin="$1" -v end="$(clock)" 'BEGIN { printf "%.1f", end - begin }'
}

# run_step LABEL LOG COMMAND...: run COMMAND into LOG, showing that it lives: a counter on a terminal, a line every
# ten seconds elsewhere. The command is a process group of its own, so that an interrupt here ends all of it.
run_step() {
    local label=$1 log=$2 begin status=0
    shift 2
    begin=$(clock)
    [ -t 1 ] || say "$label ..."
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    step_pid=$!
    set +m
    trap 'kill -- "-$step_pid" 2>/dev/null; trap - INT TERM; kill -INT $$' INT TERM
    show_progress "$label" "$begin"
    wait "$step_pid" || status=$?
    trap - INT TERM
    if [ -t 1 ]; then
        printf '\r%s: %s s   \n' "$label" "$(since "$begin")"
    else
        say "$label: $(since "$begin") s"
    fi
    return "$status"
}

show_progress() {
    local label=$1 begin=$2 tick=0 frames="|/-\\"
    while kill -0 "$step_pid" 2>/dev/null; do
        sleep 0.2
        tick=$((tick + 1))
        if [ -t 1 ]; then
            printf '\r%s %s %s s ' "$label" "${frames:tick % 4:1}" "$(since "$begin")"
        elif [ $((tick % 50)) -eq 0 ]; then
            say "  ... $(since "$begin") s"
        fi
    done
}

# must_step LABEL LOG COMMAND...: as run_step, but a failure shows the end of LOG and ends the script.
must_step() {
    run_step "$@" && return
    tail -n 40 "$2" >&2
    die "failed: $1 (whole log: $2)"
}

# uci_version: that of the sources.
uci_version() {
    sed -n "s/^ *version: '\(.*\)',\$/\1/p" "$uci_root/meson.build"
}

# copy_sources DIR: a copy of the sources, committed or about to be, without the repository.
copy_sources() {
    mkdir -p "$1"
    git -C "$uci_root" -c safe.directory="$uci_root" ls-files -z --cached --others --exclude-standard |
        tar -C "$uci_root" --null -T - -c | tar -x -C "$1"
}

# found_here: what Meson's findings depend on: the compiler's version, its own, and all that pkg-config knows, with size and time.
found_here() {
    local dirs
    "${CC:-cc}" --version | head -n 1
    meson --version
    IFS=: read -ra dirs <<<"${PKG_CONFIG_PATH:-}:${PKG_CONFIG_LIBDIR:-}:$(pkg-config --variable pc_path pkg-config)"
    find -L "${dirs[@]}" -name '*.pc' -printf '%p %s %t\n' 2>/dev/null | sort || true
}

# configure_uci DIR [MESON OPTION...]: unless it was done with what is there now. Packages that came since, such as an MPI's headers,
# change what is built. Meson remembers what it has found, so it is made to look at everything again: with a memory that it can't
# read it starts from scratch, and keeps the options and what was built. What another compiler has built goes. A warning is an error where
# CI_WERROR is true, as in CI: whoever has a newer compiler must be able to build.
configure_uci() {
    local dir=$1 stamp=$1/configured-with found again=()
    shift
    found=$(found_here; say "werror ${CI_WERROR:-false}")
    if [ -f "$dir/build.ninja" ]; then
        [ "$found" != "$(cat "$stamp" 2>/dev/null)" ] || return 0
        [ ! -f "$stamp" ] || [ "$(head -n 1 "$stamp")" = "${found%%$'\n'*}" ] || ninja -C "$dir" -t clean >/dev/null
        : >"$dir/meson-private/coredata.dat"
        again=(--reconfigure)
    fi
    must_step "configuring ${dir##*/}/" "$dir/configure.log" meson setup ${again[@]+"${again[@]}"} \
        "-Dwerror=${CI_WERROR:-false}" "$@" "$dir" "$uci_root"
    say "$found" >"$stamp"
}

# build_uci DIR [MESON OPTION...] [-- NINJA ARGUMENT...]: configure DIR, if that was not done or other things are to be found now, then build
# everything, or what ninja is told to.
build_uci() {
    local dir=$1 meson_options=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        meson_options+=("$1")
        shift
    done
    mkdir -p "$dir"
    configure_uci "${meson_options[@]}"
    must_step "building ${dir##*/}/" "$dir/build.log" ninja -C "$dir" "${@:2}"
}
