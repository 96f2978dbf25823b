/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The devices of a plugin, and the table of its functions. */
#include <devices/thread.h>
#include <devices/plugin/internal.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADVISED_STREAMS = 4 }; /* each has a thread */

enum { TEXT = 256 };
static _Thread_local void *error_text;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct rtl_backend *opened; /* under opening */

int weir__rtl_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir__thread_memory(&error_text, TEXT);
    if (text) vsnprintf(text, TEXT, format, args);
    va_end(args);
    return code;
}

const char *weir__rtl_error(void *device)
{
    (void)device;
    return error_text ? error_text : "";
}

static int device_init(struct rtl_backend *backend, uint32_t number)
{
    pthread_mutex_lock(&backend->lock);
    int code = backend->initialised[number] ? 0 : backend->rtl.init_device((int32_t)number);
    if (!code) backend->initialised[number] = true;
    pthread_mutex_unlock(&backend->lock);
    return code ? weir__rtl_fail(WEIR_E_DEVICE, "%s: init_device failed", backend->name) : WEIR_OK;
}

/* Some plugins have the functions of events and nothing behind them: success, and no event. */
static bool has_events(struct rtl *rtl)
{
    void *event = NULL;
    if (!rtl->create_event || !rtl->data_submit_async || !rtl->data_retrieve_async) return false;
    if (!rtl->launch_kernel && !rtl->run_target_team_region_async) return false;
    if (rtl->create_event(0, &event) || !event) return false;
    return !rtl->destroy_event(0, event);
}

/* NULL: it can be used; else why not. */
static const char *start(struct rtl_backend *backend)
{
    struct rtl *rtl = &backend->rtl;
    if (rtl->init_plugin && rtl->init_plugin()) return "init_plugin failed";
    int32_t count = rtl->number_of_devices();
    if (count <= 0) return "it has no devices";
    backend->count = (uint32_t)count;
    backend->initialised = calloc(backend->count, sizeof *backend->initialised);
    if (!backend->initialised) return "no memory";
    if (rtl->init_requires) (void)rtl->init_requires(RTL_REQUIRES_NONE);
    if (device_init(backend, 0)) return "init_device failed";
    backend->events = has_events(rtl);
    return NULL;
}

/* Under opening. NULL: @reason tells why. */
static struct rtl_backend *backend_open(const char *file, char *reason, size_t size)
{
    const char *slash = strrchr(file, '/');
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reason, size, "%s", dlerror());
        return NULL;
    }
    struct rtl_backend *backend = opened;
    while (backend && backend->rtl.library != library) backend = backend->next;
    if (backend) return backend;
    struct rtl_backend *new = calloc(1, sizeof *new);
    const char *missing = NULL, *what = "no memory";
    if (new) {
        new->rtl.library = library;
        snprintf(new->name, sizeof new->name, "%s", slash ? slash + 1 : file);
        pthread_mutex_init(&new->lock, NULL);
        what = weir__rtl_find(&new->rtl, &missing) ? missing : start(new);
        if (!what) {
            new->next = opened;
            opened = new;
            return new;
        }
        free(new->initialised);
        free(new);
    }
    snprintf(reason, size, "%s: %s%s", file, what, missing ? " is missing" : "");
    dlclose(library);
    return NULL;
}

int weir__plugin_backend_open(const char *file, void **backend_out, char *reason, size_t size)
{
    pthread_mutex_lock(&opening);
    struct rtl_backend *backend = backend_open(file, reason, size);
    pthread_mutex_unlock(&opening);
    if (!backend) return WEIR_E_NO_DEVICE;
    *backend_out = backend;
    return WEIR_OK;
}

/* ---- devices ---- */

static int device_count(void *handle, uint32_t *count_out)
{
    *count_out = ((struct rtl_backend *)handle)->count;
    return WEIR_OK;
}

static int device_open(void *handle, uint32_t number, const struct weir__device_notice *notice,
                       struct weir__device_info *info_out, void **device_out)
{
    (void)notice; /* the adapter calls back */
    struct rtl_backend *backend = handle;
    if (number >= backend->count) return weir__rtl_fail(WEIR_E_NO_DEVICE, "%s has no device %u", backend->name, number);
    int code = device_init(backend, number);
    if (code) return code;
    struct rtl_device *device = malloc(sizeof *device);
    if (!device) return weir__rtl_fail(WEIR_E_NO_MEMORY, "no memory for a device");
    *device = (struct rtl_device){backend, (int32_t)number};
    struct weir__device_info info = {.features = backend->events ? WEIR__DEVICE_WAIT : 0,
                                     .advised_streams = ADVISED_STREAMS};
    snprintf(info.name, sizeof info.name, "plugin:%u", number);
    snprintf(info.text, sizeof info.text, "of %s, %s", backend->name,
             backend->events ? "with events" : "without events: the host orders its streams");
    *info_out = info;
    *device_out = device;
    return WEIR_OK;
}

static void device_close(void *device)
{
    free(device);
}

static int memory_alloc(void *handle, size_t bytes, void **address_out)
{
    struct rtl_device *device = handle;
    void *address = device->backend->rtl.data_alloc(device->id, (int64_t)bytes, NULL, RTL_KIND_DEFAULT);
    if (!address) return weir__rtl_fail(WEIR_E_NO_MEMORY, "%s: no %zu bytes", device->backend->name, bytes);
    *address_out = address;
    return WEIR_OK;
}

static int memory_free(void *handle, void *address)
{
    struct rtl_device *device = handle;
    int code = device->backend->rtl.data_delete(device->id, address, RTL_KIND_DEFAULT);
    return code ? weir__rtl_fail(WEIR_E_INVALID, "%s: %p cannot be freed", device->backend->name, address) : WEIR_OK;
}

const struct weir__device_ops weir__plugin_ops = {
    .size = sizeof(struct weir__device_ops),
    .version = WEIR__DEVICE_OPS_VERSION,
    .name = "plugin",
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .last_error = weir__rtl_error,
    .alloc = memory_alloc,
    .free = memory_free,
    .stream_create = weir__rtl_stream_create,
    .stream_destroy = weir__rtl_stream_destroy,
    .stream_native = weir__rtl_stream_native,
    .event_create = weir__rtl_event_create,
    .event_record = weir__rtl_event_record,
    .event_wait = weir__rtl_event_wait,
    .event_query = weir__rtl_event_query,
    .event_sync = weir__rtl_event_sync,
    .event_destroy = weir__rtl_event_destroy,
    .event_notify = weir__rtl_event_notify,
    .stream_sync = weir__rtl_stream_sync,
    .copy = weir__rtl_copy,
    .fill = weir__rtl_fill,
    .launch = weir__rtl_launch,
    .host_function = weir__rtl_host_function,
    .module_load = weir__rtl_module_load,
    .module_unload = weir__rtl_module_unload,
    .module_symbol = weir__rtl_module_symbol,
};
