#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run_openmp.sh <program.c> <lib folder> [<folder of the emulated CUDA driver>]: compile one program for this machine and run
# it on weir, as the drop-in and preloaded: on the CPU devices, or on those of the driver. What it reads from the source stands
# in tests/openmp/check.h. Exit codes: 0, 1, 77 (skipped, with a reason).
set -u
source=$1 lib=$2 driver=${3:-} compiler=${WEIR_TEST_CLANG:-clang-22}
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }
[[ -e $lib/libweir.so && -e $lib/weir/libomptarget.so.22.1 ]] || { echo "no libweir.so in $lib"; exit 1; }
reason=$(sed -n 's|^// not on cuda: *||p' "$source")
[[ -z $driver || -z $reason ]] || { echo "skipped: $reason"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
flags=$(sed -n 's|^// flags:||p' "$source")
compile() { "$compiler" -O1 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu "$source" "$@" $flags; }
compile -o "$scratch/program" || exit 1
if grep -q '^// lib: yes' "$source"; then
    compile -DCASE_LIB -shared -fPIC -o "$scratch/library.so" || exit 1
fi

failed=0
# one <variables of weir> <run line>
one() {
    local variables=${2%%=>*} expect=${2#*=> } output code tries=0
    while
        output=$(ulimit -c 0; env $1 CASE_LIB="$scratch/library.so" $variables timeout -k 5 "${WEIR_TEST_LIMIT:-60}" \
            $start "$scratch/program" 2>&1)
        code=$?
        # An assertion of libomp's about its own teams (docs/openmp.md): two of them in a row are not taken for that.
        [[ $code == 134 && $output == *"kmp_tasking.cpp(3248)"* && $((tries++)) == 0 ]]
    do
        echo "with $1 $variables: libomp failed by itself, once more: $output"
    done
    if [[ $expect == PASS ]]; then
        [[ $code == 0 && ${output##*$'\n'} == PASS ]] && return
    else
        [[ $code == 134 && $output == *"weir: "*"${expect#ABORT }"* ]] && return
    fi
    echo "with $1 $variables: exit code $code, expected $expect; it said:"
    echo "$output"
    failed=1
}

preloaded=$(sed -n 's|^// preload only: *||p' "$source")
runs=$(sed -n 's|^// run: *||p' "$source")
[[ -n $runs || -n $preloaded ]] || runs="OMP_TARGET_OFFLOAD=MANDATORY => PASS"
start= dropin="LD_LIBRARY_PATH=$lib/weir" before="LD_PRELOAD=$lib/libweir.so"
if [[ -n $driver ]]; then
    # As many devices as there are of the CPU. What the driver reports in strict mode fails the program.
    settings="WEIR_CUDA_EMULATOR_DEVICES=4 WEIR_CUDA_EMULATOR_STRICT=1 WEIR_CUDA_EMULATOR_REPORT_HIDDEN_SYNC=1"
    settings+=" WEIR_CUDA_EMULATOR_REPORT_LEGACY=1 WEIR_CUDA_EMULATOR_REPORT_RERECORD=1 WEIR_CUDA_EMULATOR_LAZY=1"
    dropin="LD_LIBRARY_PATH=$driver:$lib/weir WEIR_DEVICE=cuda $settings"
    before="LD_LIBRARY_PATH=$driver $settings"
fi
preload() {
    [[ -z $driver ]] || start="$lib/../bin/weir run --device cuda"
    one "$before" "$1"
    start=
}
if [[ -n $driver ]]; then
    # The first way to run it is enough here: what the others are about has been tried on the CPU devices.
    runs=$(head -n 1 <<<"$runs")
    preloaded=$([[ -n $runs ]] || head -n 1 <<<"$preloaded")
fi
while read -r run; do
    [[ -n $run ]] || continue
    one "$dropin" "$run"
    preload "$run"
done <<<"$runs"
while read -r run; do
    [[ -z $run ]] || preload "$run"
done <<<"$preloaded"
exit $failed
