/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Start, devices and contexts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator.h"
#include "module.h"

/* ---- start ---- */

static bool create_devices(struct state *state)
{
    if (state->settings.devices > MAX_DEVICES) state->settings.devices = MAX_DEVICES;
    for (int i = 0; i < state->settings.devices; i++) {
        struct device *device = &state->devices[i];
        device->ordinal = i;
        device->is_stopped = state->settings.stopped;
        if (!emulator__arena_create(device)) return false;
        device->pool = emulator__pool_create(device);
        if (!device->pool) return false;
    }
    return true;
}

int emulator__cuInit(unsigned flags)
{
    struct state *state = &emulator__state;
    if (state->is_shut_down) return CUDA_DEINITIALIZED;
    if (flags) return CUDA_INVALID_VALUE;
    if (state->is_initialised) return 0;
    if (state->settings.devices <= 0) return CUDA_NO_DEVICE;
    if (!create_devices(state)) return CUDA_OUT_OF_MEMORY;
    emulator__guard_install();
    emulator__current_watch();
    atexit(emulator_shut_down); /* before the loader ends the images, whose variables are closed */
    /* Relaxed: guarded by the lock, except in a forked child, which has no other thread. */
    atomic_store_explicit(&state->process, (int)getpid(), memory_order_relaxed);
    state->is_initialised = true;
    return 0;
}

int emulator__cuDriverGetVersion(int *version)
{
    if (!version) return CUDA_INVALID_VALUE;
    *version = (int)emulator__state.settings.version;
    return 0;
}

int emulator__cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    int found;
    if (!name || !function || flags > 2 || version > emulator__state.settings.version) return CUDA_INVALID_VALUE;
    *function = emulator__entry_find(name, version, flags == 2, &found);
    if (status) *status = found;
    return 0;
}

int emulator__cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return emulator__cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* ---- devices ---- */

struct device *emulator__device(int ordinal)
{
    bool exists = ordinal >= 0 && ordinal < emulator__state.settings.devices;
    return exists ? &emulator__state.devices[ordinal] : NULL;
}

int emulator__cuDeviceGet(int *device, int ordinal)
{
    if (!device) return CUDA_INVALID_VALUE;
    if (!emulator__device(ordinal)) return CUDA_INVALID_DEVICE;
    *device = ordinal;
    return 0;
}

int emulator__cuDeviceGetCount(int *count)
{
    if (!count) return CUDA_INVALID_VALUE;
    *count = (int)emulator__state.settings.devices;
    return 0;
}

int emulator__cuDeviceGetName(char *name, int bytes, int device)
{
    if (!name || bytes <= 0) return CUDA_INVALID_VALUE;
    if (!emulator__device(device)) return CUDA_INVALID_DEVICE;
    snprintf(name, (size_t)bytes, "Emulated GPU %d", device);
    return 0;
}

int emulator__cuDeviceGetUuid(struct cuda_uuid *uuid, int device)
{
    if (!uuid) return CUDA_INVALID_VALUE;
    if (!emulator__device(device)) return CUDA_INVALID_DEVICE;
    memcpy(uuid->bytes, "emulated device", sizeof uuid->bytes);
    uuid->bytes[sizeof uuid->bytes - 1] = (char)device;
    return 0;
}

int emulator__cuDeviceGetUuid_v2(struct cuda_uuid *uuid, int device)
{
    return emulator__cuDeviceGetUuid(uuid, device);
}

int emulator__cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    if (!bytes) return CUDA_INVALID_VALUE;
    if (!emulator__device(device)) return CUDA_INVALID_DEVICE;
    *bytes = emulator__device(device)->memory_bytes;
    return 0;
}

static bool can_access(int device, int peer)
{
    return device != peer && emulator__state.settings.peer && !(emulator__state.devices[device].denied >> peer & 1);
}

int emulator__cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!can) return CUDA_INVALID_VALUE;
    if (!emulator__device(device) || !emulator__device(peer)) return CUDA_INVALID_DEVICE;
    *can = can_access(device, peer);
    return 0;
}

/* ---- contexts ---- */

struct context *emulator__context_create(struct device *device, unsigned flags)
{
    struct context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->object = (struct object){.kind = CONTEXT};
    context->device = device;
    context->flags = flags;
    context->id = ++emulator__state.next_id;
    context->handle = emulator__handle_create(&context->object);
    if (context->handle) context->legacy = emulator__stream_create(context, 0, 0);
    if (!context->legacy) {
        if (context->handle) emulator__handle_destroy(&context->object);
        free(context);
        return NULL;
    }
    context->all_next = emulator__state.contexts;
    emulator__state.contexts = context;
    return context;
}

/* What belongs to a failed context could not be destroyed before. */
static void report_left(const struct object *object)
{
    if (object->context->error) return;
    emulator__report("%s %p is left at the end of its context", emulator__kind_name(object->kind),
                     emulator__handle_of(object));
}

static void destroy_object(struct object *object)
{
    if (object->kind == STREAM) {
        struct stream *stream = (struct stream *)object;
        if (stream != stream->object.context->legacy && !stream->thread) report_left(object);
        stream->is_destroyed = true;
    } else if (object->kind == EVENT) {
        report_left(object);
        emulator__event_free(object);
        return;
    } else if (object->kind == MODULE) {
        if (!((struct module *)object)->is_library) report_left(object);
        emulator__module_unload((struct module *)object);
        return;
    }
    emulator__handle_destroy(object);
}

void emulator__context_destroy(struct context *context)
{
    emulator__context_drain(context);
    context->is_destroyed = true;
    struct object *object;
    for (uint32_t slot = 0; (object = emulator__handle_next(context, &slot));) destroy_object(object);
    struct range *range;
    for (size_t i = 0; (range = emulator__range_next(context, &i));) {
        if (range->is_async || range->kind == MODULE_RANGE) continue; /* of a pool or a module */
        if (!context->error)
            emulator__report("%zu bytes at %#llx are left at the end of their context", range->bytes,
                             (unsigned long long)range->base);
        emulator__range_remove(range);
        i--;
    }
    emulator__handle_destroy(&context->object);
}

int emulator__cuDevicePrimaryCtxRetain(void **context, int ordinal)
{
    struct device *device = emulator__device(ordinal);
    if (!context) return CUDA_INVALID_VALUE;
    if (!device) return CUDA_INVALID_DEVICE;
    if (!device->primary) {
        device->primary = emulator__context_create(device, device->primary_flags);
        if (!device->primary) return CUDA_OUT_OF_MEMORY;
        device->primary->is_primary = true;
    }
    device->retained++;
    *context = device->primary->handle;
    return 0;
}

int emulator__cuDevicePrimaryCtxRelease_v2(int ordinal)
{
    struct device *device = emulator__device(ordinal);
    if (!device) return CUDA_INVALID_DEVICE;
    if (!device->retained) {
        emulator__report("the primary context of device %d is not retained", ordinal);
        return CUDA_INVALID_CONTEXT;
    }
    if (--device->retained || !device->primary) return 0;
    struct context *context = device->primary;
    device->primary = NULL;
    emulator__context_destroy(context);
    return 0;
}

int emulator__cuDevicePrimaryCtxReset_v2(int ordinal)
{
    struct device *device = emulator__device(ordinal);
    if (!device) return CUDA_INVALID_DEVICE;
    struct context *context = device->primary;
    device->primary = NULL;
    if (context) emulator__context_destroy(context);
    return 0;
}

int emulator__cuDevicePrimaryCtxGetState(int ordinal, unsigned *flags, int *active)
{
    struct device *device = emulator__device(ordinal);
    if (!flags || !active) return CUDA_INVALID_VALUE;
    if (!device) return CUDA_INVALID_DEVICE;
    *flags = device->primary ? device->primary->flags : device->primary_flags;
    *active = device->primary != NULL;
    return 0;
}

int emulator__cuDevicePrimaryCtxSetFlags_v2(int ordinal, unsigned flags)
{
    struct device *device = emulator__device(ordinal);
    if (!device) return CUDA_INVALID_DEVICE;
    if (flags & ~0x1fu || (flags & 7) == 3 || (flags & 7) > 4) return CUDA_INVALID_VALUE;
    if (device->primary && device->primary->flags != flags) {
        emulator__report("changes the flags of an active primary context from %u to %u", device->primary->flags, flags);
        device->primary->flags = flags;
    }
    device->primary_flags = flags;
    return 0;
}

int emulator__cuCtxCreate_v2(void **context, unsigned flags, int ordinal)
{
    struct device *device = emulator__device(ordinal);
    if (!context) return CUDA_INVALID_VALUE;
    if (!device) return CUDA_INVALID_DEVICE;
    struct context *created = emulator__context_create(device, flags);
    if (!created) return CUDA_OUT_OF_MEMORY;
    *context = created->handle;
    return emulator__cuCtxPushCurrent_v2(created->handle);
}

int emulator__cuCtxDestroy_v2(void *handle)
{
    struct context *context = emulator__handle_find(handle, CONTEXT);
    if (!context || context->is_primary) return context ? CUDA_INVALID_CONTEXT : CUDA_INVALID_HANDLE;
    emulator__current_drop(handle);
    emulator__context_destroy(context);
    return 0;
}

/* ---- of the current one, or of a handle ---- */

int emulator__context_status(const struct context *context)
{
    if (!context->is_destroyed) return context->error;
    emulator__report("the context was destroyed");
    return CUDA_CONTEXT_IS_DESTROYED;
}

int emulator__cuCtxGetDevice(int *device)
{
    if (!device) return CUDA_INVALID_VALUE;
    *device = emulator__call.context->device->ordinal;
    return 0;
}

/* The context of @handle, or the current one. */
static struct context *context_or_current(void *handle, int *code)
{
    struct context *context = handle ? emulator__handle_find(handle, CONTEXT) : emulator__current();
    *code = context ? emulator__context_status(context) : CUDA_INVALID_CONTEXT;
    return *code ? NULL : context;
}

int emulator__cuCtxGetDevice_v2(int *device, void *handle)
{
    int code;
    struct context *context = context_or_current(handle, &code);
    if (!device) return CUDA_INVALID_VALUE;
    if (context) *device = context->device->ordinal;
    return code;
}

int emulator__cuCtxSynchronize(void)
{
    int code = emulator__capture_forbid_context(emulator__call.context);
    return code ? code : emulator__context_drain(emulator__call.context);
}

int emulator__cuCtxSynchronize_v2(void *handle)
{
    int code;
    struct context *context = context_or_current(handle, &code);
    return context ? emulator__context_drain(context) : code;
}

int emulator__cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least) *least = 0;
    if (greatest)
        *greatest = emulator__state.settings.priorities > 1 ? 1 - (int)emulator__state.settings.priorities : 0;
    return 0;
}

int emulator__cuCtxGetId(void *handle, uint64_t *id)
{
    int code;
    struct context *context = context_or_current(handle, &code);
    if (!id) return CUDA_INVALID_VALUE;
    if (context) *id = context->id;
    return code;
}

static int find_peer(void *handle, unsigned *bit)
{
    struct context *peer = emulator__handle_find(handle, CONTEXT);
    if (!peer || peer == emulator__call.context) return CUDA_INVALID_CONTEXT;
    *bit = 1u << peer->device->ordinal;
    return 0;
}

int emulator__cuCtxEnablePeerAccess(void *handle, unsigned flags)
{
    unsigned bit;
    if (flags) return CUDA_INVALID_VALUE;
    int code = find_peer(handle, &bit);
    if (code) return code;
    if (!can_access(emulator__call.context->device->ordinal, __builtin_ctz(bit))) return CUDA_PEER_ACCESS_UNSUPPORTED;
    if (emulator__call.context->peers & bit) return CUDA_PEER_ACCESS_ALREADY_ENABLED;
    emulator__call.context->peers |= bit;
    return 0;
}

int emulator__cuCtxDisablePeerAccess(void *handle)
{
    unsigned bit;
    int code = find_peer(handle, &bit);
    if (code) return code;
    if (!(emulator__call.context->peers & bit)) return CUDA_PEER_ACCESS_NOT_ENABLED;
    emulator__call.context->peers &= ~bit;
    return 0;
}

void emulator_peer(int device, int peer, int can)
{
    uint32_t bit = 1u << peer;
    pthread_mutex_lock(&emulator__state.lock);
    if (can)
        emulator__state.devices[device].denied &= ~bit;
    else
        emulator__state.devices[device].denied |= bit;
    pthread_mutex_unlock(&emulator__state.lock);
}
