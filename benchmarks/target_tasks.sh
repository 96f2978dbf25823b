#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# target_tasks.sh BUILD [ROUNDS]   the same OpenMP binary in turn on weir, on LLVM's runtime and on that without its
# helper threads, so that all see the same state of the machine. Prints the medians over the rounds (default 5) of what
# each run gives, and weir's share. Asserts nothing about time.
#   LLVM_LIB=DIR  LLVM's own offload runtime (default /usr/lib/llvm-22/lib)
set -u
build=${1:?usage: target_tasks.sh BUILD [ROUNDS]}
rounds=${2:-5}
program=$build/benchmarks/target_tasks
llvm=${LLVM_LIB:-/usr/lib/llvm-22/lib}
[ -x "$program" ] || { echo "no $program: build it first" >&2; exit 1; }

on() { # RUNTIME ARGUMENTS…
    local which=$1
    shift
    case $which in
    weir) LD_PRELOAD=$build/lib/libweir.so LD_LIBRARY_PATH=$build/lib/weir:$llvm timeout 300 "$program" "$@" ;;
    llvm) LD_LIBRARY_PATH=$llvm timeout 300 "$program" "$@" ;;
    plain) LIBOMP_USE_HIDDEN_HELPER_TASK=0 LD_LIBRARY_PATH=$llvm timeout 300 "$program" "$@" ;;
    esac
}
median() { sort -n | awk '{v[NR] = $1} END {print NR ? v[int((NR + 1) / 2)] : "none"}'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {if (b + 0 > 0) printf "%.2f", a / b; else print "?"}'; }

compare() { # LABEL PATTERN ARGUMENTS…: the number behind PATTERN
    local label=$1 pattern=$2 i which
    declare -A seen=([weir]= [llvm]= [plain]=)
    shift 2
    for ((i = 0; i < rounds; i++)); do
        for which in weir llvm plain; do
            seen[$which]+=$(on $which "$@" 2>&1 | grep -v '^weir:' | sed -n "s/.*$pattern *\([0-9.]*\).*/\1/p")$'\n'
        done
    done
    local w l p
    w=$(printf '%s' "${seen[weir]}" | median) l=$(printf '%s' "${seen[llvm]}" | median) p=$(printf '%s' "${seen[plain]}" | median)
    printf '%-34s %9s %9s %9s   %s %s\n' "$label" "$w" "$l" "$p" "$(ratio "$w" "$l")" "$(ratio "$w" "$p")"
}

printf '%-34s %9s %9s %9s   %s\n' "" weir LLVM "no helpers" "weir's shares"
for workload in chain chains16 stencil indep; do
    compare "$workload, ns a task" total= "$workload" 20000 6
    compare "$workload, the loop" submit= "$workload" 20000 6
done
compare "enter+exit data, ns a pair" KiB data 5000 5
compare "update to+from nowait" depend data 5000 5
for workload in chain stencil; do
    compare "$workload, bytes a pending task" task= "$workload" 20000 2 hold
done
for size in 10000 100000 1000000; do
    compare "chain, n=$size, ns a task" total= chain $size 2
done
