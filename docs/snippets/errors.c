/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* docs/graph-api.md 5: what went wrong, and what waited for what. */
#include <inttypes.h>
#include <string.h>

#include "check.h"

static int potrf(void *arg)
{
    (void)arg;
    return WEIR_E_TASK; /* not positive definite */
}

static int trsm(void *arg)
{
    (void)arg;
    return 0;
}

int main(void)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir_counters c;
    double tile = 0.0;
    check(weir_context_create(NULL, &context));
    check(weir_scope_create(context, NULL, &scope));

    /* [snippet] */
    struct weir_access a[] = { WEIR_INOUT(tile) };
    check(weir_task_host(scope, potrf, NULL, a, 1, WEIR_TASK("potrf"), NULL)); /* with name, file and line */
    check(weir_task_host(scope, trsm, NULL, a, 1, WEIR_TASK("trsm"), NULL));
    int rc = weir_scope_wait(scope);                    /* first failure in the scope */
    if (rc) fprintf(stderr, "%s\n", weir_error_text()); /* names potrf, its place, and what was cancelled */
    weir_scope_counters(scope, &c);                     /* tasks, edges and how each was realised */
    /* [end] */

    expect(rc == WEIR_E_TASK, "the wait returns the task's status");
    expect(strstr(weir_error_text(), "potrf") != NULL, "the text names the task");
    expect(c.tasks == 2 && c.edges == 1 && c.failed == 1 && c.cancelled == 1, "the counters tell what happened");
    printf("%" PRIu64 " tasks, %" PRIu64 " failed, %" PRIu64 " cancelled\n", c.tasks, c.failed, c.cancelled);
    check(weir_scope_destroy(scope));
    check(weir_context_destroy(context));
    return 0;
}
