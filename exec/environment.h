/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_ENVIRONMENT_H
#define WEIR_EXEC_ENVIRONMENT_H

#include <stdint.h>

#include <devices/device.h>

/* A number from the environment; a bad one is reported and @otherwise used. */
uint32_t weir__environment_number(const char *name, uint32_t otherwise, uint32_t least, uint32_t most);

/* The variables WEIR_HOST_SHORT_NS, WEIR_HOST_DELAY_US and WEIR_HOST_DELAY_SEED. */
struct weir__host_options weir__environment_host(void);

/* WEIR_DEVICE: which devices are wanted. A word that is none of them is reported and counts as not set. */
enum weir__device_choice { WEIR__DEVICES_ALL, WEIR__DEVICES_HOST, WEIR__DEVICES_CUDA, WEIR__DEVICES_PLUGIN };
enum weir__device_choice weir__environment_device(void);

#endif
