/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_EXEC_CUDA_RIG_H
#define WEIR_TESTS_EXEC_CUDA_RIG_H

/* A context whose CUDA device is the emulated driver's, that the test is linked to, with the emulator's test kernels.
 */

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <devices/cuda/cuda.h>
#include <devices/cuda/driver.h>
#include <devices/events.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "cuda/emulator.h"

struct cuda_rig {
    struct weir_context *context;
    struct weir_device *device;
    void *module;
    void *add; /* add(int64_t *to, int64_t value) */
};

static inline int rig_load(struct cuda_rig *rig)
{
    const struct weir__device_ops *ops = weir__device_ops_of(rig->device);
    struct stat status;
    int file = open(EMULATOR_IMAGE, O_RDONLY | O_CLOEXEC);
    cr_assert(file >= 0 && fstat(file, &status) == 0);
    void *image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    cr_assert(image != MAP_FAILED);
    int rc = ops->module_load(weir__device_handle_of(rig->device), image, (size_t)status.st_size, &rig->module);
    munmap(image, (size_t)status.st_size);
    close(file);
    return rc ? rc : ops->module_symbol(rig->module, "add", &rig->add, NULL);
}

/* 0, or the failing call's code; rig_close() in any case. */
static inline int rig_open(struct cuda_rig *rig)
{
    *rig = (struct cuda_rig){NULL, NULL, NULL, NULL};
    int rc = weir_context_create(NULL, &rig->context);
    if (rc) return rc;
    for (int i = 0; i < weir_device_count(rig->context); i++) {
        struct weir_device *device = weir_device_get(rig->context, i);
        if (!strncmp(weir_device_name(device), "cuda", 4)) rig->device = device;
    }
    return rig->device ? rig_load(rig) : WEIR_E_NO_DEVICE;
}

static inline void rig_close(struct cuda_rig *rig)
{
    if (rig->module) weir__device_ops_of(rig->device)->module_unload(rig->module);
    if (rig->context) cr_assert_eq(weir_context_destroy(rig->context), 0, "%s", weir_error_text());
}

/* Of the device that the adapter has made positions for. */
static inline struct weir__cuda_counters rig_counters(const struct cuda_rig *rig)
{
    struct weir__cuda_counters counters;
    struct weir__event_device *adapted = weir__device_handle_of(rig->device);
    weir__cuda_device_counters(adapted->handle, &counters);
    return counters;
}

static inline int rig_launch(const struct cuda_rig *rig, struct weir_task *task, void *to, uint64_t value)
{
    uint64_t args[] = {(uintptr_t)to, value};
    struct weir__launch launch = {.kernel = rig->add, .nargs = 2, .args = args};
    return weir__task_launch(task, &launch);
}

#endif
