#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One program compiled by clang runs on an installed weir in each of the ways that the README promises.
. "$SOURCE/tests/install_shell.sh"

command -v clang-22 >/dev/null || { echo "skipped: clang-22 is not installed"; exit 77; }
clang-22 -O2 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu "$SOURCE/benchmarks/cholesky.c" -lm -o "$scratch/cholesky"
arguments=(256 32 2)
on_weir() { expect_code 0 "PASS" env OMP_TARGET_OFFLOAD=MANDATORY "$@" "$scratch/cholesky" "${arguments[@]}"; }
on_weir "$PREFIX/bin/weir" run
on_weir LD_LIBRARY_PATH="$PREFIX/lib/weir"
on_weir LD_PRELOAD="$PREFIX/lib/libweir.so"
on_weir "$PREFIX/bin/weir" run --devices 2 --window 16
expect_code 0 "weir: 244 tasks (244 on devices" "$PREFIX/bin/weir" run --summary "$scratch/cholesky" "${arguments[@]}"

# Linked in front of libomp.
clang-22 -O2 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu "$SOURCE/benchmarks/cholesky.c" -L"$PREFIX/lib" -lweir -lm \
    -Wl,-rpath,"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib/weir" -o "$scratch/cholesky"
on_weir env
finish
