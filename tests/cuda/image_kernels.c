/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Kernels that the emulator's tests launch. */
#include <stdatomic.h>
#include <stdint.h>

#include "emulator.h"

int64_t counter = 40;
int64_t table[1024] = {7};

void add(int64_t *to, int64_t value);
void add(int64_t *to, int64_t value)
{
    *to += value;
}

/* Parameters of 8, 4 and 2 bytes. */
const struct {
    uint32_t count, sizes[3];
} mixed_parameters = {3, {8, 4, 2}};
void mixed(int64_t *to, uint32_t a, uint16_t b);
void mixed(int64_t *to, uint32_t a, uint16_t b)
{
    *to = (int64_t)a * 100000 + b;
}

void count(void);
void count(void)
{
    counter++;
}

void describe(int64_t *to);
void describe(int64_t *to)
{
    const struct emulator_launch *launch = emulator_launch();
    for (int i = 0; i < 3; i++) {
        to[i] = launch->grid[i];
        to[3 + i] = launch->block[i];
    }
    to[6] = launch->shared_bytes;
    to[7] = launch->device;
}

/* Waits until the host has set *@flag, which is pinned memory. */
void wait_for(atomic_int *flag, int64_t *to, int64_t value);
void wait_for(atomic_int *flag, int64_t *to, int64_t value)
{
    while (!atomic_load(flag)) continue;
    if (to) *to = value;
}

void fault(void);
void fault(void)
{
    emulator_kernel_fault(719);
}
