/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Images are shared objects for the host's processor, given as bytes whose number their own headers tell. Each load is
 * a copy of its own: the dynamic loader tells objects apart by path and inode, and gets a new file each time.
 */
#include "image.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif
#define MACHINE_CUDA   190
#define FATBIN_WRAPPER 0x466243b1
#define FATBIN         0xba55ed50

/* No code for this device, or no image at all. */
static int classify_other(const void *image)
{
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == FATBIN_WRAPPER || magic == FATBIN) return CUDA_NO_BINARY_FOR_GPU;
    const char *text = image;
    while (*text == ' ' || *text == '\n' || *text == '\t' || *text == '\r') text++;
    bool is_ptx = !strncmp(text, "//", 2) || !strncmp(text, ".version", 8);
    return is_ptx ? CUDA_NO_BINARY_FOR_GPU : CUDA_INVALID_IMAGE;
}

int emulator__image_bytes(const void *image, size_t *bytes_out)
{
    Elf64_Ehdr header;
    if (memcmp(image, ELFMAG, SELFMAG)) return classify_other(image);
    memcpy(&header, image, sizeof header);
    if (header.e_machine == MACHINE_CUDA) return CUDA_NO_BINARY_FOR_GPU;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != MACHINE || header.e_type != ET_DYN)
        return CUDA_INVALID_IMAGE;
    size_t end = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, (const char *)image + header.e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_offset + segment.p_filesz > end) end = segment.p_offset + segment.p_filesz;
    }
    *bytes_out = end;
    return 0;
}

/*
 * The pages of variables: what is writable and not made read-only after relocation. The loader's own tables are in the
 * latter; an image without such a part is not protected.
 */
static void find_data(const void *image, uint64_t base, struct loaded_image *loaded)
{
    Elf64_Ehdr header;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), relro_end = 0;
    memcpy(&header, image, sizeof header);
    loaded->start = UINT64_MAX;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, (const char *)image + header.e_phoff + i * sizeof segment, sizeof segment);
        uint64_t start = base + segment.p_vaddr, end = start + segment.p_memsz;
        if (segment.p_type == PT_GNU_RELRO) relro_end = (end + page - 1) & ~(page - 1);
        if (segment.p_type != PT_LOAD) continue;
        if (start < loaded->start) loaded->start = start;
        if (end > loaded->end) loaded->end = end;
        if (!(segment.p_flags & PF_W)) continue;
        loaded->data_start = (start + page - 1) & ~(page - 1);
        loaded->data_end = (end + page - 1) & ~(page - 1);
    }
    if (loaded->data_start < relro_end) loaded->data_start = relro_end;
    if (!relro_end || loaded->data_start > loaded->data_end) loaded->data_start = loaded->data_end;
}

static bool write_all(int file, const char *bytes, size_t count)
{
    while (count) {
        ssize_t written = write(file, bytes, count);
        if (written <= 0) return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

/* The loader takes equal paths for the same object, so the file stays open, and its number taken, until it is gone. */
static void spell_path(int file, char *path, size_t bytes)
{
    snprintf(path, bytes, "/proc/self/fd/%d", file);
}

int emulator__image_load(const void *image, size_t bytes, struct loaded_image *loaded)
{
    char path[64];
    struct link_map *map;
    *loaded = (struct loaded_image){.file = memfd_create("emulated-image", MFD_CLOEXEC)};
    if (loaded->file < 0) return CUDA_OUT_OF_MEMORY;
    spell_path(loaded->file, path, sizeof path);
    if (write_all(loaded->file, image, bytes)) loaded->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded->library) {
        const char *text = dlerror();
        fprintf(stderr, "emulator: %s\n", text ? text : "cannot write an image");
        close(loaded->file);
        return CUDA_INVALID_IMAGE;
    }
    if (!dlinfo(loaded->library, RTLD_DI_LINKMAP, &map)) find_data(image, map->l_addr, loaded);
    return 0;
}

void emulator__image_unload(const struct loaded_image *loaded)
{
    char path[64];
    spell_path(loaded->file, path, sizeof path);
    dlclose(loaded->library);
    void *left = dlopen(path, RTLD_NOW | RTLD_NOLOAD); /* images may say that they are not to be unloaded */
    if (left)
        dlclose(left);
    else
        close(loaded->file);
}

void *emulator__image_symbol(const struct loaded_image *loaded, const char *name, size_t *bytes_out)
{
    struct link_map *own = NULL, *found = NULL;
    const Elf64_Sym *symbol = NULL;
    Dl_info info;
    void *address = dlsym(loaded->library, name);
    /* What the image needs is searched as well, but is not of the image. */
    if (!address || dlinfo(loaded->library, RTLD_DI_LINKMAP, &own) ||
        !dladdr1(address, &info, (void **)&found, RTLD_DL_LINKMAP) || own != found)
        return NULL;
    if (bytes_out)
        *bytes_out = dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol ? symbol->st_size : 0;
    return address;
}

bool emulator__image_is_code(const void *address)
{
    const Elf64_Sym *symbol = NULL;
    Dl_info info;
    return dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
           ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
}
