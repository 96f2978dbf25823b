/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_SNIPPETS_CHECK_H
#define WEIR_SNIPPETS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

/* The examples give up at the first error. */
static inline void check(int rc)
{
    if (rc == WEIR_OK) return;
    fprintf(stderr, "%s: %s\n", weir_error_name(rc), weir_error_text());
    exit(1);
}

/* For what must hold at the end of an example. */
static inline void expect(int condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "not true: %s\n", what);
    exit(1);
}

#endif
