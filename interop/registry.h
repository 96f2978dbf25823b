/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_REGISTRY_H
#define WEIR_INTEROP_REGISTRY_H

/*
 * What programs and their libraries register: images, kernels, variables. Registration only writes down; a device loads
 * the images when it is first used after the registration.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>

#include "interop/shape.h"

struct weir__abi_descriptor;
struct weir__target;

/* A kernel on one device. */
struct weir__kernel_on {
    /* For weir__launch, NULL while not loaded there. Release (registry.c, after the shape and the image's variables are in
     * place) pairs with the acquire in weir__registry_kernel(). */
    _Atomic(void *) address;
    struct weir__shape shape;
};

/* A kernel, found by the address that launches name. Lives until its library is unregistered. */
struct weir__kernel {
    const void *host;
    const char *name;
    struct weir__kernel_on on[]; /* by target->index */
};

/* enum weir__machine of all images registered so far; 0: there is nothing to offload. Any thread. Never blocks. */
uint32_t weir__registry_machines(void);
/* The bits of all requires directives (enum weir__abi_requires). Any thread. Never blocks. */
uint64_t weir__registry_requires(void);
void weir__registry_add_requires(uint64_t bits);

/* @descriptor stays in use until it is removed. Any thread, also before main(). Takes the registry's lock. */
void weir__registry_add(const struct weir__abi_descriptor *descriptor);
/*
 * A library goes away, or the program ends: finish all work, run its destructors on the devices, unload. A descriptor
 * that is not registered is left alone. Any thread without open task. Blocks.
 */
void weir__registry_remove(const struct weir__abi_descriptor *descriptor);

/* Load on @target what was registered since the last call. Nearly always one comparison. Blocks while another thread
 * loads there. An image that cannot be loaded is told once; its kernels are then not found. */
void weir__registry_load(struct weir__target *target);

/*
 * The kernel that a launch on @target names. weir__registry_load() was called.
 * @address_out  for weir__launch; set on success only.
 * Returns  borrowed; NULL: no image for this device has it.
 * Threads  any. Wait-free.
 */
const struct weir__kernel *weir__registry_kernel(const struct weir__target *target, const void *host,
                                                 void **address_out);

#endif
