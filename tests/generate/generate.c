/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * generate [-s] <seed> [<graphs>]: write an OpenMP program with random task graphs, those of <seed>, <seed> + 1, … With
 * -s they also have what libomp gets wrong when weir does not stand before it: mutexinoutset (it hangs, or lets two
 * run), untied tasks, deferred target tasks in final tasks.
 *
 * Cells are small arrays. Tasks read them, overwrite them, or change them by arithmetic that shows the order; what runs
 * in any order by mutexinoutset or inoutset is commutative or touches different elements. A cell has a copy in host
 * memory and one on each device where it is mapped; the last cell of each graph is device memory. All that happens to
 * the copies is ordered by the dependences, so the results are those of a run in program order, which is done here at
 * the same time: once with devices and once without (OMP_TARGET_OFFLOAD=DISABLED).
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 6, BUFFER = CELLS - 1, LENGTH = 4, DEVICES = 4, SLOTS = 400, MOST = 3, HOST = -1 };
enum { IN, OUT, INOUT, MUTEX, SET, KINDS };

struct cell {
    unsigned host[LENGTH], device[DEVICES][LENGTH];
    int count[DEVICES]; /* of its mappings */
};

struct world {
    bool offload;
    struct cell cell[CELLS];
    unsigned seen[SLOTS];
};

struct access {
    int cell, kind, element; /* element: of SET */
    bool raw, always;        /* raw: the host copy by its address */
};

/* What the graph's accesses so far mean for the next ones. */
struct past {
    int kind;       /* of the last access */
    unsigned taken; /* elements of the set group */
    int owner;      /* innermost group whose end completes all that uses the cell */
    bool settled;   /* all that uses the cell is complete */
};

static struct world worlds[2];
static struct past past[CELLS];
static unsigned usable; /* cells that the block may use */
static int slots, ids, indent, group, buffer_device;
static bool strict, has_mutex;
static unsigned long long state;

static const char *const kind_names[KINDS] = {"in", "out", "inout", "mutexinoutset", "inoutset"};
static const char *const shared = "shared(a0, a1, a2, a3, a4, seen, o)";

static unsigned pick(unsigned n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % n;
}

__attribute__((format(printf, 1, 2))) static void line(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("%*s", format[0] == '#' ? 0 : 4 * indent, "");
    vprintf(format, list);
    putchar('\n');
    va_end(list);
}

/* ---- the run in program order ---- */

static unsigned sum(const unsigned *a)
{
    unsigned s = 0;
    for (int e = 0; e < LENGTH; e++) s = s * 5u + a[e];
    return s;
}

static unsigned *view(struct world *w, const struct access *a, int where)
{
    struct cell *c = &w->cell[a->cell];
    bool is_host = where == HOST || !w->offload || a->raw || a->cell == BUFFER || !c->count[where];
    return is_host ? c->host : c->device[where];
}

static void put(unsigned *at, const struct access *a, unsigned s)
{
    if (a->kind == SET) at[a->element] = at[a->element] * 3u + s;
    for (unsigned e = 0; e < LENGTH && a->kind != SET; e++) {
        if (a->kind == OUT) at[e] = s * 7u + e;
        if (a->kind == INOUT) at[e] = at[e] * 3u + s + e;
        if (a->kind == MUTEX) at[e] += s * 11u + e;
    }
}

static void simulate(const struct access *a, int n, unsigned id, int slot, int where)
{
    for (struct world *w = worlds; w < worlds + 2; w++) {
        unsigned s = id;
        for (int i = 0; i < n; i++) {
            if (a[i].kind == IN) s += sum(view(w, &a[i], where));
        }
        if (slot >= 0) w->seen[slot] = s;
        for (int i = 0; i < n; i++) {
            unsigned *at = view(w, &a[i], where), *host = w->cell[a[i].cell].host;
            if (a[i].always && at != host) memcpy(at, host, sizeof(unsigned) * LENGTH);
            put(at, &a[i], s);
            if (a[i].always && at != host) memcpy(host, at, sizeof(unsigned) * LENGTH);
        }
    }
}

/* ---- accesses ---- */

static void note(const struct access *a, bool completes)
{
    struct past *p = &past[a->cell];
    if (p->kind != SET || a->kind != SET) p->taken = 0;
    if (a->kind == SET) p->taken |= 1u << a->element;
    bool alone = a->kind == INOUT || a->kind == OUT;
    if (alone || p->settled) p->owner = group;
    p->settled = completes && (alone || p->settled);
    p->kind = a->kind;
    has_mutex |= a->kind == MUTEX;
}

static int choose_kind(int cell)
{
    static const int weights[16] = {IN,    IN,  IN,    IN,    INOUT, INOUT, INOUT, INOUT,
                                    INOUT, OUT, MUTEX, MUTEX, SET,   SET,   SET,   IN};
    int kind = weights[pick(16)];
    if (kind == MUTEX && !strict) kind = INOUT;
    if (kind == SET && past[cell].kind == SET && past[cell].taken == (1u << LENGTH) - 1) kind = INOUT;
    return kind;
}

/* Up to @most accesses to different cells; the buffer only for tasks that run on its device. */
static int choose(struct access *a, int most, bool with_buffer)
{
    int n = 0, want = 1 + (int)pick((unsigned)most);
    unsigned left = with_buffer ? usable : usable & ~(1u << BUFFER);
    for (int tries = 0; tries < 20 && n < want; tries++) {
        int c = (int)pick(CELLS);
        if (!(left >> c & 1)) continue;
        left &= ~(1u << c);
        struct access *at = &a[n++];
        *at = (struct access){.cell = c, .kind = choose_kind(c), .raw = pick(3) == 0 && c != BUFFER};
        if (at->kind == SET) {
            do at->element = (int)pick(LENGTH);
            while (past[c].kind == SET && past[c].taken >> at->element & 1);
        }
        at->always = at->kind == INOUT && !at->raw && pick(6) == 0 && c != BUFFER;
    }
    return n;
}

static void depend_clause(const struct access *a)
{
    int c = a->cell;
    const char *kind = kind_names[a->kind], *name = c == BUFFER ? "b" : "a";
    char cell[8];
    snprintf(cell, sizeof cell, c == BUFFER ? "b" : "a%d", c);
    switch (pick(c == BUFFER ? 3 : 5)) {
    case 0:
        printf(" depend(depobj : o[%d][%d])", c, a->kind);
        return;
    case 1:
        printf(" depend(iterator(i = 0 : 1), %s : %s[i])", kind, cell);
        return;
    case 2:
        printf(" depend(%s : %s[0])", kind, cell);
        return;
    case 3:
        printf(" depend(%s : %s%d[0 : 4])", kind, name, c);
        return;
    default:
        printf(" depend(%s : %s%d)", kind, name, c);
    }
}

static void map_clause(const struct access *a)
{
    int c = a->cell;
    if (a->raw) return;
    if (c == BUFFER)
        printf(" is_device_ptr(b)");
    else if (a->kind == IN)
        printf(" map(to : a%d)", c);
    else if (a->kind == OUT)
        printf(" map(from : a%d)", c);
    else if (a->kind == SET)
        printf(" map(tofrom : a%d[%d : 1])", c, a->element);
    else
        printf(" map(%stofrom : a%d)", a->always ? "always, " : "", c);
}

static void where_is(char *text, size_t size, const struct access *a, bool target)
{
    if (a->cell == BUFFER)
        snprintf(text, size, "b");
    else if (target && a->raw)
        snprintf(text, size, "(unsigned *)h%d", a->cell);
    else
        snprintf(text, size, "a%d", a->cell);
}

/* The block of a task. @slot: where it leaves what it saw, or -1; @mapped: by a map clause. */
static void body(const struct access *a, int n, unsigned id, int slot, bool target, bool mapped)
{
    char at[32];
    line("{");
    indent++;
    line("unsigned s = %u;", id);
    line("nap(z);");
    for (int i = 0; i < n; i++) {
        where_is(at, sizeof at, &a[i], target);
        if (a[i].kind == IN) line("s += sum(%s);", at);
    }
    if (slot >= 0) line(target && !mapped ? "((unsigned *)to)[%d] = s;" : "seen[%d] = s;", slot);
    for (int i = 0; i < n; i++) {
        where_is(at, sizeof at, &a[i], target);
        if (a[i].kind == OUT) line("put_out(%s, s);", at);
        if (a[i].kind == INOUT) line("put_inout(%s, s);", at);
        if (a[i].kind == MUTEX) line("put_mutex(%s, s, z >> 8);", at);
        if (a[i].kind == SET) line("put_set(%s, %d, s);", at, a[i].element);
    }
    indent--;
    line("}");
}

static int new_slot(const struct access *a, int n)
{
    bool reads = false;
    for (int i = 0; i < n; i++) reads |= a[i].kind == IN;
    return reads && pick(3) && slots < SLOTS ? slots++ : -1;
}

/* ---- statements ---- */

static void host_task(void)
{
    struct access a[MOST];
    bool undeferred = pick(8) == 0, is_all = pick(24) == 0;
    int n = choose(a, MOST, false), slot = new_slot(a, n);
    unsigned id = (unsigned)++ids;
    if (!n) return;
    line("z = draw();");
    printf("#pragma omp task %s firstprivate(z)", shared);
    if (undeferred)
        printf(pick(2) ? " if (0)" : " if (no)");
    else if (strict && pick(6) == 0)
        printf(" untied");
    if (pick(8) == 0) printf(" priority(%u)", pick(9));
    for (int i = 0; i < n; i++) {
        if (is_all)
            a[i].kind = a[i].kind == IN ? IN : INOUT;
        else
            depend_clause(&a[i]);
    }
    printf(is_all ? " depend(inout : omp_all_memory)\n" : "\n");
    body(a, n, id, slot, false, false);
    simulate(a, n, id, slot, HOST);
    for (int c = 0; c < CELLS && is_all; c++) note(&(struct access){.cell = c, .kind = INOUT}, undeferred);
    for (int i = 0; i < n && !is_all; i++) note(&a[i], undeferred);
}

static void target_task(void)
{
    struct access a[MOST];
    int form = (int)pick(16), device = (int)pick(DEVICES), n = choose(a, MOST, form > 2 && form != 4);
    bool is_all = pick(24) == 0, waits = form == 3 || form == 4, mapped = pick(2);
    if (!n) return;
    int slot = new_slot(a, n), where = form < 3 || form == 4 ? HOST : device;
    unsigned id = (unsigned)++ids;
    for (int i = 0; i < n; i++) {
        if (a[i].cell == BUFFER) device = -1;
        if (is_all && a[i].kind != IN) a[i].kind = INOUT;
        if (a[i].kind != INOUT) a[i].always = false;
    }
    if (where != HOST && device < 0) where = buffer_device;
    line("z = draw();");
    printf("#pragma omp target%s", waits ? "" : " nowait");
    if (form == 0 || form == 4) printf(" if (0)");
    if (form == 1) printf(" if (no)");
    if (form == 2)
        printf(" device(here)");
    else if (device < 0)
        printf(" device(at_b)");
    else if (device > 0 || pick(2))
        printf(" device(%d)", device);
    for (int i = 0; i < n && !is_all; i++) depend_clause(&a[i]);
    if (is_all) printf(" depend(inout : omp_all_memory)");
    for (int i = 0; i < n; i++) map_clause(&a[i]);
    if (slot >= 0 && mapped) printf(" map(from : seen[%d : 1])", slot);
    putchar('\n');
    body(a, n, id, slot, true, mapped);
    simulate(a, n, id, slot, where);
    for (int c = 0; c < CELLS && is_all; c++) note(&(struct access){.cell = c, .kind = INOUT}, waits);
    for (int i = 0; i < n && !is_all; i++) note(&a[i], waits);
}

/* enter data, exit data and update, deferred. */
static void data_task(void)
{
    int c = (int)pick(BUFFER), d = (int)pick(DEVICES), what = (int)pick(6);
    struct cell *cell = &worlds[0].cell[c];
    if (!(usable >> c & 1)) return;
    if (cell->count[d] == 0 && what > 0) what = pick(3) ? 0 : 1 + (int)pick(2);
    static const char *const texts[] = {
        "enter data map(to : a%d)",     "update from(a%d)",           "update to(a%d)", "exit data map(from : a%d)",
        "exit data map(release : a%d)", "exit data map(delete : a%d)"};
    struct access a = {.cell = c, .kind = INOUT};
    printf("#pragma omp target ");
    printf(texts[what], c);
    printf(" device(%d) nowait", d);
    depend_clause(&a);
    putchar('\n');
    bool present = cell->count[d] > 0;
    size_t bytes = sizeof cell->host;
    if (what == 0 && !present) memcpy(cell->device[d], cell->host, bytes);
    if (what == 0) cell->count[d]++;
    if (what == 1 && present) memcpy(cell->host, cell->device[d], bytes);
    if (what == 2 && present) memcpy(cell->device[d], cell->host, bytes);
    if (what == 3 && cell->count[d] == 1) memcpy(cell->host, cell->device[d], bytes);
    if (what > 2) cell->count[d] = what == 5 ? 0 : cell->count[d] - 1;
    note(&a, false);
}

/* Copy between a cell in host memory and the buffer. */
static void copy_task(void)
{
    int c = (int)pick(BUFFER);
    bool home = pick(2);
    if (!(usable >> c & 1) || !(usable >> BUFFER & 1)) return;
    struct access from = {.cell = home ? BUFFER : c, .kind = IN}, to = {.cell = home ? c : BUFFER, .kind = INOUT};
    line("both[0] = o[%d][IN], both[1] = o[%d][%s];", from.cell, to.cell, pick(2) ? "OUT" : "INOUT");
    if (home)
        line("CHECK(!omp_target_memcpy_async(a%d, b, sizeof a%d, 0, 0, here, at_b, 2, both));", c, c);
    else
        line("CHECK(!omp_target_memcpy_async(b, a%d, sizeof a%d, 0, 0, at_b, here, 2, both));", c, c);
    for (struct world *w = worlds; w < worlds + 2; w++) {
        memcpy(w->cell[to.cell].host, w->cell[from.cell].host, sizeof w->cell[c].host);
    }
    note(&from, false);
    note(&to, false);
}

/* A detached task, and a child of it that does its work and fulfils the event. */
static void detached_task(void)
{
    struct access a;
    if (!choose(&a, 1, false)) return;
    unsigned id = (unsigned)++ids;
    a.kind = INOUT;
    line("event = (omp_event_handle_t)0, z = draw();");
    printf("#pragma omp task %s detach(event) firstprivate(z)", shared);
    depend_clause(&a);
    putchar('\n');
    line("#pragma omp task %s firstprivate(z, event)", shared);
    line("{");
    indent++;
    body(&a, 1, id, -1, false, false);
    line("omp_fulfill_event(event);");
    indent--;
    line("}");
    simulate(&a, 1, id, -1, HOST);
    note(&a, false);
}

/* The generating task itself reads or writes a cell that is at rest. */
static void look(int c, bool only_read)
{
    struct access a = {.cell = c, .kind = only_read || pick(2) ? IN : INOUT};
    if (c == BUFFER || !(usable >> c & 1) || slots >= SLOTS) return;
    int slot = a.kind == IN ? slots++ : -1;
    unsigned id = (unsigned)++ids;
    body(&a, 1, id, slot, false, false);
    simulate(&a, 1, id, slot, HOST);
}

static void look_around(void)
{
    for (int c = 0; c < CELLS; c++) {
        if (past[c].settled && pick(3) == 0) look(c, false);
    }
}

static void wait_statement(void)
{
    struct access a = {.kind = pick(2) ? IN : INOUT, .cell = (int)pick(CELLS)};
    if (pick(3) && usable >> a.cell & 1) {
        bool rest = past[a.cell].settled;
        printf("#pragma omp taskwait");
        depend_clause(&a);
        putchar('\n');
        note(&a, true);
        look(a.cell, a.kind == IN && !rest);
        return;
    }
    line("#pragma omp taskwait");
    for (int c = 0; c < CELLS; c++) past[c].settled |= usable >> c & 1;
    look_around();
}

static void block(int n, int depth);

static void group_statement(int depth)
{
    unsigned outer = usable;
    line("#pragma omp taskgroup");
    line("{");
    indent++, group++;
    block(3 + (int)pick(6), depth - 1);
    for (int c = 0; c < CELLS; c++) past[c].settled |= past[c].owner == group;
    usable = outer;
    indent--, group--;
    line("}");
    look_around();
}

/*
 * A host task with children of its own. It has some cells to itself and waits for its children; in a taskgroup it may
 * leave that to the end of the group, and the cells are not used until then.
 */
static void nested_task(int depth)
{
    unsigned outer = usable, mine = (pick(1u << CELLS) | 1u << pick(CELLS)) & usable;
    struct past before[CELLS];
    bool leaves = group && pick(3) == 0;
    int outer_group = group;
    if (!mine) return;
    printf("#pragma omp task %s firstprivate(z)", shared);
    if (strict && pick(6) == 0) printf(" final(1)");
    for (int c = 0; c < CELLS; c++) {
        struct access a = {.cell = c, .kind = INOUT};
        if (!(mine >> c & 1)) continue;
        depend_clause(&a);
        note(&a, false);
    }
    putchar('\n');
    line("{");
    indent++;
    line("omp_depend_t both[2];");
    line("omp_event_handle_t event;");
    memcpy(before, past, sizeof past);
    for (int c = 0; c < CELLS; c++) past[c] = (struct past){.kind = INOUT, .settled = mine >> c & 1};
    usable = mine, group = leaves ? outer_group : 0;
    block(3 + (int)pick(6), depth - 1);
    if (!leaves) line("#pragma omp taskwait");
    line("(void)both, (void)event;");
    memcpy(past, before, sizeof past);
    usable = leaves ? outer & ~mine : outer, group = outer_group;
    indent--;
    line("}");
}

static void block(int n, int depth)
{
    for (int i = 0; i < n; i++) {
        unsigned what = pick(32);
        if (what < 7)
            host_task();
        else if (what < 18)
            target_task();
        else if (what < 22)
            data_task();
        else if (what < 24)
            copy_task();
        else if (what < 25)
            detached_task();
        else if (what < 28)
            wait_statement();
        else if (depth && what < 30)
            group_statement(depth);
        else if (depth)
            nested_task(depth);
        else if (what == 31)
            line("#pragma omp taskyield");
    }
}

/* ---- a graph, the program ---- */

static void begin_graph(unsigned long long seed)
{
    state = seed * 0x9e3779b97f4a7c15ull + 12345;
    for (int i = 0; i < 4; i++) pick(2);
    memset(worlds, 0, sizeof worlds);
    memset(past, 0, sizeof past);
    worlds[0].offload = true;
    slots = ids = group = 0, usable = (1u << CELLS) - 1, has_mutex = false;
    buffer_device = (int)pick(DEVICES);
    for (int c = 0; c < CELLS; c++) past[c] = (struct past){.kind = INOUT, .settled = true};
    line("static void graph_%llu(void)", seed);
    line("{");
    indent++;
    line("unsigned a0[4] = {0}, a1[4] = {0}, a2[4] = {0}, a3[4] = {0}, a4[4] = {0}, seen[%d] = {0}, z = draw();",
         SLOTS);
    line("uintptr_t to = (uintptr_t)seen, h0 = (uintptr_t)a0, h1 = (uintptr_t)a1, h2 = (uintptr_t)a2;");
    line("uintptr_t h3 = (uintptr_t)a3, h4 = (uintptr_t)a4;");
    line("int here = omp_get_initial_device(), at_b = omp_get_num_devices() ? %d : here, no = z == 0;", buffer_device);
    line("unsigned *b = omp_target_alloc(sizeof a0, at_b), back[4];");
    line("omp_depend_t o[%d][KINDS], both[2];", CELLS);
    line("omp_event_handle_t event;");
    line("(void)to, (void)h0, (void)h1, (void)h2, (void)h3, (void)h4, (void)no, (void)event, (void)both;");
    line("CHECK(!omp_target_memcpy(b, a0, sizeof a0, 0, 0, at_b, here));");
    for (int c = 0; c < CELLS; c++) {
        for (int k = 0; k < KINDS; k++) {
            line("#pragma omp depobj(o[%d][%d]) depend(%s : %s%.*d[0])", c, k, kind_names[k], c == BUFFER ? "b" : "a",
                 c != BUFFER, c == BUFFER ? 0 : c);
        }
    }
}

static void print_values(const char *name, const unsigned *v, int n)
{
    printf("%*sstatic const unsigned %s[%d] = {", 4 * indent, "", name, n ? n : 1);
    for (int i = 0; i < n; i++) printf("%s%uu", i ? ", " : "", v[i]);
    printf(n ? "};\n" : "0};\n");
}

static void end_graph(unsigned long long seed)
{
    char name[32];
    for (int c = 0; c < BUFFER; c++) {
        for (int d = 0; d < DEVICES; d++) {
            if (!worlds[0].cell[c].count[d]) continue;
            line("#pragma omp target exit data map(delete : a%d) device(%d) nowait depend(inout : a%d)", c, d, c);
        }
    }
    line("#pragma omp taskwait");
    line("CHECK(!omp_target_memcpy(back, b, sizeof back, 0, 0, here, at_b));");
    line("omp_target_free(b, at_b);");
    line("for (int c = 0; c < %d; c++) {", CELLS);
    line("    for (int k = 0; k < KINDS; k++) {");
    line("#pragma omp depobj(o[c][k]) destroy");
    line("    }");
    line("}");
    for (int w = 0; w < 2; w++) {
        for (int c = 0; c < CELLS; c++) {
            snprintf(name, sizeof name, "want_%d_%d", w, c);
            print_values(name, worlds[w].cell[c].host, LENGTH);
        }
        print_values(w ? "want_seen_1" : "want_seen_0", worlds[w].seen, slots);
    }
    line("int w = omp_get_num_devices() ? 0 : 1;");
    for (int c = 0; c < BUFFER; c++) line("expect(\"a%d\", a%d, w ? want_1_%d : want_0_%d, 4);", c, c, c, c);
    line("expect(\"b\", back, w ? want_1_5 : want_0_5, 4);");
    line("expect(\"seen\", seen, w ? want_seen_1 : want_seen_0, %d);", slots);
    indent--;
    line("}\n");
    fprintf(stderr, "graph %llu: %d tasks\n", seed, ids);
}

int main(int argc, char **argv)
{
    strict = argc > 1 && !strcmp(argv[1], "-s");
    argv += strict, argc -= strict;
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0,
                       graphs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (argc < 2 || graphs < 1 || graphs > 1000) return fputs("usage: generate [-s] SEED [GRAPHS]\n", stderr), 2;
    bool *needs = calloc(graphs, sizeof *needs);
    if (!needs) return 1;
    line("#include \"driver.h\"\n");
    for (unsigned long long g = 0; g < graphs; g++) {
        begin_graph(seed + g);
        block(12 + (int)pick(24), 3);
        end_graph(seed + g);
        needs[g] = has_mutex;
    }
    line("int main(void)");
    line("{");
    line("    static const struct graph graphs[] = {");
    for (unsigned long long g = 0; g < graphs; g++) {
        line("        {\"%llu%s\", graph_%llu, %d},", seed + g, strict ? " (-s)" : "", seed + g, needs[g]);
    }
    line("    };");
    line("    return run_graphs(graphs, %llu);", graphs);
    line("}");
    free(needs);
    return 0;
}
