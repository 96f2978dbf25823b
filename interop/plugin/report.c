/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/plugin/report.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <exec/environment.h>

#include "interop/plugin/plugin.h"

#define INFO_KERNELS UINT32_C(0x10) /* LLVM's bit for what plugins tell about kernels */

/* Relaxed everywhere: numbers that nothing hangs on. */
static _Atomic uint64_t counts[WEIR__PLUGIN_COUNTS];
static _Atomic uint32_t info_flags;

void weir__plugin_count(enum weir__plugin_count what)
{
    atomic_fetch_add_explicit(&counts[what], 1, memory_order_relaxed);
}

bool weir__plugin_tells_kernels(void)
{
    return atomic_load_explicit(&info_flags, memory_order_relaxed) & INFO_KERNELS;
}

void __tgt_rtl_set_info_flag(uint32_t flags)
{
    atomic_store_explicit(&info_flags, flags, memory_order_relaxed);
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("LIBOMPTARGET_INFO");
    if (text) __tgt_rtl_set_info_flag((uint32_t)strtoul(text, NULL, 0));
}

static uint64_t count_of(enum weir__plugin_count what)
{
    return atomic_load_explicit(&counts[what], memory_order_relaxed);
}

/* LLVM 14 has no call for the end. */
__attribute__((destructor)) static void summarize(void)
{
    if (!weir__environment_number("WEIR_SUMMARY", 0, 0, 1)) return;
    fprintf(stderr,
            "weir: plugin: %" PRIu64 " images, %" PRIu64 " kernels, %" PRIu64 " copies, %" PRIu64
            " events recorded, %" PRIu64 " waits queued, %" PRIu64 " not needed, %" PRIu64 " calls refused\n",
            count_of(WEIR__PLUGIN_IMAGES), count_of(WEIR__PLUGIN_KERNELS), count_of(WEIR__PLUGIN_COPIES),
            count_of(WEIR__PLUGIN_RECORDS), count_of(WEIR__PLUGIN_WAITS), count_of(WEIR__PLUGIN_WAITS_NONE),
            count_of(WEIR__PLUGIN_FAILURES));
}
