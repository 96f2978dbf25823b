#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run.sh BUILD [OUT]   measure everything with the programs of the build tree BUILD; asserts nothing about time.
#   PEERS=DIR   directory with programs of other schedulers (floor, omp_gcc, omp_clang, …) that take the same arguments
#               WORKLOAD N REPEATS [VARIANT]: they run between ours, workload by workload
#   QUICK=1     smaller sizes
#   LLVM_LIB=DIR  LLVM's own offload runtime (default /usr/lib/llvm-22/lib)
# It holds the lock /tmp/cpu.lock while it runs, so that two measurements do not meet.
set -u
build=${1:?usage: run.sh BUILD [OUT]}
out=${2:-$build/measurements.txt}
bench=$build/benchmarks/bench
here=$(cd "$(dirname "$0")" && pwd)
n=100000 repeats=6
[ -n "${QUICK:-}" ] && n=20000 repeats=4
[ -x "$bench" ] || { echo "no $bench: build it first" >&2; exit 1; }

section() { echo "## $* ($(cut -d" " -f1 /proc/loadavg))" >>"$out"; }
run() { timeout 180 "$@" >>"$out" 2>&1 || echo "FAILED($?) $*" >>"$out"; }
peer() {
    [ -n "${PEERS:-}" ] && [ -x "$PEERS/$1" ] || return 0
    local program=$1
    shift
    run "$PEERS/$program" "$@"
}
peers() { # WORKLOAD N REPEATS
    peer floor "$@" one 4096
    peer floor "$@" two 4096
    peer omp_gcc "$@"
    peer omp_clang "$@"
    STARPU_SILENT=1 STARPU_NCPU=1 STARPU_SCHED=eager peer starpu "$@" submit
    peer tbb "$@" tgc
}

workloads() {
    for w in chain indep chains16 stencil random chol; do
        section "$w"
        run "$bench" "$w" "$n" "$repeats"
        peers "$w" "$n" "$repeats"
    done
    section "readers, then a set"
    run "$bench" readers "$n" "$repeats"
}

growth() {
    section "growth with n"
    for w in chain stencil; do
        for size in 10000 1000000; do
            run "$bench" "$w" "$size" 4
            peers "$w" "$size" 4
        done
    done
}

hold() {
    section "memory of a pending task (the first one is blocked)"
    for w in chain stencil; do
        PEERS_HOLD=1 PEERS_W=8 run "$bench" "$w" "$n" 1
        PEERS_HOLD=1 PEERS_W=8 peer omp_clang "$w" "$n" 1
    done
}

offload() {
    local program=$build/benchmarks/offload llvm=${LLVM_LIB:-/usr/lib/llvm-22/lib}
    [ -x "$program" ] || { echo "no $program: skipped" >>"$out"; return; }
    section "OpenMP target constructs, weir"
    LD_LIBRARY_PATH=$build/lib/weir:$llvm run "$program" sync 20000 5
    LD_PRELOAD=$build/lib/libweir.so LD_LIBRARY_PATH=$build/lib/weir:$llvm run "$program" nowait 20000 5
    section "OpenMP target constructs, LLVM's runtime"
    LD_LIBRARY_PATH=$llvm run "$program" sync 20000 5
    LD_LIBRARY_PATH=$llvm LIBOMP_NUM_HIDDEN_HELPER_THREADS=1 run "$program" nowait 20000 5
}

exec 9>/tmp/cpu.lock
flock 9
: >"$out"
uptime >>"$out"
workloads
growth
hold
offload
section "CPU time of waiting"
run "$bench" idle 5
uptime >>"$out"
flock -u 9
"$here/instructions.sh" "$build" "$out"
echo "results in $out"
