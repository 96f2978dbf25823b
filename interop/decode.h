/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_DECODE_H
#define WEIR_INTEROP_DECODE_H

/*
 * The one place that knows which compiler wrote a structure. Everything here reads memory of the program and nothing
 * else: any thread, never blocks, never allocates, sets no error text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

/* ---- kernel arguments ---- */

struct weir__kernel_args {
    uint32_t version;
    uint32_t n; /* length of the arrays */
    void **bases;
    void **begins;
    int64_t *sizes;
    int64_t *types;
    void **names;   /* may be NULL */
    void **mappers; /* may be NULL */
    uint64_t tripcount;
    bool nowait;
    bool leading_pointer; /* the kernel has one more pointer parameter in front (version 3) */
    int64_t teams[3];     /* 0 or less: not said */
    int64_t threads[3];
    uint32_t shared_bytes;
};

/*
 * @raw  what the program gave to __tgt_target_kernel(). Fields that its version lacks are not touched.
 * Returns  WEIR_OK; WEIR_E_VERSION (a version this library does not know; only out->version is set).
 */
WEIR_MUST_CHECK int weir__decode_kernel_args(const void *raw, struct weir__kernel_args *out);

/* ---- entry tables ---- */

enum weir__entry_kind {
    WEIR__ENTRY_KERNEL = 1,
    WEIR__ENTRY_GLOBAL,
    WEIR__ENTRY_LINK,
    WEIR__ENTRY_CTOR,
    WEIR__ENTRY_DTOR,
    WEIR__ENTRY_INDIRECT,
    WEIR__ENTRY_REQUIRES,
    WEIR__ENTRY_OTHER, /* of another language, or unknown: skip it */
};

struct weir__entry {
    enum weir__entry_kind kind;
    void *address;    /* kernel: what a launch names; variable: where it lies on the host */
    const char *name; /* of the device symbol; borrowed from the program */
    size_t bytes;
    uint64_t data;
};

struct weir__entries {
    const unsigned char *begin;
    size_t n;
    bool old_layout;
};

/*
 * Find out the layout of a host table. The new layout is recognised by every record, not by the first word: an old
 * requires entry has a null address too.
 * Returns  WEIR_OK; WEIR_E_IMAGE (the length fits no layout).
 */
WEIR_MUST_CHECK int weir__decode_entries(const void *begin, const void *end, struct weir__entries *out);
/* Entry @i of the table, i < n. */
struct weir__entry weir__decode_entry(const struct weir__entries *entries, size_t i);

/* ---- images ---- */

enum weir__machine { WEIR__MACHINE_X86_64 = 1u << 0, WEIR__MACHINE_CUDA = 1u << 1 };

struct weir__image {
    const void *start; /* of the object itself, without wrapper */
    size_t bytes;
    uint32_t machine; /* enum weir__machine; 0: an object for a machine that no backend serves */
};

/*
 * Take the wrapper off, if there is one, and look at the object's head.
 * Returns  WEIR_OK; WEIR_E_IMAGE (truncated, no object, or nonsense offsets).
 */
WEIR_MUST_CHECK int weir__decode_image(const void *start, const void *end, struct weir__image *out);

#endif
