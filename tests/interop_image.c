/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A device image as a compiler would make one, for interop_registry_test.c. */
#include <stdint.h>

#define DEVICE __attribute__((visibility("protected")))

DEVICE int image_variable = 11;
DEVICE int *image_link_ref_ptr;
void image_function(void);

DEVICE void (*image_indirect)(void) = image_function;
DEVICE int image_begun;

void image_ctor(void);
void image_dtor(void);
void image_add(void *first, int *to, uint64_t value);
void image_add_old(int *to, uint64_t value);
void image_report(void *first, int64_t *out);

void image_function(void) {}

/* Where the destructor leaves its mark: memory of the host, set by the kernel below. */
static int64_t *mark;

void image_ctor(void)
{
    image_begun++;
}

void image_dtor(void)
{
    if (mark) *mark = -1;
}

void image_add(void *first, int *to, uint64_t value)
{
    (void)first;
    *to += (int)value + image_variable;
}

void image_add_old(int *to, uint64_t value)
{
    *to -= (int)value;
}

void image_report(void *first, int64_t *out)
{
    (void)first;
    out[0] = image_begun;
    out[1] = image_variable;
    mark = (int64_t *)(intptr_t)out[2];
}

/* ---- a kernel as for a GPU: it says how it was translated, and reduces over teams ---- */

/* SPMD, at most 96 threads and 7 teams; parts of 16 bytes, 4 of them. */
const struct {
    uint8_t state_machine, nested, mode;
    int32_t bounds[4], reduction_bytes, reduction_records;
    void *where, *dynamic;
} image_reduce_kernel_environment = {0, 0, 2, {1, 96, 0, 7}, 16, 4, 0, 0};

struct launch_environment {
    uint32_t teams_done, rounds;
    unsigned char *buffer;
};

/* As the first words of what the emulated CUDA driver says about a launch; it is there in programs that have it. */
const unsigned *emulator_launch(void) __attribute__((weak));

void image_reduce(struct launch_environment *environment, int64_t *out);
void image_reduce(struct launch_environment *environment, int64_t *out)
{
    out[0] = environment->teams_done;
    out[1] = environment->rounds;
    for (int i = 0; i < 64; i++) environment->buffer[i] = (unsigned char)i; /* all of it is there */
    environment->teams_done = environment->rounds = 5; /* the next launch has its own */
    out[2] = (intptr_t)environment;
    if (!emulator_launch) return;
    out[3] = emulator_launch()[0];
    out[4] = emulator_launch()[3];
}
