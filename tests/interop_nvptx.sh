#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What clang writes for nvptx64, as far as it can be seen without NVIDIA's assembler: the layout of kernel environments, the
# modes, and the leading parameter of kernels. interop/shape.c and interop/launch.c rely on it. 77: skipped.
set -u
compiler=${WEIR_TEST_CLANG:-clang-22}
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }
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
END
"$compiler" -O0 -fopenmp -fopenmp-targets=nvptx64-nvidia-cuda -Xopenmp-target -march=sm_70 -nogpulib \
    --offload-device-only -S -emit-llvm "$scratch/program.c" -o "$scratch/program.ll" || {
    echo "skipped: $compiler cannot compile for nvptx64"
    exit 77
}
failed=0
expect() { grep -qE -- "$1" "$scratch/program.ll" || { echo "not as expected: $2"; failed=1; }; }
expect '= type \{ i8, i8, i8, i32, i32, i32, i32, i32, i32 \}' 'the layout of an environment'
expect '_spmd_l[0-9]+_kernel_environment = .*\{ i8 [01], i8 [01], i8 2, i32 [0-9]+, i32 96, i32 7, i32 7,' 'mode 2, 96 threads, 7 teams'
expect '_generic_l[0-9]+_kernel_environment = .*\{ i8 [01], i8 [01], i8 1,' 'mode 1'
expect 'ptx_kernel void @__omp_offloading_.*_spmd_l[0-9]+\(ptr [^,]*, i64 [^,]*, ptr [^,)]*\)' 'a leading pointer, then the arguments'
exit $failed
