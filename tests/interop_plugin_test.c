/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <interop/abi.h>
#include <interop/plugin/plugin.h>

#define ok(call)     cr_assert_eq((call), 0, "%s", #call)
#define failed(call) cr_assert_eq((call), -1, "%s", #call)

/* Thousands of refusals would drown the log. */
static void quiet(void)
{
    cr_assert(freopen("/dev/null", "w", stderr));
}

static void open_devices(void)
{
    ok(__tgt_rtl_init_plugin());
    cr_assert_eq(__tgt_rtl_number_of_devices(), 4);
    for (int32_t id = 0; id < 2; id++) ok(__tgt_rtl_init_device(id));
}

static void close_devices(void)
{
    ok(__tgt_rtl_deinit_plugin());
}

TestSuite(interop_plugin, .init = open_devices, .fini = close_devices, .timeout = 100);

/* Kernels: functions of pointer-sized arguments. */
static void pass_gate(void *gate)
{
    while (!atomic_load((_Atomic int *)gate)) usleep(100);
}

static void add_one(void *counter)
{
    atomic_fetch_add((_Atomic int *)counter, 1);
}

static void take(void *to, void *from)
{
    atomic_store((_Atomic int *)to, atomic_load((_Atomic int *)from));
}

static int32_t queue_kernel(int32_t id, void *kernel, void *a, void *b, struct weir__plugin_async *async)
{
    void *args[] = {a, b};
    ptrdiff_t offsets[] = {0, 0};
    return __tgt_rtl_run_target_region_async(id, kernel, args, offsets, b ? 2 : 1, async);
}

Test(interop_plugin, misuse_of_arguments_is_refused)
{
    struct weir__plugin_async async = {NULL}, odd = {&async};
    void *event = NULL;
    ok(__tgt_rtl_create_event(0, &event));
    failed(__tgt_rtl_create_event(0, NULL));
    failed(__tgt_rtl_create_event(-1, &event));
    failed(__tgt_rtl_create_event(4, &event));
    failed(__tgt_rtl_create_event(3, &event)); /* not initialised */
    failed(__tgt_rtl_record_event(0, NULL, &async));
    failed(__tgt_rtl_record_event(0, event, NULL));
    failed(__tgt_rtl_record_event(0, event, &odd));
    failed(__tgt_rtl_record_event(1, event, &async));
    failed(__tgt_rtl_wait_event(0, event, &async)); /* never recorded */
    failed(__tgt_rtl_sync_event(0, event));
    ok(__tgt_rtl_record_event(0, event, &async)); /* nothing queued: complete */
    failed(__tgt_rtl_wait_event(0, event, NULL));
    failed(__tgt_rtl_wait_event(0, event, &odd));
    failed(__tgt_rtl_wait_event(1, event, &async));
    failed(__tgt_rtl_sync_event(1, event));
    failed(__tgt_rtl_sync_event(0, (char *)event + 1000));
    ok(__tgt_rtl_sync_event(0, event));
    failed(__tgt_rtl_destroy_event(1, event));
    ok(__tgt_rtl_destroy_event(0, event));
    failed(__tgt_rtl_destroy_event(0, event));
    failed(__tgt_rtl_sync_event(0, event));
    failed(__tgt_rtl_record_event(0, event, &async));
    failed(__tgt_rtl_synchronize(0, NULL));
    failed(__tgt_rtl_synchronize(0, &odd));
    failed(__tgt_rtl_query_async(0, &odd));
    ok(__tgt_rtl_synchronize(0, &async));
    failed(__tgt_rtl_init_async_info(0, NULL));
    failed(__tgt_rtl_release_async_info(0, &async));
    failed(__tgt_rtl_release_async_info(0, NULL));
    failed(__tgt_rtl_data_submit(0, NULL, &async, 8));
    failed(__tgt_rtl_data_submit_async(0, &odd, &async, 8, NULL));
    failed(__tgt_rtl_run_target_region(0, NULL, NULL, NULL, 0));
    failed(__tgt_rtl_deinit_device(3));
    cr_assert_null(__tgt_rtl_data_alloc(0, -1, NULL, 0));
    cr_assert_null(__tgt_rtl_load_binary(0, NULL));
    const char *text = NULL;
    failed(__tgt_rtl_init_device_info(0, NULL, &text));
    cr_assert_not_null(text);
}

Test(interop_plugin, memory_of_the_host_is_usable_as_it_is)
{
    int here[4] = {0};
    void *there = NULL;
    ok(__tgt_rtl_data_lock(0, here, sizeof here, &there));
    cr_assert_eq(there, (void *)here);
    ok(__tgt_rtl_data_unlock(0, here));
    failed(__tgt_rtl_data_lock(0, NULL, sizeof here, &there));
    failed(__tgt_rtl_data_lock(0, here, 0, &there));
    failed(__tgt_rtl_data_lock(0, here, sizeof here, NULL));
    failed(__tgt_rtl_data_lock(3, here, sizeof here, &there));
    failed(__tgt_rtl_data_unlock(0, NULL));
    failed(__tgt_rtl_data_unlock(3, here));
}

Test(interop_plugin, an_image_without_entries_gives_an_empty_table)
{
    struct weir__abi_image image = {.start = NULL};
    cr_assert_eq(__tgt_rtl_supports_empty_images(), 1);
    cr_assert_null(__tgt_rtl_load_binary(0, &image));
    FILE *file = fopen(IMAGE, "rb");
    cr_assert(file);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    char *content = malloc((size_t)bytes);
    rewind(file);
    cr_assert_eq(fread(content, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    image = (struct weir__abi_image){.start = content, .end = content + bytes};
    cr_assert_eq(__tgt_rtl_is_valid_binary(&image), 1);
    struct weir__plugin_table *table = __tgt_rtl_load_binary(0, &image);
    cr_assert(table && table->begin == table->end);
    struct weir__abi_entry_old entry = {.name = "no such symbol"};
    image.entries_begin = &entry;
    image.entries_end = &entry + 1;
    cr_assert_null(__tgt_rtl_load_binary(0, &image));
    image.entries_end = (char *)&entry + 5;
    cr_assert_null(__tgt_rtl_load_binary(0, &image));
    content[0] = 'X';
    cr_assert_eq(__tgt_rtl_is_valid_binary(&image), 0);
    cr_assert_null(__tgt_rtl_load_binary(0, &image));
    free(content);
}

/* 0x10 is LLVM's bit for what plugins say about kernels. */
Test(interop_plugin, kernels_are_told_of_when_asked_for)
{
    char text[256] = "";
    _Atomic int ran = 0;
    void *args[] = {&ran};
    ptrdiff_t offsets[] = {0};
    FILE *file = tmpfile();
    cr_assert(file && dup2(fileno(file), STDERR_FILENO) >= 0);
    ok(__tgt_rtl_run_target_region(0, add_one, args, offsets, 1));
    cr_assert_eq(lseek(fileno(file), 0, SEEK_CUR), 0);
    __tgt_rtl_set_info_flag(0x10);
    ok(__tgt_rtl_run_target_region(0, add_one, args, offsets, 1));
    __tgt_rtl_set_info_flag(0);
    cr_assert(pread(fileno(file), text, sizeof text - 1, 0) > 0);
    cr_assert(strstr(text, "device 0: run_target_region of kernel") && strstr(text, "with 1 arguments"), "%s", text);
}

Test(interop_plugin, work_behind_a_wait_follows_the_record)
{
    _Atomic int gate = 0, ran = 0, seen = -1;
    struct weir__plugin_async first = {NULL}, second = {NULL};
    void *event = NULL;
    ok(queue_kernel(0, pass_gate, &gate, NULL, &first));
    ok(queue_kernel(0, add_one, &ran, NULL, &first));
    ok(__tgt_rtl_create_event(0, &event));
    ok(__tgt_rtl_record_event(0, event, &first));
    ok(__tgt_rtl_wait_event(0, event, &second));
    ok(queue_kernel(0, take, &seen, &ran, &second));
    ok(__tgt_rtl_destroy_event(0, event)); /* pending, and waited for */
    ok(__tgt_rtl_query_async(0, &second));
    cr_assert_not_null(second.queue);
    cr_assert_eq(atomic_load(&seen), -1);
    atomic_store(&gate, 1);
    ok(__tgt_rtl_synchronize(0, &second));
    cr_assert_null(second.queue);
    cr_assert_eq(atomic_load(&seen), 1);
    while (first.queue) ok(__tgt_rtl_query_async(0, &first));
}

Test(interop_plugin, event_outlives_its_queue)
{
    _Atomic int gate = 0, ran = 0, other = 0;
    struct weir__plugin_async *owned = NULL, next = {NULL};
    void *event = NULL;
    ok(__tgt_rtl_init_async_info(0, &owned));
    cr_assert_not_null(owned->queue);
    void *queue = owned->queue;
    ok(queue_kernel(0, pass_gate, &gate, NULL, owned));
    ok(queue_kernel(0, add_one, &ran, NULL, owned));
    ok(__tgt_rtl_create_event(0, &event));
    ok(__tgt_rtl_record_event(0, event, owned));
    ok(__tgt_rtl_release_async_info(0, owned)); /* does not block */
    failed(__tgt_rtl_release_async_info(0, owned));
    /* The queue still works, so whoever comes next gets another one. */
    ok(queue_kernel(0, add_one, &other, NULL, &next));
    ok(__tgt_rtl_synchronize(0, &next));
    struct weir__plugin_async stale = {queue};
    failed(queue_kernel(0, add_one, &other, NULL, &stale));
    cr_assert_eq(atomic_load(&ran), 0);
    atomic_store(&gate, 1);
    ok(__tgt_rtl_sync_event(0, event));
    cr_assert_eq(atomic_load(&ran), 1);
    ok(__tgt_rtl_destroy_event(0, event));
}

Test(interop_plugin, wait_keeps_the_point_of_its_record)
{
    _Atomic int gate = 0, ran = 0;
    struct weir__plugin_async first = {NULL}, second = {NULL};
    void *event = NULL;
    ok(__tgt_rtl_create_event(0, &event));
    ok(queue_kernel(0, add_one, &ran, NULL, &first));
    ok(__tgt_rtl_record_event(0, event, &first));
    ok(__tgt_rtl_wait_event(0, event, &second));
    ok(queue_kernel(0, pass_gate, &gate, NULL, &first));
    ok(__tgt_rtl_record_event(0, event, &first)); /* moves the event, not the wait */
    ok(__tgt_rtl_synchronize(0, &second));
    atomic_store(&gate, 1);
    ok(__tgt_rtl_sync_event(0, event));
    ok(__tgt_rtl_synchronize(0, &first));
    ok(__tgt_rtl_destroy_event(0, event));
}

static void *sync_elsewhere(void *event)
{
    ok(__tgt_rtl_sync_event(0, event));
    return NULL;
}

Test(interop_plugin, one_record_holds_two_queues_and_another_thread)
{
    _Atomic int gate = 0, ran = 0, seen[2] = {-1, -1};
    struct weir__plugin_async first = {NULL}, others[2] = {{NULL}};
    void *event = NULL;
    pthread_t thread;
    ok(queue_kernel(0, pass_gate, &gate, NULL, &first));
    ok(queue_kernel(0, add_one, &ran, NULL, &first));
    ok(__tgt_rtl_create_event(0, &event));
    ok(__tgt_rtl_record_event(0, event, &first));
    for (int i = 0; i < 2; i++) {
        ok(__tgt_rtl_wait_event(0, event, &others[i]));
        ok(queue_kernel(0, take, &seen[i], &ran, &others[i]));
    }
    cr_assert_eq(pthread_create(&thread, NULL, sync_elsewhere, event), 0);
    usleep(1000);
    cr_assert(atomic_load(&seen[0]) == -1 && atomic_load(&seen[1]) == -1);
    atomic_store(&gate, 1);
    pthread_join(thread, NULL);
    cr_assert_eq(atomic_load(&ran), 1);
    for (int i = 0; i < 2; i++) {
        ok(__tgt_rtl_synchronize(0, &others[i]));
        cr_assert_eq(atomic_load(&seen[i]), 1);
    }
    ok(__tgt_rtl_synchronize(0, &first));
    ok(__tgt_rtl_destroy_event(0, event));
}

Test(interop_plugin, closing_a_device_ends_its_objects)
{
    _Atomic int ran = 0;
    struct weir__plugin_async async = {NULL};
    void *event = NULL;
    ok(__tgt_rtl_create_event(1, &event));
    for (int i = 0; i < 100; i++) ok(queue_kernel(1, add_one, &ran, NULL, &async));
    ok(__tgt_rtl_record_event(1, event, &async));
    ok(__tgt_rtl_deinit_device(1));
    cr_assert_eq(atomic_load(&ran), 100);
    failed(__tgt_rtl_sync_event(1, event));
    ok(__tgt_rtl_init_device(1));
    failed(__tgt_rtl_sync_event(1, event));
    failed(__tgt_rtl_synchronize(1, &async));
    async.queue = NULL;
    ok(queue_kernel(1, add_one, &ran, NULL, &async));
    ok(__tgt_rtl_synchronize(1, &async));
    cr_assert_eq(atomic_load(&ran), 101);
}

Test(interop_plugin, copies_and_launches_of_both_releases)
{
    int from[4] = {1, 2, 3, 4}, to[4] = {0};
    struct weir__plugin_async async = {NULL};
    int *device = __tgt_rtl_data_alloc(0, sizeof from, NULL, 0), *peer = __tgt_rtl_data_alloc(1, sizeof from, NULL, 3);
    ok(__tgt_rtl_data_submit(0, device, from, sizeof from));
    ok(__tgt_rtl_data_exchange(0, device, 1, peer, sizeof from));
    uint32_t kernel_args[26] = {2, 1};
    void *args[] = {peer};
    ptrdiff_t offsets[] = {sizeof(int)};
    ok(__tgt_rtl_launch_kernel(1, add_one, args, offsets, kernel_args, &async));
    ok(__tgt_rtl_run_target_team_region_async(1, add_one, args, offsets, 1, 0, 0, 0, &async));
    ok(__tgt_rtl_data_retrieve_async(1, to, peer, sizeof to, &async));
    ok(__tgt_rtl_synchronize(1, &async));
    cr_assert(to[0] == 1 && to[1] == 4 && to[2] == 3 && to[3] == 4);
    ok(__tgt_rtl_data_delete(0, device));
    ok(__tgt_rtl_data_delete(1, peer));
}

/*
 * The protocol as a state machine. Each thread has events and queues of its own, and knows of each event its state and
 * the number of its queue's kernels that its record covers; illegal calls must fail and change nothing.
 */
enum { EVENTS = 6, QUEUES = 3, STEPS = 4000, THREADS = 4 };
enum state { GONE, MADE, RECORDED };
struct machine {
    uint32_t seed;
    int32_t device;
    void *events[EVENTS];
    enum state states[EVENTS];
    int covers[EVENTS], source[EVENTS];
    struct weir__plugin_async queues[QUEUES];
    _Atomic int ran[QUEUES];
    int queued[QUEUES];
};

static uint32_t draw(struct machine *m, uint32_t n)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (m->seed >> 8) % n;
}

static void step_event(struct machine *m, uint32_t e, uint32_t q, uint32_t what)
{
    bool live = m->states[e] != GONE, recorded = m->states[e] == RECORDED;
    int32_t id = m->device;
    if (what == 0 && !live) {
        ok(__tgt_rtl_create_event(id, &m->events[e]));
        m->states[e] = MADE;
    } else if (what == 1) {
        cr_assert_eq(__tgt_rtl_record_event(id, m->events[e], &m->queues[q]), live ? 0 : -1);
        if (!live) return;
        m->states[e] = RECORDED;
        m->covers[e] = m->queued[q];
        m->source[e] = (int)q;
    } else if (what == 2) {
        cr_assert_eq(__tgt_rtl_wait_event(id, m->events[e], &m->queues[q]), recorded ? 0 : -1);
        if (!recorded || draw(m, 2)) return;
        ok(__tgt_rtl_synchronize(id, &m->queues[q])); /* and so for what it waited for */
        cr_assert_geq(atomic_load(&m->ran[m->source[e]]), m->covers[e]);
    } else if (what == 3) {
        cr_assert_eq(__tgt_rtl_sync_event(id, m->events[e]), recorded ? 0 : -1);
        if (recorded) cr_assert_geq(atomic_load(&m->ran[m->source[e]]), m->covers[e]);
    } else if (what == 4) {
        cr_assert_eq(__tgt_rtl_destroy_event(id, m->events[e]), live ? 0 : -1);
        m->states[e] = GONE;
    } else if (what == 5) {
        failed(__tgt_rtl_sync_event(!id, m->events[e]));
        failed(__tgt_rtl_destroy_event(!id, m->events[e]));
    }
}

static void *run_machine(void *arg)
{
    struct machine *m = arg;
    for (int i = 0; i < STEPS; i++) {
        uint32_t e = draw(m, EVENTS), q = draw(m, QUEUES), what = draw(m, 10);
        if (what < 6) {
            step_event(m, e, q, what);
        } else if (what < 8) {
            ok(queue_kernel(m->device, add_one, &m->ran[q], NULL, &m->queues[q]));
            m->queued[q]++;
        } else if (what == 8) {
            ok(__tgt_rtl_query_async(m->device, &m->queues[q]));
            if (!m->queues[q].queue) cr_assert_eq(atomic_load(&m->ran[q]), m->queued[q]);
        } else {
            ok(__tgt_rtl_synchronize(m->device, &m->queues[q]));
            cr_assert_eq(atomic_load(&m->ran[q]), m->queued[q]);
        }
    }
    for (int q = 0; q < QUEUES; q++) ok(__tgt_rtl_synchronize(m->device, &m->queues[q]));
    for (int q = 0; q < QUEUES; q++) cr_assert_eq(atomic_load(&m->ran[q]), m->queued[q]);
    return NULL;
}

Test(interop_plugin, random_legal_and_illegal_calls)
{
    static struct machine machines[THREADS];
    pthread_t threads[THREADS];
    quiet();
    for (int i = 0; i < THREADS; i++) {
        machines[i].seed = 77u + (uint32_t)i;
        machines[i].device = i % 2;
        cr_assert_eq(pthread_create(&threads[i], NULL, run_machine, &machines[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* Each step of an event's life is a line with its handle, which no other event ever has. */
Test(interop_plugin_log, the_log_tells_the_life_of_an_event)
{
    static const char *const steps[] = {"created", "recorded on queue", "waits for event", "waited for by the host",
                                        "destroyed"};
    _Atomic int ran = 0;
    struct weir__plugin_async first = {NULL}, second = {NULL};
    char text[4096] = "", handle[64], *line;
    void *event = NULL;
    setenv("WEIR_LOG", "4", 1);
    FILE *file = tmpfile();
    cr_assert(file && dup2(fileno(file), STDERR_FILENO) >= 0);
    open_devices();
    ok(queue_kernel(0, add_one, &ran, NULL, &first));
    ok(__tgt_rtl_create_event(0, &event));
    ok(__tgt_rtl_record_event(0, event, &first));
    ok(__tgt_rtl_wait_event(0, event, &second));
    ok(__tgt_rtl_sync_event(0, event));
    ok(__tgt_rtl_destroy_event(0, event));
    close_devices();
    cr_assert(pread(fileno(file), text, sizeof text - 1, 0) > 0);
    snprintf(handle, sizeof handle, "event %p", event);
    size_t step = 0;
    for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (!strstr(line, handle)) continue;
        cr_assert(step < 5 && strstr(line, steps[step]), "step %zu: %s", step, line);
        step++;
    }
    cr_assert_eq(step, 5u);
}

/* What each release cannot do without, and the optional functions that are there. */
Test(interop_plugin_library, the_library_has_what_is_looked_up)
{
    static const char *const names[] = {"is_valid_binary",   "number_of_devices",
                                        "init_device",       "load_binary",
                                        "data_alloc",        "data_submit",
                                        "data_retrieve",     "data_delete",
                                        "run_target_region", "run_target_team_region",
                                        "launch_kernel",     "create_event",
                                        "record_event",      "wait_event",
                                        "sync_event",        "destroy_event",
                                        "init_async_info",   "release_async_info",
                                        "init_device_info",  "synchronize",
                                        "query_async",       "data_exchange_async",
                                        "init_plugin",       "deinit_device",
                                        "data_lock",         "data_unlock",
                                        "set_info_flag",     "supports_empty_images",
                                        "print_device_info"};
    void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (!library) cr_skip_test("a sanitized library: %s", dlerror());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "__tgt_rtl_%s", names[i]);
        cr_assert_not_null(dlsym(library, name), "%s", name);
    }
    cr_assert_null(dlsym(library, "weir_context_create"));
}
