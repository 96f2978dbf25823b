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
