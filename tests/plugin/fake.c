/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A plugin with the interface of LLVM's for devices_plugin_test.c: two devices in the memory of the process, each call
 * over when it returns. NO_DELETE, NO_LAUNCH, NO_DEVICES, HALF_EVENTS, NO_SYNCHRONIZE: what is wrong with it.
 * EMPTY_EVENTS: it has the functions of events, which succeed and do nothing.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <devices/plugin/interface.h>

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int32_t __tgt_rtl_number_of_devices(void)
{
#ifdef NO_DEVICES
    return 0;
#else
    return 2;
#endif
}

int32_t __tgt_rtl_is_valid_binary(const struct rtl_image *image)
{
    return !memcmp(image->start, "\177ELF", 4);
}

int32_t __tgt_rtl_init_device(int32_t id)
{
    return id >= 0 && id < 2 ? 0 : -1;
}

/* The image's symbols under the names of the host's table. */
struct rtl_table *__tgt_rtl_load_binary(int32_t id, const struct rtl_image *image)
{
    static struct rtl_table tables[16];
    static int n;
    char path[64];
    size_t bytes = (size_t)((const char *)image->end - (const char *)image->start);
    struct rtl_entry *host = image->entries_begin, *end = image->entries_end, *own;
    int file = memfd_create("image", 0);
    if (__tgt_rtl_init_device(id) || n == 16 || file < 0 || write(file, image->start, bytes) != (ssize_t)bytes)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    own = library ? calloc((size_t)(end - host) + 1, sizeof *own) : NULL;
    for (ptrdiff_t i = 0; own && i < end - host; i++) {
        own[i] = host[i];
        own[i].address = dlsym(library, host[i].name);
    }
    if (!own) return NULL;
    tables[n] = (struct rtl_table){own, own + (end - host)};
    return &tables[n++];
}

void *__tgt_rtl_data_alloc(int32_t id, int64_t bytes, void *host, int32_t kind)
{
    (void)host, (void)kind;
    return __tgt_rtl_init_device(id) || bytes > INT64_C(1) << 40 ? NULL : malloc((size_t)bytes);
}

#ifndef NO_DELETE
int32_t __tgt_rtl_data_delete(int32_t id, void *address, int32_t kind)
{
    (void)kind;
    if (__tgt_rtl_init_device(id)) return -1;
    free(address);
    return 0;
}
#endif

int32_t __tgt_rtl_data_submit(int32_t id, void *to, const void *host, int64_t bytes)
{
    if (__tgt_rtl_init_device(id) || !to) return -1;
    memcpy(to, host, (size_t)bytes);
    return 0;
}

int32_t __tgt_rtl_data_retrieve(int32_t id, void *host, const void *from, int64_t bytes)
{
    return __tgt_rtl_data_submit(id, host, from, bytes);
}

#ifndef NO_LAUNCH
int32_t __tgt_rtl_run_target_team_region(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs,
                                         int32_t teams, int32_t limit, uint64_t trips)
{
    void *at[3] = {NULL};
    (void)teams, (void)limit, (void)trips;
    if (__tgt_rtl_init_device(id) || !entry || nargs > 3) return -1;
    for (int32_t i = 0; i < nargs; i++) at[i] = (char *)args[i] + offsets[i];
    ((void (*)(void *, void *, void *))entry)(at[0], at[1], at[2]);
    return 0;
}
#endif

#if defined(HALF_EVENTS) || defined(EMPTY_EVENTS)
int32_t __tgt_rtl_create_event(int32_t id, void **event_out)
{
    *event_out = NULL;
    return __tgt_rtl_init_device(id);
}

int32_t __tgt_rtl_record_event(int32_t id, void *event, struct rtl_async *async)
{
    (void)event, (void)async;
    return __tgt_rtl_init_device(id);
}

int32_t __tgt_rtl_wait_event(int32_t id, void *event, struct rtl_async *async)
{
    return __tgt_rtl_record_event(id, event, async);
}

int32_t __tgt_rtl_destroy_event(int32_t id, void *event)
{
    return __tgt_rtl_record_event(id, event, NULL);
}
#endif

#ifdef EMPTY_EVENTS
int32_t __tgt_rtl_sync_event(int32_t id, void *event)
{
    return __tgt_rtl_record_event(id, event, NULL);
}

int32_t __tgt_rtl_synchronize(int32_t id, struct rtl_async *async)
{
    async->queue = NULL;
    return __tgt_rtl_init_device(id);
}
#endif

#if defined(EMPTY_EVENTS) || defined(NO_SYNCHRONIZE)
int32_t __tgt_rtl_data_submit_async(int32_t id, void *to, const void *host, int64_t bytes, struct rtl_async *async)
{
    async->queue = async;
    return __tgt_rtl_data_submit(id, to, host, bytes);
}

int32_t __tgt_rtl_data_retrieve_async(int32_t id, void *host, const void *from, int64_t bytes, struct rtl_async *async)
{
    return __tgt_rtl_data_submit_async(id, host, from, bytes, async);
}
#endif
