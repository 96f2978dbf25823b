/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/registry.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/construct.h"
#include "interop/decode.h"
#include "interop/kernels.h"
#include "interop/learned.h"
#include "interop/mapping.h"
#include "interop/runtime.h"
#include "interop/shim.h"

/*
 * lock           list of libraries, table of kernels. Nothing is taken inside.
 * target->load   images of one device; registry.lock is taken inside, never the other way round. Who removes a library
 *                unlinks it first and takes every target->load before freeing it, so a loader may walk the list.
 */

/* What one library has on one device. Under target->load. */
struct part {
    enum { PART_NEW, PART_LOADED, PART_NOTHING } state;
    void *module;
};

struct library {
    struct library *next; /* in order of registration */
    const struct weir__abi_descriptor *descriptor;
    struct weir__entries entries;
    struct weir__image image[2]; /* of the two machines, .start NULL: none */
    /* Both made at the first load, under registry.lock. */
    struct weir__kernel **kernels; /* kernels[entries.n], NULL where the entry is none */
    struct part *parts;            /* parts[ntargets] */
};

static struct {
    pthread_mutex_t lock;
    struct library *first, **last;
    _Atomic uint64_t generation; /* R1 release in add, A1 acquire in load */
    _Atomic uint32_t machines;
    _Atomic uint64_t requires;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &registry.first};

uint32_t weir__registry_machines(void)
{
    return atomic_load_explicit(&registry.machines, memory_order_acquire); /* pairs with add */
}

uint64_t weir__registry_requires(void)
{
    return atomic_load_explicit(&registry.requires, memory_order_relaxed); /* a set of bits, nothing hangs on it */
}

void weir__registry_add_requires(uint64_t bits)
{
    atomic_fetch_or_explicit(&registry.requires, bits, memory_order_relaxed);
}

/* ---- registration ---- */

static struct weir__image *image_slot(struct library *library, uint32_t machine)
{
    return &library->image[machine == WEIR__MACHINE_CUDA];
}

/* One for the device itself before one for this machine. @machines: those whose images the device takes. */
static const struct weir__image *image_for(struct library *library, uint32_t machines)
{
    const struct weir__image *image = image_slot(library, WEIR__MACHINE_CUDA);
    if ((machines & WEIR__MACHINE_CUDA) && image->start) return image;
    image = image_slot(library, WEIR__MACHINE_X86_64);
    return (machines & WEIR__MACHINE_X86_64) && image->start ? image : NULL;
}

static uint32_t decode_images(struct library *library, const struct weir__abi_descriptor *descriptor)
{
    uint32_t machines = 0;
    for (int32_t i = 0; i < descriptor->nimages; i++) {
        struct weir__image image;
        if (weir__decode_image(descriptor->images[i].start, descriptor->images[i].end, &image)) {
            weir__warn("an image of this program is damaged and is ignored");
            continue;
        }
        if (!image.machine || image_slot(library, image.machine)->start) continue; /* the first one that fits */
        *image_slot(library, image.machine) = image;
        machines |= image.machine;
    }
    return machines;
}

void weir__registry_add(const struct weir__abi_descriptor *descriptor)
{
    weir__runtime_stay();
    struct library *library = calloc(1, sizeof *library);
    if (!library) weir__fatal("out of memory");
    library->descriptor = descriptor;
    if (weir__decode_entries(descriptor->entries_begin, descriptor->entries_end, &library->entries)) {
        weir__warn("a table of offload entries has an unknown layout and is ignored");
        free(library);
        return;
    }
    for (size_t i = 0; i < library->entries.n; i++) {
        struct weir__entry entry = weir__decode_entry(&library->entries, i);
        if (entry.kind == WEIR__ENTRY_REQUIRES) weir__registry_add_requires(entry.data);
    }
    uint32_t machines = decode_images(library, descriptor);
    pthread_mutex_lock(&registry.lock);
    *registry.last = library;
    registry.last = &library->next;
    atomic_fetch_add_explicit(&registry.generation, 1, memory_order_release); /* R1 */
    pthread_mutex_unlock(&registry.lock);
    atomic_fetch_or_explicit(&registry.machines, machines, memory_order_release);
}

/* ---- loading ---- */

/* Under registry.lock. Kernels become known with no address anywhere. */
static int library_prepare(struct library *library, uint32_t ntargets)
{
    if (library->parts) return WEIR_OK;
    struct weir__kernel **kernels = calloc(library->entries.n + 1, sizeof(struct weir__kernel *));
    struct part *parts = calloc(ntargets, sizeof *parts);
    if (!kernels || !parts) goto fail;
    for (size_t i = 0; i < library->entries.n; i++) {
        struct weir__entry entry = weir__decode_entry(&library->entries, i);
        if (entry.kind != WEIR__ENTRY_KERNEL) continue;
        kernels[i] = calloc(1, sizeof *kernels[i] + ntargets * sizeof kernels[i]->on[0]);
        if (!kernels[i]) goto fail;
        kernels[i]->host = entry.address;
        kernels[i]->name = entry.name;
        /* The region of an inline function has one address in all libraries: the first one serves. */
        if (!weir__kernels_find(entry.address) && weir__kernels_insert(kernels[i])) goto fail;
    }
    library->kernels = kernels;
    library->parts = parts;
    return WEIR_OK;
fail:
    for (size_t i = 0; kernels && i < library->entries.n; i++) {
        if (kernels[i]) weir__kernels_remove(kernels[i]);
        free(kernels[i]);
    }
    free(kernels);
    free(parts);
    return WEIR_E_NO_MEMORY;
}

static int symbol_find(struct weir__target *target, void *module, const char *name, void **address_out)
{
    return weir__device_ops_of(target->device)->module_symbol(module, name, address_out, NULL);
}

static bool run_kernel(struct weir__target *target, void *module, const struct weir__entry *entry)
{
    struct weir__launch launch = {.kernel = NULL};
    struct weir_task_options options = {.size = sizeof options, .name = entry->name};
    struct weir_task *task;
    if (symbol_find(target, module, entry->name, &launch.kernel)) return false;
    if (weir_task_begin(weir__runtime_thread()->scope, target->device, NULL, 0, &options, &task)) return false;
    int rc = weir__task_launch(task, &launch);
    int done = weir__task_end_and_wait(task);
    return !rc && !done;
}

/* A variable: its place on the device is known for as long as the image is loaded. */
static bool map_variable(struct weir__target *target, void *module, const struct weir__entry *entry)
{
    void *symbol;
    if (symbol_find(target, module, entry->name, &symbol)) return false;
    if (entry->kind == WEIR__ENTRY_INDIRECT) {
        /* The symbol holds the address of the function; the function's own address is what gets mapped. */
        struct weir__copy read = {.kind = WEIR__COPY_TO_HOST, .from = symbol, .bytes = sizeof(void *)};
        void *function = NULL;
        read.to = &function;
        return !weir__construct_copy(target, &read) &&
               !weir__table_associate(target->table, entry->address, function, entry->bytes, 0);
    }
    if (weir__registry_requires() & WEIR__ABI_REQUIRES_UNIFIED_SHARED_MEMORY) {
        /* Here every such symbol is a pointer to the host's variable. */
        struct weir__copy write = {
            .kind = WEIR__COPY_TO_DEVICE, .to = symbol, .from = entry->address, .bytes = entry->bytes};
        if (weir__construct_copy(target, &write)) return false;
    }
    return !weir__table_associate(target->table, entry->address, symbol, entry->bytes, 0);
}

static bool is_variable(enum weir__entry_kind kind)
{
    return kind == WEIR__ENTRY_GLOBAL || kind == WEIR__ENTRY_LINK || kind == WEIR__ENTRY_INDIRECT;
}

static bool bytes_read(struct weir__target *target, void *module, const char *kernel, const char *suffix, void *to,
                       size_t bytes)
{
    char name[512];
    size_t size = 0;
    struct weir__copy read = {.kind = WEIR__COPY_TO_HOST, .to = to, .bytes = bytes};
    void *symbol;
    if ((size_t)snprintf(name, sizeof name, "%s%s", kernel, suffix) >= sizeof name) return false;
    if (weir__device_ops_of(target->device)->module_symbol(module, name, &symbol, &size) || size < bytes) return false;
    read.from = symbol;
    return !weir__construct_copy(target, &read);
}

/* How the compiler has translated a kernel; unknown on a device without grids. */
static struct weir__shape shape_read(struct weir__target *target, void *module, const char *kernel)
{
    struct weir__shape shape = {.known = false};
    unsigned char bytes[WEIR__SHAPE_BYTES];
    bool good = true;
    if (!weir__device_info_of(target->device)->processors) return shape;
    if (bytes_read(target, module, kernel, "_kernel_environment", bytes, sizeof bytes))
        good = weir__shape_of_environment(bytes, &shape);
    else if (bytes_read(target, module, kernel, "_exec_mode", bytes, 1))
        good = weir__shape_of_mode(bytes, &shape);
    if (!good) weir__warn("%s: the image says nonsense about how %s runs", target->uid, kernel);
    return shape;
}

/* First the variables, then what runs at the beginning, then kernels: who finds a kernel finds the rest. */
static void library_load_symbols(struct weir__target *target, struct library *library, void *module)
{
    for (size_t i = 0; i < library->entries.n; i++) {
        struct weir__entry entry = weir__decode_entry(&library->entries, i);
        if (is_variable(entry.kind) && !map_variable(target, module, &entry))
            weir__log(2, "%s: no variable %s: %s", target->uid, entry.name, weir_error_text());
    }
    for (size_t i = 0; i < library->entries.n; i++) {
        struct weir__entry entry = weir__decode_entry(&library->entries, i);
        if (entry.kind == WEIR__ENTRY_CTOR && !run_kernel(target, module, &entry))
            weir__fatal("%s on %s failed: %s", entry.name, target->uid, weir_error_text());
    }
    for (size_t i = 0; i < library->entries.n; i++) {
        void *address;
        if (!library->kernels[i]) continue;
        if (symbol_find(target, module, library->kernels[i]->name, &address)) {
            weir__log(2, "%s: the image has no kernel %s", target->uid, library->kernels[i]->name);
            continue;
        }
        struct weir__kernel_on *on = &library->kernels[i]->on[target->index];
        on->shape = shape_read(target, module, library->kernels[i]->name);
        atomic_store_explicit(&on->address, address, memory_order_release); /* pairs with weir__registry_kernel() */
    }
}

/* Under target->load. */
static void library_load(struct weir__target *target, struct library *library)
{
    struct part *part = &library->parts[target->index];
    const struct weir__image *image = image_for(library, target->machine);
    part->state = PART_NOTHING;
    if (!image) return;
    const struct weir__device_ops *ops = weir__device_ops_of(target->device);
    void *device = weir__device_handle_of(target->device);
    if (ops->module_load(device, image->start, image->bytes, &part->module)) {
        weir__warn("an image cannot be loaded on %s: %s", weir_device_name(target->device), ops->last_error(device));
        return;
    }
    part->state = PART_LOADED;
    library_load_symbols(target, library, part->module);
}

static void load_slowly(struct weir__target *target)
{
    uint32_t ntargets = weir__runtime_peek()->ntargets;
    pthread_mutex_lock(&target->load);
    if (weir__registry_requires() & WEIR__ABI_REQUIRES_UNIFIED_SHARED_MEMORY) weir__table_set_unified(target->table);
    pthread_mutex_lock(&registry.lock);
    uint64_t generation = atomic_load_explicit(&registry.generation, memory_order_relaxed); /* under the lock */
    for (struct library *library = registry.first; library; library = library->next) {
        int rc = library_prepare(library, ntargets);
        if (rc) weir__fatal("loading images: %s", weir_error_string(rc));
        if (library->parts[target->index].state != PART_NEW) continue;
        pthread_mutex_unlock(&registry.lock); /* the image's constructors run, other libraries may register */
        library_load(target, library);
        pthread_mutex_lock(&registry.lock);
    }
    pthread_mutex_unlock(&registry.lock);
    atomic_store_explicit(&target->loaded, generation, memory_order_release); /* R2: A2 in weir__registry_load() */
    pthread_mutex_unlock(&target->load);
}

void weir__registry_load(struct weir__target *target)
{
    uint64_t generation = atomic_load_explicit(&registry.generation, memory_order_acquire); /* A1 */
    if (atomic_load_explicit(&target->loaded, memory_order_acquire) >= generation) return;  /* A2 */
    load_slowly(target);
}

const struct weir__kernel *weir__registry_kernel(const struct weir__target *target, const void *host,
                                                 void **address_out)
{
    struct weir__kernel *kernel = weir__kernels_find(host);
    if (!kernel) return NULL;
    void *address = atomic_load_explicit(&kernel->on[target->index].address, memory_order_acquire);
    if (!address) return NULL;
    *address_out = address;
    return kernel;
}

/* ---- removal ---- */

static void library_unload(struct weir__target *target, struct library *library)
{
    pthread_mutex_lock(&target->load);
    struct part *part = &library->parts[target->index];
    if (part->state == PART_LOADED) {
        for (size_t i = 0; i < library->entries.n; i++) {
            struct weir__entry entry = weir__decode_entry(&library->entries, i);
            if (entry.kind == WEIR__ENTRY_DTOR && !run_kernel(target, part->module, &entry))
                weir__warn("%s on %s failed: %s", entry.name, target->uid, weir_error_text());
            if (is_variable(entry.kind) && weir__table_disassociate(target->table, entry.address))
                weir__log(3, "%s: %s was not mapped at the end", target->uid, entry.name);
        }
        weir__device_ops_of(target->device)->module_unload(part->module);
    }
    pthread_mutex_unlock(&target->load);
}

/* Under registry.lock: kernels of @gone are not found any more; where another library has the same, that one is. */
static void kernels_forget(struct library *gone)
{
    for (size_t i = 0; gone->kernels && i < gone->entries.n; i++)
        if (gone->kernels[i]) weir__kernels_remove(gone->kernels[i]);
    for (struct library *library = registry.first; library; library = library->next)
        for (size_t i = 0; library->kernels && i < library->entries.n; i++) {
            struct weir__kernel *kernel = library->kernels[i];
            if (kernel && !weir__kernels_find(kernel->host) && weir__kernels_insert(kernel))
                weir__warn("kernel %s is lost: out of memory", kernel->name);
        }
}

static struct library *library_unlink(const struct weir__abi_descriptor *descriptor)
{
    pthread_mutex_lock(&registry.lock);
    struct library **at = &registry.first;
    while (*at && (*at)->descriptor != descriptor) at = &(*at)->next;
    struct library *library = *at;
    if (library) {
        /* library->next stays: a loader may stand on it. */
        *at = library->next;
        if (registry.last == &library->next) registry.last = at;
        kernels_forget(library);
    }
    pthread_mutex_unlock(&registry.lock);
    return library;
}

static int is_in_program(struct dl_phdr_info *info, size_t size, void *address)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (uintptr_t)address - begin < segment->p_memsz) return 1;
    }
    return -1; /* only the first object, which is the program */
}

void weir__registry_remove(const struct weir__abi_descriptor *descriptor)
{
    if (weir__runtime_is_child() || weir__runtime_in_kernel())
        return; /* a kernel called exit(): it cannot be waited for */
    /* The program itself goes away only when the process ends. */
    if (dl_iterate_phdr(is_in_program, (void *)(uintptr_t)descriptor) > 0)
        weir__runtime_drain_all();
    else
        weir__shim_drain();
    weir__learned_forget();
    struct library *library = library_unlink(descriptor);
    if (!library) return;
    struct weir__runtime *rt = weir__runtime_peek();
    for (uint32_t i = 0; library->parts && i < rt->ntargets; i++) library_unload(&rt->targets[i], library);
    for (size_t i = 0; library->kernels && i < library->entries.n; i++) free(library->kernels[i]);
    free(library->kernels);
    free(library->parts);
    free(library);
}
