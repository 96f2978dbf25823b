/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_BODIES_H
#define WEIR_TESTS_BODIES_H

/* What the tasks of a test do: count, or fail. */

static _Atomic int ran;

static int body(void *arg)
{
    (void)arg;
    ran++;
    return 0;
}

static int failing_body(void *arg)
{
    (void)arg;
    return -77;
}

#endif
