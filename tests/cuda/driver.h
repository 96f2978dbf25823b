/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Prototypes of the emulated driver's functions, for tests that are linked to it. */
#ifndef WEIR_EMULATOR_DRIVER_H
#define WEIR_EMULATOR_DRIVER_H

#include "emulator.h"
#include "types.h"

#define CALL(name, since, class, parameters, arguments) int name parameters;
#define CALL_PTSZ(name, since, class, parameters, arguments)                                                           \
    int name parameters;                                                                                               \
    int name##_ptsz parameters;
#define CALL_PTDS(name, since, class, parameters, arguments)                                                           \
    int name parameters;                                                                                               \
    int name##_ptds parameters;
#define OLD(name) int name(void);
#include "calls.h"
#undef CALL
#undef CALL_PTSZ
#undef CALL_PTDS
#undef OLD

#endif
