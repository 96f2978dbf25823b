/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_ENVIRONMENT_H
#define WEIR_EXEC_ENVIRONMENT_H

#include <stdint.h>

/* A number from the environment; a bad one is reported and @otherwise used. */
uint32_t weir__environment_number(const char *name, uint32_t otherwise, uint32_t least, uint32_t most);

#endif
