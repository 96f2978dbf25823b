/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_DONE_H
#define WEIR_TESTS_DONE_H

/* A call that must succeed, on whichever thread. */

#include <stdio.h>
#include <stdlib.h>

#include <weir/error.h>

#define DONE(call)                                                                                                     \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != WEIR_OK) {                                                                                          \
            fprintf(stderr, "%d: %s: %s: %s\n", __LINE__, #call, weir_error_name(rc_), weir_error_text());             \
            abort(); /* also on threads that are not the test's */                                                     \
        }                                                                                                              \
    } while (0)

#endif
