/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The mock itself: options, planned failures, breaches, counters. Its clock is in engine.c, its table in slots.c. */

#include <devices/mock/private.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const slot_names[WEIR__MOCK_SLOT_COUNT] = {
#define WEIR__X(name) #name,
    WEIR__MOCK_FALLIBLE(WEIR__X) WEIR__MOCK_REPORTING(WEIR__X) WEIR__MOCK_SILENT(WEIR__X)
#undef WEIR__X
};

enum {
#define WEIR__X(name) +1
    FALLIBLE_SLOTS = 0 WEIR__MOCK_FALLIBLE(WEIR__X)
#undef WEIR__X
};

static _Thread_local char error_text[160];

int weir__mock_error(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error_text, sizeof error_text, format, list);
    va_end(list);
    return code;
}

const char *weir__mock_error_text(void)
{
    return error_text;
}

void weir__mock_violation_locked(struct weir__mock *mock, const char *format, ...)
{
    va_list list;
    size_t room = sizeof mock->violations - mock->violations_length;
    va_start(list, format);
    int length = vsnprintf(mock->violations + mock->violations_length, room, format, list);
    va_end(list);
    if (length < 0 || (size_t)length + 2 > room) {
        mock->violations[mock->violations_length] = 0; /* full: what came first is what matters */
        return;
    }
    mock->violations_length += (size_t)length;
    mock->violations[mock->violations_length++] = '\n';
    mock->violations[mock->violations_length] = 0;
}

static void options_complete(struct weir__mock_options *options)
{
    if (!options->devices) options->devices = 1;
    if (!options->advised_streams) options->advised_streams = 4;
    if (!options->duration) options->duration = 1;
}

static void table_complete(struct weir__mock *mock)
{
    if (mock->options.positions) {
        mock->ops = weir__mock_positions_ops;
        return;
    }
    mock->ops = weir__mock_events_ops;
    if (mock->options.no_events) {
        mock->ops.event_create = NULL;
        mock->ops.event_record = NULL;
        mock->ops.event_wait = NULL;
        mock->ops.event_query = NULL;
        mock->ops.event_sync = NULL;
        mock->ops.event_destroy = NULL;
        mock->ops.event_signal = NULL;
        mock->ops.foreign_wait = NULL;
    }
    if (mock->options.no_events || mock->options.no_event_notify) mock->ops.event_notify = NULL;
}

int weir__mock_create(const struct weir__mock_options *options, struct weir__mock **mock_out)
{
    struct weir__mock_options complete = {0};
    if (options) complete = *options;
    options_complete(&complete);
    if (complete.devices > 1024 || complete.clock > WEIR__MOCK_AUTOMATIC) return WEIR_E_INVALID;
    struct weir__mock *mock = calloc(1, sizeof *mock + complete.devices * sizeof mock->devices[0]);
    if (!mock) return WEIR_E_NO_MEMORY;
    mock->options = complete;
    mock->random = complete.random_seed;
    mock->ready_tail = &mock->ready;
    for (uint32_t i = 0; i < complete.devices; i++)
        mock->devices[i] = (struct weir__mock_device){.mock = mock, .number = i};
    table_complete(mock);
    pthread_mutex_init(&mock->lock, NULL);
    pthread_cond_init(&mock->changed, NULL);
    if (complete.clock == WEIR__MOCK_TICKER && !complete.positions) {
        if (pthread_create(&mock->ticker, NULL, weir__mock_ticker, mock)) {
            weir__mock_destroy(mock);
            return WEIR_E_SYSTEM;
        }
        mock->ticker_runs = true;
    }
    *mock_out = mock;
    return WEIR_OK;
}

static void plans_free(struct weir__mock_plan **list)
{
    while (*list) {
        struct weir__mock_plan *plan = *list;
        *list = plan->next;
        free(plan);
    }
}

static void object_free(struct weir__mock_object *object)
{
    if (object->kind == WEIR__MOCK_STREAM) {
        struct weir__mock_stream *stream = (struct weir__mock_stream *)object;
        while (stream->head) {
            struct weir__mock_work *work = stream->head;
            stream->head = work->next;
            if (!work->kept) free(work);
        }
    }
    if (object->kind == WEIR__MOCK_EVENT) {
        struct weir__mock_event *event = (struct weir__mock_event *)object;
        free(event->record);
        while (event->notifies) {
            struct weir__mock_notify *notify = event->notifies;
            event->notifies = notify->next;
            free(notify);
        }
    }
    free(object);
}

void weir__mock_destroy(struct weir__mock *mock)
{
    if (mock->ticker_runs) {
        pthread_mutex_lock(&mock->lock);
        mock->stopping = true;
        pthread_cond_broadcast(&mock->changed);
        pthread_mutex_unlock(&mock->lock);
        pthread_join(mock->ticker, NULL);
    }
    while (mock->objects) {
        struct weir__mock_object *object = mock->objects;
        mock->objects = object->next;
        object_free(object);
    }
    while (mock->kernels) {
        struct weir__mock_kernel *kernel = mock->kernels;
        mock->kernels = kernel->next;
        free(kernel);
    }
    plans_free(&mock->call_plans);
    plans_free(&mock->item_plans);
    weir__mock_memory_clear(mock);
    pthread_cond_destroy(&mock->changed);
    pthread_mutex_destroy(&mock->lock);
    free(mock);
}

const struct weir__device_ops *weir__mock_ops(struct weir__mock *mock)
{
    return &mock->ops;
}

int weir__mock_register_kernel(struct weir__mock *mock, const char *name, void (*function)(const uint64_t *args))
{
    struct weir__mock_kernel *kernel = malloc(sizeof *kernel);
    if (!kernel) return WEIR_E_NO_MEMORY;
    pthread_mutex_lock(&mock->lock);
    *kernel = (struct weir__mock_kernel){.next = mock->kernels, .name = name, .function = function};
    mock->kernels = kernel;
    pthread_mutex_unlock(&mock->lock);
    return WEIR_OK;
}

int weir__mock_find_kernel(struct weir__mock *mock, const char *name, void **address_out, size_t *bytes_out)
{
    pthread_mutex_lock(&mock->lock);
    const struct weir__mock_kernel *kernel = mock->kernels;
    while (kernel && strcmp(kernel->name, name)) kernel = kernel->next;
    pthread_mutex_unlock(&mock->lock);
    if (!kernel) return weir__mock_error(WEIR_E_NOT_FOUND, "mock: no kernel %s", name);
    memcpy(address_out, &kernel->function, sizeof *address_out);
    if (bytes_out) *bytes_out = 0;
    return WEIR_OK;
}

/* ---- planned failures ---- */

static uint32_t slot_of(const char *name)
{
    uint32_t slot = 0;
    while (slot < WEIR__MOCK_SLOT_COUNT && strcmp(slot_names[slot], name)) slot++;
    return slot;
}

static void plan(struct weir__mock *mock, struct weir__mock_plan **list, uint32_t slot, uint64_t n, int code)
{
    struct weir__mock_plan *one = malloc(sizeof *one);
    if (!one) abort(); /* a test that lost its failure would prove nothing */
    pthread_mutex_lock(&mock->lock);
    *one = (struct weir__mock_plan){.next = *list, .slot = slot, .left = n, .code = code};
    *list = one;
    pthread_mutex_unlock(&mock->lock);
}

bool weir__mock_fail(struct weir__mock *mock, const char *slot, uint64_t n, int code)
{
    uint32_t number = slot_of(slot);
    if (number == WEIR__MOCK_SLOT_COUNT || !n) return false;
    plan(mock, &mock->call_plans, number, n, code);
    return true;
}

void weir__mock_fail_nth_call(struct weir__mock *mock, uint64_t n, int code)
{
    plan(mock, &mock->call_plans, WEIR__MOCK_SLOT_COUNT, n, code);
}

void weir__mock_fail_item(struct weir__mock *mock, uint64_t n, int code)
{
    plan(mock, &mock->item_plans, 0, n, code);
}

size_t weir__mock_failures_planned(struct weir__mock *mock)
{
    size_t n = 0;
    pthread_mutex_lock(&mock->lock);
    for (const struct weir__mock_plan *one = mock->call_plans; one; one = one->next) n++;
    for (const struct weir__mock_plan *one = mock->item_plans; one; one = one->next) n++;
    pthread_mutex_unlock(&mock->lock);
    return n;
}

void weir__mock_failures_clear(struct weir__mock *mock)
{
    pthread_mutex_lock(&mock->lock);
    plans_free(&mock->call_plans);
    plans_free(&mock->item_plans);
    pthread_mutex_unlock(&mock->lock);
}

/* Count a call for every plan that it concerns; the code of the one whose turn has come. */
static int plan_due(struct weir__mock_plan **list, uint32_t slot)
{
    int code = 0;
    while (*list) {
        struct weir__mock_plan *one = *list;
        bool concerned = one->slot == slot || (one->slot == WEIR__MOCK_SLOT_COUNT && slot < FALLIBLE_SLOTS);
        if (concerned && --one->left == 0) {
            code = one->code;
            *list = one->next;
            free(one);
        } else {
            list = &one->next;
        }
    }
    return code;
}

int weir__mock_item_plan_locked(struct weir__mock *mock)
{
    return plan_due(&mock->item_plans, 0);
}

int weir__mock_enter(struct weir__mock *mock, struct weir__mock_device *device, enum weir__mock_slot slot)
{
    pthread_mutex_lock(&mock->lock);
    mock->calls[slot]++;
    int code = plan_due(&mock->call_plans, slot);
    if (code) {
        pthread_mutex_unlock(&mock->lock);
        return weir__mock_error(code, "mock: planned failure of %s", slot_names[slot]);
    }
    if (device && device->lost) {
        pthread_mutex_unlock(&mock->lock);
        return weir__mock_error(WEIR_E_DEVICE, "mock: device %u is lost", device->number);
    }
    return WEIR_OK;
}

/* ---- what was seen ---- */

uint64_t weir__mock_calls(struct weir__mock *mock, const char *slot)
{
    if (mock->options.positions) return weir__mock_positions_calls(mock, slot);
    uint32_t number = slot_of(slot);
    if (number == WEIR__MOCK_SLOT_COUNT) return 0;
    pthread_mutex_lock(&mock->lock);
    uint64_t n = mock->calls[number];
    pthread_mutex_unlock(&mock->lock);
    return n;
}

const char *weir__mock_violations(struct weir__mock *mock)
{
    return mock->violations;
}

size_t weir__mock_objects(struct weir__mock *mock)
{
    pthread_mutex_lock(&mock->lock);
    size_t n = mock->pieces;
    for (const struct weir__mock_object *object = mock->objects; object; object = object->next) n += object->alive;
    pthread_mutex_unlock(&mock->lock);
    return n;
}
