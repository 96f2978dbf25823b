/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The exported functions: each checks what must hold before it, counts, fails if it was told to, and calls
 * emulator__<name>() under the lock. A build for an older driver hides the symbols that it did not have.
 */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator.h"

#define EXPORT __attribute__((visibility("default")))
#define LOCAL  __attribute__((visibility("hidden")))

#define SINCE_11000 EXPORT
#if EMULATOR_DRIVER_VERSION >= 12020
#define SINCE_11010 EXPORT
#define SINCE_11020 EXPORT
#define SINCE_11030 EXPORT
#define SINCE_11040 EXPORT
#define SINCE_11060 EXPORT
#define SINCE_11070 EXPORT
#define SINCE_12000 EXPORT
#else
#define SINCE_11010 LOCAL
#define SINCE_11020 LOCAL
#define SINCE_11030 LOCAL
#define SINCE_11040 LOCAL
#define SINCE_11060 LOCAL
#define SINCE_11070 LOCAL
#define SINCE_12000 LOCAL
#endif
#if EMULATOR_DRIVER_VERSION >= 13000
#define SINCE_12030 EXPORT
#define SINCE_12040 EXPORT
#define SINCE_12050 EXPORT
#define SINCE_12080 EXPORT
#define SINCE_13000 EXPORT
#else
#define SINCE_12030 LOCAL
#define SINCE_12040 LOCAL
#define SINCE_12050 LOCAL
#define SINCE_12080 LOCAL
#define SINCE_13000 LOCAL
#endif

#define FORKED (-1) /* enter() did not take the lock */

enum class { ANY, INIT, HANDLE, QUIET, CURRENT };

enum entry {
    NO_ENTRY,
#define CALL(name, since, class, parameters, arguments) ENTRY_##name,
#define CALL_PTSZ                                       CALL
#define CALL_PTDS                                       CALL
#define OLD(name)                                       ENTRY_OLD_##name,
#include "calls.h"
#undef CALL
#undef CALL_PTSZ
#undef CALL_PTDS
#undef OLD
    ENTRIES
};

_Thread_local struct call emulator__call __attribute__((tls_model("initial-exec")));
_Thread_local bool emulator__in_host_function __attribute__((tls_model("initial-exec")));

static struct counter {
    uint64_t calls, blocked_ns;
    uint64_t fail_in; /* counted down */
    int fail_code;
} counters[ENTRIES], all;
static uint64_t context_switches;

/* ---- before and after a call ---- */

/* Calls that a capture in global mode does not bear in any thread. */
static bool is_unsafe(unsigned entry)
{
    switch (entry) {
    case ENTRY_cuMemAlloc_v2:
    case ENTRY_cuMemFree_v2:
    case ENTRY_cuMemHostAlloc:
    case ENTRY_cuMemFreeHost:
    case ENTRY_cuMemHostRegister_v2:
    case ENTRY_cuMemHostUnregister:
    case ENTRY_cuModuleUnload:
    case ENTRY_cuEventQuery:
    case ENTRY_cuEventSynchronize:
    case ENTRY_cuStreamQuery:
    case ENTRY_cuStreamSynchronize:
        return true;
    default:
        return false;
    }
}

static int injected(struct counter *counter)
{
    return counter->fail_in && --counter->fail_in == 0 ? counter->fail_code : 0;
}

static int check_state(enum class class)
{
    struct state *state = &emulator__state;
    if (state->is_shut_down) return CUDA_DEINITIALIZED;
    if (!state->is_initialised) return CUDA_NOT_INITIALIZED;
    if (class < QUIET) return 0;
    struct context *context = emulator__current();
    if (!context) {
        emulator__report("no context is current");
        return CUDA_INVALID_CONTEXT;
    }
    emulator__call.context = context;
    int code = emulator__context_status(context);
    return class == QUIET && code != CUDA_CONTEXT_IS_DESTROYED ? 0 : code;
}

/* Another thread loads a kernel lazily, and holds the lock of the context. */
static void await_loader(const struct context *context)
{
    while (context->loader && context->loader != emulator__thread_number() && !context->error) emulator__host_wait();
}

static int enter(unsigned entry, enum class class, bool is_per_thread)
{
    emulator__call.is_per_thread = is_per_thread;
    emulator__call.context = NULL;
    if (emulator__is_forked()) return FORKED;
    pthread_mutex_lock(&emulator__state.lock);
    emulator__call.entry = entry;
    counters[entry].calls++;
    all.calls++;
    if (class == ANY) return injected(&counters[entry]);
    if (emulator__in_host_function) {
        emulator__report("called in a host function");
        return CUDA_NOT_PERMITTED;
    }
    int code = check_state(class);
    if (!code && is_unsafe(entry)) code = emulator__capture_forbid_unsafe();
    if (code) return code;
    if (class == CURRENT) await_loader(emulator__call.context);
    code = injected(&counters[entry]);
    int other = injected(&all);
    return code ? code : other;
}

static int leave(int code)
{
    if (code == FORKED) return CUDA_NOT_INITIALIZED;
    emulator__call.entry = NO_ENTRY;
    pthread_mutex_unlock(&emulator__state.lock);
    return code;
}

/* ---- the functions ---- */

/* Prototypes; the header that has the real ones is not ours. */
#define CALL(name, since, class, parameters, arguments) SINCE_##since int name parameters;
#define CALL_SUFFIX(name, suffix, since, parameters)    SINCE_##since int name##suffix parameters;
#define CALL_PTSZ(name, since, class, parameters, arguments)                                                           \
    CALL(name, since, class, parameters, arguments) CALL_SUFFIX(name, _ptsz, since, parameters)
#define CALL_PTDS(name, since, class, parameters, arguments)                                                           \
    CALL(name, since, class, parameters, arguments) CALL_SUFFIX(name, _ptds, since, parameters)
#define OLD(name) EXPORT int name(void);
#include "calls.h"
#undef CALL
#undef CALL_SUFFIX
#undef OLD

#define CALL_AS(symbol, name, class, is_per_thread, parameters, arguments)                                             \
    int symbol parameters                                                                                              \
    {                                                                                                                  \
        int refusal = enter(ENTRY_##name, class, is_per_thread);                                                       \
        return leave(refusal ? refusal : emulator__##name arguments);                                                  \
    }
#define CALL(name, since, class, parameters, arguments) CALL_AS(name, name, class, false, parameters, arguments)
#undef CALL_PTSZ
#undef CALL_PTDS
#define CALL_PTSZ(name, since, class, parameters, arguments)                                                           \
    CALL(name, since, class, parameters, arguments)                                                                    \
    CALL_AS(name##_ptsz, name, class, true, parameters, arguments)
#define CALL_PTDS(name, since, class, parameters, arguments)                                                           \
    CALL(name, since, class, parameters, arguments)                                                                    \
    CALL_AS(name##_ptds, name, class, true, parameters, arguments)
/* Superseded: its arguments are unknown here, so nothing could be right. */
#define OLD(name)                                                                                                      \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        enter(ENTRY_OLD_##name, ANY, false);                                                                           \
        emulator__report("the superseded function of this name was called");                                           \
        return leave(CUDA_NOT_SUPPORTED);                                                                              \
    }
#include "calls.h"
#undef CALL
#undef CALL_PTSZ
#undef CALL_PTDS
#undef OLD

/* ---- names ---- */

static const struct {
    const char *name;
    int since;
    void (*plain)(void), (*per_thread)(void);
} entries[ENTRIES] = {
    {"outside of a call", INT32_MAX, NULL, NULL},
#define CALL(name, since, class, parameters, arguments) {#name, since, (void (*)(void))name, NULL},
#define CALL_PTSZ(name, since, class, parameters, arguments)                                                           \
    {#name, since, (void (*)(void))name, (void (*)(void))name##_ptsz},
#define CALL_PTDS(name, since, class, parameters, arguments)                                                           \
    {#name, since, (void (*)(void))name, (void (*)(void))name##_ptds},
#define OLD(name) {#name, INT32_MAX, NULL, NULL},
#include "calls.h"
#undef CALL
#undef CALL_PTSZ
#undef CALL_PTDS
#undef OLD
};

const char *emulator__entry_name(unsigned entry)
{
    return entries[entry].name;
}

/* @symbol is @base, or @base and "_v<digits>". */
static bool is_form_of(const char *symbol, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(symbol, base, length)) return false;
    symbol += length;
    if (!*symbol) return true;
    if (symbol[0] != '_' || symbol[1] != 'v') return false;
    for (symbol += 2; *symbol; symbol++)
        if (!isdigit((unsigned char)*symbol)) return false;
    return true;
}

void *emulator__entry_find(const char *base, int version, bool is_per_thread, int *status)
{
    void (*found)(void) = NULL;
    int driver = (int)emulator__state.settings.version;
    *status = 1;
    for (unsigned i = 1, newest = 0; i < ENTRIES; i++) {
        if (!is_form_of(entries[i].name, base) || entries[i].since > driver) continue;
        if (!found) *status = 2;
        if (entries[i].since > version || (found && entries[i].since < entries[newest].since)) continue;
        found = is_per_thread && entries[i].per_thread ? entries[i].per_thread : entries[i].plain;
        newest = i;
        *status = 0;
    }
    void *address;
    memcpy(&address, &found, sizeof address);
    return address;
}

/* ---- counters and failures ---- */

static struct counter *counter_of(const char *name)
{
    if (!strcmp(name, "*")) return &all;
    for (unsigned i = 1; i < ENTRIES; i++)
        if (!strcmp(entries[i].name, name)) return &counters[i];
    fprintf(stderr, "emulator: there is no entry point %s\n", name);
    abort();
}

void emulator__count_blocked(uint64_t ns)
{
    counters[emulator__call.entry].blocked_ns += ns;
    all.blocked_ns += ns;
}

void emulator__count_switch(void)
{
    context_switches++;
}

void emulator_fail(const char *entry, uint64_t nth, int code)
{
    pthread_mutex_lock(&emulator__state.lock);
    struct counter *counter = counter_of(entry);
    counter->fail_in = nth;
    counter->fail_code = code;
    pthread_mutex_unlock(&emulator__state.lock);
}

uint64_t emulator_calls(const char *entry)
{
    pthread_mutex_lock(&emulator__state.lock);
    uint64_t calls = counter_of(entry)->calls;
    pthread_mutex_unlock(&emulator__state.lock);
    return calls;
}

uint64_t emulator_blocked_ns(const char *entry)
{
    pthread_mutex_lock(&emulator__state.lock);
    uint64_t ns = counter_of(entry)->blocked_ns;
    pthread_mutex_unlock(&emulator__state.lock);
    return ns;
}

uint64_t emulator_context_switches(void)
{
    pthread_mutex_lock(&emulator__state.lock);
    uint64_t switches = context_switches;
    pthread_mutex_unlock(&emulator__state.lock);
    return switches;
}

void emulator_counters_reset(void)
{
    pthread_mutex_lock(&emulator__state.lock);
    for (unsigned i = 0; i < ENTRIES; i++) counters[i].calls = counters[i].blocked_ns = 0;
    all.calls = all.blocked_ns = 0;
    context_switches = 0;
    pthread_mutex_unlock(&emulator__state.lock);
}
