/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/context.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <devices/host/host.h>
#include <exec/environment.h>
#include <exec/scope.h>
#include <exec/stream.h>
#include <exec/submit.h>
#include <exec/summary.h>
#include <exec/trace.h>
#include <exec/work.h>

#define DEFAULT_WINDOW 4096

/* ---- fork ---- */

_Atomic uint32_t weir__generation;

static void in_child(void)
{
    atomic_fetch_add_explicit(&weir__generation, 1, memory_order_relaxed); /* the child has one thread */
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

int weir__fail_forked(void)
{
    return weir__fail(WEIR_E_FORKED, "%s", weir_error_string(WEIR_E_FORKED));
}

/* ---- environment ---- */

/* A whole number in digits and in range; false: @text is none. */
static bool is_number(const char *text, uint64_t least, uint64_t most, uint64_t *value_out)
{
    char    *end;
    uint64_t value;

    if (*text < '0' || *text > '9') return false;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > most) return false;
    *value_out = value;
    return true;
}

static uint64_t wide_number(const char *name, uint64_t otherwise, uint64_t least, uint64_t most)
{
    const char *text = getenv(name);
    uint64_t    value;

    if (text == NULL || *text == '\0') return otherwise;
    if (is_number(text, least, most, &value)) return value;
    weir__log(2, "%s=%s is not a number from %" PRIu64 " to %" PRIu64 ": %" PRIu64 " is used", name, text, least, most, otherwise);
    return otherwise;
}

uint32_t weir__environment_number(const char *name, uint32_t otherwise, uint32_t least, uint32_t most)
{
    return (uint32_t)wide_number(name, otherwise, least, most);
}

struct weir__host_options weir__environment_host(void)
{
    return (struct weir__host_options){
        .short_ns = weir__environment_number("WEIR_HOST_SHORT_NS", WEIR__HOST_SHORT_NS, 0, 999999999),
        .delay_us = weir__environment_number("WEIR_HOST_DELAY_US", 0, 0, 999999),
        .delay_seed = wide_number("WEIR_HOST_DELAY_SEED", 0, 0, UINT64_MAX)};
}

enum weir__device_choice weir__environment_device(void)
{
    static const char *const words[] = {[WEIR__DEVICES_ALL] = "all", [WEIR__DEVICES_HOST] = "host", [WEIR__DEVICES_CUDA] = "cuda",
                                        [WEIR__DEVICES_PLUGIN] = "plugin"};
    const char              *text = getenv("WEIR_DEVICE");

    if (text == NULL || *text == '\0') return WEIR__DEVICES_ALL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) return (enum weir__device_choice)i;
    }
    weir__log(2, "WEIR_DEVICE=%s is not host, cuda, plugin or all: all is used", text);
    return WEIR__DEVICES_ALL;
}

_Atomic int weir__log_level = -1;

static int start_log(void)
{
    const char *text = getenv("WEIR_LOG");
    uint64_t    level;

    if (text == NULL || !is_number(text, 0, 4, &level)) level = 1;
    atomic_store_explicit(&weir__log_level, (int)level, memory_order_relaxed); /* every thread finds the same */
    return (int)level;
}

void weir__log(int level, const char *format, ...)
{
    int     now = atomic_load_explicit(&weir__log_level, memory_order_relaxed); /* every thread finds the same */
    va_list arguments;

    if (now < 0) now = start_log();
    if (level > now) return;
    va_start(arguments, format);
    flockfile(stderr);
    fputs("weir: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(arguments);
}

/* ---- devices ---- */

int weir__context_add_backend(struct weir_context *context, const struct weir__device_ops *ops, void *backend)
{
    struct weir__backend *slot = &context->backends[context->nbackends];
    const char           *missing;
    uint32_t              count;
    int                   rc = weir__device_ops_check(ops, &missing);

    if (rc != WEIR_OK) return weir__fail(rc, "the table of backend %s is not valid: %s", ops != NULL && ops->name != NULL ? ops->name : "?", missing);
    if (context->nbackends == sizeof context->backends / sizeof context->backends[0]) return weir__fail(WEIR_E_BUSY, "too many backends");
    memset(slot, 0, sizeof *slot);
    if ((rc = weir__device_adapt(ops, backend, &slot->ops, &slot->handle)) != WEIR_OK) return weir__fail(rc, "no memory for backend %s", ops->name);
    context->nbackends++;
    if ((rc = slot->ops->device_count(slot->handle, &count)) != WEIR_OK) return weir__fail(rc, "%s: no devices", ops->name);
    for (uint32_t i = 0; i < count; i++) {
        struct weir_device *device;

        if (context->ndevices == WEIR__MAX_DEVICES) return weir__fail(WEIR_E_BUSY, "more than %u devices", WEIR__MAX_DEVICES);
        device = calloc(1, sizeof *device);
        if (device == NULL) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a device");
        rc = slot->ops->device_open(slot->handle, i, &weir__stream_notice, &device->info, &device->handle);
        if (rc != WEIR_OK) {
            free(device);
            return weir__fail(rc, "%s: device %u cannot be opened", ops->name, i);
        }
        device->context = context;
        device->ops = slot->ops;
        device->number = context->ndevices;
        /* Domains: one a backend if its devices can wait for each other, else one a device; none if they cannot wait. */
        if (device->info.features & WEIR__DEVICE_WAIT) {
            bool cross = (device->info.features & WEIR__DEVICE_CROSS_WAIT) != 0;

            device->domain = cross && i != 0 ? context->devices[context->ndevices - 1]->domain : (uint8_t)(device->number + 1);
        }
        device->max_streams = weir__environment_number("WEIR_STREAMS", device->info.advised_streams, 1, WEIR__MAX_STREAMS / 8);
        context->devices[context->ndevices++] = device;
        weir__log(3, "device %u: %s, %s", device->number, device->info.name, device->info.text);
    }
    return WEIR_OK;
}

static void close_devices(struct weir_context *context)
{
    for (uint32_t i = 0; i < atomic_load_explicit(&context->nstreams, memory_order_relaxed); i++) {
        if (context->streams[i] != NULL) weir__stream_destroy(context->streams[i]);
    }
    for (uint32_t i = 0; i < context->ndevices; i++) {
        context->devices[i]->ops->device_close(context->devices[i]->handle);
        free(context->devices[i]);
    }
    for (uint32_t i = 0; i < context->nbackends; i++) {
        weir__device_unadapt(context->backends[i].ops, context->backends[i].handle);
        if (context->backends[i].destroy != NULL) context->backends[i].destroy(context->backends[i].raw);
    }
}

/* A backend of our own; @backend goes with the context, also on failure. */
static int add_own(struct weir_context *context, const struct weir__device_ops *ops, void *backend, void (*destroy)(void *backend))
{
    uint32_t n = context->nbackends;
    int      rc = weir__context_add_backend(context, ops, backend);

    if (context->nbackends == n) {
        destroy(backend);
    } else {
        context->backends[n].raw = backend;
        context->backends[n].destroy = destroy;
    }
    return rc;
}

static int add_host(struct weir_context *context, uint32_t devices)
{
    struct weir__host_options options = weir__environment_host();
    void                     *backend;
    int                       rc = weir__host_backend_create(devices, &options, &backend);

    if (rc != WEIR_OK) return weir__fail(rc, "no memory for the CPU devices");
    return add_own(context, &weir__host_ops, backend, weir__host_backend_destroy);
}

/* Not to have a GPU is no failure: the CPU devices are there. */
static void add_cuda(struct weir_context *context, enum weir__device_choice choice)
{
    void *backend;
    int   rc;

    if (choice == WEIR__DEVICES_HOST || choice == WEIR__DEVICES_PLUGIN) return;
    rc = weir__cuda_backend_create(&backend, &context->absence);
    if (rc == WEIR_E_NO_DEVICE || rc == WEIR_E_FORKED) {
        weir__log(choice == WEIR__DEVICES_CUDA ? 1 : 3, "no CUDA devices: %s", context->absence);
        return;
    }
    if (rc == WEIR_OK) rc = add_own(context, &weir__cuda_ops, backend, weir__cuda_backend_destroy);
    else weir__fail(rc, "no memory for the CUDA devices");
    if (rc != WEIR_OK) {
        weir__log(1, "not all CUDA devices are there: %s", weir_error_text());
        context->absence = "a device could not be opened, and a message told why";
    }
}

/* The library that WEIR_PLUGIN names, for who chose it. Not to have it is no failure either. */
static void add_plugin(struct weir_context *context, enum weir__device_choice choice)
{
    const char *file = getenv("WEIR_PLUGIN");
    char        reason[512];
    void       *backend;

    if (choice != WEIR__DEVICES_PLUGIN) return;
    if (file == NULL || *file == '\0') file = "libomptarget.rtl.x86_64.so";
    if (weir__plugin_backend_open(file, &backend, reason, sizeof reason) != WEIR_OK) {
        weir__log(1, "no plugin devices: %s", reason);
    } else if (weir__context_add_backend(context, &weir__plugin_ops, backend) != WEIR_OK) {
        weir__log(1, "not all plugin devices are there: %s", weir_error_text());
    }
}

const char *weir__context_absence(const struct weir_context *context)
{
    return context->absence;
}

/* ---- life ---- */

int weir_version(void)
{
    return WEIR_VERSION_MAJOR * 10000 + WEIR_VERSION_MINOR * 100 + WEIR_VERSION_PATCH;
}

static void free_context(struct weir_context *context)
{
    struct weir__pool *pool = context->idle_pools;

    close_devices(context);
    while (pool != NULL) {
        struct weir__pool *next = pool->next;

        weir__pool_destroy(pool);
        pool = next;
    }
    pthread_mutex_destroy(&context->create_lock);
    pthread_mutex_destroy(&context->scope_lock);
    pthread_mutex_destroy(&context->worker_lock);
    pthread_mutex_destroy(&context->lock_of_locks);
    pthread_mutex_destroy(&context->failure_lock);
    pthread_mutex_destroy(&context->certificate_lock);
    free(context);
}

static int check_options(const struct weir_context_options *o)
{
    if (o->size != sizeof *o) return weir__fail(WEIR_E_VERSION, "struct weir_context_options of %zu bytes is not known", o->size);
    if (o->workers > WEIR__MAX_WORKERS) return weir__fail(WEIR_E_INVALID, "%u workers: at most %u are possible", o->workers, WEIR__MAX_WORKERS);
    if (o->host_devices > WEIR__MAX_DEVICES) {
        return weir__fail(WEIR_E_INVALID, "%u CPU devices: at most %u are possible", o->host_devices, WEIR__MAX_DEVICES);
    }
    if (o->window > WEIR__MAX_WINDOW) return weir__fail(WEIR_E_INVALID, "a window of %u tasks: at most %u are possible", o->window, WEIR__MAX_WINDOW);
    if (o->streams_per_device > WEIR__MAX_STREAMS / 8) {
        return weir__fail(WEIR_E_INVALID, "%u streams per device: at most %u are possible", o->streams_per_device, WEIR__MAX_STREAMS / 8);
    }
    return WEIR_OK;
}

int weir_context_create(const struct weir_context_options *options, struct weir_context **context_out)
{
    static pthread_once_t       once = PTHREAD_ONCE_INIT;
    static _Atomic uint32_t     numbers;
    struct weir_context_options o = {0};
    struct weir_context        *context;
    long                        cores = sysconf(_SC_NPROCESSORS_ONLN);
    enum weir__device_choice    choice;
    int                         rc;

    if (context_out == NULL) return weir__fail(WEIR_E_INVALID, "weir_context_create: NULL");
    if (options != NULL && (rc = check_options(options)) != WEIR_OK) return rc;
    if (options != NULL) o = *options;
    pthread_once(&once, watch_forks);
    weir__trace_watch();
    context = aligned_alloc(64, (sizeof *context + 63) & ~(size_t)63);
    if (context == NULL) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a context");
    memset(context, 0, sizeof *context);
    context->number = (uint16_t)atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed); /* unique, nothing else */
    context->generation = atomic_load_explicit(&weir__generation, memory_order_relaxed); /* as in weir__context_check() */
    if (o.window == 0) o.window = weir__environment_number("WEIR_WINDOW", DEFAULT_WINDOW, 1, WEIR__MAX_WINDOW);
    if (o.workers == 0) o.workers = weir__environment_number("WEIR_WORKERS", cores > 2 ? (uint32_t)cores : 2, 1, WEIR__MAX_WORKERS);
    if (o.host_devices == 0) o.host_devices = weir__environment_number("WEIR_HOST_DEVICES", 1, 1, WEIR__MAX_DEVICES);
    context->window = o.window;
    context->max_workers = o.workers;
    pthread_mutex_init(&context->create_lock, NULL);
    pthread_mutex_init(&context->scope_lock, NULL);
    pthread_mutex_init(&context->worker_lock, NULL);
    pthread_mutex_init(&context->lock_of_locks, NULL);
    pthread_mutex_init(&context->failure_lock, NULL);
    pthread_mutex_init(&context->certificate_lock, NULL);
    rc = add_host(context, o.host_devices);
    if (rc != WEIR_OK) {
        free_context(context);
        return rc;
    }
    choice = weir__environment_device();
    add_cuda(context, choice);
    add_plugin(context, choice);
    for (uint32_t i = 0; o.streams_per_device != 0 && i < context->ndevices; i++) {
        context->devices[i]->max_streams = o.streams_per_device;
    }
    weir__summary_watch(context);
    *context_out = context;
    return WEIR_OK;
}

/* Nothing is left that could still use the context? */
static int check_unused(struct weir_context *context)
{
    struct weir_task *held = NULL;
    char              name[96];
    bool              alive;

    pthread_mutex_lock(&context->scope_lock);
    alive = context->scopes != NULL;
    for (struct weir__pool *pool = context->idle_pools; pool != NULL && held == NULL && !alive; pool = pool->next) {
        held = weir__pool_held(pool);
    }
    pthread_mutex_unlock(&context->scope_lock);
    if (alive) return weir__fail(WEIR_E_BUSY, "weir_context_destroy: a scope is alive");
    if (held == NULL) return WEIR_OK;
    weir__task_describe(held, name, sizeof name);
    return weir__fail(WEIR_E_BUSY, "weir_context_destroy: the handle of %s was not released", name);
}

int weir_context_destroy(struct weir_context *context)
{
    int rc;

    if (context == NULL) return weir__fail(WEIR_E_INVALID, "weir_context_destroy: NULL");
    if ((rc = weir__context_check(context)) != WEIR_OK) return rc;
    if ((rc = check_unused(context)) != WEIR_OK) return rc;
    weir__workers_stop(context);
    weir__summary_end(context);
    free_context(context);
    return WEIR_OK;
}

/* ---- queries ---- */

int weir_device_count(const struct weir_context *context)
{
    return context != NULL ? (int)context->ndevices : 0;
}

struct weir_device *weir_device_get(struct weir_context *context, int number)
{
    if (context != NULL && number >= 0 && (uint32_t)number < context->ndevices) return context->devices[number];
    weir__fail(WEIR_E_NO_DEVICE, "there is no device %d", number);
    return NULL;
}

const char *weir_device_name(const struct weir_device *device)
{
    return device != NULL ? device->info.name : "";
}

int weir_device_number(const struct weir_device *device)
{
    return device != NULL ? (int)device->number : -1;
}

int weir_device_alloc(struct weir_device *device, size_t bytes, void **address_out)
{
    int rc;

    if (device == NULL || address_out == NULL || bytes == 0) return weir__fail(WEIR_E_INVALID, "weir_device_alloc: NULL or 0 bytes");
    if ((rc = weir__context_check(device->context)) != WEIR_OK) return rc;
    rc = device->ops->alloc(device->handle, bytes, address_out);
    if (rc == WEIR_OK) return rc;
    return weir__fail(rc, "%s: no %zu bytes: %s", device->info.name, bytes, device->ops->last_error(device->handle));
}

int weir_device_free(struct weir_device *device, void *address)
{
    int rc;

    if (device == NULL) return weir__fail(WEIR_E_INVALID, "weir_device_free: NULL");
    if ((rc = weir__context_check(device->context)) != WEIR_OK || address == NULL) return rc;
    rc = device->ops->free(device->handle, address);
    return rc == WEIR_OK ? rc : weir__fail(rc, "%s: %s", device->info.name, device->ops->last_error(device->handle));
}

void weir_context_counters(struct weir_context *context, struct weir_counters *counters_out)
{
    if (counters_out == NULL) return;
    memset(counters_out, 0, sizeof *counters_out);
    if (context == NULL) return;
    pthread_mutex_lock(&context->scope_lock);
    *counters_out = context->past;
    for (struct weir_scope *scope = context->scopes; scope != NULL; scope = scope->next) weir__scope_count(scope, counters_out);
    pthread_mutex_unlock(&context->scope_lock);
}
