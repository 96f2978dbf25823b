#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Pictures, timelines and reports by option and by environment, also of programs that end in unusual ways.
. "$SOURCE/tests/install_shell.sh"
weir=$PREFIX/bin/weir
export LD_LIBRARY_PATH=$PREFIX/lib
cat >"$scratch/ends.c" <<'EOF'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>
static int x;
static int work(void *arg) { (void)arg; return 0; }
static int deep(volatile int n)
{
    volatile char room[4096];
    room[n % 4096] = (char)n;
    return n > 0 ? deep(n + 1) + room[n % 4096] : 0;
}
int main(int argc, char **argv)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir_access writes_x[] = { WEIR_INOUT(x) };
    if (argc < 2 || weir_context_create(NULL, &context) || weir_scope_create(context, NULL, &scope)) return 1;
    for (int i = 0; i < 5; i++)
        if (weir_task_host(scope, work, NULL, writes_x, 1, WEIR_TASK("worker"), NULL)) return 1;
    if (weir_scope_wait(scope)) return 1;
    struct weir_task *never;
    if (weir_task_external(scope, writes_x, 1, WEIR_TASK("never"), &never)) return 1;
    if (!strcmp(argv[1], "exit")) return 3;
    if (!strcmp(argv[1], "_exit")) _exit(4);
    if (!strcmp(argv[1], "own")) signal(SIGTERM, exit), raise(SIGTERM);
    if (!strcmp(argv[1], "fault")) *(volatile int *)(size_t)(argc - 2) = 1;
    if (!strcmp(argv[1], "abort")) abort();
    if (!strcmp(argv[1], "deep")) return deep(argc);
    for (int i = 0; !strcmp(argv[1], "many") && i < 50000; i++)
        if (weir_task_host(scope, work, NULL, NULL, 0, WEIR_TASK("one of many"), NULL)) return 1;
    if (!strcmp(argv[1], "many")) return 5;
    kill(getpid(), atoi(argv[1]));
    pause();
    return 0;
}
EOF
gcc -I"$PREFIX/include" "$scratch/ends.c" -L"$PREFIX/lib" -lweir -o "$scratch/ends"
cd "$scratch"
ulimit -c 0

# ends CODE HOW: run with all outputs; each must be there and tell of the six tasks.
ends() {
    rm -f g.html t.json r.json g.html.weir
    expect_code "$1" "" env WEIR_GRAPH=g.html WEIR_TRACE=t.json WEIR_REPORT=r.json ./ends "$2"
    grep -q '6 tasks, 5 edges' g.html || fail "no graph after $2"
    grep -q '"traceEvents"' t.json || fail "no timeline after $2"
    grep -q '"not_complete":1' r.json || fail "no report after $2"
    [ ! -e g.html.weir ] || fail "the records are left after $2"
}
ends 3 exit
ends 15 own
ends 143 15
ends 130 2
ends 134 abort
ends 139 fault
ends 139 deep # the stack has overflowed

# A report on stderr, too, from records in memory; what is a pipe or a device stays one.
for how in "143 15" "139 deep" "3 exit"; do
    expect_code "${how% *}" "5 on the host, 1 external; 0 failed, 0 cancelled, 1 not complete" env WEIR_REPORT=1 ./ends "${how#* }"
done
expect_code 143 '"not_complete":1' env WEIR_REPORT=json ./ends 15
mkfifo pipe
expect_code 0 "1 not complete" bash -c 'cat pipe & WEIR_REPORT=pipe timeout 20 ./ends exit; wait'
[ -p pipe ] || fail "a report took the place of a pipe"
rm -f pipe

# What nobody can catch leaves the records.
for how in 9 _exit; do
    rm -f g.html
    env WEIR_GRAPH=g.html ./ends $how >/dev/null 2>&1 || true
    [ ! -e g.html ] || fail "a graph after $how"
    expect_code 0 "tasks      0 on devices, 5 on the host, 1 external; 0 failed, 0 cancelled, 1 not complete" "$weir" draw g.html.weir
    expect_code 0 "" "$weir" draw --graph=again.dot g.html.weir
    [ "$(grep -c ' -> n' again.dot)" = 5 ] || fail "the graph of the records after $how"
done
expect_code 3 "" env WEIR_RECORD="r.%p" ./ends exit
expect_code 0 "report of" "$weir" draw r.[0-9]*

# Wrong use.
expect_code 2 "draw wants one recording" "$weir" draw
expect_code 2 "no option '--fast'" "$weir" draw --fast r
expect_code 2 "a graph's name ends in" "$weir" draw --graph g.png g.html.weir
expect_code 2 "a graph's name ends in" "$weir" run --graph g.png ./ends exit
expect_code 2 "--graph wants a file" "$weir" run --graph
expect_code 2 "a timeline is JSON" "$weir" run --trace t.html ./ends exit
expect_code 2 "a timeline is JSON" "$weir" draw --trace t.svg g.html.weir
expect_code 2 "a report is text" "$weir" run --report=r.html ./ends exit
expect_code 2 "--report= wants a file" "$weir" run --report= ./ends exit
expect_code 2 "/nowhere/t.json cannot be written: No such file" "$weir" run --trace /nowhere/t.json ./ends exit
mkfifo pipe
chmod +x pipe
expect_code 126 "pipe: is no file" timeout 20 "$weir" run ./pipe
expect_code 1 "is no recording of weir's" timeout 20 "$weir" draw pipe
expect_code 1 "is no recording of weir's" "$weir" draw "$SOURCE/README.md"
expect_code 1 "No such file" "$weir" draw nothing
expect_code 3 "a graph's name ends in" env WEIR_GRAPH=g.png ./ends exit
expect_code 3 "weir: a timeline is JSON" env WEIR_TRACE=t.html ./ends exit
# What cannot be written is told at the begin, and nothing is recorded for it.
for name in GRAPH=/nowhere/g.svg TRACE=/nowhere/t.json REPORT=/nowhere/r; do
    expect_code 4 "/nowhere/${name#*/nowhere/} cannot be written: No such file or directory" env "WEIR_$name" ./ends _exit
done
expect_code 4 "weir: /nowhere/r cannot be opened: No such file or directory: nothing is recorded" env WEIR_RECORD=/nowhere/r ./ends _exit
expect_code 3 "/nowhere/r cannot be opened: No such file or directory: the records are kept in memory" \
    env WEIR_RECORD=/nowhere/r WEIR_REPORT=1 ./ends exit
expect_code 3 "tasks      0 on devices" env WEIR_RECORD=/nowhere/r WEIR_REPORT=1 ./ends exit
expect_code 4 "weir: /none/../g.svg" bash -c "cd / && exec env WEIR_GRAPH=none/../g.svg '$scratch/ends' _exit"

# What is missing is told, and how to get it.
expect_code 5 "records were dropped, the newest: the limit of 1 MiB was reached" env WEIR_TRACE_LIMIT=1 WEIR_GRAPH=cut.html ./ends many
grep -q 'WEIR_TRACE_LIMIT=4 would keep more' cut.html || fail "the picture does not say that it is cut"
expect_code 5 "WEIR_TRACE_LIMIT=4 would keep more" env WEIR_TRACE_LIMIT=1 WEIR_REPORT=1 ./ends many
expect_code 5 '"dropped":"' env WEIR_TRACE_LIMIT=1 WEIR_REPORT=json ./ends many

# SVG without Graphviz: a line that says how.
mkdir none
expect_code 0 "Graphviz is not installed" bash -c "PATH=$scratch/none '$weir' draw --graph=s.svg g.html.weir || [ -e s.dot ]"

# An OpenMP program, by options.
program=$BUILD/benchmarks/cholesky
if [ -x "$program" ]; then
    unset LD_LIBRARY_PATH
    expect_code 0 "PASS" "$weir" run --graph c.html --trace c.json --report=c.txt "$program" 160 32 1
    grep -q '38 tasks, 60 edges' c.html || fail "the graph of the demo"
    grep -q 'factorise:' c.html || fail "names of kernels"
    grep -q '"cat":"device"' c.json || fail "the timeline of the demo"
    "$BUILD/tests/timeline_check" c.json || fail "the timeline of the demo breaks a rule"
    grep -q 'critical path' c.txt || fail "the report of the demo"
    expect_code 0 "35 nowait, dependences left to libomp: weir does not stand in front of it, or WEIR_SHIM=0: factorise:" \
        env LD_LIBRARY_PATH="$PREFIX/lib/weir" WEIR_REPORT=1 "$program" 160 32 1
fi

# How tasks were issued is the same in each form of the report.
if command -v clang-22 >/dev/null && [ "$OPENMP" = ON ]; then
    cat >"$scratch/issue.c" <<'EOF'
static int a, b;
static volatile int go;
static void add(int *p)
{
#pragma omp target nowait map(tofrom: p[0:1]) depend(inout: p[0])
    p[0]++;
}
int main(void)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(inout: a)
        while (!go)
            ;
        add(&a); /* waits for its predecessor, which runs until this thread has gone on: a first run */
        add(&b); /* early: it has none */
        add(&a); /* at release */
        go = 1;
    }
    return a != 2 || b != 1;
}
EOF
    clang-22 -O1 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu "$scratch/issue.c" -o "$scratch/issue"
    counts='"early":1,"at_release":1,"waited":1,"left_to_libomp":0,"synchronous":0,'
    expect_code 0 "$counts" "$weir" run --report=json ./issue
    expect_code 0 "" "$weir" run --report=i.json ./issue
    grep -q "$counts" i.json || fail "the report in a file: $(grep early i.json)"
    grep -q '"libomp":1,"libomp_behind_target":0' i.json || fail "tasks of libomp: $(grep libomp i.json)"
    expect_code 0 "1 early, in the call that made them; 1 at release" "$weir" run --report ./issue
    expect_code 0 "weir: 4 tasks (3 on devices" "$weir" run --summary ./issue
fi
finish
