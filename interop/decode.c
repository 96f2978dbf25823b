/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/decode.h"

#include <elf.h>
#include <string.h>

#include "interop/abi.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

/* ---- kernel arguments ---- */

int weir__decode_kernel_args(const void *raw, struct weir__kernel_args *out)
{
    const struct weir__abi_kernel_args *args = raw;
    out->version = args->version;
    if (args->version < 1 || args->version > 4) return WEIR_E_VERSION;
    out->n = args->nargs;
    out->bases = args->bases;
    out->begins = args->begins;
    out->sizes = args->sizes;
    out->types = args->types;
    out->names = args->names;
    out->mappers = args->mappers;
    out->tripcount = args->tripcount;
    /* Version 4 has a slot for the pointer in the arrays. */
    out->leading_pointer = args->version == 3;
    out->nowait = false;
    memset(out->teams, 0, sizeof out->teams);
    memset(out->threads, 0, sizeof out->threads);
    out->shared_bytes = 0;
    if (args->version < 2) return WEIR_OK; /* version 1 ends here */
    out->nowait = args->flags & WEIR__ABI_LAUNCH_NOWAIT;
    for (int i = 0; i < 3; i++) out->teams[i] = (int32_t)args->teams[i];
    for (int i = 0; i < 3; i++) out->threads[i] = (int32_t)args->threads[i];
    out->shared_bytes = args->shared_bytes;
    return WEIR_OK;
}

/* ---- entry tables ---- */

static bool is_new_layout(const unsigned char *begin, size_t bytes)
{
    if (bytes % sizeof(struct weir__abi_entry_new)) return false;
    for (size_t at = 0; at < bytes; at += sizeof(struct weir__abi_entry_new)) {
        struct weir__abi_entry_new entry;
        memcpy(&entry, begin + at, sizeof entry);
        bool known = entry.kind == WEIR__ABI_KIND_OPENMP || entry.kind == WEIR__ABI_KIND_CUDA ||
                     entry.kind == WEIR__ABI_KIND_HIP || entry.kind == WEIR__ABI_KIND_SYCL;
        if (entry.reserved || entry.version < 1 || !known) return false;
    }
    return true;
}

int weir__decode_entries(const void *begin, const void *end, struct weir__entries *out)
{
    *out = (struct weir__entries){.begin = begin};
    if (!begin || begin == end) return WEIR_OK;
    if ((const unsigned char *)end < out->begin) return WEIR_E_IMAGE;
    size_t bytes = (size_t)((const unsigned char *)end - out->begin);
    if (is_new_layout(out->begin, bytes)) {
        out->n = bytes / sizeof(struct weir__abi_entry_new);
        return WEIR_OK;
    }
    if (bytes % sizeof(struct weir__abi_entry_old)) return WEIR_E_IMAGE;
    out->old_layout = true;
    out->n = bytes / sizeof(struct weir__abi_entry_old);
    return WEIR_OK;
}

static enum weir__entry_kind kind_of(uint64_t flags, size_t bytes, const void *address)
{
    switch (flags) {
    case 0:
        if (bytes) return WEIR__ENTRY_GLOBAL;
        return address ? WEIR__ENTRY_KERNEL : WEIR__ENTRY_OTHER;
    case WEIR__ABI_ENTRY_LINK:
        return WEIR__ENTRY_LINK;
    case WEIR__ABI_ENTRY_CTOR:
        return WEIR__ENTRY_CTOR;
    case WEIR__ABI_ENTRY_DTOR:
        return WEIR__ENTRY_DTOR;
    case WEIR__ABI_ENTRY_INDIRECT:
        return WEIR__ENTRY_INDIRECT;
    case WEIR__ABI_ENTRY_REQUIRES:
        return WEIR__ENTRY_REQUIRES;
    default:
        return WEIR__ENTRY_OTHER;
    }
}

struct weir__entry weir__decode_entry(const struct weir__entries *entries, size_t i)
{
    struct weir__entry out;
    if (entries->old_layout) {
        struct weir__abi_entry_old entry;
        memcpy(&entry, entries->begin + i * sizeof entry, sizeof entry);
        out = (struct weir__entry){.kind = kind_of((uint32_t)entry.flags, entry.bytes, entry.address),
                                   .address = entry.address,
                                   .name = entry.name,
                                   .bytes = entry.bytes,
                                   .data = (uint32_t)entry.data};
        return out;
    }
    struct weir__abi_entry_new entry;
    memcpy(&entry, entries->begin + i * sizeof entry, sizeof entry);
    out = (struct weir__entry){.kind = kind_of(entry.flags, entry.bytes, entry.address),
                               .address = entry.address,
                               .name = entry.name,
                               .bytes = entry.bytes,
                               .data = entry.data};
    if (entry.kind != WEIR__ABI_KIND_OPENMP) out.kind = WEIR__ENTRY_OTHER;
    return out;
}

/* ---- images ---- */

static int unwrap(const unsigned char **start, size_t *bytes)
{
    struct weir__abi_binary head;
    struct weir__abi_binary_entry entry;
    if (*bytes < sizeof head) return WEIR_E_IMAGE;
    memcpy(&head, *start, sizeof head);
    if (head.version != 1 || head.entry_bytes < sizeof entry || head.entry_offset > *bytes ||
        *bytes - head.entry_offset < sizeof entry)
        return WEIR_E_IMAGE;
    memcpy(&entry, *start + head.entry_offset, sizeof entry);
    if (entry.image_kind != 1 && entry.image_kind != 3) return WEIR_E_IMAGE;
    if (entry.image_offset > *bytes || *bytes - entry.image_offset < entry.image_bytes) return WEIR_E_IMAGE;
    *start += entry.image_offset;
    *bytes = entry.image_bytes;
    return WEIR_OK;
}

int weir__decode_image(const void *start, const void *end, struct weir__image *out)
{
    const unsigned char *at = start;
    if (!at || (const unsigned char *)end <= at) return WEIR_E_IMAGE;
    size_t bytes = (size_t)((const unsigned char *)end - at);
    if (bytes >= 4 && !memcmp(at, WEIR__ABI_BINARY_MAGIC, 4)) {
        int rc = unwrap(&at, &bytes);
        if (rc) return rc;
    }
    Elf64_Ehdr head;
    if (bytes < sizeof head) return WEIR_E_IMAGE;
    memcpy(&head, at, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64) return WEIR_E_IMAGE;
    /* A shared object whose segment table was cut off can never be loaded. */
    if (head.e_phoff > bytes || (uint64_t)head.e_phnum * head.e_phentsize > bytes - head.e_phoff) return WEIR_E_IMAGE;
    *out = (struct weir__image){.start = at, .bytes = bytes};
    if (head.e_machine == EM_X86_64 && head.e_type == ET_DYN) out->machine = WEIR__MACHINE_X86_64;
    if (head.e_machine == EM_CUDA) out->machine = WEIR__MACHINE_CUDA;
    return WEIR_OK;
}
