/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Plugins of LLVM's interface as devices: made by hand (FAKES), and weir's own (EVENTS), which has events. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <devices/device.h>
#include <devices/plugin/internal.h>

enum { N = 1000 };

static struct rig {
    const struct weir__device_ops *ops;
    void *backend, *devices[2];
    struct weir__device_info info[2];
} rig;

#define must(call) cr_assert_eq((call), WEIR_OK, "%s: %s", #call, rig.ops->last_error(rig.devices[0]))

static _Atomic uint64_t notices;

static void reached(void *owner, uint64_t position)
{
    (void)owner, (void)position;
    atomic_fetch_add(&notices, 1);
}

static void open_rig(const char *file)
{
    static const struct weir__device_notice notice = {.reached = reached};
    const char *missing = NULL;
    char reason[256] = "";
    void *backend;
    uint32_t count;
    cr_assert_eq(weir__plugin_backend_open(file, &backend, reason, sizeof reason), WEIR_OK, "%s", reason);
    cr_assert_eq(weir__device_ops_check(&weir__plugin_ops, &missing), WEIR_OK, "%s", missing);
    cr_assert_eq(weir__device_adapt(&weir__plugin_ops, backend, &rig.ops, &rig.backend), WEIR_OK);
    must(rig.ops->device_count(rig.backend, &count));
    cr_assert_geq(count, 2);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(rig.ops->device_open(rig.backend, i, &notice, &rig.info[i], &rig.devices[i]), WEIR_OK);
}

static void close_rig(void)
{
    for (int i = 0; i < 2; i++) rig.ops->device_close(rig.devices[i]);
    weir__device_unadapt(rig.ops, rig.backend);
}

static void *new_stream(int device)
{
    void *stream;
    must(rig.ops->stream_create(rig.devices[device], NULL, 0, &stream));
    return stream;
}

static uint64_t record(void *stream)
{
    uint64_t position;
    must(rig.ops->record(stream, &position));
    if (rig.ops->flush) rig.ops->flush(stream);
    return position;
}

/* ---- what is refused ---- */

static const struct {
    const char *file, *text;
} refused[] = {
    {FAKES "no_delete.so", "__tgt_rtl_data_delete is missing"},
    {FAKES "no_launch.so", "__tgt_rtl_run_target_team_region or __tgt_rtl_launch_kernel is missing"},
    {FAKES "half_events.so", "__tgt_rtl_sync_event is missing"},
    {FAKES "no_synchronize.so", "__tgt_rtl_synchronize is missing"},
    {FAKES "no_devices.so", "it has no devices"},
    {"no such file", "no such file: cannot open"},
};

Test(devices_plugin, a_library_that_is_not_complete_is_refused_by_name)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char reason[512] = "";
        void *backend;
        cr_assert_eq(weir__plugin_backend_open(refused[i].file, &backend, reason, sizeof reason), WEIR_E_NO_DEVICE);
        cr_assert(strstr(reason, refused[i].text), "%s does not tell: %s", reason, refused[i].text);
    }
}

Test(devices_plugin, functions_of_events_without_events_are_none)
{
    open_rig(FAKES "empty_events.so");
    cr_assert_eq(rig.info[0].features & (WEIR__DEVICE_WAIT | WEIR__DEVICE_CROSS_WAIT), 0u);
    close_rig();
    open_rig(FAKES "complete.so");
    cr_assert_eq(rig.info[0].features & WEIR__DEVICE_WAIT, 0u);
    close_rig();
    open_rig(EVENTS);
    cr_assert_neq(rig.info[0].features & WEIR__DEVICE_WAIT, 0u);
    close_rig();
}

Test(devices_plugin, a_library_is_opened_once)
{
    char reason[256];
    void *backends[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(weir__plugin_backend_open(FAKES "complete.so", &backends[i], reason, sizeof reason), 0);
    cr_assert_eq(backends[0], backends[1]);
}

/* ---- work ---- */

static const char *const libraries[] = {FAKES "complete.so", FAKES "empty_events.so", EVENTS};
#define FOR_EACH_LIBRARY                                                                                               \
    for (size_t library = 0; library < sizeof libraries / sizeof libraries[0]; close_rig(), library++)                 \
        if (open_rig(libraries[library]), true)

static void copies(void)
{
    int in[N], out[N];
    void *memory[2], *stream = new_stream(0), *other = new_stream(1);
    for (int i = 0; i < N; i++) in[i] = i;
    for (int i = 0; i < 2; i++) must(rig.ops->alloc(rig.devices[i], sizeof in, &memory[i]));
    struct weir__copy up = {.kind = WEIR__COPY_TO_DEVICE, .to = memory[0], .from = in, .bytes = sizeof in};
    struct weir__copy over = {
        .kind = WEIR__COPY_PEER, .to = memory[1], .from = memory[0], .bytes = sizeof in, .peer = rig.devices[0]};
    struct weir__copy down = {.kind = WEIR__COPY_TO_HOST, .to = out, .from = memory[1], .bytes = sizeof in};
    must(rig.ops->copy(stream, &up));
    must(rig.ops->sync(stream, record(stream)));
    must(rig.ops->copy(other, &over));
    must(rig.ops->copy(other, &down));
    must(rig.ops->fill(other, memory[1], 0x5a, 10));
    must(rig.ops->sync(other, record(other)));
    cr_assert_eq(memcmp(in, out, sizeof in), 0);

    /* Three rows of two planes out of rows of 8 and planes of 40 numbers. */
    struct weir__copy block = {.kind = WEIR__COPY_TO_HOST, .to = out, .from = memory[1], .bytes = 4 * sizeof(int)};
    block.count[0] = 3, block.count[1] = 2;
    block.from_pitch[0] = 8 * sizeof(int), block.from_pitch[1] = 40 * sizeof(int);
    block.to_pitch[0] = 4 * sizeof(int), block.to_pitch[1] = 12 * sizeof(int);
    must(rig.ops->copy(other, &block));
    must(rig.ops->sync(other, record(other)));
    cr_assert_eq(out[0], 0x5a5a5a5a);
    for (int i = 3; i < 24; i++) cr_assert_eq(out[i], i / 12 * 40 + i % 12 / 4 * 8 + i % 4, "%d is %d", i, out[i]);
    rig.ops->stream_destroy(stream);
    rig.ops->stream_destroy(other);
    for (int i = 0; i < 2; i++) must(rig.ops->free(rig.devices[i], memory[i]));
}

Test(devices_plugin, copies_between_host_and_devices)
{
    FOR_EACH_LIBRARY copies();
}

static void *load_image(const char *file, int device)
{
    FILE *stream = fopen(file, "rb");
    static char content[1 << 20];
    void *module;
    cr_assert(stream);
    size_t bytes = fread(content, 1, sizeof content, stream);
    fclose(stream);
    must(rig.ops->module_load(rig.devices[device], content, bytes, &module));
    memset(content, 0, bytes); /* it was copied */
    return module;
}

static void kernels(const char *image)
{
    void *module = load_image(image, 0), *stream = new_stream(0), *address = NULL;
    int *number;
    size_t bytes = 99;
    cr_assert_eq(rig.ops->module_symbol(module, "nothing", &address, NULL), WEIR_E_NOT_FOUND);
    must(rig.ops->module_symbol(module, "image_variable", &address, &bytes));
    cr_assert_eq(bytes, sizeof(int));
    must(rig.ops->module_symbol(module, "image_link_pointer", &address, &bytes));
    cr_assert_eq(bytes, sizeof(int *));
    must(rig.ops->module_symbol(module, "image_variable", &address, NULL));
    int value = 100, result = -1, start = 5;
    struct weir__copy set = {.kind = WEIR__COPY_TO_DEVICE, .to = address, .from = &value, .bytes = sizeof value};
    must(rig.ops->alloc(rig.devices[0], sizeof *number, (void **)&number));
    must(rig.ops->module_symbol(module, "image_add", &address, NULL));
    uint64_t args[] = {(uintptr_t)number, 7, 3};
    struct weir__launch launch = {.kernel = address, .nargs = 3, .args = args};
    struct weir__copy up = {.kind = WEIR__COPY_TO_DEVICE, .to = number, .from = &start, .bytes = sizeof start};
    struct weir__copy down = {.kind = WEIR__COPY_TO_HOST, .to = &result, .from = number, .bytes = sizeof result};
    must(rig.ops->copy(stream, &set));
    must(rig.ops->copy(stream, &up));
    must(rig.ops->launch(stream, &launch));
    memset(args, 0, sizeof args);
    must(rig.ops->copy(stream, &down));
    must(rig.ops->sync(stream, record(stream)));
    cr_assert_eq(result, 5 + 3 * (7 + 100));
    rig.ops->stream_destroy(stream);
    must(rig.ops->free(rig.devices[0], number));
    rig.ops->module_unload(module);
}

Test(devices_plugin, kernels_of_both_kinds_of_images)
{
    FOR_EACH_LIBRARY
    {
        kernels(IMAGE_OLD);
        kernels(IMAGE_NEW);
    }
}

Test(devices_plugin, damaged_images_are_refused)
{
    open_rig(FAKES "complete.so");
    FILE *stream = fopen(IMAGE_OLD, "rb");
    static unsigned char content[1 << 20], damaged[1 << 20];
    void *module;
    cr_assert(stream);
    size_t bytes = fread(content, 1, sizeof content, stream);
    fclose(stream);
    cr_assert_eq(rig.ops->module_load(rig.devices[0], content, 0, &module), WEIR_E_IMAGE);
    cr_assert_eq(rig.ops->module_load(rig.devices[0], content, 100, &module), WEIR_E_IMAGE);
    /* The headers of the sections say anything; what counts is that nobody reads outside. The code stays as it is. */
    uint64_t headers;
    memcpy(&headers, content + 0x28, sizeof headers);
    uint32_t seed = 5;
    for (int round = 0; round < 300; round++) {
        memcpy(damaged, content, bytes);
        for (int i = 0; i < 3; i++) {
            seed = seed * 1664525u + 1013904223u;
            damaged[headers + (seed >> 8) % (bytes - headers)] ^= (unsigned char)(1u << (seed >> 28) % 8);
        }
        size_t cut = round % 2 ? bytes : bytes - (seed >> 4) % (bytes - headers);
        char *exact = malloc(cut); /* a sanitizer sees what is read behind it */
        struct rtl_entry *entries;
        uint32_t own, n;
        memcpy(exact, damaged, cut);
        if (!weir__rtl_image_entries(exact, cut, &entries, &own, &n)) {
            for (uint32_t i = 0; i < n; i++) cr_assert(entries[i].name >= exact && entries[i].name < exact + cut);
            free(entries);
        }
        free(exact);
    }
    close_rig();
}

/* ---- order ---- */

struct step {
    _Atomic int *gate, *counter;
    int seen;
};

static int pass(void *arg)
{
    struct step *step = arg;
    while (step->gate && !atomic_load(step->gate)) usleep(100);
    step->seen = atomic_fetch_add(step->counter, 1);
    return 0;
}

static int fail(void *arg)
{
    (void)arg;
    return 7;
}

static void order(void)
{
    _Atomic int gate = 0, counter = 0;
    struct step steps[3] = {{&gate, &counter, -1}, {NULL, &counter, -1}, {NULL, &counter, -1}};
    void *first = new_stream(0), *second = new_stream(0);
    bool can_wait = rig.info[0].features & WEIR__DEVICE_WAIT;
    must(rig.ops->host_function(first, pass, &steps[0]));
    uint64_t behind = record(first); /* nothing blocks here, though the gate is closed */
    must(rig.ops->host_function(first, pass, &steps[1]));
    uint64_t end = record(first);
    uint64_t before = atomic_load(&notices);
    must(rig.ops->notify(first, end));
    cr_assert_eq(rig.ops->completed(first, NULL), 0);
    if (can_wait) must(rig.ops->position_wait(second, &first, &behind, 1));
    if (can_wait) must(rig.ops->host_function(second, pass, &steps[2]));
    uint64_t other = record(second);
    usleep(2000);
    cr_assert_eq(steps[2].seen, -1);
    atomic_store(&gate, 1);
    must(rig.ops->sync(second, other));
    must(rig.ops->sync(first, end));
    cr_assert_eq(steps[0].seen, 0);
    if (can_wait) cr_assert_gt(steps[2].seen, 0);
    while (atomic_load(&notices) == before) usleep(100);
    cr_assert_eq(rig.ops->completed(first, NULL), end);
    rig.ops->stream_destroy(first);
    rig.ops->stream_destroy(second);
}

static void launch(void *stream, void *module, const char *kernel, void *first, void *second)
{
    void *address;
    uint64_t args[] = {(uintptr_t)first, (uintptr_t)second};
    must(rig.ops->module_symbol(module, kernel, &address, NULL));
    must(rig.ops->launch(stream, &(struct weir__launch){.kernel = address, .nargs = second ? 2 : 1, .args = args}));
}

/* A kernel holds its stream, and no notice and no work of another. */
static void kernels_in_order(void)
{
    static _Atomic int gate, one = 1, seen, other, unused;
    void *module = load_image(IMAGE_OLD, 0), *first = new_stream(0), *second = new_stream(0), *third = new_stream(0);
    bool can_wait = rig.info[0].features & WEIR__DEVICE_WAIT;
    atomic_store(&gate, 0);
    atomic_store(&seen, 0);
    atomic_store(&other, 0);
    launch(first, module, "image_pass", &gate, NULL);
    launch(first, module, "image_take", &seen, &one);
    uint64_t held = record(first);
    must(rig.ops->notify(first, held));
    if (can_wait) {
        must(rig.ops->position_wait(second, &first, &held, 1));
        launch(second, module, "image_take", &other, &seen);
    }
    uint64_t behind = record(second);
    uint64_t before = atomic_load(&notices);
    launch(third, module, "image_take", &unused, &one);
    uint64_t free = record(third);
    must(rig.ops->notify(third, free));
    while (atomic_load(&notices) == before) usleep(100);
    cr_assert(rig.ops->completed(first, NULL) == 0 && atomic_load(&other) == 0);
    atomic_store(&gate, 1);
    must(rig.ops->sync(second, behind));
    must(rig.ops->sync(first, held));
    cr_assert_eq(atomic_load(&seen), 1);
    cr_assert_eq(atomic_load(&other), can_wait);
    rig.ops->stream_destroy(first);
    rig.ops->stream_destroy(second);
    rig.ops->stream_destroy(third);
    rig.ops->module_unload(module);
}

Test(devices_plugin, kernels_hold_their_stream_and_no_other)
{
    FOR_EACH_LIBRARY kernels_in_order();
}

Test(devices_plugin, streams_are_in_order_and_nothing_blocks)
{
    FOR_EACH_LIBRARY order();
}

static void failures(void)
{
    _Atomic int counter = 0;
    struct step step = {NULL, &counter, -1};
    int number = 1;
    void *stream = new_stream(0);
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE, .to = NULL, .from = &number, .bytes = sizeof number};
    must(rig.ops->host_function(stream, fail, NULL));
    uint64_t one = record(stream);
    must(rig.ops->sync(stream, one));
    must(rig.ops->copy(stream, &copy)); /* refused by the plugin when its turn comes */
    uint64_t two = record(stream);
    must(rig.ops->sync(stream, two));
    must(rig.ops->host_function(stream, pass, &step));
    uint64_t three = record(stream);
    must(rig.ops->sync(stream, three));
    cr_assert_eq(rig.ops->status(stream, one), WEIR_E_TASK);
    cr_assert_eq(rig.ops->status(stream, two), WEIR_E_TASK);
    cr_assert_eq(rig.ops->status(stream, three), WEIR_OK);
    cr_assert_eq(step.seen, 0);
    cr_assert_geq(atomic_load(rig.info[0].failures), 2u);
    rig.ops->forget(stream, three);
    rig.ops->stream_destroy(stream);
}

Test(devices_plugin, a_failure_is_that_of_its_stretch)
{
    FOR_EACH_LIBRARY failures();
}

Test(devices_plugin, memory_that_cannot_be_had)
{
    void *address = &address;
    open_rig(FAKES "complete.so");
    cr_assert_eq(rig.ops->alloc(rig.devices[1], (size_t)1 << 50, &address), WEIR_E_NO_MEMORY);
    cr_assert_eq(address, (void *)&address);
    cr_assert(strstr(rig.ops->last_error(rig.devices[1]), "bytes"));
    close_rig();
}
