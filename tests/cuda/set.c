/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Sets of memory: counts are elements of 1, 2 or 4 bytes. They do not wait, except in pinned host memory. */
#include "internal.h"

#include <string.h>

struct set_operation {
    struct operation operation;
    uint64_t to;
    size_t pitch, width, height; /* elements wide */
    unsigned value, element;     /* bytes of an element */
};

static int run_set(struct operation *operation)
{
    struct set_operation *set = (struct set_operation *)operation;
    unsigned char *to = emulator__view(set->to);
    for (size_t y = 0; y < set->height; y++, to += set->pitch)
        for (size_t x = 0; x < set->width; x++) memcpy(to + x * set->element, &set->value, set->element);
    return 0;
}

static int submit(const struct set_operation *what, struct stream *stream, bool is_sync)
{
    struct range *range;
    if (!what->width || !what->height) return 0;
    bool is_misaligned = (what->to | (what->height > 1 ? what->pitch : 0)) & (what->element - 1);
    if (is_misaligned || (what->height > 1 && what->pitch < what->width * what->element)) return CUDA_INVALID_VALUE;
    size_t bytes = (what->height - 1) * what->pitch + what->width * what->element;
    int code = emulator__range_check(what->to, bytes, &range);
    if (code) return code;
    struct set_operation *set = emulator__allocate(sizeof *set);
    *set = *what;
    set->operation.run = run_set;
    set->operation.bytes = sizeof *set;
    emulator__operation_hold(&set->operation, range);
    if (range->kind == MODULE_RANGE) set->operation.opens = 1u << range->device->ordinal;
    bool waits = is_sync && (range->kind == PINNED_RANGE || range->kind == REGISTERED_RANGE);
    struct point point = emulator__submit(stream, &set->operation);
    return waits ? emulator__point_wait(point, stream->object.context) : 0;
}

static int set_sync(struct set_operation what)
{
    if (emulator__state.settings.report_legacy) emulator__report("stream 0 is used");
    int code = emulator__capture_forbid_legacy(emulator__call.context);
    return code ? code : submit(&what, emulator__stream_default(emulator__call.context), true);
}

static int set_async(struct set_operation what, void *handle)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    return stream ? submit(&what, stream, false) : code;
}

#define LINE(bytes)                                                                                                    \
    (struct set_operation)                                                                                             \
    {                                                                                                                  \
        .to = to, .width = count, .height = 1, .value = value, .element = bytes                                        \
    }
#define BOX(bytes)                                                                                                     \
    (struct set_operation)                                                                                             \
    {                                                                                                                  \
        .to = to, .pitch = pitch, .width = width, .height = height, .value = value, .element = bytes                   \
    }

int emulator__cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count)
{
    return set_sync(LINE(1));
}

int emulator__cuMemsetD16_v2(uint64_t to, unsigned short value, size_t count)
{
    return set_sync(LINE(2));
}

int emulator__cuMemsetD32_v2(uint64_t to, unsigned value, size_t count)
{
    return set_sync(LINE(4));
}

int emulator__cuMemsetD2D8_v2(uint64_t to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return set_sync(BOX(1));
}

int emulator__cuMemsetD2D16_v2(uint64_t to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return set_sync(BOX(2));
}

int emulator__cuMemsetD2D32_v2(uint64_t to, size_t pitch, unsigned value, size_t width, size_t height)
{
    return set_sync(BOX(4));
}

int emulator__cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream)
{
    return set_async(LINE(1), stream);
}

int emulator__cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream)
{
    return set_async(LINE(2), stream);
}

int emulator__cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream)
{
    return set_async(LINE(4), stream);
}

int emulator__cuMemsetD2D8Async(uint64_t to, size_t pitch, unsigned char value, size_t width, size_t height,
                                void *stream)
{
    return set_async(BOX(1), stream);
}

int emulator__cuMemsetD2D16Async(uint64_t to, size_t pitch, unsigned short value, size_t width, size_t height,
                                 void *stream)
{
    return set_async(BOX(2), stream);
}

int emulator__cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned value, size_t width, size_t height, void *stream)
{
    return set_async(BOX(4), stream);
}
