/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The commands of one stream: words in a list of chunks, written by the submitter, read by the runner. How far the
 * runner may read is stream->tail alone (P1 in internal.h). Chunks go back to the submitter over a stack onto which
 * only the runner pushes and which the submitter takes whole, so a chunk on it cannot be exchanged for another one
 * unnoticed.
 */
#include <stdlib.h>

#include "internal.h"

#define CHUNK_WORDS (sizeof(((struct host_chunk *)0)->words) / sizeof(uint64_t))

static void write_into(struct host_writer *writer, struct host_chunk *chunk)
{
    chunk->next = NULL;
    writer->chunk = chunk;
    writer->write = chunk->words;
    writer->end = chunk->words + CHUNK_WORDS;
}

int weir__host_queue_init(struct host_stream *stream)
{
    struct host_chunk *chunk = weir__host_allocate(sizeof *chunk);
    if (!chunk) return WEIR_E_NO_MEMORY;
    write_into(&stream->writer, chunk);
    stream->writer.spare = NULL;
    stream->reader.chunk = chunk;
    stream->reader.read = chunk->words;
    return WEIR_OK;
}

static void free_chunks(struct host_chunk *chunk)
{
    while (chunk) {
        struct host_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void weir__host_queue_fini(struct host_stream *stream)
{
    free_chunks(stream->reader.chunk);
    free_chunks(stream->writer.spare);
    /* Relaxed: the caller owns both sides. */
    free_chunks(atomic_load_explicit(&stream->returned, memory_order_relaxed));
    atomic_store_explicit(&stream->returned, NULL, memory_order_relaxed);
    stream->writer.spare = NULL;
    stream->reader.chunk = stream->writer.chunk = NULL;
}

uint64_t *weir__host_queue_grow(struct host_stream *stream)
{
    struct host_writer *writer = &stream->writer;
    if (!writer->spare) {
        /* Q1 acquire: the runner is done with these chunks; pairs with Q2. */
        writer->spare = atomic_exchange_explicit(&stream->returned, NULL, memory_order_acquire);
    }
    struct host_chunk *chunk = writer->spare;
    if (chunk)
        writer->spare = chunk->next;
    else if (!(chunk = weir__host_allocate(sizeof *chunk)))
        return NULL;
    *(struct host_command *)writer->write = (struct host_command){.kind = HOST_NEXT, .words = 1};
    writer->chunk->next = chunk;
    write_into(writer, chunk);
    return writer->write;
}

static void return_chunk(struct host_stream *stream, struct host_chunk *chunk)
{
    /* Relaxed: a chunk seen here stays allocated (only the runner frees while the stream lives), and `depth` is the
     * runner's own. */
    struct host_chunk *top = atomic_load_explicit(&stream->returned, memory_order_relaxed);
    do {
        chunk->depth = top ? top->depth + 1 : 1;
        if (chunk->depth > HOST_CHUNKS_KEPT) {
            free(chunk);
            return;
        }
        chunk->next = top;
        /* Q2 release: pairs with Q1. */
    } while (!atomic_compare_exchange_weak_explicit(&stream->returned, &top, chunk, memory_order_release,
                                                    memory_order_relaxed));
}

struct host_command *weir__host_queue_jump(struct host_stream *stream)
{
    struct host_reader *reader = &stream->reader;
    struct host_chunk *old = reader->chunk;
    reader->chunk = old->next;
    reader->read = reader->chunk->words; /* a chunk never begins with another jump */
    return_chunk(stream, old);
    return (struct host_command *)reader->read;
}
