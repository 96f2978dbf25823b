/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Images: a shared object in memory, checked as far as its tables go, written to an unnamed file and loaded from
 * /proc/self/fd. The loader takes equal paths for the same object, even after the file descriptor was closed and its
 * number given to another file, so each load spells the path differently: the bits of a counter as "/" and "./".
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#if defined(__x86_64__)
#define MACHINE      EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE      EM_AARCH64
#define MACHINE_NAME "AArch64"
#else
#error "name the machine of the host's images"
#endif

/* ---- checks ---- */

static int bad(const char *what)
{
    return weir__host_fail(WEIR_E_IMAGE, "the image %s", what);
}

/* @count entries of @size bytes at @offset lie inside the image. */
static bool inside(uint64_t offset, uint64_t count, uint64_t size, size_t bytes)
{
    return offset <= bytes && (!count || size <= (bytes - offset) / count);
}

static int check_segment(const Elf64_Phdr *segment, size_t bytes, uint64_t *end)
{
    if (!inside(segment->p_offset, 1, segment->p_filesz, bytes)) return bad("has a segment that reaches past its end");
    if (segment->p_type != PT_LOAD) return WEIR_OK;
    if (segment->p_filesz > segment->p_memsz || segment->p_vaddr > UINT64_MAX / 2 || segment->p_memsz > UINT64_MAX / 2)
        return bad("has a segment of impossible size");
    if (segment->p_align & (segment->p_align - 1)) return bad("has a segment whose alignment is no power of two");
    if (segment->p_align && (segment->p_vaddr ^ segment->p_offset) & (segment->p_align - 1))
        return bad("has a segment whose address does not fit its place");
    if (segment->p_vaddr < *end) return bad("has segments that overlap or are out of order");
    *end = segment->p_vaddr + segment->p_memsz;
    return WEIR_OK;
}

/* The loader reads the dynamic section before it could tell that there is nothing behind its address. */
static bool is_loaded(const unsigned char *image, const Elf64_Ehdr *header, const Elf64_Phdr *dynamic)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image + header->e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_LOAD && dynamic->p_vaddr >= segment.p_vaddr &&
            inside(dynamic->p_vaddr - segment.p_vaddr, 1, dynamic->p_filesz, segment.p_filesz))
            return true;
    }
    return false;
}

static int check_segments(const unsigned char *image, size_t bytes, const Elf64_Ehdr *header)
{
    uint64_t end = 0;
    unsigned loads = 0, dynamics = 0;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment; /* the image may lie at any address */
        memcpy(&segment, image + header->e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_LOAD) loads++;
        if (segment.p_type == PT_DYNAMIC && segment.p_filesz >= sizeof(Elf64_Dyn)) {
            if (!is_loaded(image, header, &segment)) return bad("has a dynamic section that is not loaded");
            dynamics++;
        }
        if (segment.p_type == PT_INTERP) return bad("is a program, not a shared object");
        int code = check_segment(&segment, bytes, &end);
        if (code) return code;
    }
    if (!loads) return bad("has nothing to load");
    if (dynamics != 1) return bad("has no dynamic section, or several");
    return WEIR_OK;
}

static int check_image(const unsigned char *image, size_t bytes)
{
    Elf64_Ehdr header;
    if (!image || bytes < sizeof header) return bad("is shorter than an ELF header");
    memcpy(&header, image, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG)) return bad("is not ELF");
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return bad("is not 64-bit ELF");
    if (header.e_ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
        return bad("has the other byte order");
    if (header.e_ident[EI_VERSION] != EV_CURRENT || header.e_version != EV_CURRENT)
        return bad("has an unknown ELF version");
    if (header.e_machine != MACHINE)
        return weir__host_fail(WEIR_E_IMAGE, "the image is for machine %u, not for " MACHINE_NAME, header.e_machine);
    if (header.e_type != ET_DYN) return bad("is not a shared object");
    if (header.e_phentsize != sizeof(Elf64_Phdr) || !header.e_phnum) return bad("has no program headers");
    if (!inside(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), bytes))
        return bad("ends before its program headers do");
    if (header.e_shoff && !inside(header.e_shoff, header.e_shnum, header.e_shentsize, bytes))
        return bad("ends before its section headers do");
    return check_segments(image, bytes, &header);
}

/* ---- loading ---- */

static int unnamed_file(void)
{
    int fd = memfd_create("weir-image", MFD_CLOEXEC);
    if (fd >= 0) return fd;
    const char *folder = getenv("TMPDIR");
    char path[256];
    snprintf(path, sizeof path, "%s/weir-image-XXXXXX", folder && strlen(folder) < 200 ? folder : "/tmp");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

static int write_all(int fd, const unsigned char *image, size_t bytes)
{
    while (bytes) {
        ssize_t written = write(fd, image, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return weir__host_fail(WEIR_E_SYSTEM, "cannot write the image: %s", strerror(errno));
        image += written;
        bytes -= (size_t)written;
    }
    return WEIR_OK;
}

static void spell_path(int fd, char *path, size_t bytes)
{
    static _Atomic uint64_t loads;
    /* Relaxed: only the number matters. */
    uint64_t number = atomic_fetch_add_explicit(&loads, 1, memory_order_relaxed) + 1;
    size_t length = (size_t)snprintf(path, bytes, "/proc/self/fd/");
    for (; number; number >>= 1) length += (size_t)snprintf(path + length, bytes - length, number & 1 ? "./" : "/");
    snprintf(path + length, bytes - length, "%d", fd);
}

int weir__host_module_load(void *device, const void *image, size_t bytes, void **module_out)
{
    if (weir__host_is_foreign_process(((struct host_device *)device)->generation)) return weir__host_fail_forked();
    int code = check_image(image, bytes);
    if (code) return code;
    int fd = unnamed_file();
    if (fd < 0) return weir__host_fail(WEIR_E_SYSTEM, "no file for the image: %s", strerror(errno));
    code = write_all(fd, image, bytes);
    if (!code) {
        char path[192];
        spell_path(fd, path, sizeof path);
        void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (module)
            *module_out = module;
        else
            code = weir__host_fail(WEIR_E_IMAGE, "the image cannot be loaded: %s", dlerror());
    }
    close(fd);
    return code;
}

void weir__host_module_unload(void *module)
{
    weir__host_kernels_forget();
    dlclose(module);
}

int weir__host_module_symbol(void *module, const char *name, void **address_out, size_t *bytes_out)
{
    struct link_map *own = NULL, *found = NULL;
    const Elf64_Sym *symbol = NULL;
    Dl_info info;
    void *address = dlsym(module, name);
    /* dlsym() looks into the libraries that the image needs as well; theirs are not symbols of the image. */
    if (!address || dlinfo(module, RTLD_DI_LINKMAP, &own) ||
        !dladdr1(address, &info, (void **)&found, RTLD_DL_LINKMAP) || own != found)
        return weir__host_fail(WEIR_E_NOT_FOUND, "the image has no symbol %s", name);
    if (bytes_out) {
        bool exact = dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && info.dli_saddr == address;
        *bytes_out = exact ? symbol->st_size : 0;
    }
    *address_out = address;
    return WEIR_OK;
}
