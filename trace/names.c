/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <trace/model.h>
#include <trace/out.h>

enum { LOOKED_AT = 64 }; /* ranges that begin before an address, to find the smallest that has it */

static const char *word(const char *const *words, size_t n, unsigned i)
{
    return i < n && words[i] ? words[i] : "unknown";
}

#define WORD(words, i) word(words, sizeof words / sizeof words[0], i)

const char *weir__edge_kind_name(unsigned kind)
{
    static const char *const words[] = {
        [WEIR__EDGE_RAW] = "read after write",  [WEIR__EDGE_WAR] = "write after read",
        [WEIR__EDGE_WAW] = "write after write", [WEIR__EDGE_AFTER] = "named by the program",
        [WEIR__EDGE_ALL] = "all memory",
        [WEIR__EDGE_TURN] = "one after the other (mutexinoutset)",
    };
    return WORD(words, kind);
}

const char *weir__how_name(unsigned how)
{
    static const char *const words[] = {
        [WEIR__HOW_DONE] = "predecessor complete, never needed",
        [WEIR__HOW_STREAM] = "same stream",
        [WEIR__HOW_KNOWN] = "implied by an earlier wait of the stream",
        [WEIR__HOW_IMPLIED] = "implied by another wait",
        [WEIR__HOW_EVENT] = "event wait on the device",
        [WEIR__HOW_HOST] = "by completion: the host waited",
        [WEIR__HOW_DOMAIN] = "through the host: devices that cannot wait for each other",
        [WEIR__HOW_FOREIGN] = "left to libomp: host tasks on both sides",
        [WEIR__HOW_OPEN] = "not yet",
    };
    return WORD(words, how);
}

const char *weir__wait_name(unsigned why)
{
    static const char *const words[] = {
        [WEIR__WAIT_SCOPE] = "wait for a scope",
        [WEIR__WAIT_TASK] = "wait for a task",
        [WEIR__WAIT_BEGIN] = "begin behind what is not issued",
        [WEIR__WAIT_WINDOW] = "window full",
        [WEIR__WAIT_POINT] = "wait for a place on a stream",
        [WEIR__WAIT_CONSTRUCT] = "construct without nowait",
        [WEIR__WAIT_TASKWAIT] = "taskwait",
        [WEIR__WAIT_GROUP] = "end of a taskgroup",
        [WEIR__WAIT_BARRIER] = "barrier",
        [WEIR__WAIT_DEPEND] = "wait with depend clause",
        [WEIR__WAIT_ENDING] = "end of a task of the host that had made target tasks",
    };
    return WORD(words, why);
}

const char *weir__fallback_name(unsigned why)
{
    static const char *const words[] = {
        [WEIR__FALLBACK_FIRST] = "waits for its predecessors: first run of its code, which may be for the host",
        [WEIR__FALLBACK_HOST_CODE] = "waits for its predecessors: code of the host",
        [WEIR__FALLBACK_MAPPER] = "waits for its predecessors: a mapper reads the host's data",
        [WEIR__FALLBACK_FINAL] = "waited for where it was made: its parent is final",
        [WEIR__FALLBACK_REDUCTION] = "handed to libomp: task reductions",
        [WEIR__FALLBACK_REFUSED] = "the device did not take it: run on the host",
        [WEIR__FALLBACK_NO_IMAGE] = "no image for the device: run on the host",
        [WEIR__FALLBACK_WINDOW] = "window exceeded: nothing in flight was sure to finish",
        [WEIR__FALLBACK_NO_NOTICE] = "no notice from the device: polled",
        [WEIR__FALLBACK_LIBOMP] = "nowait, dependences left to libomp: weir does not stand in front of it, or WEIR_SHIM=0",
        [WEIR__FALLBACK_NOT_HELD] = "interop, waited for a task of the host: the device cannot hold foreign work",
    };
    return WORD(words, why);
}

const char *weir__node_status_name(unsigned status)
{
    static const char *const words[] = {NULL, "waiting", "issued", "running", "complete", "failed", "cancelled"};
    return WORD(words, status);
}

const char *weir__node_kind_name(unsigned kind)
{
    static const char *const words[] = {NULL,   "host task", "external",           "join", "device task", "device task",
                                        "join", "import",    "host task of libomp"};
    return WORD(words, kind);
}

/* ---- names of tasks ---- */

/* A compiler's "__omp_offloading_<device>_<file>_<function>_l<line>": the function and ":line". False: none. */
static bool kernel_name(const char *name, char *text, size_t bytes)
{
    static const char prefix[] = "__omp_offloading_";
    if (strncmp(name, prefix, sizeof prefix - 1)) return false;
    const char *at = name + sizeof prefix - 1;
    for (int i = 0; i < 2; i++) {
        size_t n = strspn(at, "0123456789abcdef");
        if (!n || at[n] != '_') return false;
        at += n + 1;
    }
    const char *line = NULL;
    for (const char *p = at; (p = strstr(p, "_l")); p += 2)
        if (p > at && p[2] >= '0' && p[2] <= '9') line = p;
    if (!line) return false;
    snprintf(text, bytes, "%.*s:%.*s", (int)(line - at), at, (int)strspn(line + 2, "0123456789"), line + 2);
    return true;
}

/* The k-th field of ";file;function;line;column;;", k from 0; its length in *n_out. */
static const char *field(const char *place, int k, size_t *n_out)
{
    for (; place && k >= 0; k--) {
        place = strchr(place, ';');
        if (place) place++;
    }
    *n_out = place ? strcspn(place, ";") : 0;
    return place;
}

static bool is_location(const char *file)
{
    return file && file[0] == ';';
}

const char *weir__task_name(const struct weir__trace_task *task, char *text, size_t bytes)
{
    size_t n;
    if (task->name && kernel_name(task->name, text, bytes)) return text;
    if (task->name) {
        snprintf(text, bytes, "%s", task->name);
        return text;
    }
    const char *function = is_location(task->file) ? field(task->file, 1, &n) : NULL;
    if (function && n && strncmp(function, "unknown", n)) {
        size_t digits;
        const char *line = field(task->file, 2, &digits);
        snprintf(text, bytes, "%.*s:%.*s", (int)n, function, (int)digits, line ? line : "");
    } else {
        snprintf(text, bytes, "%s %" PRIu64, task->kind == WEIR__TRACE_FOREIGN ? "host task" : "task", task->id);
    }
    return text;
}

const char *weir__place_name(const char *file, uint32_t line, char *text, size_t bytes)
{
    text[0] = '\0';
    if (!file) return text;
    if (!is_location(file)) {
        snprintf(text, bytes, "%s:%u", file, line);
        return text;
    }
    size_t n, digits;
    const char *name = field(file, 0, &n), *at = field(file, 2, &digits);
    if (!name || !at || !n || !strncmp(name, "unknown", n)) return text;
    snprintf(text, bytes, "%.*s:%.*s", (int)n, name, (int)digits, at);
    return text;
}

/* ---- names of addresses ---- */

/* "p[0:10]" of the compiler's ";p[0:10];file;line;column;;", or what the program said. */
static void memory_name(const struct weir__trace_memory *memory, uint64_t address, char *text, size_t bytes)
{
    const char *name = memory->name;
    size_t n = strlen(name);
    if (is_location(name)) name = field(name, 0, &n);
    if (address == memory->address)
        snprintf(text, bytes, "%.*s", (int)n, name);
    else
        snprintf(text, bytes, "%.*s + %" PRIu64, (int)strcspn(name, "[;"), name, address - memory->address);
}

const char *weir__address_name(const struct weir__trace *trace, uint64_t address, char *text, size_t bytes)
{
    const struct weir__trace_memory *best = NULL;
    size_t low = 0, high = trace->nmemory;
    while (low < high) { /* first one that begins behind the address */
        size_t middle = (low + high) / 2;
        if (trace->memory[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low, looked = 0; i-- > 0 && looked < LOOKED_AT; looked++) {
        const struct weir__trace_memory *memory = &trace->memory[i];
        if (address - memory->address >= (memory->bytes ? memory->bytes : 1)) continue;
        if (!best || memory->bytes < best->bytes) best = memory;
    }
    if (best)
        memory_name(best, address, text, bytes);
    else
        snprintf(text, bytes, "0x%" PRIx64, address);
    return text;
}

const char *weir__edge_story(const struct weir__trace *trace, const struct weir__trace_edge *edge, char *text,
                             size_t bytes)
{
    struct weir__room room = {text, bytes};
    char name[96];
    if (edge->kind == WEIR__EDGE_AFTER || edge->kind == WEIR__EDGE_ALL)
        weir__room_add(&room, "%s", weir__edge_kind_name(edge->kind));
    else
        weir__room_add(&room, "%s of %s", weir__edge_kind_name(edge->kind),
                       weir__address_name(trace, edge->address, name, sizeof name));
    if (edge->more) weir__room_add(&room, " (and %u more)", edge->more);
    weir__room_add(&room, "; %s", weir__how_name(edge->how));
    if (edge->by == WEIR__NONE) return text;
    const struct weir__trace_task *by = &trace->tasks[edge->by];
    if (by->kind == WEIR__TRACE_FENCE)
        weir__room_add(&room, " through a join");
    else
        weir__room_add(&room, " for %s", weir__task_name(by, name, sizeof name));
    return text;
}

/* The function of this process, or library and offset. */
static void caller_name(uint64_t address, char *text, size_t bytes)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)address, &info) || !info.dli_fname) return;
    const char *slash = strrchr(info.dli_fname, '/');
    if (info.dli_sname)
        snprintf(text, bytes, "in %s()", info.dli_sname);
    else
        snprintf(text, bytes, "at %s+0x%" PRIx64, slash ? slash + 1 : info.dli_fname,
                 address - (uint64_t)(uintptr_t)info.dli_fbase);
}

const char *weir__wait_place(const struct weir__trace *trace, const struct weir__trace_wait *wait, char *text,
                             size_t bytes)
{
    if (weir__place_name(wait->place, 0, text, bytes)[0]) return text;
    if (wait->task != WEIR__NONE) {
        const struct weir__trace_task *task = &trace->tasks[weir__trace_node(trace, wait->task)];
        char name[160], place[256];
        weir__task_name(task, name, sizeof name);
        weir__place_name(task->file, task->line, place, sizeof place);
        snprintf(text, bytes, "%s%s%s", name, place[0] ? " at " : "", place);
        return text;
    }
    if (wait->caller && trace->pid == (uint32_t)getpid()) caller_name(wait->caller, text, bytes);
    return text;
}

const char *weir__trace_cut(const struct weir__trace *trace, char *text, size_t bytes)
{
    uint64_t mib = trace->limit_bytes >> 20;
    text[0] = '\0';
    if (trace->dropped && trace->full)
        snprintf(text, bytes,
                 "%" PRIu64 " records were dropped, the newest: the limit of %" PRIu64 " MiB was reached. What happened "
                 "then is missing and numbers are too small; WEIR_TRACE_LIMIT=%" PRIu64 " would keep more",
                 trace->dropped, mib, mib ? 4 * mib : 4);
    else if (trace->dropped)
        snprintf(text, bytes,
                 "%" PRIu64 " records were dropped: no room on the disk or in memory, or more than %u threads at once. "
                 "Numbers are too small",
                 trace->dropped, WEIR__SLOTS);
    return text;
}

const char *weir__time_name(uint64_t ns, char *text, size_t bytes)
{
    if (ns == WEIR__NEVER)
        snprintf(text, bytes, "-");
    else if (ns < 10000)
        snprintf(text, bytes, "%" PRIu64 " ns", ns);
    else if (ns < 10000000)
        snprintf(text, bytes, "%.1f us", (double)ns / 1e3);
    else if (ns < UINT64_C(10000000000))
        snprintf(text, bytes, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(text, bytes, "%.2f s", (double)ns / 1e9);
    return text;
}
