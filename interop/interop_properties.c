/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/interop_properties.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <devices/thread.h>
#include <exec/work.h>

#include "interop/interop_object.h"
#include "interop/runtime.h"

/* ---- the table ---- */

/* What one property of one object is. */
struct value {
    bool is_there;
    enum weir__interop_kind kind;
    const char *type;
    intptr_t value;
};

struct property {
    const char *name;
    const char *type; /* in general */
    struct value (*read)(struct weir__interop *object);
};

static struct value number(const char *type, intptr_t value)
{
    return (struct value){true, WEIR__INTEROP_INT, type, value};
}

static struct value text(const char *value)
{
    return (struct value){true, WEIR__INTEROP_TEXT, "const char *", (intptr_t)value};
}

static struct value native(struct weir__interop *object, const struct weir__native_value *of)
{
    struct weir_device *device = object->target->device;
    switch ((enum weir__native_kind)of->kind) {
    case WEIR__NATIVE_INT:
        return number(of->type, of->value);
    case WEIR__NATIVE_POINTER:
        return (struct value){true, WEIR__INTEROP_POINTER, of->type, of->value};
    case WEIR__NATIVE_DEVICE:
        return (struct value){true, WEIR__INTEROP_POINTER, of->type, (intptr_t)device};
    case WEIR__NATIVE_CONTEXT:
        return (struct value){true, WEIR__INTEROP_POINTER, of->type, (intptr_t)weir__runtime_peek()->context};
    case WEIR__NATIVE_NONE:
        break;
    }
    return (struct value){false, WEIR__INTEROP_POINTER, "none: the foreign runtime has no such handle", 0};
}

static struct value read_fr_id(struct weir__interop *object)
{
    return number("omp_interop_fr_t", object->native->runtime);
}

static struct value read_fr_name(struct weir__interop *object)
{
    return text(object->native->name);
}

static struct value read_vendor(struct weir__interop *object)
{
    (void)object;
    return number("int", WEIR__INTEROP_VENDOR);
}

static struct value read_vendor_name(struct weir__interop *object)
{
    (void)object;
    return text(WEIR__INTEROP_VENDOR_NAME);
}

static struct value read_device_num(struct weir__interop *object)
{
    return number("int", object->target->number);
}

static struct value read_platform(struct weir__interop *object)
{
    return native(object, &object->native->platform);
}

static struct value read_device(struct weir__interop *object)
{
    return native(object, &object->native->device);
}

static struct value read_context(struct weir__interop *object)
{
    return native(object, &object->native->context);
}

static void *stream_of(const struct weir__interop *object)
{
    return atomic_load_explicit(&object->native_stream, memory_order_acquire); /* pairs with lease() */
}

static struct value read_targetsync(struct weir__interop *object)
{
    void *stream = stream_of(object);
    return (struct value){stream != NULL, WEIR__INTEROP_POINTER, object->native->stream_type, (intptr_t)stream};
}

static struct value read_event(struct weir__interop *object)
{
    uint32_t stream;
    uint64_t position;
    struct weir__point point = {atomic_load_explicit(&object->event, memory_order_relaxed)}; /* the newest one known */
    weir__point_unpack(point, &stream, &position);
    return number("intptr_t", (intptr_t)position);
}

static struct value read_stream(struct weir__interop *object)
{
    struct value value = number("int", object->stream_id);
    value.is_there = stream_of(object) != NULL;
    return value;
}

static struct value read_waiting(struct weir__interop *object)
{
    uint32_t users = atomic_load_explicit(&object->users, memory_order_relaxed); /* a snapshot */
    return number("int", (intptr_t)users - 1);
}

static const char by_runtime[] = "int or a pointer, by the foreign runtime";

static const struct property properties[] = {
#define AT(property) [(property) - WEIR__IPR_FIRST]
    AT(WEIR__IPR_FR_ID) = {"fr_id", "omp_interop_fr_t", read_fr_id},
    AT(WEIR__IPR_FR_NAME) = {"fr_name", "const char *", read_fr_name},
    AT(WEIR__IPR_VENDOR) = {"vendor", "int", read_vendor},
    AT(WEIR__IPR_VENDOR_NAME) = {"vendor_name", "const char *", read_vendor_name},
    AT(WEIR__IPR_DEVICE_NUM) = {"device_num", "int", read_device_num},
    AT(WEIR__IPR_PLATFORM) = {"platform", by_runtime, read_platform},
    AT(WEIR__IPR_DEVICE) = {"device", by_runtime, read_device},
    AT(WEIR__IPR_DEVICE_CONTEXT) = {"device_context", by_runtime, read_context},
    AT(WEIR__IPR_TARGETSYNC) = {"targetsync", "a pointer, by the foreign runtime", read_targetsync},
    AT(WEIR__IPR_EVENT) = {"weir_event", "intptr_t", read_event},
    AT(WEIR__IPR_STREAM) = {"weir_stream", "int", read_stream},
    AT(WEIR__IPR_WAITING) = {"weir_waiting", "int", read_waiting},
#undef AT
};
_Static_assert(sizeof properties / sizeof properties[0] == WEIR__IPR_OWN - WEIR__IPR_FIRST, "properties");

static const struct property *property_of(int property)
{
    if (property < WEIR__IPR_FIRST || property >= WEIR__IPR_OWN) return NULL;
    return &properties[property - WEIR__IPR_FIRST];
}

/* ---- getters ---- */

static int code_of_kind(enum weir__interop_kind kind)
{
    return kind == WEIR__INTEROP_INT       ? WEIR__IRC_TYPE_INT
           : kind == WEIR__INTEROP_POINTER ? WEIR__IRC_TYPE_PTR
                                           : WEIR__IRC_TYPE_STR;
}

/* Order of the codes: nothing to ask, no such property, no value, the wrong getter. */
static int get(struct weir__interop *object, int id, enum weir__interop_kind kind, intptr_t *value_out)
{
    const struct property *property = property_of(id);
    if (!weir__interop_of(object)) return WEIR__IRC_EMPTY;
    if (!property) return WEIR__IRC_OUT_OF_RANGE;
    if (id == WEIR__IPR_TARGETSYNC && kind == WEIR__INTEROP_POINTER && weir__interop_need_stream(object))
        return WEIR__IRC_OTHER;
    struct value value = property->read(object);
    /* A stream that is not there yet has a type all the same. */
    if (!value.is_there && id != WEIR__IPR_TARGETSYNC) return WEIR__IRC_NO_VALUE;
    if (value.kind != kind) return code_of_kind(value.kind);
    *value_out = value.value;
    return WEIR__IRC_SUCCESS;
}

intptr_t weir__interop_get(struct weir__interop *object, int property, enum weir__interop_kind kind, int *code_out)
{
    intptr_t value = 0;
    int code = get(object, property, kind, &value);
    if (code_out) *code_out = code;
    return value;
}

/* ---- texts ---- */

const char *weir__interop_property_name(int property)
{
    const struct property *found = property_of(property);
    return found ? found->name : NULL;
}

const char *weir__interop_type_text(const struct weir__interop *object, int property)
{
    const struct property *found = property_of(property);
    if (!found) return NULL;
    struct weir__interop *live = weir__interop_of(object);
    return live ? found->read(live).type : found->type;
}

const char *weir__interop_code_text(const struct weir__interop *object, int code)
{
    enum { TEXT = 320 };
    static _Thread_local void *memory;
    static const char *const texts[] = {
#define AT(code) [(code) - WEIR__IRC_OTHER]
        AT(WEIR__IRC_NO_VALUE) = "the property has no value for this object",
        AT(WEIR__IRC_SUCCESS) = "success",
        AT(WEIR__IRC_EMPTY) = "the object is omp_interop_none",
        AT(WEIR__IRC_OUT_OF_RANGE) = "there is no property with this number",
        AT(WEIR__IRC_TYPE_INT) = "the property is an integer: ask omp_get_interop_int()",
        AT(WEIR__IRC_TYPE_PTR) = "the property is a pointer: ask omp_get_interop_ptr()",
        AT(WEIR__IRC_TYPE_STR) = "the property is a text: ask omp_get_interop_str()",
        AT(WEIR__IRC_OTHER) = "the value could not be had",
#undef AT
    };
    if (code < WEIR__IRC_OTHER || code > WEIR__IRC_NO_VALUE) return "there is no such return code";
    bool tells = (code == WEIR__IRC_EMPTY && !object) || code == WEIR__IRC_OTHER;
    if (!tells || !weir__interop_reason()) return texts[code - WEIR__IRC_OTHER];
    char *why = weir__thread_memory(&memory, TEXT);
    if (!why) return texts[code - WEIR__IRC_OTHER];
    snprintf(why, TEXT, "%s: %s", texts[code - WEIR__IRC_OTHER], weir__interop_reason());
    return why;
}
