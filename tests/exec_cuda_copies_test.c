/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Copies from and to pageable memory of the host while everything is queued before the device begins: what a copy to
 * the host writes must be seen by all that is ordered behind it on the device, although its last step is done late, and
 * a copy to the device must not read before that.
 */
#include "exec_cuda_rig.h"

enum { CELLS = 8, LARGE = 300 * 1024 };

static struct cuda_rig rig;
static struct weir_scope *scope;
static char *memory; /* on the device */

static void set_up(void)
{
    emulator_set("strict", 1);
    emulator_set("report_hidden_sync", 1);
    cr_assert_eq(rig_open(&rig), 0, "%s", weir_error_text());
    void *address;
    cr_assert_eq(weir_device_alloc(rig.device, 4 * LARGE, &address), 0);
    memory = address;
    cr_assert_eq(weir_scope_create(rig.context, NULL, &scope), 0);
    emulator_stop(-1);
}

static void tear_down(void)
{
    emulator_start(-1);
    cr_assert_eq(weir_scope_destroy(scope), 0);
    cr_assert_eq(weir_device_free(rig.device, memory), 0);
    rig_close(&rig);
    cr_assert_eq(emulator_report_count(), 0, "%s", emulator_report_text(0));
}

static void wait_for_all(void)
{
    emulator_start(-1);
    cr_assert_eq(weir_scope_wait(scope), 0, "%s", weir_error_text());
}

/* An open task that writes @what, behind @behind. Two tasks that are open at once are on different streams. */
static struct weir_task *begin(const void *what, const void *behind)
{
    struct weir_access accesses[] = {WEIR_RANGE(what, 1, WEIR_ACCESS_INOUT), WEIR_RANGE(behind, 1, WEIR_ACCESS_IN)};
    struct weir_task *task;
    cr_assert_eq(weir_task_begin(scope, rig.device, accesses, behind ? 2 : 1, NULL, &task), 0, "%s", weir_error_text());
    return task;
}

static void end(struct weir_task *task)
{
    cr_assert_eq(weir_task_end(task), 0, "%s", weir_error_text());
}

static void to_device(struct weir_task *task, char *to, const void *from, size_t bytes)
{
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE, .to = to, .from = from, .bytes = bytes};
    cr_assert_eq(weir__task_copy(task, &copy), 0, "%s", weir_error_text());
}

static void to_host(struct weir_task *task, void *to, const char *from, size_t bytes)
{
    struct weir__copy copy = {.kind = WEIR__COPY_TO_HOST, .to = to, .from = from, .bytes = bytes};
    cr_assert_eq(weir__task_copy(task, &copy), 0, "%s", weir_error_text());
}

Test(exec_cuda_copies, the_host_may_change_its_memory_after_a_small_copy_was_queued, .init = set_up, .fini = tear_down)
{
    int64_t from = 5, to = 0;
    struct weir_task *task = begin(memory, NULL);
    to_device(task, memory, &from, sizeof from);
    from = 6;
    to_host(task, &to, memory, sizeof to);
    end(task);
    wait_for_all();
    cr_assert_eq(to, 5);
    cr_assert_eq(rig_counters(&rig).copies_staged, 1);
    cr_assert_eq(rig_counters(&rig).copies_late, 1);
}

/* Through the host's memory, on one stream. */
Test(exec_cuda_copies, a_copy_back_reads_what_came_before_on_its_stream, .init = set_up, .fini = tear_down)
{
    int64_t first = 1, middle = 0, last = 0;
    struct weir_task *task = begin(memory, NULL);
    to_device(task, memory, &first, 8);
    to_host(task, &middle, memory, 8);
    to_device(task, memory + 8, &middle, 8);
    to_host(task, &last, memory + 8, 8);
    end(task);
    wait_for_all();
    cr_assert_eq(last, 1);
    cr_assert_eq(rig_counters(&rig).copies_ordered, 1);
}

static void across_streams(void *from, void *middle, void *last, size_t bytes)
{
    static char tags[3];
    struct weir_task *task = begin(&tags[0], NULL);
    to_device(task, memory, from, bytes);
    to_host(task, middle, memory, bytes);
    end(task);
    /* Takes the stream of the first and keeps it. */
    struct weir_task *holder = begin(&tags[1], &tags[0]);
    uint64_t waits = emulator_calls("cuStreamWaitEvent");
    task = begin(&tags[2], &tags[0]);
    cr_assert_eq(emulator_calls("cuStreamWaitEvent"), waits + 1, "not on another stream");
    to_device(task, memory + LARGE, middle, bytes);
    to_host(task, last, memory + LARGE, bytes);
    end(task);
    end(holder);
    wait_for_all();
}

Test(exec_cuda_copies, a_copy_back_reads_what_came_before_on_another_stream, .init = set_up, .fini = tear_down)
{
    int64_t first = 7, middle = 0, last = 0;
    across_streams(&first, &middle, &last, 8);
    cr_assert_eq(middle, 7);
    cr_assert_eq(last, 7);
}

Test(exec_cuda_copies, a_large_copy_back_does_so_too, .init = set_up, .fini = tear_down)
{
    char *first = malloc(LARGE), *middle = calloc(1, LARGE), *last = calloc(1, LARGE);
    for (int i = 0; i < LARGE; i++) first[i] = (char)(i * 7 + i / 256);
    across_streams(first, middle, last, LARGE);
    cr_assert_arr_eq(last, first, LARGE);
    free(first);
    free(middle);
    free(last);
}

static int64_t seen;

static int look(void *arg)
{
    seen = *(int64_t *)arg;
    return 0;
}

Test(exec_cuda_copies, a_function_sees_what_was_copied_before_it, .init = set_up, .fini = tear_down)
{
    int64_t from = 9, to = 0;
    struct weir_task *task = begin(memory, NULL);
    to_device(task, memory, &from, 8);
    to_host(task, &to, memory, 8);
    cr_assert_eq(weir__task_host_function(task, look, &to), 0);
    end(task);
    wait_for_all();
    cr_assert_eq(seen, 9);
}

static int write_cell(void *arg)
{
    *(int64_t *)arg = 11;
    return 0;
}

Test(exec_cuda_copies, a_copy_reads_what_a_function_before_it_writes, .init = set_up, .fini = tear_down)
{
    int64_t cell = 0, to = 0;
    struct weir_task *task = begin(memory, NULL);
    cr_assert_eq(weir__task_host_function(task, write_cell, &cell), 0);
    to_device(task, memory, &cell, 8);
    to_host(task, &to, memory, 8);
    end(task);
    wait_for_all();
    cr_assert_eq(to, 11);
}

/* The large one is not late: it must not be overtaken by the small one in front of it. */
Test(exec_cuda_copies, the_later_of_two_copies_to_one_place_wins, .init = set_up, .fini = tear_down)
{
    char *ones = malloc(LARGE), *place = calloc(1, LARGE);
    memset(ones, 1, LARGE);
    struct weir_task *task = begin(memory, NULL);
    cr_assert_eq(weir__task_fill(task, memory, 2, LARGE), 0);
    to_host(task, place, memory, 100);
    to_device(task, memory, ones, LARGE);
    to_host(task, place, memory, LARGE);
    end(task);
    wait_for_all();
    cr_assert_arr_eq(place, ones, LARGE);
    free(ones);
    free(place);
}

/* Every 40th byte row by row, in both directions, small and large. */
Test(exec_cuda_copies, blocks_keep_their_gaps, .init = set_up, .fini = tear_down)
{
    static const size_t rows[] = {3, 4000};
    static unsigned char from[2][2][4000][64], to[2][2][4000][64];
    for (int size = 0; size < 2; size++) {
        struct weir__copy there = {.kind = WEIR__COPY_TO_DEVICE,
                                   .to = memory,
                                   .from = from[size],
                                   .bytes = 40,
                                   .count = {rows[size], 2},
                                   .to_pitch = {48, 48 * rows[size]},
                                   .from_pitch = {64, sizeof from[size][0]}};
        struct weir__copy back = {.kind = WEIR__COPY_TO_HOST,
                                  .to = to[size],
                                  .from = memory,
                                  .bytes = 40,
                                  .count = {rows[size], 2},
                                  .to_pitch = {64, sizeof to[size][0]},
                                  .from_pitch = {48, 48 * rows[size]}};
        memset(from[size], 3 + size, sizeof from[size]);
        memset(to[size], 9, sizeof to[size]);
        struct weir_task *task = begin(memory, NULL);
        cr_assert_eq(weir__task_copy(task, &there), 0);
        cr_assert_eq(weir__task_copy(task, &back), 0);
        end(task);
    }
    wait_for_all();
    for (int size = 0; size < 2; size++)
        for (int plane = 0; plane < 2; plane++)
            for (size_t row = 0; row < rows[size]; row++)
                for (int i = 0; i < 64; i++) cr_assert_eq(to[size][plane][row][i], i < 40 ? 3 + size : 9);
}

/* ---- the ways that copies take ---- */

enum { REPORT = 4096 };

static void report_of(enum weir_trace_format format, char report[REPORT])
{
    char path[] = "/tmp/weir-copies-XXXXXX";
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    cr_assert_eq(weir_trace_write(path, format), 0, "%s", weir_error_text());
    file = open(path, O_RDONLY); /* another one: it was replaced */
    memset(report, 0, REPORT);
    cr_assert(file >= 0 && read(file, report, REPORT - 1) > 0);
    close(file);
    unlink(path);
}

static void expect_line(const char *report, const char *line)
{
    cr_expect(strstr(report, line), "'%s' is not in:\n%s", line, report);
}

/* Pinned memory goes directly, small pageable memory is staged, large is bounced; counters and report say so. */
Test(exec_cuda_copies, each_way_is_counted, .init = set_up, .fini = tear_down)
{
    static char small[100], large[LARGE];
    char report[REPORT];
    struct weir_counters counters;
    struct driver_context *context;
    void *pinned;
    cr_assert_eq(weir__cuda_driver->context_retain(&context, 0), DRIVER_OK);
    cr_assert_eq(weir__cuda_driver->context_push(context), DRIVER_OK);
    cr_assert_eq(weir__cuda_driver->pinned_alloc(&pinned, 100, DRIVER_HOST_PORTABLE), DRIVER_OK);
    cr_assert_eq(weir_trace_start(NULL), 0);
    struct weir_task *task = begin(small, NULL);
    to_device(task, memory, pinned, 100);
    to_device(task, memory + 100, small, 50);
    to_host(task, small + 50, memory, 50);
    to_device(task, memory, large, LARGE);
    to_host(task, pinned, memory, 30);
    end(task);
    wait_for_all();
    weir_scope_counters(scope, &counters);
    cr_expect(counters.copies_direct == 2 && counters.bytes_direct == 130);
    cr_expect(counters.copies_staged == 2 && counters.bytes_staged == 100);
    cr_expect(counters.copies_bounced == 1 && counters.bytes_bounced == LARGE);
    report_of(WEIR_TRACE_REPORT, report);
    expect_line(report, " copies   5, 307430 bytes");
    expect_line(report, " 2 direct, 130 bytes");
    expect_line(report, " 2 staged, 100 bytes");
    expect_line(report, " 1 bounced, 307200 bytes");
    report_of(WEIR_TRACE_REPORT_JSON, report);
    expect_line(report, "\"copies_by_way\":{\"direct\":2,\"staged\":2,\"bounced\":1}");
    expect_line(report, "\"bytes_by_way\":{\"direct\":130,\"staged\":100,\"bounced\":307200}");
    cr_assert_eq(weir__cuda_driver->pinned_free(pinned), DRIVER_OK);
    cr_assert_eq(weir__cuda_driver->context_pop(&context), DRIVER_OK);
    cr_assert_eq(weir__cuda_driver->context_release(0), DRIVER_OK);
}
