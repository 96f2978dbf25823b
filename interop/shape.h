/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_SHAPE_H
#define WEIR_INTEROP_SHAPE_H

/*
 * How many teams of how many threads a kernel of a GPU is launched with. The compiler writes down how it has translated a
 * kernel: in `<kernel>_exec_mode` (clang 14 to 16, one byte) or at the beginning of `<kernel>_kernel_environment` (clang 17
 * to 22). Kernels for the CPU have neither. Pure: any thread, never blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir__kernel_args;

/* The values of clang's byte. */
enum weir__shape_mode {
    WEIR__SHAPE_BARE = 0,         /* no OpenMP inside: the grid is taken as it is named */
    WEIR__SHAPE_GENERIC = 1,      /* one thread of a team runs the serial parts, in a warp of its own */
    WEIR__SHAPE_SPMD = 2,         /* all threads run everything */
    WEIR__SHAPE_GENERIC_SPMD = 3, /* written for generic mode, turned into SPMD; one team for each iteration */
};

struct weir__shape {
    bool known; /* false: a kernel for the CPU, or without a word about it */
    uint8_t mode;
    int32_t threads_most, teams_least, teams_most; /* 0 or less: not said */
    int32_t reduction_bytes;   /* of a team's part in a reduction over teams; 0 or less: there is none */
    int32_t reduction_records; /* such parts that the buffer of a reduction has room for */
};

/* What a device is able to do. */
struct weir__shape_limits {
    uint32_t threads_most; /* of a team */
    uint32_t warp;         /* threads that run in step */
    uint32_t processors;   /* that teams run on */
    uint32_t teams_most;
};

enum { WEIR__SHAPE_BYTES = 32 }; /* of an environment that are read */

/* @bytes  read from the device, 1 of an exec_mode or WEIR__SHAPE_BYTES of an environment. False: nonsense. */
bool weir__shape_of_mode(const void *bytes, struct weir__shape *out);
bool weir__shape_of_environment(const void *bytes, struct weir__shape *out);

/*
 * Teams and threads of a launch. OpenMP 5.2 sections 10.2 (num_teams, thread_limit: upper bounds) and 15.8; where the program
 * says nothing: 128 threads, and as many teams as the loop has use for, up to eight for each processor.
 * @shape  known.
 */
void weir__shape_choose(const struct weir__shape *shape, const struct weir__kernel_args *args,
                        const struct weir__shape_limits *limits, uint32_t *teams_out, uint32_t *threads_out);

#endif
