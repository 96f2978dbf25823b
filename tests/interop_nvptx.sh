#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# interop_nvptx.sh <interop_shape_print>: what clang writes for nvptx64, as far as it can be seen without a GPU: entries of
# the host's side, modes and environments of kernels as weir decodes them, and the leading parameter of kernels. With
# NVIDIA's assembler also what it makes of that. 77: skipped.
set -u
decoder=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/program.c" <<'END'
void spmd(int n, double *a)
{
#pragma omp target teams distribute parallel for map(tofrom : a[0 : n]) num_teams(7) thread_limit(96)
    for (int i = 0; i < n; i++) a[i] += 1;
}
void generic(int n, double *a)
{
#pragma omp target map(tofrom : a[0 : n])
    for (int i = 0; i < n; i++) a[i] += 2;
}
void nested(int n, double *a)
{
#pragma omp target teams distribute map(tofrom : a[0 : n]) thread_limit(64)
    for (int i = 0; i < n; i++) {
#pragma omp parallel for
        for (int j = 0; j < n; j++) a[i] += 3;
    }
}
double reduce(int n, double *a)
{
    double sum = 0;
    int most = 0;
#pragma omp target teams distribute parallel for map(to : a[0 : n]) map(tofrom : sum, most) reduction(+ : sum) reduction(max : most)
    for (int i = 0; i < n; i++) {
        sum += a[i];
        if (i > most) most = i;
    }
    return sum + most;
}
END
failed=0
fail() { echo "$compiler $level: $*"; failed=1; }

# describe <function>: what the compiler says about its kernel, decoded
describe() {
    local line
    line=$(grep -E "_$1_l[0-9]+_kernel_environment\[" "$scratch/program.ptx" | sed 's/.*{\(.*\)};/\1/; s/,/ /g')
    [[ -z $line ]] || { "$decoder" environment $line; return; }
    line=$(sed -n "s/.*_$1_l[0-9]*_exec_mode = \([0-9]*\);/\1/p" "$scratch/program.ptx")
    "$decoder" mode "$line"
}
expect() {
    local said
    said=$(describe "$1")
    [[ $said == $2 ]] || fail "$1 is decoded as '$said', not '$2'"
}

tried=0
for compiler in ${WEIR_TEST_CLANG:-clang-22 clang-19 clang-16}; do
    command -v "$compiler" >/dev/null || continue
    for level in -O0 -O2; do
        flags="$level -fopenmp -fopenmp-targets=nvptx64-nvidia-cuda -Xopenmp-target -march=sm_70 -nogpulib"
        "$compiler" $flags -Wno-unknown-cuda-version --offload-device-only -S "$scratch/program.c" -o "$scratch/program.ptx" \
            2>"$scratch/said" || { echo "$compiler $level: $(head -n 1 "$scratch/said")"; continue; }
        tried=$((tried + 1))
        # What was written for generic mode may be run in SPMD mode after optimisation.
        generic=1
        [[ $level == -O0 ]] || generic=3
        if grep -q _kernel_environment "$scratch/program.ptx"; then
            expect spmd 'mode 2, threads 96, teams 7 to 7, reduction 0 x 0'
            expect generic "mode $generic, threads *, teams -1 to -1, reduction 0 x 0"
            expect nested "mode $generic, threads 64, teams 0 to 0, reduction 0 x 0"
            expect reduce 'mode 2, threads 128, teams 0 to 0, reduction 16 x 1024'
            grep -qE 'entry __omp_offloading_.*_spmd_l[0-9]+\(' "$scratch/program.ptx" || fail "no kernel of spmd"
            [[ $(grep -cE '_spmd_l[0-9]+_param_[0-9]+[,\[]?$' "$scratch/program.ptx") == 3 ]] ||
                fail "spmd has another number of parameters than a leading pointer and two"
        else
            for kernel in spmd reduce; do expect $kernel 'mode 2, *'; done
            for kernel in generic nested; do expect $kernel "mode $generic, *"; done
        fi
        # The host's side names the same kernels: an entry each, and a launch of the version that has the pointer.
        "$compiler" $flags -Wno-unknown-cuda-version --offload-host-only -S -emit-llvm "$scratch/program.c" \
            -o "$scratch/host.ll" 2>"$scratch/said" || { fail "host: $(head -n 1 "$scratch/said")"; continue; }
        for kernel in $(sed -n 's/.*\.entry \(__omp_offloading_[A-Za-z0-9_]*\)(.*/\1/p' "$scratch/program.ptx"); do
            grep -q "c\"$kernel\\\\00\"" "$scratch/host.ll" || fail "the host has no entry for $kernel"
        done
        assembler=$(command -v ptxas || ls /usr/local/cuda*/bin/ptxas 2>/dev/null | head -n 1)
        [[ -z $assembler ]] || "$assembler" -c -arch=sm_75 "$scratch/program.ptx" -o "$scratch/program.cubin" 2>"$scratch/said" ||
            echo "note: $compiler $level: $assembler: $(head -n 1 "$scratch/said")"
    done
done
[[ $tried -gt 0 ]] || { echo "skipped: no clang that compiles for nvptx64"; exit 77; }
exit $failed
