/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every property by every getter, of every type of object, on every kind of backend; texts; and the entries without
 * libomp around them. Section numbers are those of OpenMP 5.2; AD is the OpenMP Additional Definitions document.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <weir/host.h>

#include "interop/abi.h"
#include "interop/entries.h"
#include "interop/interop_object.h"
#include "interop/interop_properties.h"
#include "interop/runtime.h"
#include "interop_alone.h"
#include "interop_rows.h"

/* ---- devices: the CPU device, and others as their backends would describe them ---- */

static struct weir__abi_entry_new no_entry;
static struct weir__abi_image image;
static struct weir__abi_descriptor descriptor = {1, &image, &no_entry, &no_entry};

static void devices_make(void)
{
    image = image_map(&no_entry, 0);
    __tgt_register_lib(&descriptor);
    cr_assert_eq(omp_get_num_devices(), 4);
}

#define INT(type, value)     {WEIR__NATIVE_INT, (type), (value)}
#define POINTER(type, value) {WEIR__NATIVE_POINTER, (type), (value)}
/* A context and a driver whose handles are 0 resp. not: 0 is a handle. */
static const struct weir__native cuda = {1, "cuda", {0}, INT("int", 0), {0}, "cudaStream_t"};
static const struct weir__native cuda_driver = {
    2, "cuda_driver", {0}, INT("CUdevice", 0), POINTER("CUcontext", 0x1000), "CUstream"};
static const struct weir__native opencl = {3,
                                           "opencl",
                                           POINTER("cl_platform_id", 0x2000),
                                           POINTER("cl_device_id", 0x3000),
                                           POINTER("cl_context", 0x4000),
                                           "cl_command_queue"};

/* An object of the CPU device; with @native it is one of another backend in all that can be asked. */
static struct weir__interop *object_of(int type, const struct weir__native *native)
{
    void *variable = (void *)1;
    __tgt_interop_init(NULL, 0, &variable, type, 1, 0, NULL, 0);
    struct weir__interop *object = variable;
    cr_assert_not_null(object, "%s", omp_get_interop_rc_desc(NULL, WEIR__IRC_EMPTY));
    if (native) object->native = native;
    return object;
}

static void destroy(struct weir__interop *object)
{
    void *variable = object;
    __tgt_interop_destroy(NULL, 0, &variable, -1, 0, NULL, 0);
    cr_assert_null(variable);
}

TestSuite(interop_properties, .init = devices_make, .timeout = 60);

/* ---- property x getter x object x backend ---- */

static const struct weir__native *const natives[] = {NULL, &cuda, &cuda_driver, &opencl};

Test(interop_properties, each_getter_answers_each_property)
{
    static const int getters[] = {I, P, S};
    for (int backend = 0; backend < BACKENDS; backend++) {
        for (int type = WEIR__INTEROP_TARGET; type <= WEIR__INTEROP_TARGETSYNC; type++) {
            struct weir__interop *object = object_of(type, natives[backend]);
            for (size_t row = 0; row < ROWS; row++)
                for (int g = 0; g < 3; g++) check_row(row, backend, rows[row].want[backend].value, object, getters[g]);
            destroy(object);
        }
    }
}

Test(interop_properties, none_and_destroyed_objects_are_empty)
{
    static const int getters[] = {I, P, S};
    struct weir__interop *gone = object_of(WEIR__INTEROP_TARGETSYNC, NULL), *objects[] = {NULL, gone};
    destroy(gone);
    for (int o = 0; o < 2; o++) {
        for (size_t row = 0; row < ROWS; row++) {
            for (int g = 0; g < 3; g++) {
                int code = 99;
                cr_expect_eq(ask(getters[g], objects[o], rows[row].property, &code), 0);
                cr_expect_eq(code, WEIR__IRC_EMPTY, "property %d", rows[row].property);
                cr_expect_eq(ask(getters[g], objects[o], rows[row].property, NULL), 0);
            }
        }
    }
}

Test(interop_properties, host_handles_are_those_of_the_graph_api)
{
    struct weir__interop *object = object_of(WEIR__INTEROP_TARGETSYNC, NULL);
    struct weir_device *device = omp_get_interop_ptr(object, WEIR__IPR_DEVICE, NULL);
    struct weir_context *context = omp_get_interop_ptr(object, WEIR__IPR_DEVICE_CONTEXT, NULL);
    cr_assert_eq(weir_device_get(context, 1), device);
    cr_assert_str_eq(weir_device_name(device), "host:1");
    void *own = NULL;
    cr_assert_eq(weir_host_stream_create(device, &own), WEIR_OK);
    weir_host_stream_destroy(own);
    destroy(object);
}

Test(interop_properties, a_target_object_has_no_stream_before_it_is_asked_for)
{
    struct weir__interop *object = object_of(WEIR__INTEROP_TARGET, NULL);
    int code = 99;
    cr_expect_eq(omp_get_interop_int(object, WEIR__IPR_STREAM, &code), 0);
    cr_expect_eq(code, WEIR__IRC_NO_VALUE);
    void *stream = omp_get_interop_ptr(object, WEIR__IPR_TARGETSYNC, &code);
    cr_assert(stream && code == WEIR__IRC_SUCCESS);
    cr_expect_eq(omp_get_interop_ptr(object, WEIR__IPR_TARGETSYNC, NULL), stream, "it stays the same");
    (void)omp_get_interop_int(object, WEIR__IPR_STREAM, &code);
    cr_expect_eq(code, WEIR__IRC_SUCCESS);
    destroy(object);
}

/* ---- texts: 18.12.5 to 18.12.7 ---- */

Test(interop_properties, every_property_and_code_has_a_text_also_for_none)
{
    static const char *const names[] = {"targetsync", "device_context", "device",      "platform",
                                        "device_num", "vendor_name",    "vendor",      "fr_name",
                                        "fr_id",      "weir_event",     "weir_stream", "weir_waiting"};
    struct weir__interop *objects[] = {NULL, object_of(WEIR__INTEROP_TARGET, NULL),
                                       object_of(WEIR__INTEROP_TARGETSYNC, &cuda_driver)};
    cr_expect_eq(omp_get_num_interop_properties(objects[1]), 3);
    cr_expect_eq(omp_get_num_interop_properties(NULL), 3);
    for (int o = 0; o < 3; o++) {
        for (int p = WEIR__IPR_FIRST; p < WEIR__IPR_OWN; p++) {
            cr_expect_str_eq(omp_get_interop_name(objects[o], p), names[p - WEIR__IPR_FIRST]);
            cr_expect(omp_get_interop_type_desc(objects[o], p) && *omp_get_interop_type_desc(objects[o], p));
        }
        cr_expect_null(omp_get_interop_name(objects[o], WEIR__IPR_OWN));
        cr_expect_null(omp_get_interop_type_desc(objects[o], WEIR__IPR_FIRST - 1));
        for (int code = WEIR__IRC_OTHER; code <= WEIR__IRC_NO_VALUE; code++) {
            const char *text = omp_get_interop_rc_desc(objects[o], code);
            cr_expect(text && *text, "code %d", code);
            cr_expect_str_eq(omp_get_interop_rec_desc(objects[o], code), text, "the other spelling");
        }
        cr_expect_not_null(omp_get_interop_rc_desc(objects[o], 77));
    }
    cr_expect_str_eq(omp_get_interop_type_desc(objects[1], WEIR__IPR_DEVICE), "struct weir_device *");
    cr_expect_str_eq(omp_get_interop_type_desc(objects[2], WEIR__IPR_DEVICE), "CUdevice");
    cr_expect_str_eq(omp_get_interop_type_desc(objects[2], WEIR__IPR_TARGETSYNC), "CUstream");
    destroy(objects[1]);
    destroy(objects[2]);
}

/* ---- which device, which runtime ---- */

static const char *reason(void)
{
    return omp_get_interop_rc_desc(NULL, WEIR__IRC_EMPTY);
}

static void expect_none(int type, int device, const char *why)
{
    void *variable = (void *)1;
    __tgt_interop_init(NULL, 0, &variable, type, device, 0, NULL, 0);
    cr_expect_null(variable, "type %d on device %d", type, device);
    cr_expect(strstr(reason(), why), "'%s' does not say '%s'", reason(), why);
}

Test(interop_properties, what_cannot_be_had_is_none_with_a_reason)
{
    expect_none(WEIR__INTEROP_TARGETSYNC, 4, "is the host");
    expect_none(WEIR__INTEROP_TARGETSYNC, 5, "out of range");
    expect_none(WEIR__INTEROP_TARGET, -2, "out of range");
    expect_none(7, 0, "type 7");
    default_device = 4;
    expect_none(WEIR__INTEROP_TARGET, -1, "is the host");
    default_device = 3;
    void *variable = NULL;
    __tgt_interop_init(NULL, 0, &variable, WEIR__INTEROP_TARGET, -1, 0, NULL, 0);
    cr_expect_eq(omp_get_interop_int(variable, WEIR__IPR_DEVICE_NUM, NULL), 3);
    destroy(variable);
}

Test(interop_without_image, there_is_a_reason_too)
{
    expect_none(WEIR__INTEROP_TARGETSYNC, 0, "there is no device");
}

Test(interop_properties, use_and_destroy_survive_mistakes)
{
    void *none = NULL, *first = object_of(WEIR__INTEROP_TARGETSYNC, NULL), *copy = first;
    __tgt_interop_use(NULL, 0, &none, -1, 0, NULL, 0);
    __tgt_interop_destroy(NULL, 0, &none, -1, 0, NULL, 0);
    __tgt_interop_use(NULL, 0, &first, 2, 0, NULL, 0); /* it is on device 1 */
    cr_expect(strstr(omp_get_interop_rc_desc(NULL, WEIR__IRC_EMPTY), "on device 1, not on 2"));
    cr_expect_eq(first, copy);
    __tgt_interop_destroy(NULL, 0, &first, 2, 0, NULL, 0);
    cr_expect_null(first, "none after destroy, whatever was wrong");
    __tgt_interop_use(NULL, 0, &copy, -1, 0, NULL, 0); /* it is gone */
    __tgt_interop_destroy(NULL, 0, &copy, -1, 0, NULL, 0);
    cr_expect_null(copy);
}

Test(interop_properties, the_first_preference_that_can_be_had_is_taken)
{
    struct weir__abi_interop_prefer list[] = {{1, 0, 0}, {WEIR_INTEROP_RUNTIME, 0, 5}, {WEIR_INTEROP_RUNTIME, 1, 0}};
    struct weir__abi_interop_context context = {0, 0, 0};
    for (int n = 0; n <= 3; n++) {
        struct weir__interop *object = __tgt_interop_get(NULL, 1, 0, n, list, &context, NULL);
        cr_assert_not_null(object, "with %d", n);
        cr_expect_eq(omp_get_interop_int(object, WEIR__IPR_FR_ID, NULL), WEIR_INTEROP_RUNTIME);
        cr_expect_eq(__tgt_interop_use60(NULL, object, &context, NULL), 0);
        cr_expect_eq(__tgt_interop_release(NULL, object, &context, NULL), 0);
        cr_expect_eq(__tgt_interop_release(NULL, object, &context, NULL), -1, "it is gone");
    }
    cr_expect_null(__tgt_interop_get(NULL, 2, 0, 0, NULL, &context, NULL));
    cr_expect_eq(__tgt_interop_use60(NULL, NULL, &context, NULL), -1);
    cr_expect_eq(__tgt_interop_release(NULL, NULL, &context, NULL), -1);
}

/* ---- work ---- */

static int count(void *arg)
{
    ++*(int *)arg;
    return 0;
}

static void note(struct weir__interop *object, void *arg)
{
    (void)object;
    ++*(int *)arg;
}

static void enqueue(struct weir__interop *object, int (*function)(void *arg), void *arg)
{
    cr_assert_eq(weir_host_enqueue(omp_get_interop_ptr(object, WEIR__IPR_TARGETSYNC, NULL), function, arg), WEIR_OK);
}

Test(interop_properties, use_waits_for_foreign_work_and_calls_back_once)
{
    struct weir__interop *object = object_of(WEIR__INTEROP_TARGETSYNC, NULL);
    void *variable = object;
    int value = 0, called = 0;
    cr_expect_eq(ompx_interop_add_completion_callback(NULL, note, &called), WEIR__IRC_OTHER);
    cr_expect_eq(ompx_interop_add_completion_callback(object, NULL, &called), WEIR__IRC_OTHER);
    for (int i = 1; i <= 1000; i++) {
        enqueue(object, count, &value);
        cr_expect_eq(ompx_interop_add_completion_callback(object, note, &called), 0);
        __tgt_interop_use(NULL, 0, &variable, -1, 0, NULL, 0);
        cr_assert_eq(value, i);
        cr_assert_eq(called, i);
    }
    cr_expect_geq(omp_get_interop_int(object, WEIR__IPR_EVENT, NULL), 1000);
    enqueue(object, count, &value);
    __kmpc_interop_destroy(NULL, 0, &variable, 1, 0, NULL, 0);
    cr_expect_eq(value, 1001);
    cr_expect_null(variable);
}

Test(interop_properties, implicit_objects_stay_their_threads)
{
    struct weir__abi_interop_context mine = {0, WEIR__ABI_INTEROP_IMPLICIT, 0},
                                     other = {0, WEIR__ABI_INTEROP_IMPLICIT, 1};
    struct weir__interop *first = __tgt_interop_get(NULL, 1, 0, 0, NULL, &mine, NULL);
    int value = 0;
    cr_assert_not_null(first);
    cr_expect_eq(__tgt_interop_get(NULL, 1, 0, 0, NULL, &mine, NULL), first);
    cr_expect_neq(__tgt_interop_get(NULL, 0, 0, 0, NULL, &mine, NULL), first, "another type");
    cr_expect_neq(__tgt_interop_get(NULL, 1, 1, 0, NULL, &mine, NULL), first, "another device");
    cr_expect_neq(__tgt_interop_get(NULL, 1, 0, 0, NULL, &other, NULL), first, "another thread");
    cr_expect_eq(__tgt_interop_release(NULL, first, &mine, NULL), 0);
    cr_expect_eq(__tgt_interop_get(NULL, 1, 0, 0, NULL, &mine, NULL), first, "kept");
    for (int i = 0; i < 50; i++) enqueue(first, count, &value);
    __tgt_target_sync(NULL, 0, NULL, NULL);
    cr_expect_eq(value, 50, "waited for");
}

Test(interop_properties, objects_and_streams_are_used_again)
{
    struct weir__interop *object = object_of(WEIR__INTEROP_TARGETSYNC, NULL);
    intptr_t first = omp_get_interop_int(object, WEIR__IPR_STREAM, NULL), most = first;
    destroy(object);
    for (int i = 0; i < 2000; i++) {
        struct weir__interop *two[] = {object_of(1 + i % 2, NULL), object_of(2, NULL)};
        for (int o = 0; o < 2; o++) {
            void *stream = omp_get_interop_ptr(two[o], WEIR__IPR_TARGETSYNC, NULL);
            cr_assert_not_null(stream);
            if (omp_get_interop_int(two[o], WEIR__IPR_STREAM, NULL) > most)
                most = omp_get_interop_int(two[o], WEIR__IPR_STREAM, NULL);
        }
        destroy(two[0]);
        destroy(two[1]);
    }
    cr_expect_leq(most, first + 8, "streams came back: %ld", (long)most);
}

Test(interop_properties, too_many_streams_are_refused_with_a_reason)
{
    enum { N = 600 };
    static void *variables[N];
    int made = 0;
    for (int i = 0; i < N; i++) {
        __tgt_interop_init(NULL, 0, &variables[i], WEIR__INTEROP_TARGETSYNC, 1, 0, NULL, 0);
        made += variables[i] != NULL;
    }
    cr_expect(made > 100 && made < N, "%d", made);
    cr_expect_null(variables[N - 1]);
    cr_expect(strstr(reason(), "no stream"), "%s", reason());
    void *lazy = object_of(WEIR__INTEROP_TARGET, NULL);
    int code = 99;
    cr_expect_null(omp_get_interop_ptr(lazy, WEIR__IPR_TARGETSYNC, &code));
    cr_expect_eq(code, WEIR__IRC_OTHER);
    cr_expect(strstr(omp_get_interop_rc_desc(lazy, code), "no stream"));
    for (int i = 0; i < N; i++) __tgt_interop_destroy(NULL, 0, &variables[i], -1, 0, NULL, 0);
    cr_expect_not_null(omp_get_interop_ptr(lazy, WEIR__IPR_TARGETSYNC, &code), "there is one again");
    destroy(lazy);
}
