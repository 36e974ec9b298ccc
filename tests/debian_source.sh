# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Others' sources, as Debian has them: for suites that run other people's tests. Sourced, never run.

# fetch_debian_source PACKAGE VERSION FOLDER: its source in FOLDER/PACKAGE, from where this machine gets its packages; its configuration of apt stays
# as it is. Debian's patches are not applied.
fetch_debian_source() {
    local package=$1 version=$2 folder=$3 apt=$3/apt options uri suite
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
    # shellcheck disable=SC2016 # apt expands these
    read -r uri suite < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
                          awk '/debian.org/ && !/security/ { print; exit }')
    [ -n "${suite:-}" ] || die "no Debian archive among this machine's package sources"
    printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$uri" "$suite" >"$apt/parts/source.list"
    options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache"
             -o APT::Sandbox::User=root -qq)
    apt-get "${options[@]}" update
    (cd "$folder" && rm -rf "$package" && apt-get "${options[@]}" source --download-only "$package=$version")
    mkdir "$folder/$package"
    tar -xf "$folder/$package"_*.orig.tar.* -C "$folder/$package" --strip-components 1
    tar -xf "$folder/$package"_*.debian.tar.* -C "$folder/$package"
    # UCX's configure wants files of its own debian/, which is beside Debian's
    [ ! -d "$folder/$package/debian.upstream" ] || cp -rn "$folder/$package/debian.upstream/." "$folder/$package/debian"
}

# is_built FOLDER VERSION
is_built() {
    [ "$(cat "$1/built" 2>/dev/null)" = "$2" ]
}

# build_once FOLDER VERSION WHAT FUNCTION: with FUNCTION; its output goes to FOLDER/build.log. Errors end the script (set -e),
# wherever they are.
build_once() {
    local folder=$1 version=$2 what=$3
    say "$what $version is built in $folder, log: $folder/build.log"
    exec 3>&2
    # shellcheck disable=SC2064 # these values
    trap "is_built '$folder' '$version' || say \"that failed, see $folder/build.log: \$(tail -n 2 '$folder/build.log')\" >&3" EXIT
    "$4" >"$folder/build.log" 2>&1
    echo "$version" >"$folder/built"
}
