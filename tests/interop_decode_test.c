/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interop/abi.h"
#include "interop/decode.h"

/* ---- kernel arguments ---- */

/* Memory of @bytes that ends where no page is: reading one byte more is a fault. */
static void *at_the_edge(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(pages != MAP_FAILED);
    cr_assert_eq(mprotect(pages + page, page, PROT_NONE), 0);
    return pages + page - bytes;
}

static void fill(struct weir__abi_kernel_args *args, uint32_t version)
{
    memset(args, 0, sizeof *args);
    args->version = version;
    args->nargs = 3;
    args->bases = (void **)16;
    args->sizes = (int64_t *)32;
    args->tripcount = 1000;
    args->flags = WEIR__ABI_LAUNCH_NOWAIT;
    args->teams[0] = (uint32_t)-1;
    args->teams[1] = 2;
    args->threads[2] = 5;
    args->shared_bytes = 77;
}

Test(decode, version_one_ends_before_the_flags)
{
    struct weir__abi_kernel_args args;
    struct weir__kernel_args out;
    void *edge = at_the_edge(64);
    fill(&args, 1);
    memcpy(edge, &args, 64);
    cr_assert_eq(weir__decode_kernel_args(edge, &out), WEIR_OK);
    cr_assert(out.n == 3 && out.bases == args.bases && out.sizes == args.sizes && out.tripcount == 1000);
    cr_assert(!out.nowait && !out.leading_pointer && !out.teams[1] && !out.shared_bytes);
}

Test(decode, later_versions_have_shape_and_pointer)
{
    struct weir__abi_kernel_args args;
    struct weir__kernel_args out;
    for (uint32_t version = 2; version <= 4; version++) {
        void *edge = at_the_edge(104);
        fill(&args, version);
        memcpy(edge, &args, 104);
        cr_assert_eq(weir__decode_kernel_args(edge, &out), WEIR_OK);
        cr_assert(out.nowait && out.teams[0] == -1 && out.teams[1] == 2 && out.threads[2] == 5);
        cr_assert(out.shared_bytes == 77 && out.leading_pointer == (version == 3));
        cr_assert_arr_eq(edge, &args, 104, "the program's structure is only read");
    }
}

Test(decode, unknown_versions_are_refused)
{
    uint32_t versions[] = {0, 5, 77, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        uint32_t *edge = at_the_edge(8); /* the version is the first of the two words */
        struct weir__kernel_args out;
        *edge = versions[i];
        cr_assert_eq(weir__decode_kernel_args(edge, &out), WEIR_E_VERSION);
        cr_assert_eq(out.version, versions[i]);
    }
}

/* ---- entry tables ---- */

static char here[8];

Test(decode, old_table_with_a_requires_entry_in_front_is_old)
{
    struct weir__abi_entry_old table[] = {
        {NULL, "", 0, WEIR__ABI_ENTRY_REQUIRES, 8},
        {&here[0], "kernel", 0, 0, 0},
        {&here[1], "variable", 4, 0, 0},
        {&here[2], "link", 8, WEIR__ABI_ENTRY_LINK, 0},
        {&here[3], "ctor", 0, WEIR__ABI_ENTRY_CTOR, 0},
        {&here[4], "dtor", 0, WEIR__ABI_ENTRY_DTOR, 0},
        {&here[5], "fn", 8, WEIR__ABI_ENTRY_INDIRECT, 0},
    };
    enum weir__entry_kind kinds[] = {WEIR__ENTRY_REQUIRES, WEIR__ENTRY_KERNEL, WEIR__ENTRY_GLOBAL,  WEIR__ENTRY_LINK,
                                     WEIR__ENTRY_CTOR,     WEIR__ENTRY_DTOR,   WEIR__ENTRY_INDIRECT};
    struct weir__entries entries;
    /* 7 × 32 bytes are 4 × 56 bytes: the length alone does not tell. */
    cr_assert_eq(sizeof table % sizeof(struct weir__abi_entry_new), 0);
    cr_assert_eq(weir__decode_entries(table, table + 7, &entries), WEIR_OK);
    cr_assert(entries.old_layout && entries.n == 7);
    for (size_t i = 0; i < 7; i++) cr_assert_eq(weir__decode_entry(&entries, i).kind, kinds[i], "entry %zu", i);
    cr_assert_eq(weir__decode_entry(&entries, 0).data, 8);
    struct weir__entry variable = weir__decode_entry(&entries, 2);
    cr_assert(variable.address == &here[1] && variable.bytes == 4 && !strcmp(variable.name, "variable"));
}

Test(decode, old_table_at_an_odd_address)
{
    struct weir__abi_entry_old table[] = {{&here[0], "kernel", 0, 0, 0}, {&here[1], "variable", 4, 0, 0}};
    char bytes[sizeof table + 1];
    struct weir__entries entries;
    memcpy(bytes + 1, table, sizeof table);
    cr_assert_eq(weir__decode_entries(bytes + 1, bytes + 1 + sizeof table, &entries), WEIR_OK);
    cr_assert(entries.n == 2 && weir__decode_entry(&entries, 1).address == &here[1]);
}

Test(decode, new_table_skips_other_languages)
{
    struct weir__abi_entry_new table[] = {
        {0, 1, WEIR__ABI_KIND_OPENMP, 0, &here[0], "kernel", 0, 0, NULL},
        {0, 1, WEIR__ABI_KIND_CUDA, 0, &here[1], "other", 0, 0, NULL},
        {0, 1, WEIR__ABI_KIND_OPENMP, 16, NULL, ".requires", 0, 8, NULL},
        {0, 1, WEIR__ABI_KIND_OPENMP, 0, &here[2], "variable", 12, 0, NULL},
    };
    struct weir__entries entries;
    cr_assert_eq(weir__decode_entries(table, table + 4, &entries), WEIR_OK);
    cr_assert(!entries.old_layout && entries.n == 4);
    cr_assert_eq(weir__decode_entry(&entries, 0).kind, WEIR__ENTRY_KERNEL);
    cr_assert_eq(weir__decode_entry(&entries, 1).kind, WEIR__ENTRY_OTHER);
    cr_assert(weir__decode_entry(&entries, 2).kind == WEIR__ENTRY_REQUIRES &&
              weir__decode_entry(&entries, 2).data == 8);
    cr_assert(weir__decode_entry(&entries, 3).kind == WEIR__ENTRY_GLOBAL &&
              weir__decode_entry(&entries, 3).bytes == 12);
}

Test(decode, tables_of_no_layout)
{
    struct weir__entries entries;
    static char bytes[100];
    cr_assert_eq(weir__decode_entries(bytes, bytes + 33, &entries), WEIR_E_IMAGE);
    cr_assert_eq(weir__decode_entries(bytes + 32, bytes, &entries), WEIR_E_IMAGE);
    cr_assert(weir__decode_entries(bytes, bytes, &entries) == WEIR_OK && entries.n == 0);
    cr_assert(weir__decode_entries(NULL, NULL, &entries) == WEIR_OK && entries.n == 0);
}

/* ---- images ---- */

static Elf64_Ehdr object_head(uint16_t machine)
{
    Elf64_Ehdr head = {.e_type = ET_DYN, .e_machine = machine, .e_phoff = sizeof head, .e_phentsize = 56, .e_phnum = 1};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    return head;
}

Test(decode, plain_objects_by_machine)
{
    struct {
        uint16_t machine;
        uint32_t expected;
    } rows[] = {{EM_X86_64, WEIR__MACHINE_X86_64}, {190, WEIR__MACHINE_CUDA}, {EM_AARCH64, 0}};
    for (size_t i = 0; i < 3; i++) {
        char bytes[200] = {0};
        struct weir__image image;
        Elf64_Ehdr head = object_head(rows[i].machine);
        memcpy(bytes, &head, sizeof head);
        cr_assert_eq(weir__decode_image(bytes, bytes + sizeof bytes, &image), WEIR_OK);
        cr_assert(image.start == bytes && image.bytes == sizeof bytes && image.machine == rows[i].expected);
    }
}

Test(decode, damaged_objects)
{
    char bytes[200] = {0};
    struct weir__image image;
    Elf64_Ehdr head = object_head(EM_X86_64);
    memcpy(bytes, &head, sizeof head);
    cr_assert_eq(weir__decode_image(bytes, bytes, &image), WEIR_E_IMAGE);
    cr_assert_eq(weir__decode_image(NULL, bytes, &image), WEIR_E_IMAGE);
    for (size_t n = 1; n < sizeof head + 56; n++)
        cr_assert_eq(weir__decode_image(bytes, bytes + n, &image), WEIR_E_IMAGE, "cut off at %zu", n);
    cr_assert_eq(weir__decode_image(bytes, bytes + sizeof head + 56, &image), WEIR_OK);
    bytes[0] = 'x';
    cr_assert_eq(weir__decode_image(bytes, bytes + sizeof bytes, &image), WEIR_E_IMAGE);
}

Test(decode, wrapped_object)
{
    enum { AT = 0x90 };
    char bytes[400] = {0};
    struct weir__image image;
    Elf64_Ehdr head = object_head(EM_X86_64);
    struct weir__abi_binary wrapper = {.version = 1, .bytes = sizeof bytes, .entry_offset = 40, .entry_bytes = 40};
    struct weir__abi_binary_entry entry = {.image_kind = 1, .offload_kind = 1, .image_offset = AT, .image_bytes = 200};
    memcpy(wrapper.magic, WEIR__ABI_BINARY_MAGIC, 4);
    memcpy(bytes, &wrapper, sizeof wrapper);
    memcpy(bytes + 40, &entry, sizeof entry);
    memcpy(bytes + AT, &head, sizeof head);
    cr_assert_eq(weir__decode_image(bytes, bytes + sizeof bytes, &image), WEIR_OK);
    cr_assert(image.start == bytes + AT && image.bytes == 200 && image.machine == WEIR__MACHINE_X86_64);
    for (size_t n = 1; n < AT + 200; n++)
        cr_assert_eq(weir__decode_image(bytes, bytes + n, &image), WEIR_E_IMAGE, "cut off at %zu", n);
    entry.image_offset = UINT64_MAX - 10;
    memcpy(bytes + 40, &entry, sizeof entry);
    cr_assert_eq(weir__decode_image(bytes, bytes + sizeof bytes, &image), WEIR_E_IMAGE);
    wrapper.entry_offset = UINT64_MAX - 10;
    memcpy(bytes, &wrapper, sizeof wrapper);
    cr_assert_eq(weir__decode_image(bytes, bytes + sizeof bytes, &image), WEIR_E_IMAGE);
}
