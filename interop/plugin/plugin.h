/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_PLUGIN_H
#define WEIR_INTEROP_PLUGIN_H

/*
 * The functions that the libomptarget of LLVM 14 and 16 looks up in a plugin, for the CPU backend. All names and
 * layouts are theirs. A separate library: it holds backends of its own and nothing of libweir.so.
 *
 * Returns  0, or -1 (LLVM's OFFLOAD_FAIL) with a line on stderr; outputs are set on success only. Bad arguments,
 * another device's objects and objects that are gone are such failures. Threads  any, except that calls on one async
 * object do not overlap (as libomptarget keeps it). Blocks   init_device, deinit_device, load_binary, synchronize,
 * sync_event, and what copies or launches without an async object; no other.
 *
 * Queues and events are named by handles that are never used twice: a stale one is recognised, not followed. An async
 * object gets its queue at first use; synchronize and a query that finds it done take it away again. An event is
 * *made*, then *recorded* any number of times, then *destroyed*; it may outlive the queue, and be destroyed while
 * pending. What waits for it keeps the point that was recorded when the wait was queued.
 */

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct weir__abi_image;

struct weir__plugin_async {
    void *queue; /* a handle, or NULL: nothing is queued */
};
struct weir__plugin_table {
    void *begin, *end; /* entries of the old layout, in the order of the host's table */
};
struct weir__plugin_device_info {
    void *context, *device;
};

int32_t __tgt_rtl_init_plugin(void);
int32_t __tgt_rtl_deinit_plugin(void);
int32_t __tgt_rtl_number_of_devices(void);
int32_t __tgt_rtl_is_valid_binary(const struct weir__abi_image *image);
int32_t __tgt_rtl_is_valid_binary_info(const struct weir__abi_image *image, const void *info);
int32_t __tgt_rtl_is_data_exchangable(int32_t from, int32_t to);
int64_t __tgt_rtl_init_requires(int64_t flags);
int32_t __tgt_rtl_init_device(int32_t id);
int32_t __tgt_rtl_deinit_device(int32_t id);
int32_t __tgt_rtl_init_device_info(int32_t id, struct weir__plugin_device_info *info, const char **error_out);
void __tgt_rtl_print_device_info(int32_t id);
/* @flags  LLVM's levels of information, at first those of LIBOMPTARGET_INFO; 0x10 tells of each kernel on stderr. */
void __tgt_rtl_set_info_flag(uint32_t flags);
int32_t __tgt_rtl_supports_empty_images(void);
/* NULL on failure. The table lives until the device is closed. */
struct weir__plugin_table *__tgt_rtl_load_binary(int32_t id, const struct weir__abi_image *image);

/* CPU memory is all of one kind. NULL on failure; LLVM 16 hands a kind to data_delete as well, which changes nothing.
 */
void *__tgt_rtl_data_alloc(int32_t id, int64_t bytes, void *host, int32_t kind);
int32_t __tgt_rtl_data_delete(int32_t id, void *address);
int32_t __tgt_rtl_data_submit(int32_t id, void *to, void *host, int64_t bytes);
int32_t __tgt_rtl_data_submit_async(int32_t id, void *to, void *host, int64_t bytes, struct weir__plugin_async *async);
int32_t __tgt_rtl_data_retrieve(int32_t id, void *host, void *from, int64_t bytes);
int32_t __tgt_rtl_data_retrieve_async(int32_t id, void *host, void *from, int64_t bytes,
                                      struct weir__plugin_async *async);
int32_t __tgt_rtl_data_exchange(int32_t id, void *from, int32_t to_id, void *to, int64_t bytes);
int32_t __tgt_rtl_data_exchange_async(int32_t id, void *from, int32_t to_id, void *to, int64_t bytes,
                                      struct weir__plugin_async *async);
/* Nothing has to be done for memory of the host to be the device's, too. */
int32_t __tgt_rtl_data_lock(int32_t id, void *host, int64_t bytes, void **locked_out);
int32_t __tgt_rtl_data_unlock(int32_t id, void *host);

/* Kernel parameter i is args[i] + offsets[i]; teams and trip count are pushed by the kernel itself on a CPU. */
int32_t __tgt_rtl_run_target_region(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs);
int32_t __tgt_rtl_run_target_region_async(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs,
                                          struct weir__plugin_async *async);
int32_t __tgt_rtl_run_target_team_region(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs,
                                         int32_t teams, int32_t limit, uint64_t trips);
int32_t __tgt_rtl_run_target_team_region_async(int32_t id, void *entry, void **args, ptrdiff_t *offsets, int32_t nargs,
                                               int32_t teams, int32_t limit, uint64_t trips,
                                               struct weir__plugin_async *async);
/* @kernel_args as LLVM 16 has them: the number of parameters is the second 32-bit word. @async may be NULL: waits. */
int32_t __tgt_rtl_launch_kernel(int32_t id, void *entry, void **args, ptrdiff_t *offsets, const void *kernel_args,
                                struct weir__plugin_async *async);

int32_t __tgt_rtl_synchronize(int32_t id, struct weir__plugin_async *async);
int32_t __tgt_rtl_query_async(int32_t id, struct weir__plugin_async *async);
int32_t __tgt_rtl_init_async_info(int32_t id, struct weir__plugin_async **async_out);
int32_t __tgt_rtl_release_async_info(int32_t id, struct weir__plugin_async *async);

int32_t __tgt_rtl_create_event(int32_t id, void **event_out);
/* Stands for what is queued now; without a queue for nothing: it is complete. */
int32_t __tgt_rtl_record_event(int32_t id, void *event, struct weir__plugin_async *async);
int32_t __tgt_rtl_wait_event(int32_t id, void *event, struct weir__plugin_async *async);
int32_t __tgt_rtl_sync_event(int32_t id, void *event);
int32_t __tgt_rtl_destroy_event(int32_t id, void *event);

#pragma GCC visibility pop
#endif
