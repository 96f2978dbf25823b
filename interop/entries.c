/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/entries.h"

#include <stdio.h>

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/construct.h"
#include "interop/decode.h"
#include "interop/mapping.h"
#include "interop/registry.h"
#include "interop/runtime.h"
#include "interop/target_task.h"
#include "interop/trace.h"

/* ---- registration: called by constructors and exit handlers of each program and library ---- */

WEIR__EXPORT void __tgt_register_lib(struct weir__abi_descriptor *descriptor)
{
    weir__registry_add(descriptor);
}

WEIR__EXPORT void __tgt_unregister_lib(struct weir__abi_descriptor *descriptor)
{
    weir__registry_remove(descriptor);
}

WEIR__EXPORT void __tgt_register_requires(int64_t bits)
{
    weir__registry_add_requires((uint64_t)bits);
}

WEIR__EXPORT void __tgt_init_all_rtls(void)
{
    (void)weir__runtime_devices();
}

/* The runtime begins with its first use and ends with the process: there is nothing to count. */
WEIR__EXPORT void __tgt_rtl_init(void) {}

WEIR__EXPORT void __tgt_rtl_deinit(void) {}

/* ---- data ---- */

enum operation { BEGIN, END, UPDATE };

static const char *const operation_names[] = {
    [BEGIN] = "mapping of data", [END] = "unmapping of data", [UPDATE] = "update of data"};

static int queue_data(struct weir__construct *construct, enum operation operation, const struct weir__map_args *maps)
{
    switch (operation) {
    case BEGIN:
        return weir__data_begin(&construct->region, maps);
    case END:
        return weir__data_end(&construct->region, maps);
    default:
        return weir__data_update(&construct->region, maps);
    }
}

/* Does nothing when the host is used; these have no result to say so. */
static void data(enum operation operation, bool nowait, const struct weir__abi_ident *where, int64_t device,
                 const struct weir__map_args *maps)
{
    struct weir__target *target = weir__target_task_target(device);
    struct weir__construct *construct;
    struct weir__target_task *task = weir__target_task_current();
    if (!target && task) weir__target_task_to_host(task);
    if (!target || !maps->n) return;
    if (weir__construct_open(target, operation_names[operation], nowait, &construct))
        weir__fatal("%s on %s failed: %s", operation_names[operation], target->uid, weir_error_text());
    if (weir__record_is_on()) weir__trace_construct(construct->task, operation_names[operation], where, maps);
    weir__construct_maps(construct, maps);
    weir__construct_close(construct, queue_data(construct, operation, maps));
}

#define MAPS                                                                                                           \
    {.n = (uint32_t)n,                                                                                                 \
     .bases = bases,                                                                                                   \
     .begins = begins,                                                                                                 \
     .sizes = sizes,                                                                                                   \
     .types = (const uint64_t *)types,                                                                                 \
     .names = names,                                                                                                   \
     .mappers = mappers}

#define MAPPED_ENTRY(name, operation, nowait)                                                                          \
    WEIR__EXPORT void name(struct weir__abi_ident *where, int64_t device, WEIR__MAPPED_ARRAYS)                         \
    {                                                                                                                  \
        struct weir__map_args maps = MAPS;                                                                             \
        data(operation, nowait, where, device, &maps);                                                                 \
    }
MAPPED_ENTRY(__tgt_target_data_begin_mapper, BEGIN, false)
MAPPED_ENTRY(__tgt_target_data_end_mapper, END, false)
MAPPED_ENTRY(__tgt_target_data_update_mapper, UPDATE, false)
MAPPED_ENTRY(__tgt_target_data_begin_nowait_mapper, BEGIN, true)
MAPPED_ENTRY(__tgt_target_data_end_nowait_mapper, END, true)
MAPPED_ENTRY(__tgt_target_data_update_nowait_mapper, UPDATE, true)

#define PLAIN_ENTRY(name, operation, nowait)                                                                           \
    WEIR__EXPORT void name(int64_t device, WEIR__PLAIN_ARRAYS)                                                         \
    {                                                                                                                  \
        void **names = NULL, **mappers = NULL;                                                                         \
        struct weir__map_args maps = MAPS;                                                                             \
        data(operation, nowait, NULL, device, &maps);                                                                  \
    }
PLAIN_ENTRY(__tgt_target_data_begin, BEGIN, false)
PLAIN_ENTRY(__tgt_target_data_end, END, false)
PLAIN_ENTRY(__tgt_target_data_update, UPDATE, false)
PLAIN_ENTRY(__tgt_target_data_begin_nowait, BEGIN, true)
PLAIN_ENTRY(__tgt_target_data_end_nowait, END, true)
PLAIN_ENTRY(__tgt_target_data_update_nowait, UPDATE, true)

WEIR__EXPORT int64_t __tgt_mapper_num_components(void *handle)
{
    return weir__mapper_count(handle);
}

WEIR__EXPORT void __tgt_push_mapper_component(void *handle, void *base, void *begin, int64_t size, int64_t type,
                                              void *name)
{
    weir__mapper_push(handle, base, begin, size, (uint64_t)type, name);
}

/* ---- the rest ---- */

/* libomp asks for a task's handle (interop/construct.h). */
WEIR__EXPORT void __tgt_target_nowait_query(void **handle)
{
    weir__construct_query(handle);
}

/* The number of iterations of the next kernel, from clang 14: kernels of this device find it out themselves. */
WEIR__EXPORT void __kmpc_push_target_tripcount_mapper(struct weir__abi_ident *where, int64_t device, uint64_t tripcount)
{
    (void)where, (void)device, (void)tripcount;
}

WEIR__EXPORT void __kmpc_push_target_tripcount(int64_t device, uint64_t tripcount)
{
    (void)device, (void)tripcount;
}

/* LLVM's bits of what to print; WEIR_LOG is the setting here. */
WEIR__EXPORT void __tgt_set_info_flag(uint32_t level)
{
    (void)level;
}

WEIR__EXPORT int __tgt_print_device_info(int64_t device)
{
    struct weir__target *target = NULL;
    if (device > INT32_MAX || device < -1 || weir__runtime_routine_target((int)device, &target) || !target) return 0;
    const struct weir__device_info *info = weir__device_info_of(target->device);
    printf("%s: %s, %llu bytes of memory\n", info->name, info->text, (unsigned long long)info->memory_bytes);
    return 1;
}

/* Recording of launches for LLVM's replay tool is not offered: both say so by failing. */
WEIR__EXPORT int __tgt_activate_record_replay(int64_t device, uint64_t memory_bytes, void *address, uint8_t record,
                                              uint8_t save, uint64_t *offset_out)
{
    (void)device, (void)memory_bytes, (void)address, (void)record, (void)save, (void)offset_out;
    weir__warn("recording of kernels is not supported");
    return -1;
}

WEIR__EXPORT int __tgt_target_kernel_replay(struct weir__abi_ident *where, int64_t device, void *host, void *memory,
                                            int64_t memory_bytes, void **args, ptrdiff_t *offsets, int32_t n,
                                            int32_t teams, int32_t threads, uint64_t tripcount)
{
    (void)where, (void)device, (void)host, (void)memory, (void)memory_bytes, (void)args, (void)offsets, (void)n;
    (void)teams, (void)threads, (void)tripcount;
    weir__warn("replay of kernels is not supported");
    return -1;
}

WEIR__EXPORT void ompx_dump_mapping_tables(void)
{
    struct weir__runtime *rt = weir__runtime_peek();
    for (uint32_t i = 0; rt && i < rt->ntargets; i++) weir__table_dump(rt->targets[i].table, stderr);
}
