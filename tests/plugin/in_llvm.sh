#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# in_llvm.sh <release> <folder of packages> <folder of weir's plugins>: LLVM's own libomptarget of that release loads weir's
# plugin and runs what that release's clang compiles. That it is weir's is told by its own summary: every kernel that the
# program launched is among those that the plugin ran.
set -u
release=$1 packages=$2 plugins=$3 source=$(dirname "$0")
compiler=clang-$release
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }
libraries=$("$source/packages.sh" "$release" "$packages") || { code=$?; echo "$libraries"; exit $code; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
include=$(find "$packages/$release" -name omp.h -printf '%h\n' -quit)
"$compiler" -O1 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu -I"$include" -L"$libraries" "$source/program.c" \
    -o "$scratch/program" || exit 1

failed=0
fail() {
    echo "$1; it said:"
    cat "$scratch/output"
    failed=1
}
# number <words>: the number in front of them in what the plugin or the program told
number() { grep -oE "[0-9]+ $1" "$scratch/output" | head -n 1 | tr -dc 0-9; }
# one <devices> <variables>
one() {
    local code
    env LD_LIBRARY_PATH="$plugins:$libraries" OMP_TARGET_OFFLOAD=MANDATORY WEIR_SUMMARY=1 WEIR_HOST_DEVICES="$1" $2 \
        timeout -s KILL 60 "$scratch/program" >"$scratch/output" 2>&1
    code=$?
    [[ $code == 0 ]] && grep -qx PASS "$scratch/output" || { fail "$release with $2: exit code $code"; return; }
    [[ $(number devices) == "$1" ]] || fail "$release: not as many devices as the plugin has"
    local wanted=$(sed -n 's/.* devices, \([0-9]*\) kernels$/\1/p' "$scratch/output")
    local ran=$(sed -n 's/^weir: plugin: .* images, \([0-9]*\) kernels.*/\1/p' "$scratch/output")
    [[ -n $ran && $ran -ge $wanted ]] || fail "$release: the plugin ran ${ran:-no} kernels of $wanted"
    grep -q '^weir: plugin: .* 0 calls refused$' "$scratch/output" || fail "$release: calls were refused"
}
one 4 WEIR_LOG=1
one 2 "WEIR_HOST_DELAY_US=200 WEIR_HOST_DELAY_SEED=$release"
# Without the plugin's folder in front the same program runs on LLVM's plugin, and nothing of weir speaks.
env LD_LIBRARY_PATH="$libraries" WEIR_SUMMARY=1 timeout -s KILL 60 "$scratch/program" >"$scratch/output" 2>&1 ||
    fail "$release on its own plugin"
grep -q '^weir:' "$scratch/output" && fail "$release ran weir's plugin without having been asked to"
exit $failed
