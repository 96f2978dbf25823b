/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_INTEROP_ROWS_H
#define WEIR_TESTS_INTEROP_ROWS_H

/*
 * What each property of an interop object is on each kind of backend, and a check of one row by one getter. Section
 * numbers are those of OpenMP 5.2; AD is the OpenMP Additional Definitions document.
 */

#include <criterion/criterion.h>

#include <weir/host.h>

#include "interop/abi.h"
#include "interop/entries.h"
#include "interop/interop_properties.h"

enum { HOST, CUDA, CUDA_DRIVER, OPENCL, BACKENDS };
static const char *const backends[] = {"host", "cuda", "cuda_driver", "opencl"};

#define ANY   INT64_MIN /* some value, not 0 */
#define I     WEIR__IRC_TYPE_INT
#define P     WEIR__IRC_TYPE_PTR
#define S     WEIR__IRC_TYPE_STR
#define NONE  WEIR__IRC_NO_VALUE
#define RANGE WEIR__IRC_OUT_OF_RANGE

/* What each backend answers: the type of the property, or the code instead of one, and the value. */
static const struct {
    const char *reference, *says;
    int property;
    struct {
        int type;
        int64_t value;
        const char *text;
    } want[BACKENDS];
} rows[] = {
    {"18.12 table 18.1, AD fr_id",
     "the runtime's id",
     WEIR__IPR_FR_ID,
     {{I, WEIR_INTEROP_RUNTIME, NULL}, {I, 1, NULL}, {I, 2, NULL}, {I, 3, NULL}}},
    {"18.12 table 18.1, AD fr_name",
     "the runtime's name, not its id",
     WEIR__IPR_FR_NAME,
     {{S, 0, "weir"}, {S, 0, "cuda"}, {S, 0, "cuda_driver"}, {S, 0, "opencl"}}},
    {"18.12 table 18.1, AD vendor",
     "the implementation's maker, not the device's",
     WEIR__IPR_VENDOR,
     {{I, 9, NULL}, {I, 9, NULL}, {I, 9, NULL}, {I, 9, NULL}}},
    {"18.12 table 18.1, AD vendor name",
     "of the same",
     WEIR__IPR_VENDOR_NAME,
     {{S, 0, "llvm"}, {S, 0, "llvm"}, {S, 0, "llvm"}, {S, 0, "llvm"}}},
    {"18.12 table 18.1",
     "OpenMP's device number",
     WEIR__IPR_DEVICE_NUM,
     {{I, 1, NULL}, {I, 1, NULL}, {I, 1, NULL}, {I, 1, NULL}}},
    {"18.12 table 18.1, AD platform",
     "a pointer where there are platforms",
     WEIR__IPR_PLATFORM,
     {{NONE, 0, NULL}, {NONE, 0, NULL}, {NONE, 0, NULL}, {P, 0x2000, NULL}}},
    {"18.12 table 18.1, AD device",
     "handle 0 is a value",
     WEIR__IPR_DEVICE,
     {{P, ANY, NULL}, {I, 0, NULL}, {I, 0, NULL}, {P, 0x3000, NULL}}},
    {"18.12 table 18.1, AD device_context",
     "also of a targetsync object",
     WEIR__IPR_DEVICE_CONTEXT,
     {{P, ANY, NULL}, {NONE, 0, NULL}, {P, 0x1000, NULL}, {P, 0x4000, NULL}}},
    {"18.12 table 18.1, AD targetsync",
     "also of a target object",
     WEIR__IPR_TARGETSYNC,
     {{P, ANY, NULL}, {P, ANY, NULL}, {P, ANY, NULL}, {P, ANY, NULL}}},
    {"18.12.1 implementation-defined",
     "no construct has ended a batch",
     WEIR__IPR_EVENT,
     {{I, 0, NULL}, {I, 0, NULL}, {I, 0, NULL}, {I, 0, NULL}}},
    {"18.12.1 implementation-defined",
     "nothing waits",
     WEIR__IPR_WAITING,
     {{I, 0, NULL}, {I, 0, NULL}, {I, 0, NULL}, {I, 0, NULL}}},
    {"18.12.2 out of range",
     "below the first",
     WEIR__IPR_FIRST - 1,
     {{RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}}},
    {"18.12.2 out of range",
     "behind the last",
     WEIR__IPR_OWN,
     {{RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}}},
    {"18.12.2 out of range",
     "far behind",
     INT32_MAX,
     {{RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}}},
    {"18.12.2 out of range",
     "far below",
     INT32_MIN,
     {{RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}, {RANGE, 0, NULL}}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static intptr_t ask(int getter, struct weir__interop *object, int property, int *code)
{
    if (getter == I) return omp_get_interop_int(object, property, code);
    if (getter == P) return (intptr_t)omp_get_interop_ptr(object, property, code);
    return (intptr_t)omp_get_interop_str(object, property, code);
}

/* @want: the value. */
static void check_row(size_t row, int backend, int64_t want, struct weir__interop *object, int getter)
{
    int type = rows[row].want[backend].type, code = 99;
    const char *text = rows[row].want[backend].text;
    intptr_t value = ask(getter, object, rows[row].property, &code);
    /* 18.12.2 to 18.12.4: the code says which getter is the right one. */
    int want_code = type == getter ? WEIR__IRC_SUCCESS : type;
#define WHERE "%s, getter %d: %s (%s)", backends[backend], getter, rows[row].says, rows[row].reference
    cr_expect_eq(code, want_code, WHERE);
    if (code != WEIR__IRC_SUCCESS) {
        cr_expect_eq(value, 0, WHERE);
    } else if (text) {
        cr_expect_str_eq((const char *)value, text, WHERE);
    } else {
        cr_expect(want == ANY ? value != 0 : value == (intptr_t)want, WHERE);
    }
    cr_expect(ask(getter, object, rows[row].property, NULL) == value, WHERE); /* the code may be NULL */
#undef WHERE
}

#endif
