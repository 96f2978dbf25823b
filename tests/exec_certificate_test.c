/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include <devices/mock/mock.h>
#include <exec/work.h>
#include <graph/certificate.h>
#include <graph/check.h>
#include <weir/weir.h>

/* What exec/ decides about device edges is judged by the independent checker: no edge is open, no wait needless. */

static struct weir__mock *mock;
static struct weir_context *context;
static struct weir__certificate *certificate;

static void set_up(uint32_t devices, uint32_t streams)
{
    struct weir__mock_options options = {.devices = devices, .advised_streams = streams, .duration = 3, .random_seed = 7};
    struct weir_context_options none = {.size = sizeof none, .host_devices = 1};

    cr_assert_eq(weir__mock_create(&options, &mock), 0);
    cr_assert_eq(weir_context_create(&none, &context), 0);
    cr_assert_eq(weir__context_add_backend(context, weir__mock_ops(mock), mock), 0, "%s", weir_error_text());
    cr_assert_eq(weir__certificate_create(&certificate), 0);
    weir__context_certify(context, certificate);
}

static void tear_down(void)
{
    cr_assert_eq(weir_context_destroy(context), 0);
    cr_assert_str_empty(weir__mock_violations(mock));
    weir__mock_destroy(mock);
    weir__certificate_destroy(certificate);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, nothing, arg);
}

static void submit_random(struct weir_scope *scope, uint32_t devices, unsigned tasks, unsigned cells, unsigned *seed)
{
    static char cell[64];

    for (unsigned i = 0; i < tasks; i++) {
        struct weir_access accesses[4];
        unsigned n = 1 + (unsigned)rand_r(seed) % 4;
        int device = 1 + (int)((unsigned)rand_r(seed) % devices);

        for (unsigned k = 0; k < n; k++) {
            const uint32_t kinds[] = {WEIR_ACCESS_IN, WEIR_ACCESS_IN, WEIR_ACCESS_INOUT, WEIR_ACCESS_INOUTSET};

            accesses[k] = (struct weir_access)WEIR_RANGE(&cell[(unsigned)rand_r(seed) % cells], 1, kinds[rand_r(seed) % 4]);
        }
        cr_assert_eq(weir_task_submit(scope, weir_device_get(context, device), accesses, n, issue, NULL, NULL, NULL), 0);
        if (rand_r(seed) % 8 == 0) weir__mock_advance(mock, (uint64_t)rand_r(seed) % 4);
    }
}

static void judge(uint32_t devices, uint32_t streams, unsigned cells, unsigned seed)
{
    struct weir__check_fault fault;
    struct weir_counters counters;
    struct weir_scope *scope;

    set_up(devices, streams);
    cr_assert_eq(weir_scope_create(context, NULL, &scope), 0);
    for (int round = 0; round < 5; round++) {
        submit_random(scope, devices, 150, cells, &seed);
        weir__mock_run(mock);
        cr_assert_eq(weir_scope_wait(scope), 0, "%s", weir_error_text());
    }
    weir_scope_counters(scope, &counters);
    cr_expect_gt(counters.event_waits, 0, "nothing was put to the test");
    cr_expect_geq(weir__certificate_count(certificate), 750);
    cr_assert_eq(weir__certificate_check(certificate, &fault), 0, "%s", fault.text);
    cr_assert_eq(weir_scope_destroy(scope), 0);
    tear_down();
}

Test(exec_certificate, one_device_with_few_streams)
{
    for (unsigned seed = 1; seed <= 10; seed++) judge(1, 3, 12, seed);
}

Test(exec_certificate, many_streams_and_cells)
{
    for (unsigned seed = 1; seed <= 10; seed++) judge(1, 12, 40, seed);
}

Test(exec_certificate, three_devices_that_wait_for_each_other)
{
    for (unsigned seed = 1; seed <= 10; seed++) judge(3, 4, 20, seed);
}
