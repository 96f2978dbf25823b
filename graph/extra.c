/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <graph/depend.h>

#include <stdlib.h>

#include <weir/error.h>

#define CHUNK 170 /* with its header just under a page */

struct chunk {
    struct chunk      *next;
    struct weir__extra extra[];
};

int weir__extras_reserve(struct weir__extras *extras, size_t n)
{
    while (extras->count < n) {
        size_t        want = n - extras->count > CHUNK ? n - extras->count : CHUNK;
        struct chunk *chunk = malloc(sizeof *chunk + want * sizeof chunk->extra[0]);

        if (chunk == NULL) return WEIR_E_NO_MEMORY;
        chunk->next = extras->chunks;
        extras->chunks = chunk;
        for (size_t i = 0; i < want; i++) {
            chunk->extra[i].next = (uintptr_t)extras->free;
            extras->free = &chunk->extra[i];
        }
        extras->count += want;
    }
    return WEIR_OK;
}

void weir__extras_recycle(struct weir__extras *extras, struct weir__node *node)
{
    uintptr_t tagged = (uintptr_t)node->extra;

    while (tagged != 0) {
        struct weir__extra *extra = weir__extra_of(tagged);

        tagged = extra->next;
        extra->next = (uintptr_t)extras->free;
        extras->free = extra;
        extras->count++;
    }
    node->extra = NULL;
}

void weir__extras_fini(struct weir__extras *extras)
{
    struct chunk *chunk = extras->chunks;

    while (chunk != NULL) {
        struct chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
    extras->chunks = NULL;
    extras->free = NULL;
    extras->count = 0;
}
