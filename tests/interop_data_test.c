/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include "data_rig.h"

static struct weir__table *table;
static struct weir__region region;

static void set_up(void)
{
    fake_reset(false);
    weir__region_init(&region);
    cr_assert_eq(weir__table_create(NULL, fake_device(), &table), WEIR_OK);
}

static void tear_down(void)
{
    weir__region_fini(&region);
    cr_expect_eq(fake_violations(), 0);
    weir__table_destroy(table);
    cr_expect_eq(fake_live(), 0, "device memory is left over");
    fake_reset(false);
}

TestSuite(interop_data, .init = set_up, .fini = tear_down, .timeout = 60);

/* One construct, complete at once. */
static int run(int (*operation)(struct weir__region *, const struct weir__map_args *), const struct rig_map *maps,
               uint32_t n)
{
    int rc = rig_data(table, &region, operation, maps, n);
    weir__region_finish(&region);
    return rc;
}

static void *device_of(const void *host)
{
    return weir__table_lookup(table, host);
}

static uint64_t state_of(const void *host)
{
    struct weir__found found;
    weir__table_find(table, (uintptr_t)host, 1, &found);
    return found.relation == WEIR__FOUND_CONTAINED ? found.state : 0;
}

/* ---- one range, by table ---- */

enum { TO = WEIR__MAP_TO, FROM = WEIR__MAP_FROM, BOTH = TO | FROM, HOLD = WEIR__MAP_HOLD, ATTACH = WEIR__MAP_ATTACH };

#define BEGIN  weir__data_begin
#define END    weir__data_end
#define UPDATE weir__data_update

struct rule {
    const char *says;
    uint32_t dynamic, hold; /* before: 0 0 is not mapped */
    int (*operation)(struct weir__region *, const struct weir__map_args *);
    uint64_t type;
    int64_t shift, bytes; /* of the construct's range; what is mapped is 0, 64 */
    int rc;
    uint32_t dynamic_after, hold_after;
    unsigned to, from;
};

static const struct rule rules[] = {
    {"new data is copied to the device", 0, 0, BEGIN, BOTH, 0, 64, 0, 1, 0, 1, 0},
    {"new data without to is not copied", 0, 0, BEGIN, FROM, 0, 64, 0, 1, 0, 0, 0},
    {"present data is counted and not copied", 1, 0, BEGIN, BOTH, 0, 64, 0, 2, 0, 0, 0},
    {"always copies present data", 1, 0, BEGIN, BOTH | WEIR__MAP_ALWAYS, 0, 64, 0, 2, 0, 1, 0},
    {"always copies new data once", 0, 0, BEGIN, BOTH | WEIR__MAP_ALWAYS, 0, 64, 0, 1, 0, 1, 0},
    {"always without to copies nothing at the begin", 1, 0, BEGIN, FROM | WEIR__MAP_ALWAYS, 0, 64, 0, 2, 0, 0, 0},
    {"a part of present data is present", 1, 0, BEGIN, TO, 16, 8, 0, 2, 0, 0, 0},
    {"present data cannot be extended behind", 1, 0, BEGIN, TO, 32, 64, WEIR_E_BUSY, 1, 0, 0, 0},
    {"present data cannot be extended in front", 1, 0, BEGIN, TO, -32, 64, WEIR_E_BUSY, 1, 0, 0, 0},
    {"an implicit map uses what is there", 1, 0, BEGIN, TO | WEIR__MAP_IMPLICIT, 32, 64, 0, 2, 0, 0, 0},
    {"present accepts what is present", 1, 0, BEGIN, TO | WEIR__MAP_PRESENT, 0, 64, 0, 2, 0, 0, 0},
    {"present refuses what is not", 0, 0, BEGIN, TO | WEIR__MAP_PRESENT, 0, 64, WEIR_E_NOT_FOUND, 0, 0, 0, 0},
    {"a hold is another count", 1, 0, BEGIN, TO | HOLD, 0, 64, 0, 1, 1, 0, 0},
    {"a hold makes an entry", 0, 0, BEGIN, TO | HOLD, 0, 64, 0, 0, 1, 1, 0},
    {"no bytes map nothing", 0, 0, BEGIN, BOTH, 0, 0, 0, 0, 0, 0, 0},
    {"no bytes inside present data count", 1, 0, BEGIN, BOTH, 8, 0, 0, 2, 0, 0, 0},
    {"no bytes are not copied, always or not", 1, 0, BEGIN, BOTH | WEIR__MAP_ALWAYS, 8, 0, 0, 2, 0, 0, 0},
    {"negative bytes map nothing", 0, 0, BEGIN, BOTH, 0, -8, 0, 0, 0, 0, 0},
    {"a literal maps nothing", 0, 0, BEGIN, WEIR__MAP_LITERAL | TO, 0, 64, 0, 0, 0, 0, 0},
    {"private data is not mapped", 0, 0, BEGIN, WEIR__MAP_PRIVATE | TO, 0, 64, 0, 0, 0, 0, 0},
    {"an attach entry maps nothing", 0, 0, BEGIN, ATTACH, 0, 8, 0, 0, 0, 0, 0},
    {"close is an ordinary copy", 0, 0, BEGIN, TO | WEIR__MAP_CLOSE, 0, 64, 0, 1, 0, 1, 0},

    {"the last end copies back", 1, 0, END, FROM, 0, 64, 0, 0, 0, 0, 1},
    {"the last end without from copies nothing", 1, 0, END, TO, 0, 64, 0, 0, 0, 0, 0},
    {"an end that is not the last copies nothing", 2, 0, END, FROM, 0, 64, 0, 1, 0, 0, 0},
    {"always copies back at every end", 2, 0, END, FROM | WEIR__MAP_ALWAYS, 0, 64, 0, 1, 0, 0, 1},
    {"always copies back once at the last end", 1, 0, END, FROM | WEIR__MAP_ALWAYS, 0, 64, 0, 0, 0, 0, 1},
    {"release of the last reference copies nothing", 1, 0, END, 0, 0, 64, 0, 0, 0, 0, 0},
    {"delete ends every reference", 5, 0, END, WEIR__MAP_DELETE, 0, 64, 0, 0, 0, 0, 0},
    {"delete leaves held data", 5, 1, END, WEIR__MAP_DELETE, 0, 64, 0, 0, 1, 0, 0},
    {"the end of a hold leaves other references", 1, 1, END, FROM | HOLD, 0, 64, 0, 1, 0, 0, 0},
    {"the end of the last hold is an end", 0, 1, END, FROM | HOLD, 0, 64, 0, 0, 0, 0, 1},
    {"the end of nothing is nothing", 0, 0, END, FROM, 0, 64, 0, 0, 0, 0, 0},
    {"the end of nothing that has to be present fails", 0, 0, END, FROM | WEIR__MAP_PRESENT, 0, 64, WEIR_E_NOT_FOUND, 0,
     0, 0, 0},
    {"an end of more than is mapped is nothing", 1, 0, END, FROM, 32, 64, 0, 1, 0, 0, 0},
    {"an implicit end uses what is there", 1, 0, END, FROM | WEIR__MAP_IMPLICIT, 32, 64, 0, 0, 0, 0, 1},
    {"a part copies itself back and ends all", 1, 0, END, FROM, 16, 8, 0, 0, 0, 0, 1},
    {"no bytes end a reference", 2, 0, END, FROM, 16, 0, 0, 1, 0, 0, 0},
    {"the last end of no bytes copies nothing", 1, 0, END, FROM, 16, 0, 0, 0, 0, 0, 0},
    {"an attach entry ends nothing", 1, 0, END, ATTACH, 0, 8, 0, 1, 0, 0, 0},
    {"an infinite count stays", WEIR__COUNT_INFINITE, 0, END, FROM, 0, 64, 0, WEIR__COUNT_INFINITE, 0, 0, 0},
    {"delete does not end an infinite count", WEIR__COUNT_INFINITE, 0, END, WEIR__MAP_DELETE, 0, 64, 0,
     WEIR__COUNT_INFINITE, 0, 0, 0},
    {"always copies associated data back", WEIR__COUNT_INFINITE, 0, END, FROM | WEIR__MAP_ALWAYS, 0, 64, 0,
     WEIR__COUNT_INFINITE, 0, 0, 1},

    {"update to copies", 1, 0, UPDATE, TO, 0, 64, 0, 1, 0, 1, 0},
    {"update from copies", 1, 0, UPDATE, FROM, 8, 8, 0, 1, 0, 0, 1},
    {"update of what is not mapped is nothing", 0, 0, UPDATE, TO, 0, 64, 0, 0, 0, 0, 0},
    {"update of more than is mapped is nothing", 1, 0, UPDATE, TO, 32, 64, 0, 1, 0, 0, 0},
    {"update of what has to be present fails", 0, 0, UPDATE, TO | WEIR__MAP_PRESENT, 0, 64, WEIR_E_NOT_FOUND, 0, 0, 0,
     0},
    {"update of no bytes is nothing", 1, 0, UPDATE, TO, 8, 0, 0, 1, 0, 0, 0},
    {"update of associated data copies", WEIR__COUNT_INFINITE, 0, UPDATE, TO, 0, 64, 0, WEIR__COUNT_INFINITE, 0, 1, 0},
};

/* What rules[] has before the construct. */
static void prepare(const struct rule *rule, char *host, char *memory)
{
    if (rule->dynamic == WEIR__COUNT_INFINITE) cr_assert_eq(weir__table_associate(table, host, memory, 64, 0), WEIR_OK);
    for (uint32_t i = 0; i < rule->dynamic && rule->dynamic != WEIR__COUNT_INFINITE; i++)
        cr_assert_eq(run(BEGIN, RIG_MAPS({host, host, 64, 0, NULL})), WEIR_OK);
    for (uint32_t i = 0; i < rule->hold; i++) cr_assert_eq(run(BEGIN, RIG_MAPS({host, host, 64, HOLD, NULL})), WEIR_OK);
}

Test(interop_data, one_range_follows_the_rules)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        _Alignas(64) static char space[256];
        char *host = space + 64;
        void *memory;
        cr_assert_eq(weir__device_ops_of(fake_device())->alloc(NULL, 64, &memory), WEIR_OK);
        memset(space, 0, sizeof space);
        prepare(rule, host, memory);
        struct fake_counts before = fake_counts();
        int rc =
            run(rule->operation, RIG_MAPS({host + rule->shift, host + rule->shift, rule->bytes, rule->type, NULL}));
        struct fake_counts after = fake_counts();
        uint64_t state = state_of(host);
        cr_expect_eq(rc, rule->rc, "%s: returns %d", rule->says, rc);
        cr_expect_eq(weir__state_dynamic(state), rule->dynamic_after, "%s: %u", rule->says, weir__state_dynamic(state));
        cr_expect_eq(weir__state_hold(state), rule->hold_after, "%s", rule->says);
        cr_expect_eq(after.to - before.to, rule->to, "%s: %u copies to", rule->says, after.to - before.to);
        cr_expect_eq(after.from - before.from, rule->from, "%s: %u copies from", rule->says, after.from - before.from);
        if (rc) cr_expect(*weir_error_text(), "%s: has a text", rule->says);
        (void)run(END,
                  RIG_MAPS({host, host, 64, WEIR__MAP_DELETE, NULL}, {host, host, 64, WEIR__MAP_DELETE | HOLD, NULL}));
        if (rule->dynamic == WEIR__COUNT_INFINITE) cr_assert_eq(weir__table_disassociate(table, host), WEIR_OK);
        cr_expect_eq(weir__table_count(table), 0, "%s", rule->says);
        cr_assert_eq(weir__device_ops_of(fake_device())->free(NULL, memory), WEIR_OK);
        cr_expect_eq(fake_live(), 0, "%s: memory is left", rule->says);
    }
}

Test(interop_data, data_goes_there_and_back)
{
    int a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    cr_assert_eq(run(BEGIN, RIG_MAPS({a, a, sizeof a, BOTH, NULL})), WEIR_OK);
    int *d = device_of(a);
    cr_assert(d && d[7] == 8);
    for (int i = 0; i < 8; i++) d[i] *= 10;
    cr_assert_eq(run(UPDATE, RIG_MAPS({a, a + 2, 8, FROM, NULL})), WEIR_OK);
    cr_expect(a[1] == 2 && a[2] == 30 && a[3] == 40 && a[4] == 5);
    cr_assert_eq(run(END, RIG_MAPS({a, a, sizeof a, BOTH, NULL})), WEIR_OK);
    cr_expect(a[0] == 10 && a[7] == 80);
    cr_expect_null(device_of(a));
}

Test(interop_data, null_and_nothing_are_harmless)
{
    cr_expect_eq(run(BEGIN, NULL, 0), WEIR_OK);
    for (int i = 0; i < 2; i++) {
        int (*operations[])(struct weir__region *, const struct weir__map_args *) = {BEGIN, UPDATE, END};
        for (int j = 0; j < 3; j++)
            cr_expect_eq(run(operations[j], RIG_MAPS({NULL, NULL, 0, BOTH | (i ? WEIR__MAP_ALWAYS : 0), NULL},
                                                     {NULL, NULL, 8, ATTACH, NULL})),
                         WEIR_OK);
    }
    struct fake_counts counts = fake_counts();
    cr_expect_eq(counts.to + counts.from + counts.allocs, 0);
}

/* ---- structs and pointers ---- */

struct thing {
    int x;
    char gap[12];
    double *p;
    int y;
};

Test(interop_data, combined_entry_allocates_for_its_members)
{
    _Alignas(16) struct thing s = {.x = 1, .y = 2};
    int *first = &s.x + 1; /* the combined range begins 4 bytes behind an aligned base */
    uint64_t m = RIG_MEMBER(1);
    const struct rig_map maps[] = {{&s, first, (char *)(&s + 1) - (char *)first, 0, NULL},
                                   {&s, first, 4, m | BOTH, NULL},
                                   {&s, &s.y, sizeof s.y, m | BOTH, NULL}};
    cr_assert_eq(run(BEGIN, maps, 3), WEIR_OK);
    cr_expect_eq(weir__state_dynamic(state_of(&s.y)), 1, "members do not count");
    cr_expect_eq(fake_counts().to, 2, "only members are copied");
    cr_expect_eq((uintptr_t)device_of(first) % 16, 4, "the begin keeps its alignment");
    int *d = device_of(&s.y);
    cr_expect_eq(*d, 2);
    *d = 22;
    cr_assert_eq(run(BEGIN, maps, 3), WEIR_OK);
    cr_expect_eq(weir__state_dynamic(state_of(&s.y)), 2);
    cr_expect_eq(fake_counts().to, 2, "members of a present parent are not copied");
    cr_assert_eq(run(END, maps, 3), WEIR_OK);
    cr_expect_eq(fake_counts().from, 0, "members of a parent that stays are not copied back");
    cr_assert_eq(run(END, maps, 3), WEIR_OK);
    cr_expect_eq(s.y, 22);
    cr_expect_eq(fake_counts().from, 2);
    cr_expect_null(device_of(&s.y));
}

/* clang 14 to 19: map(s->x, s->p[0:4], s->y). */
Test(interop_data, pointer_and_object_are_attached)
{
    double data[4] = {1, 2, 3, 4};
    struct thing s = {.x = 1, .p = data, .y = 2};
    uint64_t m = RIG_MEMBER(1);
    const struct rig_map maps[] = {{&s, &s, sizeof s, 0, NULL},
                                   {&s, &s.x, 4, m | BOTH, NULL},
                                   {&s.p, data + 1, 24, m | BOTH | WEIR__MAP_PTR_AND_OBJ, NULL},
                                   {&s, &s.y, 4, m | TO, NULL}};
    cr_assert_eq(run(BEGIN, maps, 4), WEIR_OK);
    struct thing *d = device_of(&s);
    double *dd = device_of(data + 1);
    cr_assert(d && dd);
    cr_expect_eq(d->p, dd - 1, "the device's pointer is the pointee's base there");
    cr_expect_eq(weir__state_dynamic(state_of(&s)), 1);
    cr_expect_eq(weir__state_dynamic(state_of(data + 1)), 1, "the pointee counts although it is a member");
    d->p[1] = 20;
    cr_assert_eq(run(UPDATE, RIG_MAPS({&s, &s, sizeof s, FROM, NULL})), WEIR_OK);
    cr_expect_eq(s.p, data, "a copy from the device leaves the host its pointer");
    d->p = NULL;
    cr_assert_eq(run(UPDATE, RIG_MAPS({&s, &s, sizeof s, TO, NULL})), WEIR_OK);
    cr_expect_eq(d->p, dd - 1, "a copy to the device leaves the device its pointer");
    cr_assert_eq(run(BEGIN, maps, 4), WEIR_OK);
    cr_expect_eq(weir__state_dynamic(state_of(data + 1)), 2);
    cr_assert_eq(run(END, maps, 4), WEIR_OK);
    cr_assert_eq(run(END, maps, 4), WEIR_OK);
    cr_expect_eq(data[1], 20);
    cr_expect_eq(s.p, data);
    cr_expect_eq(weir__table_count(table), 0);
}

Test(interop_data, pointer_to_nothing_becomes_null)
{
    struct thing s = {.p = NULL};
    const struct rig_map maps[] = {{&s, &s, sizeof s, 0, NULL},
                                   {&s, &s, sizeof s, RIG_MEMBER(1) | BOTH, NULL},
                                   {&s.p, NULL, 0, RIG_MEMBER(1) | BOTH | WEIR__MAP_PTR_AND_OBJ, NULL}};
    cr_assert_eq(run(BEGIN, maps, 3), WEIR_OK);
    struct thing *d = device_of(&s);
    cr_assert(d);
    cr_expect_null(d->p);
    cr_assert_eq(run(END, maps, 3), WEIR_OK);
    cr_expect_eq(weir__table_count(table), 0);
}

/* declare target link: the kernel's entry 0x213. */
Test(interop_data, link_variable_is_attached_and_ends)
{
    static int g = 5;
    int *ref = &g, *device_ref;
    void *memory;
    cr_assert_eq(weir__device_ops_of(fake_device())->alloc(NULL, 8, &memory), WEIR_OK);
    cr_assert_eq(weir__table_associate(table, &ref, memory, 8, 0), WEIR_OK);
    const struct rig_map maps[] = {{&ref, &g, 4, 0x213, NULL}};
    cr_assert_eq(run(BEGIN, maps, 1), WEIR_OK);
    memcpy(&device_ref, memory, 8);
    cr_expect_eq(device_ref, device_of(&g));
    *device_ref = 6;
    cr_assert_eq(run(END, maps, 1), WEIR_OK);
    cr_expect_eq(g, 6);
    cr_expect_null(device_of(&g));
    cr_expect_eq(weir__state_dynamic(state_of(&ref)), WEIR__COUNT_INFINITE);
    cr_assert_eq(run(BEGIN, maps, 1), WEIR_OK);
    memcpy(&device_ref, memory, 8);
    cr_expect_eq(device_ref, device_of(&g), "attached again to its new place");
    cr_assert_eq(run(END, maps, 1), WEIR_OK);
    cr_assert_eq(weir__table_disassociate(table, &ref), WEIR_OK);
    cr_assert_eq(weir__device_ops_of(fake_device())->free(NULL, memory), WEIR_OK);
}

/* clang 22: s is mapped, then s.p[0:4]; an entry of its own attaches. */
Test(interop_data, separate_attach_follows_its_conditions)
{
    double data[4] = {1, 2, 3, 4};
    struct thing s = {.p = data};
    const struct rig_map whole[] = {{&s, &s, sizeof s, BOTH, NULL}};
    const struct rig_map part[] = {{data, data, sizeof data, BOTH, NULL}, {&s.p, data, 8, ATTACH, NULL}};
    cr_assert_eq(run(BEGIN, part, 2), WEIR_OK);
    cr_expect_eq(fake_counts().to, 1, "without the pointer on the device nothing is attached");
    cr_assert_eq(run(END, part, 2), WEIR_OK);
    cr_assert_eq(run(BEGIN, whole, 1), WEIR_OK);
    struct thing *d = device_of(&s);
    cr_assert_eq(run(BEGIN, RIG_MAPS({&s.p, data, 8, ATTACH, NULL})), WEIR_OK);
    cr_expect_eq(d->p, data, "without the pointee on the device nothing is attached");
    cr_assert_eq(run(BEGIN, part, 2), WEIR_OK);
    cr_expect_eq(d->p, device_of(data), "a new pointee is attached to an old pointer");
    d->p = NULL;
    cr_assert_eq(run(BEGIN, part, 2), WEIR_OK);
    cr_expect_null(d->p, "old ones are left alone");
    cr_assert_eq(run(BEGIN, RIG_MAPS({&s.p, data, 8, ATTACH | WEIR__MAP_ALWAYS, NULL})), WEIR_OK);
    cr_expect_eq(d->p, device_of(data), "unless always says so");
    double more[4];
    s.p = more;
    cr_assert_eq(run(BEGIN, RIG_MAPS({more, more, sizeof more, 0, NULL})), WEIR_OK);
    cr_assert_eq(run(BEGIN, RIG_MAPS({&s.p, more, 8, ATTACH, NULL})), WEIR_OK);
    cr_expect_eq(d->p, device_of(data), "a pointer that was set to other present data is left alone, too");
    cr_assert_eq(run(END, RIG_MAPS({more, more, sizeof more, 0, NULL})), WEIR_OK);
    s.p = data;
    cr_assert_eq(run(UPDATE, whole, 1), WEIR_OK);
    cr_expect_eq(s.p, data);
    cr_assert_eq(run(END, whole, 1), WEIR_OK);
    cr_expect_eq(s.p, data, "the host's pointer is its own after exit data, too");
    cr_assert_eq(run(END, part, 2), WEIR_OK);
    cr_assert_eq(run(END, part, 2), WEIR_OK);
}

Test(interop_data, attach_comes_after_all_copies)
{
    double data[4] = {1, 2, 3, 4};
    struct thing s = {.p = data};
    cr_assert_eq(run(BEGIN, RIG_MAPS({&s.p, data + 2, 8, ATTACH, NULL}, {&s, &s, sizeof s, BOTH, NULL},
                                     {data, data, sizeof data, BOTH, NULL})),
                 WEIR_OK);
    struct thing *d = device_of(&s);
    cr_expect_eq(d->p, device_of(data), "although its entry is the first");
    cr_assert_eq(run(END, RIG_MAPS({&s, &s, sizeof s, BOTH, NULL}, {data, data, sizeof data, BOTH, NULL})), WEIR_OK);
    cr_expect_eq(s.p, data);
}

Test(interop_data, descriptor_is_attached_as_a_whole)
{
    double data[4] = {1, 2, 3, 4};
    struct {
        double *address;
        long bounds[3];
    } descriptor = {data, {1, 4, 8}}, *d;
    cr_assert_eq(run(BEGIN, RIG_MAPS({&descriptor, &descriptor, sizeof descriptor, 0, NULL})), WEIR_OK);
    cr_assert_eq(
        run(BEGIN, RIG_MAPS({data, data, sizeof data, TO, NULL}, {&descriptor, data, sizeof descriptor, ATTACH, NULL})),
        WEIR_OK);
    d = device_of(&descriptor);
    cr_expect_eq(d->address, device_of(data));
    cr_expect(d->bounds[0] == 1 && d->bounds[2] == 8);
    cr_assert_eq(run(END, RIG_MAPS({&descriptor, &descriptor, sizeof descriptor, FROM, NULL},
                                   {data, data, sizeof data, 0, NULL})),
                 WEIR_OK);
    cr_expect(descriptor.address == data && descriptor.bounds[1] == 4);
}

Test(interop_data, always_copy_of_a_struct_keeps_attached_pointers)
{
    double data[4] = {1, 2, 3, 4};
    struct thing s = {.p = data};
    const struct rig_map all[] = {
        {&s, &s, sizeof s, BOTH, NULL}, {data, data, sizeof data, BOTH, NULL}, {&s.p, data, 8, ATTACH, NULL}};
    cr_assert_eq(run(BEGIN, all, 3), WEIR_OK);
    cr_assert_eq(run(BEGIN, RIG_MAPS({&s, &s, sizeof s, BOTH | WEIR__MAP_ALWAYS, NULL})), WEIR_OK);
    struct thing *d = device_of(&s);
    cr_expect_eq(d->p, device_of(data));
    cr_assert_eq(run(END, RIG_MAPS({&s, &s, sizeof s, BOTH | WEIR__MAP_ALWAYS, NULL})), WEIR_OK);
    cr_expect_eq(s.p, data);
    cr_assert_eq(run(END, all, 3), WEIR_OK);
}

/* ---- addresses for the program ---- */

Test(interop_data, returned_address_is_the_device_base)
{
    double a[8];
    struct thing s = {.p = a};
    struct rig_args args;
    cr_assert_eq(run(BEGIN, RIG_MAPS({a, a + 2, 32, 0, NULL})), WEIR_OK);
    weir__region_open(&region, fake_task(), fake_device(), table);
    rig_fill(&args, RIG_MAPS({a, a + 2, 32, BOTH | WEIR__MAP_RETURN_PARAM, NULL},
                             {a, a + 3, 0, WEIR__MAP_RETURN_PARAM, NULL}, {&s, &s, 0, WEIR__MAP_RETURN_PARAM, NULL},
                             {&s.x, &s.y, 0, WEIR__MAP_RETURN_PARAM | WEIR__MAP_NULLIFY, NULL}));
    cr_assert_eq(weir__data_begin(&region, &args.args), WEIR_OK);
    double *d = device_of(a + 2);
    cr_expect_eq(args.bases[0], d - 2);
    cr_expect_eq(args.bases[1], d - 2, "a zero-length section finds its array");
    cr_expect_eq(args.bases[2], &s, "what is not mapped keeps the host's address");
    cr_expect_eq((uintptr_t)args.bases[3], (uintptr_t)&s.x - (uintptr_t)&s.y, "or null, as the entry says");
    weir__region_finish(&region);
    cr_assert_eq(run(END, RIG_MAPS({a, a + 2, 32, WEIR__MAP_DELETE, NULL})), WEIR_OK);
}

/* ---- mappers ---- */

static uint64_t inner_type;

static void thing_mapper(void *handle, void *base, void *begin, int64_t bytes, int64_t type, void *name)
{
    struct thing *s = begin;
    uint64_t parent = (uint64_t)weir__mapper_count(handle) << 48, keep = (uint64_t)type & (BOTH | WEIR__MAP_DELETE);
    (void)bytes;
    weir__mapper_push(handle, base, s, sizeof *s, parent, name);
    weir__mapper_push(handle, base, &s->x, 4, parent + RIG_MEMBER(1) + keep, name);
    weir__mapper_push(handle, &s->p, s->p, 16, parent + RIG_MEMBER(1) + (WEIR__MAP_PTR_AND_OBJ | keep), name);
    inner_type = (uint64_t)type;
}

Test(interop_data, mapper_replaces_its_entry)
{
    double data[2] = {1, 2};
    struct thing s = {.x = 7, .p = data};
    const struct rig_map maps[] = {{&s, &s, sizeof s, BOTH, (void *)thing_mapper}};
    cr_assert_eq(run(BEGIN, maps, 1), WEIR_OK);
    cr_expect_eq(inner_type, BOTH, "the mapper gets the entry's type");
    struct thing *d = device_of(&s);
    cr_assert(d);
    cr_expect_eq(d->x, 7);
    cr_expect_eq(d->p, device_of(data));
    cr_assert_eq(run(BEGIN, maps, 1), WEIR_OK);
    cr_expect_eq(weir__state_dynamic(state_of(&s)), 2, "each begin counts");
    d->x = 8;
    d->p[1] = 20;
    cr_assert_eq(run(UPDATE, RIG_MAPS({&s, &s, sizeof s, FROM, (void *)thing_mapper})), WEIR_OK);
    cr_expect(s.x == 8 && data[1] == 20 && s.p == data);
    cr_assert_eq(run(END, maps, 1), WEIR_OK);
    cr_expect(device_of(&s) && device_of(data));
    d->x = 9;
    cr_assert_eq(run(END, maps, 1), WEIR_OK);
    cr_expect_eq(s.x, 9);
    cr_expect_eq(weir__table_count(table), 0);
}

Test(interop_data, mapper_of_a_member_leaves_counting_to_the_parent)
{
    double data[2] = {1, 2};
    struct {
        int before;
        struct thing inner;
    } outer = {1, {.x = 2, .p = data}};
    const struct rig_map maps[] = {
        {&outer, &outer, sizeof outer, 0, NULL},
        {&outer, &outer.before, 4, RIG_MEMBER(1) | BOTH, NULL},
        {&outer, &outer.inner, sizeof outer.inner, RIG_MEMBER(1) | BOTH, (void *)thing_mapper}};
    cr_assert_eq(run(BEGIN, maps, 3), WEIR_OK);
    cr_expect_eq(weir__state_dynamic(state_of(&outer)), 1);
    struct thing *d = device_of(&outer.inner);
    d->x = 3;
    cr_assert_eq(run(END, maps, 3), WEIR_OK);
    cr_expect_eq(outer.inner.x, 3, "members are copied back when the parent ends");
    cr_expect_eq(weir__table_count(table), 0);
}

/* ---- sections with gaps ---- */

struct dimension {
    uint64_t offset, count, stride;
};

Test(interop_data, strided_update_touches_its_elements_only)
{
    int a[24];
    for (int i = 0; i < 24; i++) a[i] = i;
    cr_assert_eq(run(BEGIN, RIG_MAPS({a, a, sizeof a, TO, NULL})), WEIR_OK);
    int *d = device_of(a);
    for (int i = 0; i < 24; i++) d[i] += 100;
    struct dimension dims[] = {{1, 5, 12}, {0, 1, 4}}; /* a[1:5:3] */
    cr_assert_eq(run(UPDATE, RIG_MAPS({a, dims, 2, FROM | WEIR__MAP_NON_CONTIGUOUS, NULL})), WEIR_OK);
    for (int i = 0; i < 24; i++)
        cr_expect_eq(a[i], i + (i >= 1 && i <= 13 && (i - 1) % 3 == 0 ? 100 : 0), "a[%d] is %d", i, a[i]);
    cr_expect_eq(fake_counts().from, 1, "one copy");
    cr_assert_eq(run(END, RIG_MAPS({a, a, sizeof a, 0, NULL})), WEIR_OK);
}

Test(interop_data, block_of_a_matrix_is_one_copy)
{
    double b[10][10];
    for (int i = 0; i < 100; i++) b[i / 10][i % 10] = i;
    cr_assert_eq(run(BEGIN, RIG_MAPS({b, b, sizeof b, 0, NULL})), WEIR_OK);
    double (*d)[10] = device_of(b);
    memset(d, 0, sizeof b);
    struct dimension dims[] = {{2, 3, 80}, {4, 2, 8}, {0, 1, 8}}; /* b[2:3][4:2] */
    cr_assert_eq(run(UPDATE, RIG_MAPS({b, dims, 3, TO | WEIR__MAP_NON_CONTIGUOUS, NULL})), WEIR_OK);
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++)
            cr_expect_eq(d[i][j], i >= 2 && i < 5 && j >= 4 && j < 6 ? i * 10 + j : 0, "d[%d][%d]", i, j);
    cr_expect_eq(fake_counts().to, 1);
    dims[1].count = 0;
    cr_assert_eq(run(UPDATE, RIG_MAPS({b, dims, 3, TO | WEIR__MAP_NON_CONTIGUOUS, NULL})), WEIR_OK);
    cr_expect_eq(fake_counts().to, 1, "an empty section is nothing");
    cr_assert_eq(run(END, RIG_MAPS({b, b, sizeof b, 0, NULL})), WEIR_OK);
}

Test(interop_data, four_dimensions_are_a_loop_of_copies)
{
    static char c[4][4][4][4];
    cr_assert_eq(run(BEGIN, RIG_MAPS({c, c, sizeof c, TO, NULL})), WEIR_OK);
    char (*d)[4][4][4] = device_of(c);
    struct dimension dims[] = {{1, 2, 64}, {1, 3, 16}, {0, 2, 4}, {2, 2, 1}, {0, 1, 1}};
    memset(c, 1, sizeof c);
    cr_assert_eq(run(UPDATE, RIG_MAPS({c, dims, 5, TO | WEIR__MAP_NON_CONTIGUOUS, NULL})), WEIR_OK);
    for (int i = 0; i < 256; i++) {
        int a = i / 64, b = i / 16 % 4, e = i / 4 % 4, f = i % 4;
        bool in = a >= 1 && a < 3 && b >= 1 && e < 2 && f >= 2;
        cr_expect_eq(d[a][b][e][f], in, "%d %d %d %d", a, b, e, f);
    }
    cr_assert_eq(run(END, RIG_MAPS({c, c, sizeof c, 0, NULL})), WEIR_OK);
}

/* ---- unified shared memory ---- */

Test(interop_data, unified_memory_is_used_where_it_is)
{
    int a[4], b[4] = {1}, values[1];
    struct rig_args args;
    uint64_t parameters[2];
    uint32_t n;
    (void)values;
    weir__table_set_unified(table);
    weir__region_open(&region, fake_task(), fake_device(), table);
    rig_fill(&args, RIG_MAPS({a, a, sizeof a, BOTH | WEIR__MAP_TARGET_PARAM | WEIR__MAP_PRESENT, NULL},
                             {b, b, sizeof b, BOTH | WEIR__MAP_TARGET_PARAM | WEIR__MAP_CLOSE, NULL}));
    cr_assert_eq(weir__data_begin(&region, &args.args), WEIR_OK);
    cr_assert_eq(weir__data_arguments(&region, &args.args, parameters, &n), WEIR_OK);
    cr_expect_eq(parameters[0], (uintptr_t)a);
    cr_expect_eq(parameters[1], (uintptr_t)device_of(b));
    cr_expect(device_of(b), "close makes a copy");
    cr_assert_eq(weir__data_end(&region, &args.args), WEIR_OK);
    weir__region_finish(&region);
    cr_expect_eq(weir__table_count(table), 0);
}
