/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "internal.h"

#include <stdlib.h>

int weir__cuda_backend_create(void **backend_out, const char **reason_out)
{
    int count = 0;
    const char *reason = "a driver, but no device";
    weir__cuda_watch_forks();
    if (weir__cuda_is_forked()) {
        *reason_out = "the process was forked";
        return weir__cuda_fail(WEIR_E_FORKED, "%s", *reason_out);
    }
    if (!weir__driver_open(&reason) || weir__cuda_driver->device_count(&count) || count <= 0) {
        *reason_out = reason;
        return weir__cuda_fail(WEIR_E_NO_DEVICE, "%s", reason);
    }
    struct cuda_backend *backend = calloc(1, sizeof *backend);
    if (!backend) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for the CUDA devices");
    backend->count = (uint32_t)count;
    pthread_mutex_init(&backend->lock, NULL);
    *backend_out = backend;
    return WEIR_OK;
}

void weir__cuda_backend_destroy(void *handle)
{
    struct cuda_backend *backend = handle;
    pthread_mutex_destroy(&backend->lock);
    free(backend);
}

const struct weir__device_ops weir__cuda_ops = {
    .size = sizeof(struct weir__device_ops),
    .version = WEIR__DEVICE_OPS_VERSION,
    .name = "cuda",
    .device_count = weir__cuda_device_count,
    .device_open = weir__cuda_device_open,
    .device_close = weir__cuda_device_close,
    .last_error = weir__cuda_last_error,
    .alloc = weir__cuda_alloc,
    .free = weir__cuda_free,
    .free_on_stream = weir__cuda_free_on_stream,
    .stream_create = weir__cuda_stream_create,
    .stream_destroy = weir__cuda_stream_destroy,
    .stream_native = weir__cuda_stream_native,
    .event_create = weir__cuda_event_create,
    .event_record = weir__cuda_event_record,
    .event_wait = weir__cuda_event_wait,
    .event_query = weir__cuda_event_query,
    .event_sync = weir__cuda_event_sync,
    .event_destroy = weir__cuda_event_destroy,
    .event_notify = weir__cuda_event_notify,
    .event_signal = weir__cuda_event_signal,
    .stream_sync = weir__cuda_stream_sync,
    .foreign_wait = weir__cuda_foreign_wait,
    .lend = weir__cuda_stream_lend,
    .copy = weir__cuda_copy,
    .fill = weir__cuda_fill,
    .launch = weir__cuda_launch,
    .host_function = weir__cuda_host_function,
    .module_load = weir__cuda_module_load,
    .module_unload = weir__cuda_module_unload,
    .module_symbol = weir__cuda_module_symbol,
};
