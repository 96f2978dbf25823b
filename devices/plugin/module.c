/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Images on a plugin. It has no call to unload one: what it loaded stays until the plugin goes. */
#include <devices/plugin/internal.h>

#include <stdlib.h>
#include <string.h>

static int load(struct rtl_module *module, int32_t id)
{
    struct rtl *rtl = &module->backend->rtl;
    const char *plugin = module->backend->name;
    if (!rtl->is_valid_binary(&module->image))
        return weir__rtl_fail(WEIR_E_IMAGE, "%s takes no image of this kind", plugin);
    module->table = rtl->load_binary(id, &module->image);
    if (!module->table) return weir__rtl_fail(WEIR_E_IMAGE, "%s: load_binary failed", plugin);
    ptrdiff_t n = module->table->end - module->table->begin;
    if (n != (ptrdiff_t)module->n)
        return weir__rtl_fail(WEIR_E_IMAGE, "%s: load_binary found %td entries of %u", plugin, n, module->n);
    /* A plugin that looks up hands our names back; the table of another is the image's, which ends sooner. */
    module->known = module->table->begin[0].name == module->entries[0].name ? module->n : module->own;
    return WEIR_OK;
}

static int module_make(struct rtl_backend *backend, char *image, size_t bytes, struct rtl_module **module_out)
{
    struct rtl_entry *entries;
    uint32_t own, n;
    int code = weir__rtl_image_entries(image, bytes, &entries, &own, &n);
    if (code) return weir__rtl_fail(code, "the image has no table of entries that can be read");
    struct rtl_module *module = calloc(1, sizeof *module + n * sizeof entries[0]);
    if (module) {
        module->backend = backend;
        module->own = own;
        module->n = n;
        if (n) memcpy(module->entries, entries, n * sizeof entries[0]);
        /* The host's address of a kernel or variable, which LLVM 16 wants to be there and does not follow. */
        for (uint32_t i = 0; i < n; i++) module->entries[i].address = &module->entries[i];
        module->image = (struct rtl_image){image, image + bytes, module->entries, module->entries + n};
        *module_out = module;
    }
    free(entries);
    return module ? WEIR_OK : weir__rtl_fail(WEIR_E_NO_MEMORY, "no memory for a module");
}

int weir__rtl_module_load(void *handle, const void *image, size_t bytes, void **module_out)
{
    struct rtl_device *device = handle;
    struct rtl_backend *backend = device->backend;
    struct rtl_module *module = NULL;
    char *copy = malloc(bytes ? bytes : 1);
    if (!copy) return weir__rtl_fail(WEIR_E_NO_MEMORY, "no memory for an image of %zu bytes", bytes);
    memcpy(copy, image, bytes);
    int code = module_make(backend, copy, bytes, &module);
    if (code) {
        free(copy);
        return code;
    }
    pthread_mutex_lock(&backend->lock);
    module->next = backend->modules;
    backend->modules = module;
    pthread_mutex_unlock(&backend->lock);
    code = module->n ? load(module, device->id) : WEIR_OK; /* no entries: nothing that could be asked for */
    if (!code) *module_out = module;
    return code;
}

void weir__rtl_module_unload(void *module)
{
    (void)module; /* stays in .modules */
}

int weir__rtl_module_symbol(void *handle, const char *name, void **address_out, size_t *bytes_out)
{
    const struct rtl_module *module = handle;
    for (uint32_t i = 0; i < module->known; i++) {
        if (strcmp(module->entries[i].name, name) != 0) continue;
        *address_out = module->table->begin[i].address;
        if (bytes_out) *bytes_out = module->entries[i].bytes;
        return WEIR_OK;
    }
    return weir__rtl_fail(WEIR_E_NOT_FOUND, "the image has no entry %s", name);
}
