/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Settings: WEIR_CUDA_EMULATOR_<NAME> when the library is loaded, emulator_set() later. The reports, and the end of the
 * process, which in strict mode fails if there are reports that no test took.
 */
#include "internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator.h"

#define REPORTS 256

struct state emulator__state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
#define X(name, value) .name = value,
    .settings = {EMULATOR_SETTINGS(X)},
#undef X
};

static const struct {
    const char *name;
    int64_t *value;
} settings[] = {
#define X(name, value) {#name, &emulator__state.settings.name},
    EMULATOR_SETTINGS(X)
#undef X
};

static char *reports[REPORTS];
static size_t report_count;
static uint64_t random_state;

static int64_t *find(const char *name)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strcmp(settings[i].name, name)) return settings[i].value;
    return NULL;
}

static void read_one(const char *name, int64_t *value)
{
    char variable[96];
    int length = snprintf(variable, sizeof variable, "WEIR_CUDA_EMULATOR_%s", name);
    for (int i = 0; i < length; i++) variable[i] = (char)toupper((unsigned char)variable[i]);
    const char *text = getenv(variable);
    if (!text) return;
    char *end;
    long long number = strtoll(text, &end, 0);
    if (end == text || *end)
        fprintf(stderr, "emulator: %s=%s is no number\n", variable, text);
    else
        *value = number;
}

/* WEIR_CUDA_EMULATOR_FAIL=<entry>:<nth>:<code>, _FAULT=<device>:<nth>:<code>, _NO_PEER=<device>:<peer> */
static void read_failures(void)
{
    char entry[64];
    unsigned long long nth;
    int code, device, peer;
    const char *text = getenv("WEIR_CUDA_EMULATOR_FAIL");
    if (text && sscanf(text, "%63[^:]:%llu:%d", entry, &nth, &code) == 3) emulator_fail(entry, nth, code);
    text = getenv("WEIR_CUDA_EMULATOR_FAULT");
    if (text && sscanf(text, "%d:%llu:%d", &device, &nth, &code) == 3) emulator_fault(device, nth, code);
    text = getenv("WEIR_CUDA_EMULATOR_NO_PEER");
    if (text && sscanf(text, "%2d:%2d", &device, &peer) == 2 && device >= 0 && device < MAX_DEVICES && peer >= 0 &&
        peer < MAX_DEVICES)
        emulator_peer(device, peer, 0);
}

__attribute__((constructor)) static void read_settings(void)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) read_one(settings[i].name, settings[i].value);
    read_failures();
}

int64_t emulator_set(const char *name, int64_t value)
{
    int64_t *setting = find(name), before = INT64_MIN;
    if (!setting) return before;
    pthread_mutex_lock(&emulator__state.lock);
    before = *setting;
    *setting = value;
    pthread_mutex_unlock(&emulator__state.lock);
    return before;
}

uint64_t emulator__random(uint64_t limit)
{
    if (!random_state) random_state = (uint64_t)emulator__state.settings.seed * 0x9e3779b97f4a7c15u + 1;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % limit;
}

/* ---- reports ---- */

void emulator__report(const char *format, ...)
{
    char text[512];
    va_list arguments;
    int length = snprintf(text, sizeof text, "%s: ", emulator__entry_name(emulator__call.entry));
    va_start(arguments, format);
    vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    if (emulator__state.settings.strict) fprintf(stderr, "emulator: %s\n", text);
    if (report_count < REPORTS) reports[report_count] = strdup(text);
    report_count++;
}

size_t emulator_report_count(void)
{
    pthread_mutex_lock(&emulator__state.lock);
    size_t count = report_count;
    pthread_mutex_unlock(&emulator__state.lock);
    return count;
}

const char *emulator_report_text(size_t index)
{
    pthread_mutex_lock(&emulator__state.lock);
    const char *text = index < report_count && index < REPORTS && reports[index] ? reports[index] : "";
    pthread_mutex_unlock(&emulator__state.lock);
    return text;
}

size_t emulator_reports_take(void)
{
    pthread_mutex_lock(&emulator__state.lock);
    size_t count = report_count;
    for (size_t i = 0; i < count && i < REPORTS; i++) {
        free(reports[i]);
        reports[i] = NULL;
    }
    report_count = 0;
    pthread_mutex_unlock(&emulator__state.lock);
    return count;
}

/* ---- the end ---- */

void emulator__shut_down_locked(void)
{
    if (emulator__state.is_shut_down) return;
    emulator__current_check();
    emulator__values_report();
    emulator__state.is_shut_down = true;
    emulator__guard_open_all();
}

bool emulator__is_forked(void)
{
    /* Relaxed: a child has what its parent wrote. */
    int process = atomic_load_explicit(&emulator__state.process, memory_order_relaxed);
    return process && process != (int)getpid();
}

void emulator_shut_down(void)
{
    if (emulator__is_forked()) return;
    pthread_mutex_lock(&emulator__state.lock);
    emulator__shut_down_locked();
    pthread_mutex_unlock(&emulator__state.lock);
}

/* Also where the process ends while threads are still running: they get DEINITIALIZED from now on. */
__attribute__((destructor)) static void at_exit(void)
{
    if (emulator__is_forked()) return;
    pthread_mutex_lock(&emulator__state.lock);
    emulator__shut_down_locked();
    bool failed = emulator__state.settings.strict && report_count && emulator__state.is_initialised;
    size_t count = report_count;
    pthread_mutex_unlock(&emulator__state.lock);
    if (!failed) return;
    fprintf(stderr, "emulator: %zu reports\n", count);
    fflush(NULL);
    _exit(99);
}
