/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Interop objects of CUDA devices, on the emulated driver: every property by every getter, of both types of objects and
 * both foreign runtimes; and foreign work that the driver's own calls queue on the stream.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>

#include "cuda/driver.h"
#include "interop/abi.h"
#include "interop/entries.h"
#include "interop_alone.h"
#include "interop_rows.h"

enum { DEVICES = 4, DEVICE = 1 };

static char reduce_region;
static struct weir__abi_entry_new entries[] = {{0, 1, 1, 0, &reduce_region, "image_reduce", 0, 0, NULL}};
static struct weir__abi_image image;
static struct weir__abi_descriptor descriptor = {1, &image, entries, entries + 1};
static struct weir__abi_interop_context place;
static void *context; /* the primary one of the device */

static void set_up(void)
{
    emulator_set("devices", DEVICES);
    emulator_set("report_legacy", 1);
    setenv("WEIR_DEVICE", "cuda", 1);
    image = image_map(entries, 1);
    __tgt_register_lib(&descriptor);
    cr_assert_eq(omp_get_num_devices(), DEVICES);
    cr_assert_eq(cuDevicePrimaryCtxRetain(&context, DEVICE), 0);
}

static void tear_down(void)
{
    cr_assert_eq(emulator_report_count(), 0, "%s", emulator_report_text(0));
}

TestSuite(interop_driver, .init = set_up, .fini = tear_down, .timeout = 60);

/* @runtime: 1 "cuda", 2 "cuda_driver". */
static struct weir__interop *object_of(int is_targetsync, uint32_t runtime)
{
    struct weir__abi_interop_prefer prefer = {runtime, 0, 0};
    struct weir__interop *object = __tgt_interop_get(NULL, is_targetsync, DEVICE, 1, &prefer, &place, NULL);
    cr_assert_not_null(object, "%s", omp_get_interop_rc_desc(NULL, WEIR__IRC_EMPTY));
    return object;
}

static void destroy(struct weir__interop *object)
{
    cr_assert_eq(__tgt_interop_release(NULL, object, &place, NULL), 0);
}

/* The table has made-up handles. Here they are those of the driver. */
static int64_t value_of(size_t row, int backend)
{
    if (rows[row].property == WEIR__IPR_DEVICE) return DEVICE;
    if (rows[row].property == WEIR__IPR_DEVICE_CONTEXT) return (intptr_t)context;
    return rows[row].want[backend].value;
}

Test(interop_driver, each_getter_answers_each_property)
{
    static const int getters[] = {I, P, S};
    for (int backend = CUDA; backend <= CUDA_DRIVER; backend++) {
        for (int type = 0; type < 2; type++) {
            struct weir__interop *object = object_of(type, backend == CUDA ? 1 : 2);
            /* The context is there with the stream. */
            cr_assert_not_null(omp_get_interop_ptr(object, WEIR__IPR_TARGETSYNC, NULL));
            for (size_t row = 0; row < ROWS; row++)
                for (int g = 0; g < 3; g++) check_row(row, backend, value_of(row, backend), object, getters[g]);
            destroy(object);
        }
    }
}

Test(interop_driver, handles_are_those_of_the_driver)
{
    for (uint32_t runtime = 1; runtime <= 2; runtime++) {
        struct weir__interop *object = object_of(1, runtime);
        void *stream = omp_get_interop_ptr(object, WEIR__IPR_TARGETSYNC, NULL), *of_stream;
        unsigned flags;
        cr_assert_eq(cuCtxPushCurrent_v2(context), 0);
        cr_assert_eq(cuStreamGetCtx(stream, &of_stream), 0);
        cr_assert_eq(of_stream, context);
        cr_assert_eq(cuStreamGetFlags(stream, &flags), 0);
        cr_assert_eq(flags, CUDA_STREAM_NON_BLOCKING);
        cr_assert_eq(cuCtxPopCurrent_v2(NULL), 0);
        destroy(object);
    }
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void note(struct weir__interop *object, void *arg)
{
    (void)object;
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Functions, copies and sets of the driver's calls: a use waits for them, a destroy gives the stream back behind them.
 */
Test(interop_driver, use_and_destroy_wait_for_foreign_work)
{
    struct weir__interop *object = object_of(1, 2);
    void *variable = object, *stream = omp_get_interop_ptr(object, WEIR__IPR_TARGETSYNC, NULL), *host;
    int value = 0;
    atomic_int called = 0;
    uint64_t address;
    cr_assert_eq(cuCtxPushCurrent_v2(context), 0);
    cr_assert_eq(cuMemAlloc_v2(&address, 4), 0);
    cr_assert_eq(cuMemHostAlloc(&host, 4, 1), 0);
    for (int i = 1; i <= 100; i++) {
        cr_assert_eq(cuLaunchHostFunc(stream, count, &value), 0);
        cr_assert_eq(cuMemsetD32Async(address, (unsigned)i, 1, stream), 0);
        cr_assert_eq(cuMemcpyDtoHAsync_v2(host, address, 4, stream), 0);
        cr_assert_eq(ompx_interop_add_completion_callback(object, note, &called), 0);
        __tgt_interop_use(NULL, 0, &variable, -1, 0, NULL, 0);
        cr_assert_eq(value, i);
        cr_assert_eq(*(int *)host, i);
        cr_assert_eq(atomic_load(&called), i);
    }
    cr_assert_eq(cuLaunchHostFunc(stream, count, &value), 0);
    __tgt_interop_destroy(NULL, 0, &variable, -1, 0, NULL, 0);
    cr_assert_null(variable);
    cr_assert_eq(value, 101);
    cr_assert_eq(cuMemFreeHost(host), 0);
    cr_assert_eq(cuMemFree_v2(address), 0);
    cr_assert_eq(cuCtxPopCurrent_v2(NULL), 0);
}

/* ---- kernels that say how they were translated ---- */

enum { TO = 1, FROM = 2, PARAM = 0x20, LITERAL = 0x100, OUTS = 5 };

/* @mapped: else the kernel gets the host's address, which the emulated device can use. */
static int launch(int64_t *out, bool mapped)
{
    void *pointers[] = {out};
    int64_t sizes[] = {OUTS * sizeof *out}, types[] = {mapped ? TO | FROM | PARAM : LITERAL | PARAM};
    struct weir__abi_kernel_args args = {
        .version = 3, .nargs = 1, .bases = pointers, .begins = pointers, .sizes = sizes, .types = types};
    return __tgt_target_kernel(NULL, DEVICE, 0, 0, &reduce_region, &args);
}

/* The grid is what the environment bounds; the leading pointer is to counters that are zero, and a buffer. */
Test(interop_driver, a_kernel_gets_its_grid_and_what_it_reduces_with)
{
    size_t objects = 0;
    for (int i = 0; i < 20; i++) {
        int64_t out[OUTS] = {-1, -1, -1, -1, -1};
        cr_assert_eq(launch(out, i % 2 == 0), 0);
        cr_assert(out[0] == 0 && out[1] == 0, "launch %d: %ld, %ld", i, (long)out[0], (long)out[1]);
        cr_assert_neq(out[2], 0);
        cr_assert(out[3] == 7 && out[4] == 96, "%ld teams of %ld threads", (long)out[3], (long)out[4]);
        if (i == 4) objects = emulator_live_objects();
    }
    cr_assert_eq(emulator_live_objects(), objects, "the memory of a launch is used again");
}
