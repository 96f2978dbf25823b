/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Streams on which others queue for a while: see exec/work.h. weir__task_renew() is in submit.c. */

#include <exec/work.h>

#include <exec/issue.h>

void weir__task_lend(struct weir_task *task, bool on)
{
    struct weir__stream *stream = weir__task_stream_of(task);

    atomic_fetch_add_explicit(&stream->device->lent, on ? 1 : -1, memory_order_relaxed); /* a hint for choose_stream() */
    if (stream->ops->lend != NULL) stream->ops->lend(stream->handle, on);
}

int weir__gate_create(const struct weir_device *device, struct weir__gate *gate_out)
{
    int rc;

    if (device->ops->gate_create == NULL) return weir__fail(WEIR_E_UNSUPPORTED, "%s has no gates", device->info.name);
    gate_out->ops = device->ops;
    rc = device->ops->gate_create(device->handle, &gate_out->handle);
    return rc == WEIR_OK ? rc : weir__fail(rc, "%s: no gate: %s", device->info.name, device->ops->last_error(device->handle));
}

int weir__task_wait_gate(struct weir_task *task, const struct weir__gate *gate)
{
    struct weir__stream *stream = weir__task_stream_of(task);
    int                  rc = gate->ops->gate_wait(stream->handle, gate->handle);

    if (rc == WEIR_OK) return rc;
    return weir__fail(rc, "%s: no wait for a gate: %s", stream->device->info.name, stream->ops->last_error(stream->device->handle));
}

static int open_on_stream(void *arg)
{
    weir__gate_open(arg);
    return 0;
}

int weir__task_open_gate(struct weir_task *task, struct weir__gate *gate)
{
    return weir__task_host_function(task, open_on_stream, gate);
}

void weir__gate_open(struct weir__gate *gate)
{
    gate->ops->gate_open(gate->handle);
}

void weir__point_unpack(struct weir__point point, uint32_t *stream_out, uint64_t *position_out)
{
    *stream_out = weir__point_stream(point.value);
    *position_out = weir__point_position(point.value);
}
