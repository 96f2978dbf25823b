/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <weir/weir.h>

int main(void)
{
    struct weir_context *context;
    if (weir_context_create(NULL, &context)) return 1;
    int devices = weir_device_count(context);
    return weir_context_destroy(context) || devices < 1 || weir_version() != 100;
}
