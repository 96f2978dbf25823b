/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The image that devices_host_module_test loads; VERSION tells the builds apart. */
#include <stdint.h>

int64_t image_counter = VERSION * 1000;
int64_t image_table[5];

void image_count(int64_t *out, int64_t step);
void image_count(int64_t *out, int64_t step)
{
    image_counter += step;
    *out = image_counter;
}

#ifdef MISSING
void missing_function(void);
void image_missing(void);
void image_missing(void)
{
    missing_function();
}
#endif
