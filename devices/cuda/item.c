/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * What a stream keeps until the device is through with it, and late copies.
 *
 * A small copy to pageable memory of the host goes to pinned memory on the device's side of things, and its last step,
 * from there to where the program wants it, is done by whoever sees that the position is done, before anybody is told
 * so: weir__cuda_settle() does it with the stream's lock held, and publishes .done behind it. Nobody reads the host's
 * memory before that, except in stream order on a device: then the last step is put in that order
 * (weir__cuda_call_settle()), and whichever of the two comes first does it. That is exact because the number of an item
 * is given when its work was queued: who is ordered behind item n finds all late copies up to n complete in pinned
 * memory.
 *
 * .done: release after the settling (S1), acquire by who relies on it (S2).
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct cuda_item *weir__cuda_item_get(struct cuda_stream *stream, enum cuda_item_kind kind)
{
    pthread_mutex_lock(&stream->lock);
    struct cuda_item *item = stream->free_items;
    if (item) stream->free_items = item->next;
    pthread_mutex_unlock(&stream->lock);
    if (!item) item = malloc(sizeof *item);
    if (!item) {
        weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for work on a stream");
        return NULL;
    }
    memset(item, 0, sizeof *item);
    item->kind = kind;
    return item;
}

static void item_free_locked(struct cuda_stream *stream, struct cuda_item *item)
{
    if (item->slot) weir__cuda_unstage_locked(stream, item);
    item->next = stream->free_items;
    stream->free_items = item;
}

void weir__cuda_item_drop(struct cuda_stream *stream, struct cuda_item *item)
{
    pthread_mutex_lock(&stream->lock);
    item_free_locked(stream, item);
    pthread_mutex_unlock(&stream->lock);
}

void weir__cuda_item_put(struct cuda_stream *stream, struct cuda_item *item)
{
    item->number = ++stream->numbered;
    item->position = weir__cuda_next_position(stream);
    item->next = NULL;
    if (item->kind == ITEM_LATE) {
        stream->late = item->number;
        stream->late_position = item->position;
    }
    pthread_mutex_lock(&stream->lock);
    *stream->last = item;
    stream->last = &item->next;
    pthread_mutex_unlock(&stream->lock);
}

/* ---- rows ---- */

static void rows_copy(const struct cuda_rows *rows, bool out)
{
    unsigned char *pinned = rows->pinned;
    for (size_t plane = 0; plane < rows->planes; plane++)
        for (size_t row = 0; row < rows->rows; row++, pinned += rows->bytes) {
            unsigned char *host = rows->host + plane * rows->pitch[1] + row * rows->pitch[0];
            memcpy(out ? host : pinned, out ? pinned : host, rows->bytes);
        }
}

void weir__cuda_rows_in(const struct cuda_rows *rows)
{
    rows_copy(rows, false);
}

void weir__cuda_rows_out(const struct cuda_rows *rows)
{
    rows_copy(rows, true);
}

/* ---- settling ---- */

static void late_locked(struct cuda_item *item)
{
    if (item->kind != ITEM_LATE || item->copied) return;
    weir__cuda_rows_out(&item->rows);
    item->copied = true;
}

static struct cuda_item *pop_locked(struct cuda_stream *stream)
{
    struct cuda_item *item = stream->first;
    stream->first = item->next;
    if (!stream->first) stream->last = &stream->first;
    return item;
}

void weir__cuda_settle(struct cuda_stream *stream, uint64_t position)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->first && stream->first->position <= position) {
        struct cuda_item *item = pop_locked(stream);
        late_locked(item);
        if (item->kind == ITEM_FREE) weir__cuda_block_put(stream->device, item->address);
        item_free_locked(stream, item); /* a function has returned: the position is behind it */
    }
    if (atomic_load_explicit(&stream->done, memory_order_relaxed) < position) /* written with the lock */
        atomic_store_explicit(&stream->done, position, memory_order_release); /* S1 */
    pthread_mutex_unlock(&stream->lock);
}

void weir__cuda_settle_late(struct cuda_stream *stream, uint64_t number)
{
    pthread_mutex_lock(&stream->lock);
    for (struct cuda_item *item = stream->first; item && item->number <= number; item = item->next) late_locked(item);
    pthread_mutex_unlock(&stream->lock);
}

void weir__cuda_settle_end(struct cuda_stream *stream)
{
    bool lost = weir__cuda_is_lost(stream->device); /* and with it the content of late copies */
    pthread_mutex_lock(&stream->lock);
    struct cuda_item *item = stream->first, *next;
    stream->first = NULL;
    stream->last = &stream->first;
    pthread_mutex_unlock(&stream->lock);
    for (; item; item = next) {
        next = item->next;
        if (item->kind == ITEM_CALL) weir__cuda_call_end(item); /* without the lock: it may want it */
        pthread_mutex_lock(&stream->lock);
        if (!lost) late_locked(item);
        if (item->kind == ITEM_FREE) weir__cuda_block_put(stream->device, item->address);
        if (item->kind == ITEM_CALL && lost) {
            /* The driver might still begin a function that it had in hand: the item lives as long as the device. */
            item->next = stream->grave;
            stream->grave = item;
        } else {
            item_free_locked(stream, item);
        }
        pthread_mutex_unlock(&stream->lock);
    }
}
