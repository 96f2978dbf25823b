/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the groups of an access table cost: how many names are looked at, how many edges are made. group.c is compiled
 * into the test, so that each question whether a named task is done can be counted.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include <graph/node.h>

static unsigned long looked_at;

static bool count_and_ask(const struct weir__node *node)
{
    looked_at++;
    return weir__node_is_done(node);
}

#define weir__node_is_done count_and_ask
#include <graph/group.c>
#undef weir__node_is_done

#include <graph/depend.h>

enum { MANY = 4096, GROUP = 500, WINDOW = 64, NODES = MANY + 16 };

static struct rig {
    struct weir__fencer fencer;
    struct weir__extras extras;
    struct weir__depend depend;
    struct weir__node *nodes; /* nodes[NODES], each used once */
    uint32_t used, nfences;
    size_t edges;
} rig;

static void want(struct weir__node *pred)
{
    (void)pred;
}

static struct weir__node *open_node(uint8_t domain)
{
    struct weir__node *node = &rig.nodes[rig.used++];
    cr_assert_leq(rig.used, NODES);
    weir__node_open(node, rig.used, domain);
    node->kind = domain != 0 ? WEIR__NODE_NOTICE : 0;
    return node;
}

/* Count what the node waits for; a node of a domain is issued at once and stays incomplete. */
static void close_node(struct weir__linking *linking)
{
    struct weir__node *node = linking->node;
    rig.edges += node->nslots + linking->done;
    for (uintptr_t e = (uintptr_t)node->extra; e != 0; e = weir__extra_of(e)->next)
        rig.edges += (e & 7) == WEIR__EXTRA_EDGE;
    cr_assert_null(linking->failed);
    if (!weir__node_close(linking) || node->domain == 0) return;
    node->point = node->id;
    cr_assert_eq(weir__node_take(&node->issued), 0);
}

static struct weir__node *create_fence(struct weir__fencer *fencer, uint8_t domain, const struct weir__node *like)
{
    (void)fencer;
    cr_assert_eq(like != NULL, domain != 0);
    rig.nfences++;
    return open_node(domain);
}

static void submit_fence(struct weir__fencer *fencer, struct weir__linking *linking)
{
    (void)fencer;
    close_node(linking);
}

static void set_up(void)
{
    rig = (struct rig){.fencer = {create_fence, submit_fence, want, &rig.extras}};
    rig.nodes = calloc(NODES, sizeof *rig.nodes);
    cr_assert_not_null(rig.nodes);
    cr_assert_eq(weir__depend_init(&rig.depend, false, &rig.fencer), WEIR_OK);
    looked_at = 0;
}

static void tear_down(void)
{
    for (uint32_t i = 0; i < rig.used; i++) {
        for (uintptr_t e = (uintptr_t)rig.nodes[i].extra; e != 0; e = weir__extra_of(e)->next)
            if ((e & 7) == WEIR__EXTRA_LOCK) weir__lock_release((struct weir__lock *)weir__extra_of(e)->value);
    }
    weir__depend_fini(&rig.depend);
    weir__extras_fini(&rig.extras);
    free(rig.nodes);
}

static void submit(uint32_t kind, uint8_t domain)
{
    struct weir_access access = {&rig, 8, kind};
    struct weir__linking linking = {.extras = &rig.extras, .want = want};
    cr_assert_eq(weir__depend_reserve(&rig.depend, &access, 1), WEIR_OK);
    linking.node = open_node(domain);
    weir__depend_enter(&rig.depend, &access, 1, &linking);
    close_node(&linking);
}

static void complete(struct weir__node *node)
{
    uintptr_t list = weir__node_take(&node->completed);
    while (list != 0) (void)weir__node_unblock(weir__taken_next(&list, 0).node);
}

TestSuite(graph_group, .init = set_up, .fini = tear_down);

static const uint32_t joining[] = {WEIR_ACCESS_IN, WEIR_ACCESS_INOUTSET, WEIR_ACCESS_MUTEXINOUTSET};

Test(graph_group, pending_members_are_looked_at_a_few_times_each)
{
    for (size_t k = 0; k < sizeof joining / sizeof joining[0]; k++) {
        for (uint8_t domain = 0; domain < 2; domain++) {
            for (uint32_t i = 0; i < MANY; i++) submit(joining[k], domain);
            cr_expect_leq(looked_at, 4ul * MANY, "kind %u, domain %u: %lu", joining[k], domain, looked_at);
            tear_down();
            set_up();
        }
    }
}

Test(graph_group, a_group_keeps_as_many_names_as_are_pending)
{
    for (uint32_t i = 0; i < MANY; i++) {
        submit(WEIR_ACCESS_IN, 0);
        if (i >= WINDOW) complete(&rig.nodes[i - WINDOW]);
    }
    struct weir__entry *entry = weir__entry_locate(rig.depend.entries, rig.depend.bits, (uintptr_t)&rig);
    cr_assert_eq(entry->key, (uintptr_t)&rig);
    cr_expect_leq(entry->now.more->capacity, 4 * WINDOW + 4);
    cr_expect_leq(looked_at, 4ul * MANY, "%lu", looked_at);
}

/* Two groups, the second behind all of the first. */
Test(graph_group, edges_between_two_large_groups_grow_with_their_sum)
{
    for (size_t k = 0; k < sizeof joining / sizeof joining[0]; k++) {
        for (size_t to = 0; to < sizeof joining / sizeof joining[0]; to++) {
            for (uint8_t domain = 0; domain < 2 && to != k; domain++) {
                for (uint32_t i = 0; i < GROUP; i++) submit(joining[k], domain);
                cr_expect_eq(rig.edges, 0);
                for (uint32_t i = 0; i < GROUP; i++) submit(joining[to], domain);
                cr_expect_leq(rig.edges, 3 * 2 * GROUP, "kinds %u, %u, domain %u: %zu", joining[k], joining[to], domain,
                              rig.edges);
                cr_expect_geq(rig.edges, 2 * GROUP);
                cr_expect_eq(rig.nfences, 1);
                tear_down();
                set_up();
            }
        }
    }
}

Test(graph_group, a_task_that_names_an_address_often_has_one_edge_to_a_predecessor)
{
    for (uint8_t domain = 0; domain < 2; domain++) {
        struct weir_access access[8];
        struct weir__linking linking = {.extras = &rig.extras, .want = want};
        for (int i = 0; i < 8; i++)
            access[i] = (struct weir_access){&rig, 8, i % 3 != 2 ? WEIR_ACCESS_IN : WEIR_ACCESS_INOUT};
        for (int i = 0; i < 2; i++) submit(WEIR_ACCESS_INOUT, domain);
        for (int i = 0; i < 3; i++) submit(WEIR_ACCESS_IN, domain);
        rig.edges = 0;
        cr_assert_eq(weir__depend_reserve(&rig.depend, access, 8), WEIR_OK);
        linking.node = open_node(domain);
        weir__depend_enter(&rig.depend, access, 8, &linking);
        close_node(&linking);
        cr_expect_eq(rig.edges, 4, "domain %u: %zu edges", domain, rig.edges); /* the writer and three readers */
        tear_down();
        set_up();
    }
}
