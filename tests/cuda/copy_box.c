/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Copies in two and three dimensions and in batches. */
#include "copy.h"

#define MAX_PITCH 2147483647u

static int side_of(int type, const void *host, uint64_t device, size_t offset, struct copy_side *side)
{
    if (type == CUDA_MEMORY_HOST)
        side->address = (uintptr_t)host + offset;
    else if (type == CUDA_MEMORY_DEVICE || type == CUDA_MEMORY_UNIFIED)
        side->address = device + offset;
    else
        return CUDA_INVALID_VALUE; /* arrays are not emulated */
    side->expected = type == CUDA_MEMORY_UNIFIED ? 0 : type;
    return 0;
}

/* @x bytes are left out at the beginning of each row. */
static bool pitch_is_right(size_t pitch, size_t x, const struct copy *copy, size_t limit)
{
    if (copy->height * copy->depth <= 1 && !pitch) return true;
    return pitch >= x + copy->width && pitch <= limit;
}

static int copy_of_2d(const struct cuda_copy_2d *from, size_t limit, struct copy *to)
{
    if (!from) return CUDA_INVALID_VALUE;
    *to = (struct copy){.width = from->width_bytes, .height = from->height, .depth = 1};
    to->from.pitch = from->from_pitch;
    to->to.pitch = from->to_pitch;
    to->from.rows = to->to.rows = from->height;
    if (!pitch_is_right(from->from_pitch, from->from_x_bytes, to, limit) ||
        !pitch_is_right(from->to_pitch, from->to_x_bytes, to, limit))
        return CUDA_INVALID_VALUE;
    int code = side_of(from->from_type, from->from_host, from->from_device,
                       from->from_y * from->from_pitch + from->from_x_bytes, &to->from);
    if (code) return code;
    return side_of(from->to_type, from->to_host, from->to_device, from->to_y * from->to_pitch + from->to_x_bytes,
                   &to->to);
}

int emulator__cuMemcpy2D_v2(const struct cuda_copy_2d *what)
{
    struct copy copy;
    int code = copy_of_2d(what, MAX_PITCH, &copy);
    return code ? code : emulator__copy_sync(&copy);
}

int emulator__cuMemcpy2DUnaligned_v2(const struct cuda_copy_2d *what)
{
    struct copy copy;
    int code = copy_of_2d(what, SIZE_MAX, &copy);
    return code ? code : emulator__copy_sync(&copy);
}

int emulator__cuMemcpy2DAsync_v2(const struct cuda_copy_2d *what, void *stream)
{
    struct copy copy;
    int code = copy_of_2d(what, MAX_PITCH, &copy);
    return code ? code : emulator__copy_async(&copy, stream);
}

static bool box_is_right(size_t pitch, size_t rows, size_t x, size_t y, const struct copy *copy)
{
    if (!pitch_is_right(pitch, x, copy, MAX_PITCH)) return false;
    return copy->depth <= 1 || rows >= y + copy->height;
}

static int copy_of_3d(const struct cuda_copy_3d *from, struct copy *to)
{
    if (!from || from->from_lod || from->to_lod) return CUDA_INVALID_VALUE;
    *to = (struct copy){.width = from->width_bytes, .height = from->height, .depth = from->depth};
    to->from.pitch = from->from_pitch;
    to->from.rows = from->from_height;
    to->to.pitch = from->to_pitch;
    to->to.rows = from->to_height;
    if (!box_is_right(from->from_pitch, from->from_height, from->from_x_bytes, from->from_y, to) ||
        !box_is_right(from->to_pitch, from->to_height, from->to_x_bytes, from->to_y, to))
        return CUDA_INVALID_VALUE;
    size_t from_offset = (from->from_z * from->from_height + from->from_y) * from->from_pitch + from->from_x_bytes;
    size_t to_offset = (from->to_z * from->to_height + from->to_y) * from->to_pitch + from->to_x_bytes;
    int code = side_of(from->from_type, from->from_host, from->from_device, from_offset, &to->from);
    return code ? code : side_of(from->to_type, from->to_host, from->to_device, to_offset, &to->to);
}

int emulator__cuMemcpy3D_v2(const struct cuda_copy_3d *what)
{
    struct copy copy;
    if (what && (what->from_context || what->to_context)) return CUDA_INVALID_VALUE; /* reserved here */
    int code = copy_of_3d(what, &copy);
    return code ? code : emulator__copy_sync(&copy);
}

int emulator__cuMemcpy3DAsync_v2(const struct cuda_copy_3d *what, void *stream)
{
    struct copy copy;
    if (what && (what->from_context || what->to_context)) return CUDA_INVALID_VALUE;
    int code = copy_of_3d(what, &copy);
    return code ? code : emulator__copy_async(&copy, stream);
}

static int check_contexts(const struct cuda_copy_3d *what)
{
    if (!what) return CUDA_INVALID_VALUE;
    bool found = emulator__handle_find(what->from_context, CONTEXT) && emulator__handle_find(what->to_context, CONTEXT);
    return found ? 0 : CUDA_INVALID_CONTEXT;
}

int emulator__cuMemcpy3DPeer(const struct cuda_copy_3d *what)
{
    struct copy copy;
    int code = check_contexts(what);
    if (!code) code = copy_of_3d(what, &copy);
    return code ? code : emulator__copy_sync(&copy);
}

int emulator__cuMemcpy3DPeerAsync(const struct cuda_copy_3d *what, void *stream)
{
    struct copy copy;
    int code = check_contexts(what);
    if (!code) code = copy_of_3d(what, &copy);
    return code ? code : emulator__copy_async(&copy, stream);
}

/* ---- batches ---- */

static bool attributes_are_right(const struct cuda_copy_attributes *attributes, const size_t *first, size_t count,
                                 size_t copies)
{
    if (!attributes || !first || !count || count > copies || first[0]) return false;
    for (size_t i = 0; i < count; i++) {
        if (attributes[i].access_order < 1 || attributes[i].access_order > 3) return false;
        if (first[i] >= copies || (i && first[i] <= first[i - 1])) return false;
    }
    return true;
}

int emulator__cuMemcpyBatchAsync(uint64_t *to, uint64_t *from, size_t *bytes, size_t count,
                                 struct cuda_copy_attributes *attributes, size_t *first, size_t attribute_count,
                                 size_t *failed, void *stream)
{
    if (failed) *failed = SIZE_MAX;
    if (!to || !from || !bytes || !count || (uintptr_t)stream <= CUDA_STREAM_LEGACY) return CUDA_INVALID_VALUE;
    if (!attributes_are_right(attributes, first, attribute_count, count)) return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        int code = emulator__cuMemcpyAsync(to[i], from[i], bytes[i], stream);
        if (!code) continue;
        if (failed) *failed = i;
        return code;
    }
    return 0;
}

int emulator__cuMemcpyBatchAsync_v2(uint64_t *to, uint64_t *from, size_t *bytes, size_t count,
                                    struct cuda_copy_attributes *attributes, size_t *first, size_t attribute_count,
                                    void *stream)
{
    return emulator__cuMemcpyBatchAsync(to, from, bytes, count, attributes, first, attribute_count, NULL, stream);
}
