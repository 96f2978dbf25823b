#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# instructions.sh BUILD [OUT]   instructions a task, by valgrind: (Ir(n2) - Ir(n1)) / (n2 - n1). Appends to OUT or prints.
# Includes every thread, the body (about 10 instructions and 2 an access) and, in n, the making of the list of tasks,
# which is measured by itself and taken off. FUNCTIONS=1 lists the dearest functions, WORKLOADS and VARIANTS choose.
set -u
build=${1:?usage: instructions.sh BUILD [OUT]}
[ -z "${2:-}" ] || exec >>"$2"
bench=$build/benchmarks/bench
n1=2000 n2=8000 repeats=3
command -v valgrind >/dev/null || { echo "no valgrind: skipped"; exit 0; }
count() {
    timeout 300 valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --fair-sched=yes "$@" 2>&1 |
        awk '/I +refs/ { gsub(",", "", $NF); print $NF }'
}
for w in ${WORKLOADS:-chain stencil}; do
    base=$(($(count "$bench" "$w" $n2 $repeats none) - $(count "$bench" "$w" $n1 $repeats none)))
    for v in ${VARIANTS:-host mock device}; do
        a=$(count "$bench" "$w" $n1 $repeats "$v")
        b=$(count "$bench" "$w" $n2 $repeats "$v")
        awk -v w="$w" -v v="$v" -v a="$a" -v b="$b" -v z="$base" -v d=$(((n2 - n1) * repeats)) \
            'BEGIN { printf "%-9s weir-%-8s %6.0f instructions/task\n", w, v, (b - a - z) / d }'
        [ -n "${FUNCTIONS:-}" ] || continue
        file=$(mktemp)
        valgrind --tool=callgrind --callgrind-out-file="$file" --fair-sched=yes "$bench" "$w" $n2 $repeats "$v" >/dev/null 2>&1
        callgrind_annotate --show-percs=no "$file" 2>/dev/null | awk -v d=$((n2 * repeats)) '
            /^ *[0-9,]+ / { i = $1; gsub(",", "", i); if (i / d >= 1 && seen++ < 25) { $1 = ""; printf "    %7.1f %s\n", i / d, $0 } }'
        rm -f "$file"
    done
done
