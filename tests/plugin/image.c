/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A device image with a table of entries as compilers make one: of clang up to 19, or from 20 on (NEW_TABLE). */
#include <stdint.h>

#define ENTRY(name_, bytes_, symbol)                                                                                   \
    __attribute__((section(SECTION), aligned(8), used, visibility("protected"))) struct entry entry_##symbol =         \
        ENTRY_OF(name_, bytes_, &symbol)

#ifdef NEW_TABLE
#define SECTION "llvm_offload_entries"
struct entry {
    uint64_t reserved;
    uint16_t version, kind;
    uint32_t flags;
    void *address;
    const char *name;
    uint64_t bytes, data;
    void *auxiliary;
};
#define ENTRY_OF(name_, bytes_, address_)                                                                              \
    {.version = 1, .kind = 1, .address = (void *)(address_), .name = name_, .bytes = bytes_}
#else
#define SECTION                           "omp_offloading_entries"
struct entry {
    void *address;
    const char *name;
    uint64_t bytes;
    int32_t flags, data;
};
#define ENTRY_OF(name_, bytes_, address_) {.address = (void *)(address_), .name = name_, .bytes = bytes_}
#endif

void image_add(int *to, int64_t value, int64_t times);

void image_pass(_Atomic int *gate);
void image_take(_Atomic int *to, _Atomic int *from);

int image_variable = 11;
int *image_link_pointer; /* is in no table */

void image_pass(_Atomic int *gate)
{
    while (!*gate);
}

void image_take(_Atomic int *to, _Atomic int *from)
{
    *to = *from;
}

void image_add(int *to, int64_t value, int64_t times)
{
    for (int64_t i = 0; i < times; i++) *to += (int)value + image_variable;
}

ENTRY("image_add", 0, image_add);
ENTRY("image_pass", 0, image_pass);
ENTRY("image_take", 0, image_take);
ENTRY("image_variable", sizeof(int), image_variable);
