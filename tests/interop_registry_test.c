/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Registration, lazy loading, removal and launches by hand-made tables, on the CPU device, without libomp. Each test is
 * a process of its own.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "interop/abi.h"
#include "interop/entries.h"
#include "interop/kernels.h"
#include "interop/registry.h"
#include "interop/runtime.h"
#include "interop_alone.h"

/* ---- a library with target code ---- */

static int variable = 11, linked = 5;
static int *link_ref_ptr = &linked;
static char add_region, add_old_region, report_region, absent_region;
static void function(void) {}

static struct weir__abi_entry_new entries[] = {
    {0, 1, 1, 0, &add_region, "image_add", 0, 0, NULL},
    {0, 1, 1, 0, &add_old_region, "image_add_old", 0, 0, NULL},
    {0, 1, 1, 0, &report_region, "image_report", 0, 0, NULL},
    {0, 1, 1, 0, &absent_region, "image_absent", 0, 0, NULL},
    {0, 1, 1, 0, &variable, "image_variable", sizeof variable, 0, NULL},
    {0, 1, 1, WEIR__ABI_ENTRY_LINK, &link_ref_ptr, "image_link_ref_ptr", sizeof link_ref_ptr, 0, NULL},
    {0, 1, 1, WEIR__ABI_ENTRY_INDIRECT, NULL, "image_indirect", sizeof(void *), 0, NULL},
    {0, 1, 1, WEIR__ABI_ENTRY_CTOR, NULL, "image_ctor", 0, 0, NULL},
    {0, 1, 1, WEIR__ABI_ENTRY_DTOR, NULL, "image_dtor", 0, 0, NULL},
};
enum { NENTRIES = sizeof entries / sizeof entries[0] };

static struct weir__abi_image image;
static struct weir__abi_descriptor descriptor = {1, &image, entries, entries + NENTRIES};

static void library_make(void)
{
    image = image_map(entries, NENTRIES);
    entries[6].address = (void *)(uintptr_t)function;
}

enum { TO = 1, FROM = 2, PARAM = 0x20, LITERAL = 0x100 };

static int launch(int64_t device, void *region, uint32_t version, int *value, int64_t plus)
{
    void *bases[] = {value, (void *)(intptr_t)plus}, *begins[] = {value, (void *)(intptr_t)plus};
    int64_t sizes[] = {sizeof *value, 8}, types[] = {TO | FROM | PARAM, LITERAL | PARAM};
    struct weir__abi_kernel_args args = {.version = version,
                                         .nargs = 2,
                                         .bases = bases,
                                         .begins = begins,
                                         .sizes = sizes,
                                         .types = types,
                                         .teams = {(uint32_t)-1, 0, 0}};
    return __tgt_target_kernel(NULL, device, -1, 0, region, &args);
}

static void report(int64_t device, int64_t *out, int n)
{
    void *pointers[] = {out};
    int64_t sizes[] = {n * (int64_t)sizeof *out}, types[] = {TO | FROM | PARAM};
    struct weir__abi_kernel_args args = {
        .version = 3, .nargs = 1, .bases = pointers, .begins = pointers, .sizes = sizes, .types = types};
    cr_assert_eq(__tgt_target_kernel(NULL, device, -1, 0, &report_region, &args), 0);
}

/* ---- tests ---- */

TestSuite(registry, .init = library_make, .timeout = 60);

Test(registry, without_image_there_is_no_device)
{
    int x = 1;
    cr_assert_eq(omp_get_num_devices(), 0);
    cr_assert_eq(launch(-1, &add_region, 3, &x, 1), -1);
    void *memory = omp_target_alloc(8, 0);
    cr_assert_not_null(memory, "number 0 is the host then");
    omp_target_free(memory, 0);
    __tgt_register_lib(&descriptor);
    cr_assert_eq(omp_get_num_devices(), 4);
    cr_assert_eq(launch(-1, &add_region, 3, &x, 1), 0);
    cr_assert_eq(x, 13);
}

Test(registry, images_load_at_the_first_use_of_each_device)
{
    int64_t out[3] = {0};
    int x = 0;
    __tgt_register_lib(&descriptor);
    struct weir__runtime *rt = NULL;
    for (int d = 3; d >= 0; d--) {
        cr_assert_eq(launch(d, &add_region, 3, &x, 1), 0);
        rt = weir__runtime_peek();
        cr_assert_eq(atomic_load(&rt->visible[d]->loaded), 1);
        if (d) cr_assert_eq(atomic_load(&rt->visible[d - 1]->loaded), 0);
    }
    cr_assert_eq(x, 4 * 12);
    report(2, out, 3);
    cr_assert_eq(out[0], 1, "the constructor has run once");
}

Test(registry, arguments_of_each_version_fit_the_kernel)
{
    int x = 100;
    __tgt_register_lib(&descriptor);
    cr_assert_eq(launch(0, &add_old_region, 1, &x, 1), 0);
    cr_assert_eq(launch(0, &add_old_region, 2, &x, 10), 0);
    cr_assert_eq(x, 89);
    cr_assert_eq(launch(0, &add_region, 3, &x, 0), 0);
    cr_assert_eq(x, 100);
}

Test(registry, variables_are_present_as_long_as_the_library)
{
    __tgt_register_lib(&descriptor);
    cr_assert(omp_target_is_present(&variable, 0));
    cr_assert(omp_target_is_present(&link_ref_ptr, 0));
    cr_assert(omp_target_is_present((void *)(uintptr_t)function, 0));
    cr_assert(!omp_target_is_present(&linked, 0));
    int value = 0;
    cr_assert_eq(omp_target_memcpy(&value, omp_get_mapped_ptr(&variable, 0), 4, 0, 0, 4, 0), 0);
    cr_assert_eq(value, 11);
    __tgt_unregister_lib(&descriptor);
    cr_assert(!omp_target_is_present(&variable, 0));
    cr_assert(!omp_target_is_present((void *)(uintptr_t)function, 0));
    __tgt_unregister_lib(&descriptor);
}

Test(registry, destructors_run_before_the_image_goes)
{
    static int64_t out[3];
    __tgt_register_lib(&descriptor);
    out[2] = (int64_t)(intptr_t)&out[0];
    report(1, out, 3);
    cr_assert_eq(out[0], 1);
    __tgt_unregister_lib(&descriptor);
    cr_assert_eq(out[0], -1);
}

Test(registry, kernels_that_no_image_has)
{
    int x = 0;
    __tgt_register_lib(&descriptor);
    cr_assert_eq(launch(0, &absent_region, 3, &x, 1), -1);
    cr_assert_eq(launch(0, &x, 3, &x, 1), -1);
    cr_assert_eq(launch(0, &add_region, 3, &x, 1), 0);
    __tgt_unregister_lib(&descriptor);
    cr_assert_eq(launch(0, &add_region, 3, &x, 1), -1);
}

Test(registry, library_comes_again)
{
    __tgt_register_lib(&descriptor);
    for (int i = 0; i < 5; i++) {
        int x = 0;
        cr_assert_eq(launch(0, &add_region, 3, &x, i), 0);
        cr_assert_eq(x, i + 11);
        __tgt_unregister_lib(&descriptor);
        cr_assert_eq(launch(0, &add_region, 3, &x, i), -1);
        __tgt_register_lib(&descriptor);
    }
}

Test(registry, two_libraries_share_an_inline_region)
{
    struct weir__abi_descriptor second = descriptor;
    struct weir__abi_entry_new only[] = {entries[0]};
    second.entries_begin = only;
    second.entries_end = only + 1;
    int x = 0;
    __tgt_register_lib(&descriptor);
    __tgt_register_lib(&second);
    cr_assert_eq(launch(0, &add_region, 3, &x, 0), 0);
    __tgt_unregister_lib(&descriptor);
    cr_assert_eq(launch(0, &add_region, 3, &x, 0), 0);
    cr_assert_eq(x, 22);
    __tgt_unregister_lib(&second);
    cr_assert_eq(launch(0, &add_region, 3, &x, 0), -1);
}

Test(registry, device_numbers)
{
    int x = 0;
    __tgt_register_lib(&descriptor);
    default_device = 2;
    cr_assert_eq(launch(-1, &add_region, 3, &x, 0), 0);
    cr_assert_eq(atomic_load(&weir__runtime_peek()->visible[2]->loaded), 1);
    cr_assert_eq(launch(4, &add_region, 3, &x, 0), -1, "the host");
    cr_assert_eq(x, 11);
}

Test(registry, out_of_range_ends_the_program, .signal = SIGABRT)
{
    int x = 0;
    __tgt_register_lib(&descriptor);
    (void)launch(5, &add_region, 3, &x, 0);
}

Test(registry, disabled_policy_uses_the_host)
{
    int x = 0;
    policy = 0;
    __tgt_register_lib(&descriptor);
    cr_assert_eq(omp_get_num_devices(), 0);
    cr_assert_eq(launch(-1, &add_region, 3, &x, 0), -1);
    cr_assert_eq(launch(3, &add_region, 3, &x, 0), -1);
    cr_assert_null(weir__runtime_peek(), "no context is made for nothing");
}

Test(registry, mandatory_policy_without_device_ends_the_program, .signal = SIGABRT)
{
    int x = 0;
    policy = 2;
    (void)launch(-1, &add_region, 3, &x, 0);
}

/* ---- many threads ---- */

enum { THREADS = 8, ROUNDS = 200 };
static _Atomic int ready, wrong;

static void *first_user(void *arg)
{
    int d = (int)(intptr_t)arg % 4;
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < THREADS) usleep(1);
    for (int i = 0; i < ROUNDS; i++) {
        int x = i;
        if (launch((d + i) % 4, &add_region, 3, &x, 1) || x != i + 12) atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

Test(registry, first_use_by_many_threads)
{
    pthread_t threads[THREADS];
    __tgt_register_lib(&descriptor);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, first_user, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    cr_assert_eq(atomic_load(&wrong), 0);
    __tgt_unregister_lib(&descriptor);
}

static _Atomic bool stop;

/* Libraries come and go beside launches of another one. */
static void *churner(void *arg)
{
    struct weir__abi_descriptor other = descriptor;
    struct weir__abi_entry_new only[] = {entries[1]};
    other.entries_begin = only;
    other.entries_end = only + 1;
    int x = 0;
    (void)arg;
    while (!atomic_load(&stop)) {
        __tgt_register_lib(&other);
        if (launch(0, only[0].address, 2, &x, 1)) atomic_fetch_add(&wrong, 1);
        __tgt_unregister_lib(&other);
    }
    return NULL;
}

Test(registry, libraries_come_and_go_beside_launches)
{
    static struct weir__abi_entry_new kept[NENTRIES];
    pthread_t thread;
    memcpy(kept, entries, sizeof kept);
    kept[1] = kept[0]; /* the other library alone has that region */
    descriptor.entries_begin = kept;
    descriptor.entries_end = kept + NENTRIES;
    __tgt_register_lib(&descriptor);
    pthread_create(&thread, NULL, churner, NULL);
    for (int i = 0; i < 300; i++) {
        int x = 0;
        if (launch(i % 2, &add_region, 3, &x, 1) || x != 12) atomic_fetch_add(&wrong, 1);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(atomic_load(&wrong), 0);
}

/* ---- table of kernels ---- */

Test(kernels, grows_forgets_and_reuses)
{
    enum { N = 5000 };
    static struct weir__kernel kernels[N];
    static char addresses[N];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            kernels[i].host = &addresses[i];
            cr_assert_null(weir__kernels_find(&addresses[i]));
            cr_assert_eq(weir__kernels_insert(&kernels[i]), WEIR_OK);
        }
        for (int i = 0; i < N; i++) cr_assert_eq(weir__kernels_find(&addresses[i]), &kernels[i]);
        for (int i = 0; i < N; i += 2) weir__kernels_remove(&kernels[i]);
        for (int i = 0; i < N; i++) cr_assert_eq(weir__kernels_find(&addresses[i]), i % 2 ? &kernels[i] : NULL);
        for (int i = 0; i < N; i++) weir__kernels_remove(&kernels[i]);
    }
    cr_assert_null(weir__kernels_find(&addresses[1]));
}
