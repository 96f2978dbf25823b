/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_ABI_H
#define WEIR_INTEROP_ABI_H

/*
 * What compilers emit and libomp keeps in memory: x86-64 Linux, clang 14 to 22, libomp 19. Only interop/ includes this.
 * Structures that differ between compilers are read by decode.c alone; nobody else looks inside them.
 */

#include <stddef.h>
#include <stdint.h>

/* ---- source location ("ident_t"); may be NULL; source is ";file;function;line;column;;" ---- */
struct weir__abi_ident {
    int32_t reserved;
    int32_t flags;
    int32_t reserved2;
    int32_t source_bytes;
    const char *source;
};
_Static_assert(sizeof(struct weir__abi_ident) == 24, "ident");
_Static_assert(offsetof(struct weir__abi_ident, source) == 16, "ident");

/* ---- registration ---- */

/* Entry tables up to LLVM 19. Inside an image they may lie at any alignment. */
struct weir__abi_entry_old {
    void *address;
    const char *name;
    uint64_t bytes; /* 0: a function */
    int32_t flags;  /* enum weir__abi_entry_flag */
    int32_t data;   /* bits of a requires entry */
};
_Static_assert(sizeof(struct weir__abi_entry_old) == 32, "old entry");
_Static_assert(offsetof(struct weir__abi_entry_old, name) == 8, "old entry");
_Static_assert(offsetof(struct weir__abi_entry_old, bytes) == 16, "old entry");
_Static_assert(offsetof(struct weir__abi_entry_old, flags) == 24, "old entry");
_Static_assert(offsetof(struct weir__abi_entry_old, data) == 28, "old entry");

/* Entry tables from LLVM 20 on. */
struct weir__abi_entry_new {
    uint64_t reserved; /* 0 */
    uint16_t version;  /* 1 */
    uint16_t kind;     /* enum weir__abi_offload_kind */
    uint32_t flags;    /* enum weir__abi_entry_flag */
    void *address;
    const char *name;
    uint64_t bytes;
    uint64_t data;
    void *auxiliary;
};
_Static_assert(sizeof(struct weir__abi_entry_new) == 56, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, version) == 8, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, kind) == 10, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, flags) == 12, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, address) == 16, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, name) == 24, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, bytes) == 32, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, data) == 40, "new entry");
_Static_assert(offsetof(struct weir__abi_entry_new, auxiliary) == 48, "new entry");

enum weir__abi_offload_kind {
    WEIR__ABI_KIND_OPENMP = 1,
    WEIR__ABI_KIND_CUDA = 2,
    WEIR__ABI_KIND_HIP = 4,
    WEIR__ABI_KIND_SYCL = 8,
};

enum weir__abi_entry_flag {
    WEIR__ABI_ENTRY_LINK = 1,      /* a pointer that stands for a declare target link variable */
    WEIR__ABI_ENTRY_CTOR = 2,      /* a kernel to run after the image is loaded (clang <= 16) */
    WEIR__ABI_ENTRY_DTOR = 4,      /* … before it is unloaded */
    WEIR__ABI_ENTRY_INDIRECT = 8,  /* the device symbol holds a function's device address */
    WEIR__ABI_ENTRY_REQUIRES = 16, /* no symbol: data has the bits of a requires directive */
};

enum weir__abi_requires {
    WEIR__ABI_REQUIRES_NONE = 1,
    WEIR__ABI_REQUIRES_UNIFIED_SHARED_MEMORY = 8,
};

struct weir__abi_image {
    const char *start, *end;
    const void *entries_begin, *entries_end;
};
_Static_assert(sizeof(struct weir__abi_image) == 32, "image");

struct weir__abi_descriptor {
    int32_t nimages;
    struct weir__abi_image *images;
    const void *entries_begin, *entries_end;
};
_Static_assert(sizeof(struct weir__abi_descriptor) == 32, "descriptor");
_Static_assert(offsetof(struct weir__abi_descriptor, images) == 8, "descriptor");
_Static_assert(offsetof(struct weir__abi_descriptor, entries_begin) == 16, "descriptor");
_Static_assert(offsetof(struct weir__abi_descriptor, entries_end) == 24, "descriptor");

/* The wrapper that clang 16 puts around an image; every offset counts from its first byte. */
#define WEIR__ABI_BINARY_MAGIC "\x10\xff\x10\xad"
struct weir__abi_binary {
    unsigned char magic[4];
    uint32_t version; /* 1 */
    uint64_t bytes;
    uint64_t entry_offset;
    uint64_t entry_bytes;
};
_Static_assert(sizeof(struct weir__abi_binary) == 32, "offload binary");
struct weir__abi_binary_entry {
    uint16_t image_kind; /* 1: object */
    uint16_t offload_kind;
    uint32_t flags;
    uint64_t string_offset;
    uint64_t nstrings;
    uint64_t image_offset;
    uint64_t image_bytes;
};
_Static_assert(sizeof(struct weir__abi_binary_entry) == 40, "offload binary");
_Static_assert(offsetof(struct weir__abi_binary_entry, image_offset) == 24, "offload binary");

/* ---- launch ---- */

/* Version 1 (clang 15) ends before @flags: look at @version first. */
struct weir__abi_kernel_args {
    uint32_t version;
    uint32_t nargs;
    void **bases;
    void **begins;
    int64_t *sizes;
    int64_t *types;
    void **names;
    void **mappers;
    uint64_t tripcount;
    uint64_t flags; /* WEIR__ABI_LAUNCH_* */
    uint32_t teams[3];
    uint32_t threads[3];
    uint32_t shared_bytes;
};
_Static_assert(sizeof(struct weir__abi_kernel_args) == 104, "kernel arguments");
_Static_assert(offsetof(struct weir__abi_kernel_args, bases) == 0x08, "kernel arguments");
_Static_assert(offsetof(struct weir__abi_kernel_args, mappers) == 0x30, "kernel arguments");
_Static_assert(offsetof(struct weir__abi_kernel_args, tripcount) == 0x38, "kernel arguments");
_Static_assert(offsetof(struct weir__abi_kernel_args, flags) == 0x40, "kernel arguments");
_Static_assert(offsetof(struct weir__abi_kernel_args, teams) == 0x48, "kernel arguments");
_Static_assert(offsetof(struct weir__abi_kernel_args, threads) == 0x54, "kernel arguments");
_Static_assert(offsetof(struct weir__abi_kernel_args, shared_bytes) == 0x60, "kernel arguments");

#define WEIR__ABI_LAUNCH_NOWAIT 0x1u
#define WEIR__ABI_LAUNCH_CUDA   0x2u

/* ---- interop (entries of LLVM 22 in the style of OpenMP 6.0) ---- */

/* A foreign runtime that is wanted. */
struct weir__abi_interop_prefer {
    int32_t runtime;
    uint32_t attributes;    /* WEIR__ABI_INTEROP_IN_ORDER */
    int64_t own_attributes; /* of an implementation */
};
_Static_assert(sizeof(struct weir__abi_interop_prefer) == 16, "preference");
#define WEIR__ABI_INTEROP_IN_ORDER 1u

struct weir__abi_interop_context {
    uint32_t version; /* 0 */
    uint32_t flags;   /* WEIR__ABI_INTEROP_* */
    int32_t gtid;
};
_Static_assert(sizeof(struct weir__abi_interop_context) == 12, "interop context");
#define WEIR__ABI_INTEROP_IMPLICIT 1u /* of a dispatch construct: the runtime keeps the object */
#define WEIR__ABI_INTEROP_NOWAIT   2u

struct weir__abi_depend;
struct weir__abi_depend_pack {
    int32_t n, nnoalias;
    struct weir__abi_depend *list, *noalias;
};
_Static_assert(sizeof(struct weir__abi_depend_pack) == 24, "dependences");
_Static_assert(offsetof(struct weir__abi_depend_pack, list) == 8, "dependences");

/* ---- queries of a target task's routine (task_queries.c) ---- */

/* LLVM's structure begins like this in all versions. */
struct weir__abi_async_info {
    void *queue; /* a native stream */
};
/* A place on a native stream. */
struct weir__abi_waiting {
    void *queue;
    uint64_t position;
};

/* ---- libomp ---- */

/* A dependence as libomp takes it; base 0 is skipped. */
struct weir__abi_depend {
    intptr_t base;
    size_t bytes;
    uint8_t flags; /* WEIR__ABI_DEPEND_* */
    uint8_t padding[7];
};
_Static_assert(sizeof(struct weir__abi_depend) == 24, "dependence");
_Static_assert(offsetof(struct weir__abi_depend, flags) == 16, "dependence");

enum weir__abi_depend_flag {
    WEIR__ABI_DEPEND_IN = 1,
    WEIR__ABI_DEPEND_INOUT = 3,
    WEIR__ABI_DEPEND_MUTEXINOUTSET = 4,
    WEIR__ABI_DEPEND_INOUTSET = 8,
    WEIR__ABI_DEPEND_ALL_MEMORY = 0x80, /* base 0 or -1 */
};

/* The part of a libomp task that compilers know; the privates follow. */
struct weir__abi_task {
    void *shareds;
    int32_t (*routine)(int32_t gtid, void *task);
    int32_t part;
    void *destructors;
    int64_t priority;
};
_Static_assert(sizeof(struct weir__abi_task) == 40, "task");
_Static_assert(offsetof(struct weir__abi_task, routine) == 8, "task");
_Static_assert(offsetof(struct weir__abi_task, destructors) == 24, "task");

/* Bits of a task's flags. */
enum weir__abi_task_flag {
    WEIR__ABI_TASK_TIED = 0x1,
    WEIR__ABI_TASK_DESTRUCTORS = 0x8, /* .destructors is to be called at the end */
    WEIR__ABI_TASK_PROXY = 0x10,      /* complete when somebody says so, not when its routine returns */
    WEIR__ABI_TASK_PRIORITY = 0x20,   /* .priority says something */
    WEIR__ABI_TASK_DETACHABLE = 0x40, /* complete when its event is fulfilled, too */
};

#endif
