/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Memory, copies and kernels of the plugin. */
#include <string.h>

#include <exec/work.h>

#include "interop/plugin/object.h"
#include "interop/plugin/report.h"

#define OPS       (&weir__host_ops)
#define ARGS_MOST 1024

void *__tgt_rtl_data_alloc(int32_t id, int64_t bytes, void *host, int32_t kind)
{
    (void)host;
    (void)kind;
    if (bytes <= 0) {
        weir__plugin_fail("data_alloc: %lld bytes on device %d", (long long)bytes, id);
        return NULL;
    }
    struct plugin_device *device = weir__plugin_device_enter("data_alloc", id);
    if (!device) return NULL;
    void *address = NULL;
    int code = OPS->alloc(device->handle, (size_t)bytes, &address);
    if (code) (void)weir__plugin_fail_backend("data_alloc", code);
    weir__plugin_device_leave(device);
    return address;
}

int32_t __tgt_rtl_data_delete(int32_t id, void *address)
{
    if (!address) return weir__plugin_fail("data_delete: nothing to free on device %d", id);
    struct plugin_device *device = weir__plugin_device_enter("data_delete", id);
    if (!device) return -1;
    int code = OPS->free(device->handle, address);
    weir__plugin_device_leave(device);
    return code ? weir__plugin_fail_backend("data_delete", code) : 0;
}

/* The host's memory is the device's: it can be had as it is. */
int32_t __tgt_rtl_data_lock(int32_t id, void *host, int64_t bytes, void **locked_out)
{
    if (!host || bytes <= 0 || !locked_out)
        return weir__plugin_fail("data_lock: %lld bytes at %p of device %d", (long long)bytes, host, id);
    struct plugin_device *device = weir__plugin_device_enter("data_lock", id);
    if (!device) return -1;
    weir__plugin_device_leave(device);
    *locked_out = host;
    return 0;
}

int32_t __tgt_rtl_data_unlock(int32_t id, void *host)
{
    if (!host) return weir__plugin_fail("data_unlock: nothing to unlock on device %d", id);
    struct plugin_device *device = weir__plugin_device_enter("data_unlock", id);
    if (!device) return -1;
    weir__plugin_device_leave(device);
    return 0;
}

/* ---- what is queued: a copy or a launch ---- */

struct work {
    const char *call;
    const struct weir__copy *copy;
    const struct weir__launch *launch; /* if @copy is NULL */
};

static void tell(const struct work *work, int32_t id, const void *queue)
{
    weir__plugin_count(work->copy ? WEIR__PLUGIN_COPIES : WEIR__PLUGIN_KERNELS);
    if (work->copy)
        weir__log(4, "plugin: device %d: %s of %zu bytes on queue %p", id, work->call, work->copy->bytes, queue);
    else
        weir__log(weir__plugin_tells_kernels() ? 0 : 4,
                  "plugin: device %d: %s of kernel %p with %u arguments on queue %p", id, work->call,
                  work->launch->kernel, work->launch->nargs, queue);
}

static int32_t queue_work(const struct work *work, int32_t id, struct weir__plugin_async *async)
{
    struct plugin_device *device = weir__plugin_device_enter(work->call, id);
    if (!device) return -1;
    int32_t result = -1;
    struct plugin_object *queue = weir__plugin_queue_enter(work->call, id, device, async);
    if (queue) {
        int code = work->copy ? OPS->copy(queue->stream, work->copy) : OPS->launch(queue->stream, work->launch);
        if (!code) {
            queue->dirty = true;
            code = weir__plugin_queue_record(queue); /* and start */
        }
        result = code ? weir__plugin_fail_backend(work->call, code) : 0;
        weir__plugin_queue_leave(queue);
    }
    weir__plugin_device_leave(device);
    if (!result) tell(work, id, async->queue);
    return result;
}

/* @async NULL: wait here. */
static int32_t queue_or_run(const struct work *work, int32_t id, struct weir__plugin_async *async)
{
    struct weir__plugin_async own = {NULL};
    if (async) return queue_work(work, id, async);
    int32_t result = queue_work(work, id, &own);
    return own.queue && __tgt_rtl_synchronize(id, &own) ? -1 : result;
}

/* ---- copies ---- */

static int32_t copy(const char *call, int32_t id, uint32_t kind, void *to, const void *from, int64_t bytes,
                    struct weir__plugin_async *async)
{
    if (bytes < 0 || (bytes && (!to || !from)))
        return weir__plugin_fail("%s: %lld bytes from %p to %p", call, (long long)bytes, from, to);
    if (!bytes) return 0;
    struct weir__copy piece = {.kind = kind, .to = to, .from = from, .bytes = (size_t)bytes};
    return queue_or_run(&(struct work){.call = call, .copy = &piece}, id, async);
}

static int32_t no_async(const char *call)
{
    return weir__plugin_fail("%s: no async object", call);
}

int32_t __tgt_rtl_data_submit(int32_t id, void *to, void *host, int64_t bytes)
{
    return copy("data_submit", id, WEIR__COPY_TO_DEVICE, to, host, bytes, NULL);
}

int32_t __tgt_rtl_data_submit_async(int32_t id, void *to, void *host, int64_t bytes, struct weir__plugin_async *async)
{
    if (!async) return no_async("data_submit_async");
    return copy("data_submit_async", id, WEIR__COPY_TO_DEVICE, to, host, bytes, async);
}

int32_t __tgt_rtl_data_retrieve(int32_t id, void *host, void *from, int64_t bytes)
{
    return copy("data_retrieve", id, WEIR__COPY_TO_HOST, host, from, bytes, NULL);
}

int32_t __tgt_rtl_data_retrieve_async(int32_t id, void *host, void *from, int64_t bytes,
                                      struct weir__plugin_async *async)
{
    if (!async) return no_async("data_retrieve_async");
    return copy("data_retrieve_async", id, WEIR__COPY_TO_HOST, host, from, bytes, async);
}

/* The queue is that of the device with the data; the memory of CPU devices is one. */
static int32_t exchange(const char *call, int32_t id, const void *from, int32_t to_id, void *to, int64_t bytes,
                        struct weir__plugin_async *async)
{
    if (!__tgt_rtl_is_data_exchangable(id, to_id))
        return weir__plugin_fail("%s: from device %d to %d", call, id, to_id);
    return copy(call, id, WEIR__COPY_ON_DEVICE, to, from, bytes, async);
}

int32_t __tgt_rtl_data_exchange(int32_t id, void *from, int32_t to_id, void *to, int64_t bytes)
{
    return exchange("data_exchange", id, from, to_id, to, bytes, NULL);
}

int32_t __tgt_rtl_data_exchange_async(int32_t id, void *from, int32_t to_id, void *to, int64_t bytes,
                                      struct weir__plugin_async *async)
{
    if (!async) return no_async("data_exchange_async");
    return exchange("data_exchange_async", id, from, to_id, to, bytes, async);
}

/* ---- kernels ---- */

static int32_t launch(const char *call, int32_t id, void *entry, void **args, const ptrdiff_t *offsets, int64_t nargs,
                      struct weir__plugin_async *async)
{
    uint64_t values[ARGS_MOST];
    if (!entry || nargs < 0 || nargs > ARGS_MOST || (nargs && (!args || !offsets)))
        return weir__plugin_fail("%s: kernel %p with %lld arguments at %p and offsets at %p", call, entry,
                                 (long long)nargs, (void *)args, (const void *)offsets);
    for (int64_t i = 0; i < nargs; i++) values[i] = (uint64_t)(uintptr_t)args[i] + (uint64_t)offsets[i];
    struct weir__launch kernel = {.kernel = entry, .nargs = (uint32_t)nargs, .args = values};
    return queue_or_run(&(struct work){.call = call, .launch = &kernel}, id, async);
}

int32_t __tgt_rtl_run_target_region(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs)
{
    return launch("run_target_region", id, entry, args, offsets, nargs, NULL);
}

int32_t __tgt_rtl_run_target_region_async(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs,
                                          struct weir__plugin_async *async)
{
    if (!async) return no_async("run_target_region_async");
    return launch("run_target_region_async", id, entry, args, offsets, nargs, async);
}

int32_t __tgt_rtl_run_target_team_region(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs,
                                         int32_t teams, int32_t limit, uint64_t trips)
{
    (void)teams, (void)limit, (void)trips;
    return launch("run_target_team_region", id, entry, args, offsets, nargs, NULL);
}

int32_t __tgt_rtl_run_target_team_region_async(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs,
                                               int32_t teams, int32_t limit, uint64_t trips,
                                               struct weir__plugin_async *async)
{
    (void)teams, (void)limit, (void)trips;
    if (!async) return no_async("run_target_team_region_async");
    return launch("run_target_team_region_async", id, entry, args, offsets, nargs, async);
}

int32_t __tgt_rtl_launch_kernel(int32_t id, void *entry, void **args, ptrdiff_t *offsets, const void *kernel_args,
                                struct weir__plugin_async *async)
{
    uint32_t words[2]; /* version, number of arguments */
    if (!kernel_args) return weir__plugin_fail("launch_kernel: no kernel arguments");
    memcpy(words, kernel_args, sizeof words);
    return launch("launch_kernel", id, entry, args, offsets, words[1], async);
}
