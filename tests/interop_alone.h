/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_INTEROP_ALONE_H
#define WEIR_TESTS_INTEROP_ALONE_H

/*
 * For tests that call the entries of compiled programs without libomp: the executable stands in for it with the three
 * functions below. Included once per executable.
 */

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "interop/abi.h"

/* ---- libomp ---- */

#define EXPORT __attribute__((visibility("default")))

static int policy = 1, default_device;

EXPORT int __kmpc_get_target_offload(void);
EXPORT int __kmpc_get_target_offload(void)
{
    return policy;
}
EXPORT int32_t __kmpc_global_thread_num(void *where);
EXPORT int32_t __kmpc_global_thread_num(void *where)
{
    (void)where;
    return 0;
}
EXPORT int omp_get_default_device(void);
EXPORT int omp_get_default_device(void)
{
    return default_device;
}

/* ---- a library with target code ---- */

/* The test's image for the CPU device, which is mapped until the process ends, with a table entries[n]. */
static struct weir__abi_image image_map(struct weir__abi_entry_new *entries, size_t n)
{
    struct stat status;
    int fd = open(INTEROP_IMAGE, O_RDONLY);
    cr_assert(fd >= 0 && !fstat(fd, &status));
    char *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    cr_assert(bytes != MAP_FAILED);
    return (struct weir__abi_image){bytes, bytes + status.st_size, entries, entries + n};
}

#endif
