/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_KERNELS_H
#define WEIR_INTEROP_KERNELS_H

#include <weir/error.h>

struct weir__kernel;

/*
 * Host address of a kernel -> kernel, for the whole process. Look-ups are wait-free and take no lock; insert and remove
 * are called under the registry's lock.
 */

/* Returns  borrowed, valid until removed; NULL. Any thread, wait-free. */
struct weir__kernel *weir__kernels_find(const void *host);
/* @kernel->host is not in the table. Returns  WEIR_OK; WEIR_E_NO_MEMORY (nothing changed). */
WEIR_MUST_CHECK int weir__kernels_insert(struct weir__kernel *kernel);
/* After the call nobody finds it; nobody uses it, since a launch of it while its library goes away is the program's
 * fault. */
void weir__kernels_remove(const struct weir__kernel *kernel);

#endif
