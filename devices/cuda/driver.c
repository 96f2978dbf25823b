/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <devices/cuda/driver.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The first version with everything of the mandatory list and with events as they are relied on. */
enum { OLDEST = 11000 };

const char *const weir__driver_symbols[] = {
#define WEIR_X(field, symbol, older, parameters) #symbol,
    WEIR__DRIVER_CALLS(WEIR_X) WEIR__DRIVER_NEWER_CALLS(WEIR_X)
#undef WEIR_X
};

static struct weir__driver driver;
const struct weir__driver *weir__cuda_driver;
static char reason[256];

static bool look_up(void *library, const char *symbol, const char *older, void *field)
{
    void *found = dlsym(library, symbol);
    if (!found && older) found = dlsym(library, older);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

/* The name of the first mandatory function that is missing, or NULL. */
static const char *fill(void *library)
{
#define WEIR_X(field, symbol, older, parameters)                                                                       \
    if (!look_up(library, #symbol, older, &driver.field)) return #symbol;
    WEIR__DRIVER_CALLS(WEIR_X)
#undef WEIR_X
#define WEIR_X(field, symbol, older, parameters) (void)look_up(library, #symbol, older, &driver.field);
    WEIR__DRIVER_NEWER_CALLS(WEIR_X)
#undef WEIR_X
    return NULL;
}

void weir__driver_describe(char *text, size_t bytes, const char *symbol, enum driver_result result)
{
    const char *name = NULL, *meaning = NULL;
    if (driver.error_name(result, &name)) name = NULL;
    if (driver.error_string(result, &meaning)) meaning = NULL;
    snprintf(text, bytes, "%s: %s (%d)%s%s", symbol, name ? name : "an unknown error", (int)result, meaning ? ": " : "",
             meaning ? meaning : "");
}

static void refuse(enum driver_result result)
{
    if (result == DRIVER_STUB_LIBRARY) {
        snprintf(reason, sizeof reason, "libcuda.so.1 is a stub for linking, not a driver");
    } else if (result == DRIVER_NO_DEVICE) {
        snprintf(reason, sizeof reason, "a driver, but no device");
    } else {
        weir__driver_describe(reason, sizeof reason, "cuInit", result);
    }
}

static void open_once(void)
{
    /* Never closed: the driver has threads and exit handlers of its own. */
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reason, sizeof reason, "no libcuda.so.1");
        return;
    }
    const char *missing = fill(library);
    int version = 0;
    if (driver.version && driver.version(&version) == DRIVER_OK && version < OLDEST) {
        snprintf(reason, sizeof reason, "the driver is of CUDA %d.%d, too old: 11.0 is the least", version / 1000,
                 version % 1000 / 10);
        return;
    }
    if (missing) {
        snprintf(reason, sizeof reason, "libcuda.so.1 has no %s", missing);
        return;
    }
    enum driver_result result = driver.init(0);
    if (result != DRIVER_OK) {
        refuse(result);
        return;
    }
    driver.number = version;
    weir__cuda_driver = &driver;
}

const struct weir__driver *weir__driver_open(const char **reason_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    if (!weir__cuda_driver) *reason_out = reason;
    return weir__cuda_driver;
}
