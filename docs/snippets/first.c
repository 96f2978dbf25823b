/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* README.md: the smallest whole program. */
/* [snippet] */
#include <stdio.h>
#include <weir/weir.h>

static int x;
static int set(void *arg) { x = *(int *)arg; return 0; }
static int show(void *arg) { (void)arg; printf("x is %d\n", x); return 0; }

int main(void)
{
    int value = 42;
    struct weir_context *context;
    struct weir_scope *scope;
    if (weir_context_create(NULL, &context) || weir_scope_create(context, NULL, &scope)) return 1;

    struct weir_access writes_x[] = { WEIR_OUT(x) }, reads_x[] = { WEIR_IN(x) };
    int rc = weir_task_host(scope, set, &value, writes_x, 1, WEIR_TASK("set"), NULL);
    if (!rc) rc = weir_task_host(scope, show, NULL, reads_x, 1, WEIR_TASK("show"), NULL); /* runs after set */

    int failure = weir_scope_destroy(scope); /* waits for both */
    if (rc || failure) fprintf(stderr, "%s\n", weir_error_text());
    return weir_context_destroy(context) || rc || failure;
}
/* [end] */
