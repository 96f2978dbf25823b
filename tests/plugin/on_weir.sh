#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# on_weir.sh <release> <folder of packages> <lib folder> <rig test>: the CPU plugins of an LLVM release as devices of weir. The
# rig's random graphs run on them, and programs: of that release's clang, and of the newest where the plugin can load them.
# That it is the plugin's devices is told by the log, and by their number: weir has one CPU device meanwhile.
set -u
release=$1 packages=$2 lib=$3 rig=$4 source=$(dirname "$0")
libraries=$("$source/packages.sh" "$release" "$packages") || { code=$?; echo "$libraries"; exit $code; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0 ran=0
fail() {
    echo "$1; it said:"
    tail -n 40 "$scratch/output"
    failed=1
}
# run <command…>: on the devices of $plugin
run() {
    env OMP_TARGET_OFFLOAD=MANDATORY WEIR_DEVICE=plugin WEIR_PLUGIN="$plugin" WEIR_HOST_DEVICES=1 WEIR_LOG=3 \
        timeout -s KILL "${WEIR_TEST_LIMIT:-60}" "$@" >"$scratch/output" 2>&1
}
# program <source> <compiler> <how weir comes in…>
program() {
    local name=${1##*/} compiler=$2 code
    shift 2
    run "$@" "$scratch/program"
    code=$?
    [[ $code == 0 ]] && grep -qx PASS "$scratch/output" ||
        fail "$name of $compiler on ${plugin##*/} of $release, ${1##*/} $2: exit code $code"
    grep -q "^weir: device 1: plugin:0, of ${plugin##*/}," "$scratch/output" || fail "$name: no device of the plugin"
    ran=$((ran + 1))
}

for plugin in "$libraries"/libomptarget.rtl.x86_64.so "$libraries"/libomptarget.rtl.x86_64.nextgen.so; do
    [[ -e $plugin ]] || continue
    if ! ldd "$plugin" | grep -q 'not found'; then :; else
        echo "skipped: ${plugin##*/} of $release wants $(ldd "$plugin" | awk '/not found/ {print $1; exit}')"
        exit 77
    fi
    WEIR_TEST_KINDS=plugin WEIR_TEST_DAGS=100 run "$rig" --jobs 1 || fail "the rig on ${plugin##*/} of $release"
    for compiler in "clang-$release" clang-22; do
        command -v "$compiler" >/dev/null || continue
        # LLVM 14 knows only the table of entries that compilers up to 19 make.
        [[ $compiler == clang-22 && $release == 14 ]] && continue
        include=$(find "$packages/$release" -name omp.h -printf '%h\n' -quit)
        [[ $compiler == clang-22 ]] && include=
        # Not all of ours say what older compilers understand.
        programs=(nowait task_data task_groups)
        [[ $plugin == *.nextgen.so ]] && programs=() # the second one of a release: what differs is the plugin's side
        [[ $compiler == clang-22 && $plugin != *.nextgen.so ]] && programs+=(copies data_rules declare_target task_alternate task_devices)
        for file in "$source/program.c" "${programs[@]/#/$source/../openmp/}"; do
            file=${file%.c}.c
            "$compiler" -O1 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu ${include:+-I"$include" -L"$libraries"} "$file" \
                -o "$scratch/program" >"$scratch/output" 2>&1 || { fail "$compiler does not compile $file"; continue; }
            program "$file" "$compiler" env LD_LIBRARY_PATH="$lib/weir"
            program "$file" "$compiler" "$lib/../bin/weir" run --device plugin --plugin "$plugin"
        done
    done
done
[[ $ran -gt 0 || $failed == 1 ]] || { echo "skipped: neither clang-$release nor clang-22 is installed"; exit 77; }
exit $failed
