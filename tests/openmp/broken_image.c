/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Images that are cut off or are no images: ignored or not found, without harm to the others. */
// run: OMP_TARGET_OFFLOAD=DEFAULT => PASS
// run: OMP_TARGET_OFFLOAD=MANDATORY => ABORT no image has the kernel
#include <elf.h>

#include "check.h"

struct image {
    void *start, *end, *entries_begin, *entries_end;
};
struct descriptor {
    int nimages;
    struct image *images;
    void *entries_begin, *entries_end;
};
struct entry {
    void *address;
    const char *name;
    uint64_t bytes;
    int flags, data;
};
void __tgt_register_lib(struct descriptor *descriptor);
void __tgt_unregister_lib(struct descriptor *descriptor);
int __tgt_target_kernel(void *where, int64_t device, int teams, int threads, void *host, void *args);

static char region;
static struct entry entries[] = {{&region, "kernel", 0, 0, 0}};

/* Whether it is told at once or at its first use depends on what is wrong with the image. */
static void use(void *start, size_t bytes)
{
    struct {
        unsigned version, n;
        void *rest[16];
    } args = {3, 0, {NULL}};
    struct image image = {start, (char *)start + bytes, entries, entries + 1};
    struct descriptor descriptor = {1, &image, entries, entries + 1};
    int x = 0;
    __tgt_register_lib(&descriptor);
    CHECK(__tgt_target_kernel(NULL, 0, -1, 0, &region, &args) == -1);
#pragma omp target map(tofrom : x)
    x++;
    CHECK(x == 1);
    __tgt_unregister_lib(&descriptor);
    __tgt_unregister_lib(&descriptor);
}

int main(void)
{
    static char bytes[4096];
    Elf64_Ehdr *head = (Elf64_Ehdr *)bytes;
    use(bytes, sizeof bytes); /* no object */
    memcpy(head->e_ident, "\177ELF\2\1\1", 7);
    head->e_type = ET_DYN;
    head->e_machine = EM_X86_64;
    use(bytes, 10);           /* cut off */
    use(bytes, sizeof bytes); /* looks right, cannot be loaded */
    head->e_machine = EM_AARCH64;
    use(bytes, sizeof bytes); /* of another machine */
    memcpy(bytes, "\x10\xff\x10\xad\1", 5);
    bytes[16] = 127;
    use(bytes, 64); /* a wrapper that points outside */
    return finish();
}
