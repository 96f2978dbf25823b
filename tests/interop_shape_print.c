/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * For interop_nvptx.sh: decode what a compiler wrote about kernels, and say it in words. Arguments: "environment" and
 * the first four 64-bit words of one, or "mode" and its byte.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/shape.h"

int main(int argc, char **argv)
{
    uint64_t words[4] = {0};
    struct weir__shape shape;
    for (int i = 2; i < argc && i < 6; i++) words[i - 2] = strtoull(argv[i], NULL, 10);
    bool good = argc > 1 && !strcmp(argv[1], "mode") ? weir__shape_of_mode(words, &shape)
                                                     : weir__shape_of_environment(words, &shape);
    if (!good) {
        puts("nonsense");
        return 1;
    }
    printf("mode %d, threads %" PRId32 ", teams %" PRId32 " to %" PRId32 ", reduction %" PRId32 " x %" PRId32 "\n",
           shape.mode, shape.threads_most, shape.teams_least, shape.teams_most, shape.reduction_bytes,
           shape.reduction_records);
    return 0;
}
