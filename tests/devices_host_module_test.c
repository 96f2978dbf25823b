/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* HOST_IMAGE_1, _2 and _BROKEN are paths of builds of devices_host_image.c. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices_host_rig.h"

TestSuite(host_module, .timeout = 60);

static unsigned char *read_file(const char *path, size_t *bytes_out)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    unsigned char *image = malloc((size_t)bytes);
    cr_assert_eq(fread(image, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    *bytes_out = (size_t)bytes;
    return image;
}

static void *load(struct rig *rig, const char *path)
{
    size_t bytes;
    unsigned char *image = read_file(path, &bytes);
    void *module = NULL;
    must(OPS->module_load(rig->devices[0], image, bytes, &module));
    free(image);
    return module;
}

static int64_t count(struct rig *rig, void *module, int64_t step)
{
    int64_t result = -1;
    uint64_t args[2] = {(uintptr_t)&result, (uint64_t)step}, position = 0;
    struct weir__launch launch = {.nargs = 2, .args = args};
    must(OPS->module_symbol(module, "image_count", &launch.kernel, NULL));
    void *stream = rig_stream(rig, 0);
    must(OPS->launch(stream, &launch));
    must(OPS->record(stream, &position));
    must(OPS->sync(stream, position));
    OPS->stream_destroy(stream);
    return result;
}

Test(host_module, kernel_of_an_image_runs)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *module = load(&rig, HOST_IMAGE_1), *address = NULL;
    size_t bytes = 99;
    cr_assert_eq(count(&rig, module, 5), 1005);
    cr_assert_eq(count(&rig, module, -1), 1004);
    must(OPS->module_symbol(module, "image_counter", &address, &bytes));
    cr_assert_eq(bytes, 8);
    cr_assert_eq(*(int64_t *)address, 1004);
    must(OPS->module_symbol(module, "image_table", &address, &bytes));
    cr_assert_eq(bytes, 40);
    OPS->module_unload(module);
    rig_close(&rig);
}

Test(host_module, unknown_symbols_are_not_found)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *module = load(&rig, HOST_IMAGE_1), *address = NULL;
    cr_assert_eq(OPS->module_symbol(module, "no_such_symbol", &address, NULL), WEIR_E_NOT_FOUND);
    cr_assert_not_null(strstr(OPS->last_error(rig.devices[0]), "no_such_symbol"));
    cr_assert_eq(OPS->module_symbol(module, "malloc", &address, NULL), WEIR_E_NOT_FOUND, "that is the C library's");
    cr_assert_null(address);
    OPS->module_unload(module);
    rig_close(&rig);
}

Test(host_module, one_image_loaded_twice_has_two_sets_of_variables)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *first = load(&rig, HOST_IMAGE_1), *second = load(&rig, HOST_IMAGE_1);
    cr_assert_eq(count(&rig, first, 1), 1001);
    cr_assert_eq(count(&rig, second, 2), 1002);
    OPS->module_unload(first);
    OPS->module_unload(second);
    rig_close(&rig);
}

/* Image 1 is linked to stay in memory; its path must not stand for the next image on the same file descriptor. */
Test(host_module, image_behind_one_that_stays_loaded_is_the_new_one)
{
    struct rig rig;
    rig_open(&rig, 1);
    for (int i = 0; i < 3; i++) {
        void *module = load(&rig, HOST_IMAGE_1);
        cr_assert_eq(count(&rig, module, 1), 1001);
        OPS->module_unload(module);
        module = load(&rig, HOST_IMAGE_2);
        cr_assert_eq(count(&rig, module, 1), 2001);
        OPS->module_unload(module);
    }
    rig_close(&rig);
}

static void refused(struct rig *rig, const void *image, size_t bytes, const char *what)
{
    void *module = NULL;
    int code = OPS->module_load(rig->devices[0], image, bytes, &module);
    cr_assert_eq(code, WEIR_E_IMAGE, "%s: %d", what, code);
    cr_assert_null(module);
    cr_assert_not_null(strstr(OPS->last_error(rig->devices[0]), "image"), "%s", what);
}

Test(host_module, truncated_images_are_refused)
{
    struct rig rig;
    rig_open(&rig, 1);
    size_t bytes;
    unsigned char *image = read_file(HOST_IMAGE_1, &bytes);
    for (size_t n = 0; n < bytes; n += n < 1024 ? 1 : 97) {
        unsigned char *part = malloc(n ? n : 1); /* reads past the end are seen */
        memcpy(part, image, n);
        refused(&rig, part, n, "truncated");
        free(part);
    }
    refused(&rig, NULL, 0, "nothing");
    free(image);
    rig_close(&rig);
}

static Elf64_Phdr *segment(unsigned char *image, uint32_t type)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)image;
    Elf64_Phdr *segments = (Elf64_Phdr *)(image + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == type) return &segments[i];
    cr_assert_fail("no segment of type %u", type);
    return NULL;
}

/* Each case makes one field wrong. */
#define HEADER(image) ((Elf64_Ehdr *)(image))
#define BROKEN_CASES(X)                                                                                                \
    X("magic", (image)[1] = 'e')                                                                                       \
    X("32 bit", (image)[EI_CLASS] = ELFCLASS32)                                                                        \
    X("byte order", (image)[EI_DATA] = ELFDATA2MSB)                                                                    \
    X("ident version", (image)[EI_VERSION] = 9)                                                                        \
    X("version", HEADER(image)->e_version = 7)                                                                         \
    X("machine", HEADER(image)->e_machine = EM_68K)                                                                    \
    X("relocatable", HEADER(image)->e_type = ET_REL)                                                                   \
    X("executable", HEADER(image)->e_type = ET_EXEC)                                                                   \
    X("no segments", HEADER(image)->e_phnum = 0)                                                                       \
    X("size of segment headers", HEADER(image)->e_phentsize = 32)                                                      \
    X("segment headers far away", HEADER(image)->e_phoff = UINT64_MAX - 8)                                             \
    X("too many segments", HEADER(image)->e_phnum = 0xfffe)                                                            \
    X("section headers far away", HEADER(image)->e_shoff = UINT64_MAX - 64)                                            \
    X("too many sections", HEADER(image)->e_shnum = 0xfffe)                                                            \
    X("segment far away", segment(image, PT_LOAD)->p_offset = (uint64_t)1 << 62)                                       \
    X("segment too long", segment(image, PT_LOAD)->p_filesz = segment(image, PT_LOAD)->p_memsz = (uint64_t)1 << 40)    \
    X("file part longer than memory part", segment(image, PT_LOAD)->p_memsz = 1)                                       \
    X("segment at a wild address", segment(image, PT_LOAD)->p_vaddr = UINT64_MAX - 4095)                               \
    X("segments overlap", segment(image, PT_LOAD)->p_vaddr = (uint64_t)1 << 30)                                        \
    X("alignment", segment(image, PT_LOAD)->p_align = 4097)                                                            \
    X("address does not fit the place", segment(image, PT_LOAD)->p_vaddr += 8)                                         \
    X("dynamic section not loaded", segment(image, PT_DYNAMIC)->p_vaddr = (uint64_t)1 << 40)                           \
    X("no dynamic section", segment(image, PT_DYNAMIC)->p_type = PT_NOTE)                                              \
    X("program", segment(image, PT_DYNAMIC)->p_type = PT_INTERP)

Test(host_module, broken_images_are_refused)
{
    struct rig rig;
    rig_open(&rig, 1);
    size_t bytes;
    unsigned char *good = read_file(HOST_IMAGE_2, &bytes), *image = malloc(bytes);
#define TRY(what, change)                                                                                              \
    memcpy(image, good, bytes);                                                                                        \
    change;                                                                                                            \
    refused(&rig, image, bytes, what);
    BROKEN_CASES(TRY)
    for (unsigned seed = 1; seed < 200; seed++) {
        srand(seed);
        for (size_t i = 0; i < bytes; i++) image[i] = (unsigned char)rand();
        if (seed % 2) memcpy(image, good, 16); /* the identification is right, nothing else */
        refused(&rig, image, bytes, "noise");
    }
    free(good);
    free(image);
    rig_close(&rig);
}

Test(host_module, image_that_needs_a_missing_function_is_refused)
{
    struct rig rig;
    rig_open(&rig, 1);
    size_t bytes;
    unsigned char *image = read_file(HOST_IMAGE_BROKEN, &bytes);
    refused(&rig, image, bytes, "missing");
    cr_assert_not_null(strstr(OPS->last_error(rig.devices[0]), "missing_function"));
    free(image);
    rig_close(&rig);
}
