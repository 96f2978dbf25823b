/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/construct.h"
#include "interop/decode.h"
#include "interop/entries.h"
#include "interop/reduction.h"
#include "interop/registry.h"
#include "interop/runtime.h"
#include "interop/target_task.h"
#include "interop/trace.h"

/*
 * Kernel launches. They return 0 when the kernel was or will be executed, and -1 before anything was done: the program
 * then runs its host version. From the first queued piece of work on, a failure ends the program.
 */
#define NOT_OFFLOADED (-1)

enum { ARGUMENTS_ON_STACK = 64 };

/* The program is about to run its host version. */
static int not_offloaded(void)
{
    struct weir__target_task *task = weir__target_task_current();
    if (task) weir__target_task_to_host(task);
    return NOT_OFFLOADED;
}

static int refuse(const char *format, const char *what, const char *where)
{
    if (weir__runtime_is_mandatory()) weir__fatal(format, what, where);
    weir__log(2, format, what, where);
    if (weir__record_is_on()) weir__trace_fallback(WEIR__FALLBACK_NO_IMAGE, NULL, what);
    return not_offloaded();
}

/* "function, line" of a location for messages about kernels without a name. */
static const char *source_of(const struct weir__abi_ident *where)
{
    return where && where->source ? where->source : ";unknown;unknown;0;0;;";
}

static void shape_set(struct weir__launch *launch, const struct weir__kernel_args *args, const struct weir__target *target,
                      const struct weir__shape *shape)
{
    for (int i = 0; i < 3; i++) {
        launch->grid[i] = args->teams[i] > 0 ? (uint32_t)args->teams[i] : 0;
        launch->block[i] = args->threads[i] > 0 ? (uint32_t)args->threads[i] : 0;
    }
    if (shape->known && shape->mode != WEIR__SHAPE_BARE) {
        const struct weir__device_info *info = weir__device_info_of(target->device);
        struct weir__shape_limits limits = {info->team_threads, info->team_step, info->processors, info->teams};
        weir__shape_choose(shape, args, &limits, &launch->grid[0], &launch->block[0]);
    }
    launch->shared_bytes = args->shared_bytes;
}

/* Nothing is mapped and nothing private: each entry is a parameter by value. */
static bool is_plain(const struct weir__map_args *maps)
{
    const uint64_t plain = WEIR__MAP_LITERAL | WEIR__MAP_TARGET_PARAM;
    for (uint32_t i = 0; i < maps->n; i++)
        if ((maps->types[i] & plain) != plain) return false;
    return true;
}

/* A kernel without mapped data on the task that the routine is there for: no construct is needed for that. */
static bool launch_plain(const struct weir__abi_ident *where, struct weir__target *target, const char *name,
                         const struct weir__kernel_args *args, const struct weir__map_args *maps,
                         const struct weir__shape *shape, struct weir__launch *launch)
{
    uint64_t values[ARGUMENTS_ON_STACK];
    uint32_t n = 0;
    struct weir_task *task;
    if (args->n >= ARGUMENTS_ON_STACK || !is_plain(maps) || weir__reduction_is_any(shape)) return false;
    if (!(task = weir__target_task_take_plain(target, name))) return false;
    if (weir__record_is_on()) weir__trace_construct(task, name, where, maps);
    if (args->leading_pointer) values[n++] = 0;
    for (uint32_t i = 0; i < maps->n; i++) values[n++] = (uintptr_t)maps->bases[i];
    launch->nargs = n;
    launch->args = values;
    int rc = weir__task_launch(task, launch);
    if (rc) weir__fatal("%s on %s failed: %s: %s", name, target->uid, weir_error_string(rc), weir_error_text());
    return true;
}

/* Everything that a target construct queues on its task. */
static int queue_work(struct weir__construct *construct, const struct weir__kernel_args *args,
                      const struct weir__map_args *maps, const struct weir__shape *shape, struct weir__launch launch)
{
    void *reduction = NULL; /* memory for it */
    uint64_t room[ARGUMENTS_ON_STACK];
    uint64_t *values = room;
    struct weir__region *region = &construct->region;
    uint32_t n = 0, found = maps->n;
    bool plain = is_plain(maps);
    int rc = plain ? WEIR_OK : weir__data_begin(region, maps);
    if (rc) return rc;
    if (args->n >= ARGUMENTS_ON_STACK) {
        values = weir__region_scratch(region, ((size_t)args->n + 1) * sizeof *values);
        if (!values) return WEIR_E_NO_MEMORY;
    }
    /* Kernels look at it only for reductions over teams. */
    if (args->leading_pointer) rc = weir__reduction_begin(region, shape, &reduction, &values[n++]);
    if (rc) return rc;
    for (uint32_t i = 0; plain && i < found; i++) values[n + i] = (uintptr_t)maps->bases[i];
    if (!plain) rc = weir__data_arguments(region, maps, values + n, &found);
    launch.nargs = n + found;
    launch.args = values;
    if (!rc) rc = weir__task_launch(construct->task, &launch);
    weir__reduction_end(region, reduction);
    return rc || plain ? rc : weir__data_end(region, maps);
}

static int launch(const struct weir__abi_ident *where, int64_t device, const void *host,
                  const struct weir__kernel_args *args, bool nowait)
{
    struct weir__target *target = weir__target_task_target(device);
    if (!target) return not_offloaded();
    void *address;
    const struct weir__kernel *kernel = weir__registry_kernel(target, host, &address);
    if (!kernel) return refuse("no image has the kernel of %s for %s", source_of(where), target->uid);
    struct weir__map_args maps = {
        .n = args->n,
        .bases = args->bases,
        .begins = args->begins,
        .sizes = args->sizes,
        .types = (const uint64_t *)args->types,
        .names = args->names,
        .mappers = args->mappers,
    };
    struct weir__construct *construct;
    struct weir__launch what = {.kernel = address};
    const struct weir__shape *shape = &kernel->on[target->index].shape;
    shape_set(&what, args, target, shape);
    if (nowait && launch_plain(where, target, kernel->name, args, &maps, shape, &what)) return 0;
    if (weir__construct_open(target, kernel->name, nowait, &construct))
        return refuse("%s cannot be launched: %s", kernel->name, weir_error_text());
    if (weir__record_is_on()) weir__trace_construct(construct->task, kernel->name, where, &maps);
    weir__construct_maps(construct, &maps);
    weir__construct_close(construct, queue_work(construct, args, &maps, shape, what));
    return 0;
}

/* ---- clang 15 and later ---- */

static int launch_raw(struct weir__abi_ident *where, int64_t device, void *host, const void *raw, bool nowait)
{
    struct weir__kernel_args args;
    if (weir__decode_kernel_args(raw, &args)) {
        char version[16];
        snprintf(version, sizeof version, "%u", args.version);
        weir__warn("kernel arguments of version %s are not known (%s)", version, source_of(where));
        return refuse("kernel arguments of version %s: %s cannot be launched", version, source_of(where));
    }
    return launch(where, device, host, &args, nowait || args.nowait);
}

/* Number of teams and limit of threads stand in @args too, or are for the kernel's body. */
WEIR__EXPORT int __tgt_target_kernel(struct weir__abi_ident *where, int64_t device, int32_t teams, int32_t threads,
                                     void *host, void *args)
{
    (void)teams, (void)threads;
    return launch_raw(where, device, host, args, false);
}

WEIR__EXPORT int __tgt_target_kernel_nowait(struct weir__abi_ident *where, int64_t device, int32_t teams,
                                            int32_t threads, void *host, void *args, int32_t ndeps, void *deps,
                                            int32_t nnoalias, void *noalias)
{
    (void)teams, (void)threads, (void)ndeps, (void)deps, (void)nnoalias, (void)noalias;
    return launch_raw(where, device, host, args, true);
}

/* ---- clang 14 and before: the arrays as parameters, no leading pointer ---- */

static int launch_old(struct weir__abi_ident *where, int64_t device, void *host, int32_t n, void **bases, void **begins,
                      int64_t *sizes, int64_t *types, void **names, void **mappers, bool nowait)
{
    struct weir__kernel_args args = {
        .version = 1,
        .n = (uint32_t)n,
        .bases = bases,
        .begins = begins,
        .sizes = sizes,
        .types = types,
        .names = names,
        .mappers = mappers,
    };
    return launch(where, device, host, &args, nowait);
}

#define MAPPED_PARAMETERS                                                                                              \
    struct weir__abi_ident *where, int64_t device, void *host, int32_t n, void **bases, void **begins, int64_t *sizes, \
        int64_t *types, void **names, void **mappers
#define PLAIN_PARAMETERS                                                                                               \
    int64_t device, void *host, int32_t n, void **bases, void **begins, int64_t *sizes, int64_t *types
#define MAPPED where, device, host, n, bases, begins, sizes, types, names, mappers
#define PLAIN  NULL, device, host, n, bases, begins, sizes, types, NULL, NULL

WEIR__EXPORT int __tgt_target_mapper(MAPPED_PARAMETERS)
{
    return launch_old(MAPPED, false);
}

WEIR__EXPORT int __tgt_target_nowait_mapper(MAPPED_PARAMETERS, int32_t ndeps, void *deps, int32_t nnoalias,
                                            void *noalias)
{
    (void)ndeps, (void)deps, (void)nnoalias, (void)noalias;
    return launch_old(MAPPED, true);
}

WEIR__EXPORT int __tgt_target_teams_mapper(MAPPED_PARAMETERS, int32_t teams, int32_t threads)
{
    (void)teams, (void)threads;
    return launch_old(MAPPED, false);
}

WEIR__EXPORT int __tgt_target_teams_nowait_mapper(MAPPED_PARAMETERS, int32_t teams, int32_t threads, int32_t ndeps,
                                                  void *deps, int32_t nnoalias, void *noalias)
{
    (void)teams, (void)threads, (void)ndeps, (void)deps, (void)nnoalias, (void)noalias;
    return launch_old(MAPPED, true);
}

WEIR__EXPORT int __tgt_target(PLAIN_PARAMETERS)
{
    return launch_old(PLAIN, false);
}

WEIR__EXPORT int __tgt_target_nowait(PLAIN_PARAMETERS, int32_t ndeps, void *deps, int32_t nnoalias, void *noalias)
{
    (void)ndeps, (void)deps, (void)nnoalias, (void)noalias;
    return launch_old(PLAIN, true);
}

WEIR__EXPORT int __tgt_target_teams(PLAIN_PARAMETERS, int32_t teams, int32_t threads)
{
    (void)teams, (void)threads;
    return launch_old(PLAIN, false);
}

WEIR__EXPORT int __tgt_target_teams_nowait(PLAIN_PARAMETERS, int32_t teams, int32_t threads, int32_t ndeps, void *deps,
                                           int32_t nnoalias, void *noalias)
{
    (void)teams, (void)threads, (void)ndeps, (void)deps, (void)nnoalias, (void)noalias;
    return launch_old(PLAIN, true);
}
