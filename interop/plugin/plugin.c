/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/plugin/plugin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exec/environment.h>
#include <exec/work.h>

#include "interop/abi.h"
#include "interop/plugin/object.h"
#include "interop/plugin/report.h"

#define OPS (&weir__host_ops)
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "name the machine of the host's images"
#endif

struct plugin_image {
    struct plugin_image *next;
    void *module;
    struct weir__plugin_table table;
    struct weir__abi_entry_old entries[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *backend;
static int32_t ndevices;
static struct plugin_device devices[WEIR__MAX_DEVICES];

static void find_devices(void)
{
    uint32_t wanted = weir__environment_number("WEIR_HOST_DEVICES", 4, 1, WEIR__MAX_DEVICES);
    struct weir__host_options options = weir__environment_host();
    int code = weir__host_backend_create(wanted, &options, &backend);
    if (code) {
        (void)weir__plugin_fail_backend("number_of_devices", code);
        return;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        pthread_rwlock_init(&devices[i].guard, NULL);
        pthread_mutex_init(&devices[i].images_lock, NULL);
    }
    ndevices = (int32_t)wanted;
}

int32_t __tgt_rtl_number_of_devices(void)
{
    pthread_once(&once, find_devices);
    return ndevices;
}

int32_t __tgt_rtl_init_plugin(void)
{
    return __tgt_rtl_number_of_devices() > 0 ? 0 : -1;
}

/* Runs when libomptarget ends: a device that is still open keeps what others may still wait for. */
int32_t __tgt_rtl_deinit_plugin(void)
{
    int32_t result = 0;
    for (int32_t id = 0; id < __tgt_rtl_number_of_devices(); id++) {
        pthread_rwlock_rdlock(&devices[id].guard);
        bool open = devices[id].handle != NULL;
        pthread_rwlock_unlock(&devices[id].guard);
        if (open && __tgt_rtl_deinit_device(id)) result = -1;
    }
    return result;
}

/* ---- devices ---- */

static struct plugin_device *find_device(const char *call, int32_t id)
{
    if (id >= 0 && id < __tgt_rtl_number_of_devices()) return &devices[id];
    weir__plugin_fail("%s: no device %d, there are %d", call, id, ndevices);
    return NULL;
}

struct plugin_device *weir__plugin_device_enter(const char *call, int32_t id)
{
    struct plugin_device *device = find_device(call, id);
    if (!device) return NULL;
    pthread_rwlock_rdlock(&device->guard);
    if (device->handle) return device;
    pthread_rwlock_unlock(&device->guard);
    weir__plugin_fail("%s: device %d is not initialised", call, id);
    return NULL;
}

void weir__plugin_device_leave(struct plugin_device *device)
{
    pthread_rwlock_unlock(&device->guard);
}

/* The plugin asks for no notices. */
static void reached(void *owner, uint64_t position)
{
    (void)owner;
    (void)position;
}

int32_t __tgt_rtl_init_device(int32_t id)
{
    static const struct weir__device_notice notice = {.reached = reached};
    struct plugin_device *device = find_device("init_device", id);
    if (!device) return -1;
    pthread_rwlock_wrlock(&device->guard);
    int code = device->handle ? 0 : OPS->device_open(backend, (uint32_t)id, &notice, &device->info, &device->handle);
    pthread_rwlock_unlock(&device->guard);
    if (code) return weir__plugin_fail_backend("init_device", code);
    weir__log(3, "plugin: device %d: %s, %s", id, device->info.name, device->info.text);
    return 0;
}

int32_t __tgt_rtl_deinit_device(int32_t id)
{
    struct plugin_device *device = find_device("deinit_device", id);
    if (!device) return -1;
    pthread_rwlock_wrlock(&device->guard);
    void *handle = device->handle;
    if (handle) {
        weir__plugin_objects_close(id);
        while (device->images) {
            struct plugin_image *image = device->images;
            device->images = image->next;
            OPS->module_unload(image->module);
            free(image);
        }
        OPS->device_close(handle);
        device->handle = NULL;
    }
    pthread_rwlock_unlock(&device->guard);
    return handle ? 0 : weir__plugin_fail("deinit_device: device %d is not initialised", id);
}

int32_t __tgt_rtl_init_device_info(int32_t id, struct weir__plugin_device_info *info, const char **error_out)
{
    static const char *const no_device = "no such device, or it is not initialised", *const no_place =
                                                                                         "no place for the answer";
    struct plugin_device *device = weir__plugin_device_enter("init_device_info", id);
    if (device && info) {
        info->context = backend;
        info->device = device->handle;
        weir__plugin_device_leave(device);
        return 0;
    }
    if (error_out) *error_out = device ? no_place : no_device;
    if (!device) return -1;
    weir__plugin_device_leave(device);
    return weir__plugin_fail("init_device_info: %s", no_place);
}

void __tgt_rtl_print_device_info(int32_t id)
{
    struct plugin_device *device = weir__plugin_device_enter("print_device_info", id);
    if (!device) return;
    printf("    %s: %s\n", device->info.name, device->info.text);
    weir__plugin_device_leave(device);
}

/* All memory is the host's, so whatever a program requires of it is so. */
int64_t __tgt_rtl_init_requires(int64_t flags)
{
    return flags;
}

int32_t __tgt_rtl_is_data_exchangable(int32_t from, int32_t to)
{
    int32_t n = __tgt_rtl_number_of_devices();
    return from >= 0 && from < n && to >= 0 && to < n;
}

/* ---- images ---- */

int32_t __tgt_rtl_is_valid_binary(const struct weir__abi_image *image)
{
    Elf64_Ehdr header;
    if (!image || !image->start || image->end < image->start || (size_t)(image->end - image->start) < sizeof header)
        return 0;
    memcpy(&header, image->start, sizeof header); /* at any alignment */
    return !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_machine == MACHINE;
}

/* @info names the processor, of which CPU code needs nothing. */
int32_t __tgt_rtl_is_valid_binary_info(const struct weir__abi_image *image, const void *info)
{
    (void)info;
    return __tgt_rtl_is_valid_binary(image);
}

/* They get an empty table. */
int32_t __tgt_rtl_supports_empty_images(void)
{
    return 1;
}

static int resolve(struct plugin_image *image, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct weir__abi_entry_old *entry = &image->entries[i];
        int code = OPS->module_symbol(image->module, entry->name, &entry->address, NULL);
        if (code) return code;
    }
    image->table = (struct weir__plugin_table){image->entries, image->entries + n};
    return WEIR_OK;
}

static struct plugin_image *load(struct plugin_device *device, const struct weir__abi_image *image)
{
    size_t bytes = (size_t)((const char *)image->entries_end - (const char *)image->entries_begin);
    struct plugin_image *own = malloc(sizeof *own + bytes);
    if (!own) {
        weir__plugin_fail("load_binary: no memory for %zu bytes of entries", bytes);
        return NULL;
    }
    if (bytes) memcpy(own->entries, image->entries_begin, bytes);
    own->module = NULL;
    int code = OPS->module_load(device->handle, image->start, (size_t)(image->end - image->start), &own->module);
    if (!code) code = resolve(own, bytes / sizeof own->entries[0]);
    if (!code) return own;
    (void)weir__plugin_fail_backend("load_binary", code);
    if (own->module) OPS->module_unload(own->module);
    free(own);
    return NULL;
}

struct weir__plugin_table *__tgt_rtl_load_binary(int32_t id, const struct weir__abi_image *image)
{
    if (!__tgt_rtl_is_valid_binary(image)) {
        weir__plugin_fail("load_binary: not an image for this machine");
        return NULL;
    }
    ptrdiff_t bytes = (const char *)image->entries_end - (const char *)image->entries_begin;
    if (bytes < 0 || (size_t)bytes % sizeof(struct weir__abi_entry_old)) {
        weir__plugin_fail("load_binary: the table of entries is not of the layout of LLVM 14 to 19");
        return NULL;
    }
    struct plugin_device *device = weir__plugin_device_enter("load_binary", id);
    if (!device) return NULL;
    struct plugin_image *own = load(device, image);
    if (own) {
        pthread_mutex_lock(&device->images_lock);
        own->next = device->images;
        device->images = own;
        pthread_mutex_unlock(&device->images_lock);
    }
    weir__plugin_device_leave(device);
    if (!own) return NULL;
    weir__plugin_count(WEIR__PLUGIN_IMAGES);
    weir__log(3, "plugin: device %d: an image with %zu entries is loaded", id, (size_t)bytes / sizeof own->entries[0]);
    return &own->table;
}
