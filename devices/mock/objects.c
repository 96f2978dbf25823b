/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Life times of the mock's handles and memory. */

#include <devices/mock/private.h>

#include <search.h>
#include <stdlib.h>

/* A live piece of device memory; the search tree is ordered by address. */
struct piece {
    void *address;
    struct weir__mock_device *device;
};

static const char *kind_name(uint32_t kind)
{
    return kind == WEIR__MOCK_STREAM ? "stream" : kind == WEIR__MOCK_EVENT ? "event" : "module";
}

void weir__mock_object_add_locked(struct weir__mock_object *object, struct weir__mock_device *device, uint32_t kind)
{
    object->mock = device->mock;
    object->device = device;
    object->kind = kind;
    object->alive = true;
    object->next = device->mock->objects;
    device->mock->objects = object;
}

bool weir__mock_object_check_locked(struct weir__mock_object *object, uint32_t kind, const char *doing)
{
    if (object->kind != kind)
        weir__mock_violation_locked(object->mock, "%s: the handle is not a %s", doing, kind_name(kind));
    else if (!object->alive)
        weir__mock_violation_locked(object->mock, "%s: the %s was destroyed", doing, kind_name(kind));
    return object->kind == kind && object->alive;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct piece *)a)->address, y = (uintptr_t)((const struct piece *)b)->address;
    return x < y ? -1 : x > y;
}

bool weir__mock_memory_add_locked(struct weir__mock_device *device, void *address)
{
    struct piece *piece = malloc(sizeof *piece);
    if (!piece) return false;
    *piece = (struct piece){.address = address, .device = device};
    if (!tsearch(piece, &device->mock->memory, by_address)) {
        free(piece);
        return false;
    }
    device->mock->pieces++;
    return true;
}

bool weir__mock_memory_remove_locked(struct weir__mock_device *device, void *address)
{
    struct weir__mock *mock = device->mock;
    struct piece key = {.address = address};
    struct piece **found = tfind(&key, &mock->memory, by_address);
    if (!found || (*found)->device != device) {
        weir__mock_violation_locked(mock, "free: %p is not live memory of device %u", address, device->number);
        return false;
    }
    struct piece *piece = *found;
    tdelete(piece, &mock->memory, by_address);
    free(piece);
    mock->pieces--;
    return true;
}

void weir__mock_memory_clear(struct weir__mock *mock)
{
    while (mock->memory) {
        struct piece *piece = *(struct piece **)mock->memory;
        tdelete(piece, &mock->memory, by_address);
        free(piece->address);
        free(piece);
    }
}

struct piece_count {
    struct weir__mock_device *device;
    size_t n;
};

static void count_piece(const void *node, VISIT which, void *closure)
{
    struct piece_count *count = closure;
    if ((which == postorder || which == leaf) && (*(struct piece *const *)node)->device == count->device) count->n++;
}

void weir__mock_leaks_locked(struct weir__mock_device *device)
{
    struct piece_count count = {.device = device};
    for (struct weir__mock_object *object = device->mock->objects; object; object = object->next)
        if (object->alive && !object->foreign && object->device == device)
            weir__mock_violation_locked(device->mock, "close: a %s of device %u leaks", kind_name(object->kind),
                                        device->number);
    twalk_r(device->mock->memory, count_piece, &count);
    if (count.n)
        weir__mock_violation_locked(device->mock, "close: %zu pieces of memory of device %u leak", count.n,
                                    device->number);
}
