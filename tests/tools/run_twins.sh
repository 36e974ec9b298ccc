#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/tools/run_twins.sh [BUILD_DIR]
#
# uci_run --twins: does it start the right jobs, with what belongs to each, keep and compare what they print, name a twin that fails, end all
# when it is told to, and tell what they have found? Jobs that leave made-up reports (make_twins.py), and real ones of both MPIs that are the
# same: what is compared, and how, the suite twins tests. Ends with "N passed, N failed, N skipped".
# shellcheck disable=SC2016 # lines for the shell of a job, which has the variables
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

tools=$(realpath "${1:-$uci_root/build}")/tools
# shellcheck source=tests/tools/checks.sh
source "$uci_root/tests/tools/checks.sh"
limited=("$uci_root/tests/watchdog.sh" 60)
unset "${!UCI_@}" LD_PRELOAD UCX_PLUGIN_PATH
export XDG_CACHE_HOME=$work/cache UCI_CONFIG_FILE='' UCX_TLS=posix,self

# A job that leaves made-up files, and then does what its last argument, a line for the shell, says; $twin is its number
make_job() {
    cat >"$work/job.sh" <<END
#!/bin/bash
twin=\${UCI_TWINS##*,}
twin=\${twin%%/*}
folder=\$(dirname "\$UCI_TWINS_REPORT")
python3 "$uci_root/tests/tools/make_twins.py" "\${folder//%%/%}" --only "\$twin" --twins "\${UCI_TWINS##*/}" "\${@:1:\$#-1}"
eval "\${@: -1}"
END
    chmod +x "$work/job.sh"
}

# run TWINS [OPTION...] [-- ARGUMENT...]: the summary is in $work/run.json, the folder of the run $work/run
run() {
    local options=(--twins "$1")
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    rm -rf "$work/run" "$work/run.json"
    timeout 60 "$tools/uci_run" "${options[@]}" --folder "$work/run" --json "$work/run.json" -- "$work/job.sh" "${@:2}"
}

# summary CONDITION: a Python expression over the JSON of the last run.
summary() {
    python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))
assert eval(sys.argv[2], {}, run), {name: run[name] for name in run if name in sys.argv[2]}' "$work/run.json" "$1"
}

same() {
    says "The two twins are the same in all 4,000 messages" 0 run 2 -- 'echo result' && grep -q "twin 1 has printed the same$" "$work/said" &&
        [ "$(grep -c '^result' "$work/said")" -eq 1 ] && summary 'stdout[0]["state"] == "same" and twins["level"] == "same" and statuses == [0, 0]' &&
        summary 'twins["sums"]["compared"] == 4000 and twins["processes"] == [8, 8] and exit_code == 0'
}

two_differ() {
    says "and two twins can't tell which" 119 run 2 -- --wrong-twin 1 'echo result' &&
        summary '[one["twin"] for one in twins["culprits"]] == [0, 1] and {one["rank"] for one in twins["culprits"]} == {2}' &&
        summary 'twins["level"] == "differs" and twins["first"]["sender"] == 2 and twins["sums"]["differed"] > 1000'
}

three_vote() {
    says "Rank 2 of twin 1 (node101, process 20002, cores 4-5" 119 run 3 -- --wrong-twin 1 'echo result' &&
        summary 'len(twins["culprits"]) == 1 and twins["minority"][1] == twins["sums"]["differed"] and twins["minority"][0] == 0' &&
        summary 'twins["tainted"]["ranks"][0][0] == 2 and twins["tainted"]["count"] == 8 and 20 <= twins["first"]["seconds_after_start"] < 22'
}

corrected() {
    says "all were corrected" 118 run 3 --correct -- --wrong-twin 2 --correct 'echo result' &&
        summary 'twins["level"] == "corrected" and twins["sums"]["differed"] == twins["sums"]["corrected"] == 1 and twins["mode"] == "correct"'
}

not_deterministic() {
    says "The program is not deterministic" 0 run 2 -- --all-differ 'echo result' && summary 'twins["level"] == "not deterministic" and not twins["culprits"]' &&
        ! grep -q "has computed something wrong" "$work/said"
}

# What a twin that is gone has not told, the others have
one_lost() {
    says "twin 2 has failed with exit status 9" 9 run 3 -- --lost 2 'echo result; [ $twin != 2 ] || exit 9' &&
        grep -q "Twin 2 failed" "$work/said" && grep -q "8 ranks went on without twin 2: it had gone" "$work/said" && summary 'statuses == [0, 0, 9]'
}

# Damage on the way is told beside: by the records of each twin
damaged_too() {
    says "could not be repaired" 123 run 2 -- 'echo "{\"schema\": 2, \"verdict\": \"not repaired\", \"cause\": \"memory\", \"rank\": 1, \"peer_rank\": 0}" \
        >"$folder/events.x.$twin.jsonl"' && summary 'jobs[1]["by_verdict"] == {"not repaired": 1} and twins["level"] == "same"'
}

nothing_compared() {
    says "have compared nothing" "$1" run 2 "${@:2}" -- 'rm "$folder"/twins.*'
}

# prints TEXT-OF-0 TEXT-OF-1 STATE SAID
prints() {
    says "$4" 0 run 2 -- "[ \$twin = 0 ] && printf '%b' '$1' || printf '%b' '$2'" && summary "stdout[0][\"state\"] == \"$3\"" &&
        [ "$(cat "$work/run/twin.1.stdout")" = "$(printf '%b' "$2")" ]
}

# No room for what they print: they need not know, and what is shown is whole
full_disk() {
    local status=0
    mkdir "$work/full"
    mount -t tmpfs -o size=1m none "$work/full"
    timeout 60 "$tools/uci_run" --twins 2 --folder "$work/full/run" -- bash -c 'seq 200000 || exit 9' >"$work/shown" 2>"$work/said" &&
        grep -q "twin.0.stdout is not whole: No space left on device" "$work/said" && grep -q "twin.1.stdout is not whole" "$work/said" &&
        ! grep -q Traceback "$work/said" && [ "$(wc -l <"$work/shown")" -eq 200000 ] || status=$?
    cat "$work/said"
    umount "$work/full"
    return $status
}

# input COMMAND...: its output is the standard input of a run, which all twins must get
input() {
    local sum
    sum=$("$@" | cksum)
    "$@" | run 3 -- cksum >"$work/said" 2>&1
    cat "$work/said"
    for twin in 0 1 2; do
        [ "$(cat "$work/run/twin.$twin.stdout")" = "$sum" ] || return 1
    done
}

input_file() {
    local twin
    head -c 300000 /dev/urandom >"$work/input"
    { head -c 10 >"$work/first"; run 2 -- cksum >"$work/said" 2>&1; } <"$work/input"
    for twin in 0 1; do
        [ "$(cat "$work/run/twin.$twin.stdout")" = "$(tail -c +11 "$work/input" | cksum)" ] || return 1
    done
}

# A pipe that never ends holds nobody up
endless_input() {
    # shellcheck disable=SC2094
    mkfifo "$work/pipe" && run 2 -- 'echo result' <>"$work/pipe" && rm "$work/pipe"
}

closed_output() {
    run 2 -- 'echo result' >&- && summary 'twins["level"] == "same"' && [ "$(cat "$work/run/twin.0.stdout")" = result ]
}

# told SIGNAL: all jobs end, and those who wait for them
told() {
    local runner pid
    rm -rf "$work/run"
    "$tools/uci_run" --twins 3 --folder "$work/run" -- "$work/job.sh" 'echo $$ >"$folder/pid"; exec sleep 300' >"$work/said" 2>&1 &
    runner=$!
    until [ "$(find "$work/run" -name pid -size +0 2>/dev/null | wc -l)" -eq 3 ]; do
        sleep .1
    done
    kill "-$1" "$runner"
    wait "$runner" && return 1
    cat "$work/said"
    while read -r pid; do
        ! kill -0 "$pid" 2>/dev/null || return 1
    done < <(cat "$work"/run/twin.*/pid)
}

apart() {
    mkdir "$work/here" && echo 1 >"$work/here/input" && cd "$work/here" && run 3 --apart -- 'cat input; echo "$twin" >made; sleep .5; cat made' &&
        [ "$(cat made)" = 0 ] && [ "$(cat "$work/run/twin.2/work/made")" = 2 ] && [ "$(cat "$work/run/twin.2.stdout")" = $'1\n2' ]
}

# real MPI: two jobs of an MPI at the same time, with what belongs to each
real() {
    local twin
    rm -rf "$work/run"
    "mpicc.$1" -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-stringop-overflow "$uci_root/tests/tools/pairs.c" -o "$work/pairs.$1" &&
        "${limited[@]}" "$tools/uci_run" --twins 2 -n 2 -v --folder "$work/run" --json "$work/run.json" -x OMPI_MCA_rmaps_base_oversubscribe=1 \
            --mpirun-args "$2" "$work/pairs.$1" || return 1
    for twin in 0 1; do
        [ "$(find "$work/run/twin.$twin" -name 'stats.*.json' | wc -l)" -eq 2 ] || return 1
    done
    summary 'twins["level"] == "same" and twins["sums"]["compared"] + twins["sums"]["unlike"] == 20 and twins["sums"]["compared"] > 0 and not any(job["ranks_without_statistics"] for job in jobs)' &&
        [ -z "$(find "$work/run" -name '*.twin')" ]
}

# One's own mpirun, with twins and without
real_own() {
    rm -rf "$work/run" "$work/alone"
    "${limited[@]}" "$tools/uci_run" --twins 2 --folder "$work/run" --json "$work/run.json" -- "mpirun.$1" "${@:2}" -np 2 "$work/pairs.$1" &&
        summary 'twins["sums"]["compared"] + twins["sums"]["unlike"] == 20 and twins["sums"]["compared"] > 0 and [job["ranks"] for job in jobs] == [2, 2]' &&
        "${limited[@]}" "$tools/uci_run" --folder "$work/alone" --json "$work/run.json" -- "mpirun.$1" "${@:2}" -np 2 "$work/pairs.$1" &&
        summary 'messages_received == 20 and ranks == ranks_with_uci == 2'
}

# What is printed can be pasted
pasted() {
    "$tools/uci_run" --twins 2 --dry-run --folder "$work/paste d" -- "$work/job.sh" 'echo "result of $twin"' >"$work/line" 2>"$work/how" &&
        [ ! -e "$work/paste d" ] && bash "$work/line" >"$work/said" && grep -qx "result of 0" "$work/said" &&
        grep -qx "result of 1" "$work/paste d/twin.1.stdout" && ! grep -q "result of 1" "$work/said"
}

# Apart as well, beside what is there, with a file that begins with a dot; and a job script ends as the first twin that has failed
pasted_apart() {
    mkdir "$work/pasted" && cd "$work/pasted" && echo 1 >.input &&
        "$tools/uci_run" --twins 3 --apart --seal --dry-run --folder "run it" -- "$work/job.sh" 'cat .input; echo "$twin" >made; sleep .2; cat made; exit "$twin"' \
            >"$work/line" 2>"$work/how" && says 1 1 bash "$work/line" && [ "$(cat made)" = 0 ] && [ ! -e "run it/key" ] &&
        [ "$(cat "run it/twin.2.stdout")" = $'1\n2' ] && [ "$(cat "run it/twin.1/work/made")" = 1 ] && [ ! -e "run it/twin.1/work/run it" ]
}

main() {
    case ${1:-} in
    -h|--help) usage_of "$0"; exit ;;
    esac
    make_job
    check "twins that are the same" same
    check "two that differ" two_differ
    check "three vote, and name who is wrong" three_vote
    check "three that were corrected" corrected
    check "a program that is not deterministic" not_deterministic
    check "a twin that dies" one_lost
    check "damage on the way, in twins that are the same" damaged_too
    check "twins that have compared nothing" nothing_compared 0
    check "--require: twins that have compared nothing" nothing_compared 120 --require
    check "the same lines in another order" prints 'a\nb\nb\n' 'b\na\nb\n' 'other order' 'the same lines in another order'
    check "another line" prints 'a\nb\n' 'a\nc\n' differs "line 2 of twin 0, 'b', is not in twin 1; line 2 of twin 1, 'c', is not in twin 0"
    check "a line less" prints 'a\nb\nb\n' 'a\nb\n' differs "line 3 of twin 0, 'b', is not in twin 1"
    check "output that is no text" prints '\001\377\n' '\002\n' differs 'line 1 of twin 0'
    if [ "$(id -u)" -eq 0 ]; then
        check "a full disk" full_disk
    else
        skip "a full disk" "a file system is mounted by root"
    fi
    check "all get what comes through a pipe" input head -c 300000 /usr/bin/bash
    check "all read a file, from where it stands" input_file
    check "input without an end" endless_input
    check "closed output" closed_output
    check "SIGTERM ends all" told TERM
    check "SIGINT ends all" told INT
    check "--apart: files of twins do not collide" apart
    check "--dry-run can be pasted" pasted
    check "--dry-run --apart can be pasted" pasted_apart
    check "Open MPI: two jobs at once" real openmpi '--mca btl ^openib'
    check "Open MPI: one's own mpirun" real_own openmpi --allow-run-as-root --oversubscribe
    check "MPICH: two jobs at once" real mpich ''
    check "MPICH: one's own mpirun" real_own mpich
    check "a program without a number of ranks" says "how many ranks?" 125 "$tools/uci_run" --twins 2 "$work/pairs.mpich"
    check "--correct for two" says "needs --twins 3" 125 "$tools/uci_run" --twins 2 --correct -n 2 "$work/pairs.mpich"
    check "--correct without twins" says "for jobs with --twins" 125 "$tools/uci_run" --correct -n 2 "$work/pairs.mpich"
    check "four twins" says "invalid choice" 125 "$tools/uci_run" --twins 4 -n 2 "$work/pairs.mpich"
    check "hosts of too few twins" says "not 1 times" 125 "$tools/uci_run" --twins 2 --hosts-of-twin a -n 2 "$work/pairs.mpich"
    check "hosts of a launcher that is not known" says "must say which hosts" 125 "$tools/uci_run" --twins 2 --hosts-of-twin a --hosts-of-twin b \
        -- "$work/job.sh"
    check "hosts of each twin" says "-hosts c,d" 0 "$tools/uci_run" --twins 2 --hosts-of-twin a,b --hosts-of-twin c,d --dry-run -n 2 "$work/pairs.mpich"
    check "a folder of another run" says "holds what another job has left" 125 "$tools/uci_run" --twins 2 --folder "$work/run" -n 2 "$work/pairs.mpich"
    end_of_checks
}

main "$@"
