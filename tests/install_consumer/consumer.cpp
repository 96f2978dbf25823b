// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <weir/weir.h>

static int add(void *arg)
{
    *static_cast<int *>(arg) += 1;
    return WEIR_OK;
}

int main()
{
    int x = 0;
    weir_context *context;
    weir_scope *scope;
    if (weir_context_create(nullptr, &context) || weir_scope_create(context, nullptr, &scope)) return 1;
    weir_access accesses[] = {WEIR_INOUT(x)};
    for (int i = 0; i < 3; i++)
        if (weir_task_host(scope, add, &x, accesses, 1, WEIR_TASK("add"), nullptr)) return 1;
    return weir_scope_destroy(scope) || weir_context_destroy(context) || x != 3;
}
