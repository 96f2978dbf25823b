#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run.sh <graphs> <first seed> <lib folder> [<folder>]: generate that many random task graphs, compile them for the CPU
# device and run them on weir: as the drop-in, preloaded, and, of every fourth program, with what only weir before
# libomp gets right. The source of the first program that fails is kept in <folder> (default: the current one).
# Environment: WEIR_TEST_CLANG, WEIR_TEST_LIMIT (seconds of one run), SEED and REPEAT (tests/openmp/task_check.h),
# WEIR_TEST_HELPERS=1 (the drop-in also with the hidden helper threads of libomp, which now and then hang by themselves),
# WEIR_TEST_DROPIN (another folder with libomptarget.so.22.1 to run on), WEIR_TEST_PRELOAD=0 (the drop-in only).
# Exit codes: 0, 1, 77 (skipped, with a reason).
set -u
[[ $# -ge 3 ]] || { echo "usage: run.sh GRAPHS FIRST_SEED LIB [FOLDER]"; exit 2; }
graphs=$1 first=$2 lib=$3 keep=${4:-.} compiler=${WEIR_TEST_CLANG:-clang-22} batch=10
here=$(cd "$(dirname "$0")" && pwd)
dropin=${WEIR_TEST_DROPIN:-$lib/weir} preload=${WEIR_TEST_PRELOAD:-1}
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }
[[ -e $lib/libweir.so && -e $lib/weir/libomptarget.so.22.1 ]] || { echo "no libweir.so in $lib"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${CC:-cc}" -O1 -o "$scratch/generate" "$here/generate.c" || exit 1

# once <program> <variables>: one run; its output goes to the program's log if it fails.
once() {
    local program=$1 output code
    shift
    output=$(ulimit -c 0; env OMP_WAIT_POLICY=passive "$@" timeout -k 5 "${WEIR_TEST_LIMIT:-60}" "$program" 2>&1)
    code=$?
    echo >>"$program.runs"
    [[ $code == 0 && ${output##*$'\n'} == PASS ]] && return
    { echo "with $*: exit code $code; it said:"; echo "$output"; } >>"$program.log"
}

# program <first seed> <graphs> <-s or nothing>
program() {
    local name=$scratch/graphs_$1${3:-}
    "$scratch/generate" ${3:+"$3"} "$1" "$2" >"$name.c" 2>/dev/null &&
        "$compiler" -O0 -w -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu -I "$here" -I "$here/../openmp" "$name.c" \
            -o "$name" 2>"$name.log" || { echo "does not compile" >>"$name.log"; return; }
    [[ -s $name.log ]] || rm -f "$name.log"
    if [[ -z ${3:-} ]]; then
        once "$name" LD_LIBRARY_PATH="$dropin" LIBOMP_USE_HIDDEN_HELPER_TASK=0
        [[ ${WEIR_TEST_HELPERS:-0} == 0 ]] || once "$name" LD_LIBRARY_PATH="$dropin"
    fi
    [[ $preload == 0 ]] && return
    once "$name" LD_PRELOAD="$lib/libweir.so" ${3:+STRICT=1}
    once "$name" LD_PRELOAD="$lib/libweir.so" ${3:+STRICT=1} LIBOMP_USE_HIDDEN_HELPER_TASK=0 KMP_BLOCKTIME=0
}

jobs_at_once=$(nproc)
for ((seed = first; seed < first + graphs; seed += batch)); do
    n=$((first + graphs - seed < batch ? first + graphs - seed : batch))
    while (($(jobs -rp | wc -l) >= jobs_at_once)); do wait -n; done
    program "$seed" "$n" &
    if ((preload && (seed - first) / batch % 4 == 0)); then
        while (($(jobs -rp | wc -l) >= jobs_at_once)); do wait -n; done
        program "$seed" "$n" -s &
    fi
done
wait

shopt -s nullglob
runs=0 programs=0 failed=0
for source in "$scratch"/graphs_*.c; do
    name=${source%.c}
    programs=$((programs + 1)) runs=$((runs + $(wc -l 2>/dev/null <"$name.runs" || echo 0)))
    [[ -e $name.log ]] || continue
    failed=$((failed + 1))
    ((failed > 5)) || { echo "${name##*/}:"; head -20 "$name.log"; }
    ((failed > 1)) || { cp "$source" "$keep/" && echo "kept as $keep/${source##*/}"; }
done
echo "$graphs graphs from seed $first: $programs programs, $runs runs, $failed programs failed"
((failed == 0))
