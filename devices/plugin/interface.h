/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_PLUGIN_INTERFACE_H
#define WEIR_DEVICES_PLUGIN_INTERFACE_H

/*
 * What a plugin of LLVM 14 to 16 exports (`__tgt_rtl_*`), in their layouts. All functions return 0 or -1 unless they
 * return something else.
 */

#include <stddef.h>
#include <stdint.h>

struct rtl_image {
    const void *start, *end;
    void *entries_begin, *entries_end; /* of the host's table, struct rtl_entry */
};
struct rtl_entry {
    void *address;
    char *name;
    uint64_t bytes;
    int32_t flags, data;
};
struct rtl_table {
    struct rtl_entry *begin, *end;
};
struct rtl_async {
    void *queue; /* the plugin's own; NULL: nothing is queued */
    void *room[7];
};
/* Version 2. */
struct rtl_kernel_args {
    uint32_t version, nargs;
    void *arrays[6];
    uint64_t trips, flags;
    uint32_t teams[3], threads[3], shared_bytes;
};
_Static_assert(sizeof(struct rtl_entry) == 32, "entry");
_Static_assert(sizeof(struct rtl_kernel_args) == 104, "kernel arguments");
_Static_assert(offsetof(struct rtl_kernel_args, teams) == 0x48, "kernel arguments");

#define RTL_KIND_DEFAULT  3 /* of memory */
#define RTL_REQUIRES_NONE 1

/* R(name, result, arguments): a plugin cannot be without. LLVM 16 hands a kind to data_delete, LLVM 14 does not look.
 */
#define RTL_NEEDED(R)                                                                                                  \
    R(number_of_devices, int32_t, (void))                                                                              \
    R(is_valid_binary, int32_t, (const struct rtl_image *image))                                                       \
    R(init_device, int32_t, (int32_t id))                                                                              \
    R(load_binary, struct rtl_table *, (int32_t id, const struct rtl_image *image))                                    \
    R(data_alloc, void *, (int32_t id, int64_t bytes, void *host, int32_t kind))                                       \
    R(data_delete, int32_t, (int32_t id, void *address, int32_t kind))                                                 \
    R(data_submit, int32_t, (int32_t id, void *to, const void *host, int64_t bytes))                                   \
    R(data_retrieve, int32_t, (int32_t id, void *host, const void *from, int64_t bytes))

/* May be missing; one of the two groups of launches is needed. */
#define RTL_OPTIONAL(R)                                                                                                \
    R(init_plugin, int32_t, (void))                                                                                    \
    R(init_requires, int64_t, (int64_t flags))                                                                         \
    R(deinit_device, int32_t, (int32_t id))                                                                            \
    R(deinit_plugin, int32_t, (void))                                                                                  \
    R(is_data_exchangable, int32_t, (int32_t from, int32_t to))                                                        \
    R(data_exchange, int32_t, (int32_t from_id, const void *from, int32_t to_id, void *to, int64_t bytes))             \
    R(data_submit_async, int32_t, (int32_t id, void *to, const void *host, int64_t bytes, struct rtl_async *async))    \
    R(data_retrieve_async, int32_t,                                                                                    \
      (int32_t id, void *host, const void *from, int64_t bytes, struct rtl_async *async))                              \
    R(synchronize, int32_t, (int32_t id, struct rtl_async *async))                                                     \
    R(run_target_team_region, int32_t,                                                                                 \
      (int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs, int32_t teams, int32_t limit,          \
       uint64_t trips))                                                                                                \
    R(run_target_team_region_async, int32_t,                                                                           \
      (int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs, int32_t teams, int32_t limit,          \
       uint64_t trips, struct rtl_async *async))                                                                       \
    R(launch_kernel, int32_t,                                                                                          \
      (int32_t id, void *entry, void **args, ptrdiff_t *offsets, struct rtl_kernel_args *kernel,                       \
       struct rtl_async *async))                                                                                       \
    R(create_event, int32_t, (int32_t id, void **event_out))                                                           \
    R(record_event, int32_t, (int32_t id, void *event, struct rtl_async *async))                                       \
    R(wait_event, int32_t, (int32_t id, void *event, struct rtl_async *async))                                         \
    R(sync_event, int32_t, (int32_t id, void *event))                                                                  \
    R(destroy_event, int32_t, (int32_t id, void *event))

struct rtl {
    void *library;
#define RTL_FIELD(name, result, arguments) result(*name) arguments;
    RTL_NEEDED(RTL_FIELD)
    RTL_OPTIONAL(RTL_FIELD)
#undef RTL_FIELD
};

#endif
