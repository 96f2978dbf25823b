/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>
#include <string.h>

#include "interop/decode.h"
#include "interop/shape.h"

/* The beginning of an environment as clang 22 writes it for num_teams(7) thread_limit(96), SPMD. */
static const unsigned char spmd[WEIR__SHAPE_BYTES] = {0, 1, 2, 0, 1, 0, 0, 0, 96, 0, 0, 0, 7, 0, 0, 0, 7};
/* … and for a target construct without teams, generic: no bounds for teams. */
static const unsigned char generic[WEIR__SHAPE_BYTES] = {1, 1, 1,    0,    1,    0,    0,    0,    128,  0,
                                                         0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* … and for reductions of 8 and 4 bytes over teams. */
static const unsigned char reducing[WEIR__SHAPE_BYTES] = {[2] = 2, [4] = 1, [8] = 128, [20] = 16, [25] = 4};

static const struct weir__shape_limits limits = {
    .threads_most = 1024, .warp = 32, .processors = 10, .teams_most = 65535};

Test(shape, environments_are_read)
{
    struct weir__shape shape;
    cr_assert(weir__shape_of_environment(spmd, &shape));
    cr_assert(shape.known && shape.mode == WEIR__SHAPE_SPMD && shape.threads_most == 96);
    cr_assert(shape.teams_least == 7 && shape.teams_most == 7 && shape.reduction_bytes == 0);
    cr_assert(weir__shape_of_environment(generic, &shape));
    cr_assert(shape.mode == WEIR__SHAPE_GENERIC && shape.threads_most == 128 && shape.teams_most == -1);
    cr_assert(weir__shape_of_environment(reducing, &shape));
    cr_assert(shape.reduction_bytes == 16 && shape.reduction_records == 1024 && shape.teams_most == 0);
}

Test(shape, old_compilers_write_one_byte)
{
    struct weir__shape shape;
    cr_assert(weir__shape_of_mode("\3", &shape) && shape.known && shape.mode == WEIR__SHAPE_GENERIC_SPMD);
    cr_assert(shape.threads_most == 0 && shape.teams_most == 0);
}

Test(shape, nonsense_is_not_known)
{
    struct weir__shape shape;
    cr_assert_not(weir__shape_of_mode("\11", &shape));
    cr_assert_not(shape.known);
}

/* What is launched, and why. */
static const struct {
    const char *why;
    struct weir__shape shape;
    int64_t teams, threads;
    uint64_t tripcount;
    uint32_t want_teams, want_threads;
} rows[] = {
    {"the program names both", {true, WEIR__SHAPE_SPMD, 96, 7, 7, 0, 0}, 7, 96, 1000, 7, 96},
    {"nothing is named: 128 threads, eight teams a processor",
     {true, WEIR__SHAPE_SPMD, 0, 0, 0, 0, 0},
     0,
     0,
     0,
     80,
     128},
    {"a short loop has use for few teams", {true, WEIR__SHAPE_SPMD, 0, 0, 0, 0, 0}, 0, 0, 300, 3, 128},
    {"generic: a team for each iteration, a warp more", {true, WEIR__SHAPE_GENERIC, 0, 0, 0, 0, 0}, 0, 64, 5, 5, 96},
    {"…but not more than the kernel is made for", {true, WEIR__SHAPE_GENERIC, 128, 0, 0, 0, 0}, 0, 0, 5, 5, 128},
    {"generic turned into SPMD: a team for each iteration",
     {true, WEIR__SHAPE_GENERIC_SPMD, 0, 0, 0, 0, 0},
     0,
     0,
     5,
     5,
     128},
    {"no teams construct: one team", {true, WEIR__SHAPE_GENERIC, 128, -1, -1, 0, 0}, -1, 0, 0, 1, 128},
    {"more threads than the device has", {true, WEIR__SHAPE_SPMD, 0, 0, 0, 0, 0}, 2, 5000, 0, 2, 1024},
    {"more teams than a launch can have", {true, WEIR__SHAPE_SPMD, 0, 0, 0, 0, 0}, 100000, 32, 0, 65535, 32},
    {"the compiler knows a bound for teams", {true, WEIR__SHAPE_SPMD, 0, 1, 4, 0, 0}, 0, 0, 100000, 4, 128},
};

Test(shape, each_launch_gets_its_grid)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__kernel_args args = {
            .teams = {rows[i].teams, 0, 0}, .threads = {rows[i].threads, 0, 0}, .tripcount = rows[i].tripcount};
        uint32_t teams, threads;
        weir__shape_choose(&rows[i].shape, &args, &limits, &teams, &threads);
        cr_expect(teams == rows[i].want_teams && threads == rows[i].want_threads, "%s: %u teams of %u threads",
                  rows[i].why, teams, threads);
    }
}
