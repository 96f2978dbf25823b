/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Copies and fills. The driver may make a copy from or to pageable memory of the host wait for the stream on the
 * calling thread, so it never gets one:
 *
 *  - pinned or managed memory: the driver copies it;
 *  - to the device, up to STAGE_BYTES: into pinned memory now, from there in stream order; unless the host's memory may
 *    still be written by what the stream is behind (writer.c);
 *  - to the host, up to STAGE_BYTES: to pinned memory in stream order; the last step when it is seen done (item.c);
 *    not if somebody else queues on the stream, who may want to see it;
 *  - anything else: piece by piece through the stream's bounce buffer, by functions in stream order.
 *
 * Pageable memory is not registered: the program may free it, and get other pages at the same address, at any time.
 */
#include "internal.h"

#include <string.h>

static size_t least_one(size_t n)
{
    return n ? n : 1;
}

/* From the first byte to behind the last. */
static size_t extent(size_t bytes, const size_t count[2], const size_t pitch[2])
{
    return bytes + (count[0] - 1) * (count[0] > 1 ? pitch[0] : 0) + (count[1] - 1) * (count[1] > 1 ? pitch[1] : 0);
}

/* Does the driver know this memory of the host? */
static bool is_known(const void *address)
{
    enum driver_pointer_attribute which = (enum driver_pointer_attribute)DRIVER_POINTER_MEMORY_TYPE;
    unsigned type = 0;
    void *values[] = {&type};
    enum driver_result result = weir__cuda_driver->pointer_attributes(1, &which, values, (uintptr_t)address);
    return result == DRIVER_OK && type != 0;
}

static bool is_pinned(const void *begin, size_t bytes)
{
    return is_known(begin) && (bytes == 1 || is_known((const char *)begin + bytes - 1));
}

static void tell_way(const struct weir__copy *copy, enum weir__copy_way way)
{
    if (copy->way_out) *copy->way_out = way;
}

/* ---- what the driver does alone ---- */

static int copy_row(struct cuda_stream *stream, const struct weir__copy *copy, size_t to, size_t from)
{
    struct cuda_device *device = stream->device;
    char *target = (char *)copy->to + to;
    const char *source = (const char *)copy->from + from;
    switch (copy->kind) {
    case WEIR__COPY_TO_DEVICE:
        return DRIVER(device, copy_to, (uintptr_t)target, source, copy->bytes, stream->handle);
    case WEIR__COPY_TO_HOST:
        return DRIVER(device, copy_from, target, (uintptr_t)source, copy->bytes, stream->handle);
    case WEIR__COPY_PEER:
        return DRIVER(device, copy_peer, (uintptr_t)target, weir__cuda_context(device), (uintptr_t)source,
                      weir__cuda_context(copy->peer), copy->bytes, stream->handle);
    default:
        return DRIVER(device, copy_on, (uintptr_t)target, (uintptr_t)source, copy->bytes, stream->handle);
    }
}

static int copy_plane(struct cuda_stream *stream, const struct weir__copy *copy, size_t to, size_t from)
{
    char *target = (char *)copy->to + to;
    const char *source = (const char *)copy->from + from;
    bool from_host = copy->kind == WEIR__COPY_TO_DEVICE, to_host = copy->kind == WEIR__COPY_TO_HOST;
    struct driver_copy_2d plane = {
        .from_type = from_host ? DRIVER_MEMORY_HOST : DRIVER_MEMORY_DEVICE,
        .from_host = from_host ? source : NULL,
        .from_device = from_host ? 0 : (uintptr_t)source,
        .from_pitch = copy->from_pitch[0],
        .to_type = to_host ? DRIVER_MEMORY_HOST : DRIVER_MEMORY_DEVICE,
        .to_host = to_host ? target : NULL,
        .to_device = to_host ? 0 : (uintptr_t)target,
        .to_pitch = copy->to_pitch[0],
        .bytes = copy->bytes,
        .rows = copy->count[0],
    };
    return DRIVER(stream->device, copy_2d, &plane, stream->handle);
}

static int copy_plane_peer(struct cuda_stream *stream, const struct weir__copy *copy, size_t to, size_t from)
{
    struct driver_copy_peer plane = {
        .from_type = DRIVER_MEMORY_DEVICE,
        .from_device = (uintptr_t)copy->from + from,
        .from_context = weir__cuda_context(copy->peer),
        .from_pitch = copy->from_pitch[0],
        .to_type = DRIVER_MEMORY_DEVICE,
        .to_device = (uintptr_t)copy->to + to,
        .to_context = weir__cuda_context(stream->device),
        .to_pitch = copy->to_pitch[0],
        .bytes = copy->bytes,
        .rows = copy->count[0],
        .planes = 1,
    };
    return DRIVER(stream->device, copy_rows_peer, &plane, stream->handle);
}

/* Rows that the driver takes together: they do not overlap, and lie not too far apart. */
static bool is_regular(const struct cuda_device *device, const struct weir__copy *copy)
{
    size_t most = (size_t)device->max_pitch;
    return copy->count[0] > 1 && copy->to_pitch[0] >= copy->bytes && copy->from_pitch[0] >= copy->bytes &&
           copy->to_pitch[0] <= most && copy->from_pitch[0] <= most;
}

static bool is_gapless(const struct weir__copy *copy)
{
    return copy->to_pitch[0] == copy->bytes && copy->from_pitch[0] == copy->bytes;
}

static int copy_block(struct cuda_stream *stream, const struct weir__copy *copy)
{
    bool regular = is_regular(stream->device, copy);
    struct weir__copy whole = *copy;
    int rc = WEIR_OK;
    if (copy->count[0] > 1 && is_gapless(copy)) {
        whole.bytes = copy->bytes * copy->count[0];
        whole.count[0] = 1;
        regular = false;
    }
    for (size_t plane = 0; plane < whole.count[1] && !rc; plane++) {
        size_t to = plane * copy->to_pitch[1], from = plane * copy->from_pitch[1];
        if (regular && copy->kind == WEIR__COPY_PEER)
            rc = copy_plane_peer(stream, &whole, to, from);
        else if (regular)
            rc = copy_plane(stream, &whole, to, from);
        for (size_t row = 0; !regular && row < whole.count[0] && !rc; row++)
            rc = copy_row(stream, &whole, to + row * copy->to_pitch[0], from + row * copy->from_pitch[0]);
    }
    return rc;
}

/* ---- pageable memory ---- */

/* The same copy with pinned memory without gaps on the host's side. */
static struct weir__copy pinned_copy(const struct weir__copy *copy, unsigned char *pinned)
{
    struct weir__copy inner = *copy;
    bool to_host = copy->kind == WEIR__COPY_TO_HOST;
    size_t *pitch = to_host ? inner.to_pitch : inner.from_pitch;
    pitch[0] = copy->bytes;
    pitch[1] = copy->bytes * copy->count[0];
    if (to_host)
        inner.to = pinned;
    else
        inner.from = pinned;
    return inner;
}

static struct cuda_rows rows_of(const struct weir__copy *copy)
{
    bool to_host = copy->kind == WEIR__COPY_TO_HOST;
    const size_t *pitch = to_host ? copy->to_pitch : copy->from_pitch;
    return (struct cuda_rows){
        .host = to_host ? copy->to : (unsigned char *)(uintptr_t)copy->from,
        .bytes = copy->bytes,
        .rows = copy->count[0],
        .planes = copy->count[1],
        .pitch = {pitch[0], pitch[1]},
    };
}

static void run_in(struct cuda_item *item)
{
    weir__cuda_rows_in(&item->rows);
}

static void run_out(struct cuda_item *item)
{
    weir__cuda_rows_out(&item->rows);
}

/* A piece that fits into the bounce buffer. */
static int copy_piece(struct cuda_stream *stream, const struct weir__copy *piece)
{
    bool to_host = piece->kind == WEIR__COPY_TO_HOST;
    struct weir__copy inner = pinned_copy(piece, stream->bounce);
    struct cuda_item *item = weir__cuda_item_get(stream, ITEM_CALL);
    if (!item) return WEIR_E_NO_MEMORY;
    item->rows = rows_of(piece);
    item->rows.pinned = stream->bounce;
    item->run = to_host ? run_out : run_in;
    if (!to_host) {
        int rc = weir__cuda_call(stream, item);
        return rc ? rc : copy_block(stream, &inner);
    }
    int rc = copy_block(stream, &inner);
    if (!rc) return weir__cuda_call(stream, item);
    weir__cuda_item_drop(stream, item);
    return rc;
}

/* As many rows as fit, of one plane; or a part of one row. */
static int copy_pieces(struct cuda_stream *stream, const struct weir__copy *copy)
{
    size_t step = copy->bytes < BOUNCE_BYTES ? copy->bytes : BOUNCE_BYTES;
    size_t most = BOUNCE_BYTES / step;
    struct weir__copy piece = *copy;
    int rc = WEIR_OK;
    piece.count[1] = 1;
    for (size_t plane = 0; plane < copy->count[1]; plane++) {
        for (size_t row = 0; row < copy->count[0]; row += most) {
            piece.count[0] = copy->count[0] - row < most ? copy->count[0] - row : most;
            for (size_t at = 0; at < copy->bytes && !rc; at += step) {
                piece.bytes = copy->bytes - at < step ? copy->bytes - at : step;
                piece.to = (char *)copy->to + plane * copy->to_pitch[1] + row * copy->to_pitch[0] + at;
                piece.from = (const char *)copy->from + plane * copy->from_pitch[1] + row * copy->from_pitch[0] + at;
                rc = copy_piece(stream, &piece);
            }
        }
    }
    return rc;
}

static int copy_ordered(struct cuda_stream *stream, const struct weir__copy *copy)
{
    int rc = weir__cuda_call_settle_own(stream);
    if (!rc) rc = weir__cuda_bounce(stream);
    if (rc) return rc;
    COUNT(stream->device, copies_ordered);
    return copy_pieces(stream, copy);
}

/* WEIR_E_BUSY: there is no pinned memory for it now. */
static int copy_staged(struct cuda_stream *stream, const struct weir__copy *copy, size_t total)
{
    bool to_host = copy->kind == WEIR__COPY_TO_HOST;
    struct cuda_item *item = weir__cuda_item_get(stream, to_host ? ITEM_LATE : ITEM_STAGED);
    if (!item) return WEIR_E_NO_MEMORY;
    item->rows = rows_of(copy);
    if (!weir__cuda_stage(stream, item, total)) {
        weir__cuda_item_drop(stream, item);
        return WEIR_E_BUSY;
    }
    if (!to_host) weir__cuda_rows_in(&item->rows);
    struct weir__copy inner = pinned_copy(copy, item->rows.pinned);
    int rc = copy_block(stream, &inner);
    /* Part of it may be queued: the memory is kept until the stream is through. */
    if (rc) item->kind = ITEM_STAGED;
    weir__cuda_item_put(stream, item);
    if (rc) return rc;
    if (to_host)
        COUNT(stream->device, copies_late);
    else
        COUNT(stream->device, copies_staged);
    return WEIR_OK;
}

static int copy_host(struct cuda_stream *stream, const struct weir__copy *copy)
{
    bool to_host = copy->kind == WEIR__COPY_TO_HOST;
    const void *host = to_host ? copy->to : copy->from;
    size_t span = extent(copy->bytes, copy->count, to_host ? copy->to_pitch : copy->from_pitch);
    size_t total = copy->bytes * copy->count[0] * copy->count[1];
    int rc = WEIR_E_BUSY;
    if (is_pinned(host, span)) {
        COUNT(stream->device, copies_direct);
        rc = copy_block(stream, copy);
    } else {
        bool now = to_host ? !stream->lent : !weir__cuda_is_written(stream, host, span);
        if (total <= STAGE_BYTES && now) rc = copy_staged(stream, copy, total);
        tell_way(copy, WEIR__WAY_STAGED);
        if (rc == WEIR_E_BUSY) {
            rc = copy_ordered(stream, copy);
            tell_way(copy, WEIR__WAY_BOUNCED);
        }
    }
    if (to_host) weir__cuda_writes(stream, host, span);
    return rc;
}

/* ---- slots ---- */

/* The other device's context is made if nobody has used it yet. */
static int peer_ready(struct cuda_device *peer)
{
    struct cuda_guard guard;
    int rc = weir__cuda_enter(peer, &guard);
    if (!rc) weir__cuda_leave(&guard);
    return rc;
}

int weir__cuda_copy(void *handle, const struct weir__copy *given)
{
    struct cuda_stream *stream = handle;
    struct weir__copy copy = *given;
    struct cuda_guard guard;
    copy.count[0] = least_one(copy.count[0]);
    copy.count[1] = least_one(copy.count[1]);
    int rc = copy.kind == WEIR__COPY_PEER ? peer_ready(copy.peer) : WEIR_OK;
    if (!rc) rc = weir__cuda_enter(stream->device, &guard);
    if (rc) return rc;
    if (copy.kind == WEIR__COPY_TO_DEVICE || copy.kind == WEIR__COPY_TO_HOST)
        rc = copy_host(stream, &copy);
    else
        rc = copy_block(stream, &copy);
    weir__cuda_leave(&guard);
    return rc;
}

int weir__cuda_fill(void *handle, void *to, uint8_t value, size_t bytes)
{
    struct cuda_stream *stream = handle;
    struct cuda_guard guard;
    int rc = weir__cuda_enter(stream->device, &guard);
    if (rc) return rc;
    rc = DRIVER(stream->device, fill, (uintptr_t)to, value, bytes, stream->handle);
    weir__cuda_leave(&guard);
    return rc;
}
