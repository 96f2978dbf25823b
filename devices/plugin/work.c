/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* One item of a stream, on its thread: calls of the plugin. */
#include <devices/plugin/internal.h>

#include <stdlib.h>
#include <string.h>

enum { BOUNCE_BYTES = 64 * 1024 };

int weir__rtl_settle(struct rtl_stream *stream)
{
    struct rtl *rtl = &stream->device->backend->rtl;
    if (!stream->async.queue || !rtl->synchronize) return WEIR_OK;
    int code = rtl->synchronize(stream->device->id, &stream->async);
    return code ? WEIR_E_DEVICE : WEIR_OK;
}

/* ---- copies ---- */

static int submit(struct rtl_stream *stream, void *to, const void *from, size_t bytes)
{
    struct rtl_backend *backend = stream->device->backend;
    int32_t id = stream->device->id;
    int code = backend->events ? backend->rtl.data_submit_async(id, to, from, (int64_t)bytes, &stream->async)
                               : backend->rtl.data_submit(id, to, from, (int64_t)bytes);
    return code ? WEIR_E_TASK : WEIR_OK;
}

static int retrieve(struct rtl_stream *stream, void *to, const void *from, size_t bytes)
{
    struct rtl_backend *backend = stream->device->backend;
    int32_t id = stream->device->id;
    int code = backend->events ? backend->rtl.data_retrieve_async(id, to, from, (int64_t)bytes, &stream->async)
                               : backend->rtl.data_retrieve(id, to, from, (int64_t)bytes);
    return code ? WEIR_E_TASK : WEIR_OK;
}

/* From one device to another, or on one: by the plugin if it can, else by way of the host. */
static int exchange(struct rtl_stream *stream, int32_t source, void *to, const void *from, size_t bytes)
{
    struct rtl *rtl = &stream->device->backend->rtl;
    int32_t id = stream->device->id;
    int code = weir__rtl_settle(stream);
    if (code) return code;
    if (rtl->data_exchange && rtl->is_data_exchangable && rtl->is_data_exchangable(source, id))
        return rtl->data_exchange(source, from, id, to, (int64_t)bytes) ? WEIR_E_TASK : WEIR_OK;
    char *bounce = malloc(bytes < BOUNCE_BYTES ? bytes : BOUNCE_BYTES);
    if (!bounce) return WEIR_E_NO_MEMORY;
    for (size_t at = 0, n; at < bytes && !code; at += n) {
        n = bytes - at < BOUNCE_BYTES ? bytes - at : BOUNCE_BYTES;
        if (rtl->data_retrieve(source, bounce, (const char *)from + at, (int64_t)n) ||
            rtl->data_submit(id, (char *)to + at, bounce, (int64_t)n))
            code = WEIR_E_TASK;
    }
    free(bounce);
    return code;
}

static int copy_row(struct rtl_stream *stream, const struct weir__copy *copy, void *to, const void *from)
{
    switch (copy->kind) {
    case WEIR__COPY_TO_DEVICE:
        return submit(stream, to, from, copy->bytes);
    case WEIR__COPY_TO_HOST:
        return retrieve(stream, to, from, copy->bytes);
    case WEIR__COPY_PEER:
        return exchange(stream, ((struct rtl_device *)copy->peer)->id, to, from, copy->bytes);
    default:
        return exchange(stream, stream->device->id, to, from, copy->bytes);
    }
}

static int copy_block(struct rtl_stream *stream, const struct weir__copy *copy)
{
    size_t rows = copy->count[0] ? copy->count[0] : 1, planes = copy->count[1] ? copy->count[1] : 1;
    int code = WEIR_OK;
    for (size_t plane = 0; plane < planes; plane++)
        for (size_t row = 0; row < rows && !code; row++)
            code = copy_row(stream, copy, (char *)copy->to + plane * copy->to_pitch[1] + row * copy->to_pitch[0],
                            (const char *)copy->from + plane * copy->from_pitch[1] + row * copy->from_pitch[0]);
    return code;
}

static int fill(struct rtl_stream *stream, char *to, uint8_t value, size_t bytes)
{
    struct rtl *rtl = &stream->device->backend->rtl;
    int code = weir__rtl_settle(stream);
    char *block = malloc(bytes < BOUNCE_BYTES ? bytes : BOUNCE_BYTES);
    if (!block) return WEIR_E_NO_MEMORY;
    memset(block, value, bytes < BOUNCE_BYTES ? bytes : BOUNCE_BYTES);
    for (size_t at = 0, n; at < bytes && !code; at += n) {
        n = bytes - at < BOUNCE_BYTES ? bytes - at : BOUNCE_BYTES;
        if (rtl->data_submit(stream->device->id, to + at, block, (int64_t)n)) code = WEIR_E_TASK;
    }
    free(block);
    return code;
}

/* ---- kernels ---- */

static int launch(struct rtl_stream *stream, const struct rtl_item *item)
{
    struct rtl_backend *backend = stream->device->backend;
    struct rtl *rtl = &backend->rtl;
    const struct weir__launch *what = &item->launch;
    int32_t id = stream->device->id, nargs = (int32_t)what->nargs;
    void **args = (void **)(uintptr_t)item->args;
    ptrdiff_t *offsets = (ptrdiff_t *)(uintptr_t)(item->args + what->nargs);
    int32_t teams = (int32_t)what->grid[0], limit = (int32_t)what->block[0], code;
    if (rtl->launch_kernel) {
        struct rtl_kernel_args kernel = {.version = 2, .nargs = what->nargs, .shared_bytes = what->shared_bytes};
        memcpy(kernel.teams, what->grid, sizeof kernel.teams);
        memcpy(kernel.threads, what->block, sizeof kernel.threads);
        code = rtl->launch_kernel(id, what->kernel, args, offsets, &kernel, &stream->async);
    } else if (backend->events) {
        code =
            rtl->run_target_team_region_async(id, what->kernel, args, offsets, nargs, teams, limit, 0, &stream->async);
    } else {
        code = rtl->run_target_team_region(id, what->kernel, args, offsets, nargs, teams, limit, 0);
    }
    return code ? WEIR_E_TASK : WEIR_OK;
}

int weir__rtl_item_run(struct rtl_stream *stream, struct rtl_item *item)
{
    int code, end;
    switch (item->kind) {
    case RTL_COPY:
        code = copy_block(stream, &item->copy);
        break;
    case RTL_FILL:
        code = fill(stream, item->fill.to, item->fill.value, item->fill.bytes);
        break;
    case RTL_LAUNCH:
        code = launch(stream, item);
        break;
    case RTL_FUNCTION:
        code = weir__rtl_settle(stream);
        if (item->function.call(item->function.arg) && !code) code = WEIR_E_TASK;
        break;
    case RTL_SETTLE:
        return weir__rtl_settle(stream);
    case RTL_RECORD:
        return weir__rtl_event_issue(stream, item->event.event, item->event.number);
    default:
        return weir__rtl_event_hold(stream, item->event.event, item->event.number);
    }
    if (stream->device->backend->events) return code;
    end = weir__rtl_settle(stream);
    return code ? code : end;
}
