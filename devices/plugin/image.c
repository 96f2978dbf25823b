/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The entries of a device image. A plugin wants the host's table of them beside an image and answers with one in the
 * same order. The image has a table of its own, in a section that the linker fills; its names are pointers, which stand
 * in the relocations of the file. Some plugins look the names up, some count and return the image's own table: both
 * agree with one that is made from that.
 */
#include <devices/plugin/internal.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct file {
    char *start;
    size_t bytes;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
};

/* Entries up to LLVM 19 and from 20 on. */
static const struct layout {
    const char *section;
    size_t bytes, name, size, flags;
} layouts[] = {
    {"omp_offloading_entries", 32, 8, 16, 24},
    {"llvm_offload_entries", 56, 24, 32, 12},
};

/* @bytes at @offset, aligned for 8 bytes if they are headers; NULL: not in the file. */
static char *part(const struct file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->bytes && bytes <= file->bytes - offset ? file->start + offset : NULL;
}

static bool file_open(struct file *file, char *start, size_t bytes)
{
    *file = (struct file){.start = start, .bytes = bytes};
    file->header = (const Elf64_Ehdr *)part(file, 0, sizeof *file->header);
    if (!file->header || memcmp(start, ELFMAG, SELFMAG) || start[EI_CLASS] != ELFCLASS64) return false;
    if (file->header->e_shoff % 8 || file->header->e_shentsize != sizeof(Elf64_Shdr)) return false;
    file->sections =
        (const Elf64_Shdr *)part(file, file->header->e_shoff, (uint64_t)file->header->e_shnum * sizeof(Elf64_Shdr));
    return file->sections && file->header->e_shstrndx < file->header->e_shnum;
}

/* A text that ends within the file. */
static char *text_at(const struct file *file, uint64_t offset)
{
    char *text = part(file, offset, 1);
    return text && memchr(text, 0, file->bytes - offset) ? text : NULL;
}

/* Where in the file the image's address @address is. */
static char *text_of_address(const struct file *file, uint64_t address)
{
    for (uint16_t i = 0; i < file->header->e_shnum; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if (!(section->sh_flags & SHF_ALLOC) || section->sh_type == SHT_NOBITS) continue;
        if (address >= section->sh_addr && address - section->sh_addr < section->sh_size)
            return text_at(file, section->sh_offset + (address - section->sh_addr));
    }
    return NULL;
}

static const Elf64_Shdr *find_entries(const struct file *file, const struct layout **layout_out)
{
    uint64_t names = file->sections[file->header->e_shstrndx].sh_offset;
    for (uint16_t i = 0; i < file->header->e_shnum; i++) {
        const char *name = text_at(file, names + file->sections[i].sh_name);
        for (size_t k = 0; name && k < sizeof layouts / sizeof layouts[0]; k++) {
            *layout_out = &layouts[k];
            if (!strcmp(name, layouts[k].section)) return &file->sections[i];
        }
    }
    return NULL;
}

/* Set the names that the relocations of @table put into @section. */
static int read_names(const struct file *file, const Elf64_Shdr *table, const Elf64_Shdr *section,
                      const struct layout *layout, struct rtl_entry *entries)
{
    const char *at = part(file, table->sh_offset, table->sh_size);
    if (!at) return WEIR_E_IMAGE;
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela relocation;
        memcpy(&relocation, at + i * sizeof relocation, sizeof relocation);
        uint64_t offset = relocation.r_offset - section->sh_addr;
        if (relocation.r_offset < section->sh_addr || offset >= section->sh_size) continue;
        if (offset % layout->bytes != layout->name) continue;
        entries[offset / layout->bytes].name = text_of_address(file, (uint64_t)relocation.r_addend);
    }
    return WEIR_OK;
}

static int read_entries(const struct file *file, const Elf64_Shdr *section, const struct layout *layout,
                        struct rtl_entry *entries, uint32_t n)
{
    const char *content = part(file, section->sh_offset, section->sh_size);
    if (!content || section->sh_size % layout->bytes) return WEIR_E_IMAGE;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&entries[i].bytes, content + i * layout->bytes + layout->size, sizeof entries[i].bytes);
        memcpy(&entries[i].flags, content + i * layout->bytes + layout->flags, sizeof entries[i].flags);
    }
    for (uint16_t i = 0; i < file->header->e_shnum; i++) {
        if (file->sections[i].sh_type != SHT_RELA || !(file->sections[i].sh_flags & SHF_ALLOC)) continue;
        int code = read_names(file, &file->sections[i], section, layout, entries);
        if (code) return code;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!entries[i].name) return WEIR_E_IMAGE;
    return WEIR_OK;
}

/* The variables of the dynamic symbol table at @table that are no entries yet, such as the pointers that stand for
 * declare target link variables: compilers from 20 on leave these out of the image's table. */
static uint32_t add_variables(const struct file *file, const Elf64_Shdr *table, struct rtl_entry *entries, uint32_t n)
{
    const char *at = part(file, table->sh_offset, table->sh_size);
    if (!at || table->sh_link >= file->header->e_shnum) return n;
    const uint32_t before = n;
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, at + i * sizeof symbol, sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF || !symbol.st_size) continue;
        char *name = text_at(file, file->sections[table->sh_link].sh_offset + symbol.st_name);
        bool known = !name || *name == '.'; /* the entries themselves have such names */
        for (uint32_t k = 0; k < before && !known; k++) known = !strcmp(entries[k].name, name);
        if (!known) entries[n++] = (struct rtl_entry){.name = name, .bytes = symbol.st_size};
    }
    return n;
}

static const Elf64_Shdr *find_symbols(const struct file *file)
{
    for (uint16_t i = 0; i < file->header->e_shnum; i++)
        if (file->sections[i].sh_type == SHT_DYNSYM &&
            part(file, file->sections[i].sh_offset, file->sections[i].sh_size))
            return &file->sections[i];
    return NULL;
}

int weir__rtl_image_entries(char *image, size_t bytes, struct rtl_entry **entries_out, uint32_t *own_out,
                            uint32_t *n_out)
{
    struct file file;
    const struct layout *layout = NULL;
    if (!file_open(&file, image, bytes)) return WEIR_E_IMAGE;
    const Elf64_Shdr *section = find_entries(&file, &layout), *symbols = find_symbols(&file);
    size_t n = section ? section->sh_size / layout->bytes : 0;
    *entries_out = NULL;
    *own_out = *n_out = 0;
    if (!n) return WEIR_OK;
    if (n > bytes / layout->bytes) return WEIR_E_IMAGE;
    size_t most = n + (symbols ? symbols->sh_size / sizeof(Elf64_Sym) : 0);
    struct rtl_entry *entries = calloc(most, sizeof *entries);
    if (!entries) return WEIR_E_NO_MEMORY;
    int code = read_entries(&file, section, layout, entries, (uint32_t)n);
    if (code) {
        free(entries);
        return code;
    }
    *entries_out = entries;
    *own_out = (uint32_t)n;
    *n_out = symbols ? add_variables(&file, symbols, entries, (uint32_t)n) : (uint32_t)n;
    return WEIR_OK;
}
