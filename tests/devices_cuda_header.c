/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * devices/cuda/driver.h against a cuda.h that was found when the build was configured: names, suffixes, types of
 * functions, constants and layouts. All of it is checked by the compiler; running it prints which version it was.
 * Without WEIR_TEST_CUDA_H it says so and is skipped.
 */
#include <stdio.h>

#include "devices_cuda_header.h"

#ifndef WEIR_TEST_CUDA_H

int main(void)
{
    puts("skipped: no cuda.h was found");
    return 77;
}

#else

#include <cuda.h>

/* First with the types of cuda.h in place of ours: the functions must then have the same types. */
#define driver_result             cudaError_enum
#define driver_device_attribute   CUdevice_attribute_enum
#define driver_pointer_attribute  CUpointer_attribute_enum
#define driver_function_attribute CUfunction_attribute_enum
#define driver_jit_option         CUjit_option_enum
#define driver_capture_status     CUstreamCaptureStatus_enum
#define driver_capture_mode       CUstreamCaptureMode_enum
#define driver_copy_2d            CUDA_MEMCPY2D_st
#define driver_copy_peer          CUDA_MEMCPY3D_PEER_st
#define driver_context            CUctx_st
#define driver_stream             CUstream_st
#define driver_event              CUevent_st
#define driver_module             CUmod_st
#define driver_function           CUfunc_st
#define WEIR__DRIVER_TYPES
#include <devices/cuda/driver.h>

#define PLAIN(field, symbol, older, parameters)                                                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), __typeof__(((struct weir__driver *)0)->field)),   \
                   #symbol ": another type");
WEIR__DRIVER_CALLS(PLAIN)
#if CUDA_VERSION >= 12040
WEIR__DRIVER_NEWER_CALLS(PLAIN)
#endif

#define VALUE(own, theirs, value) _Static_assert((int)theirs == (value), #theirs ": another value");
WEIR__DRIVER_RESULTS(VALUE)
WEIR__DRIVER_DEVICE_ATTRIBUTES(VALUE)
WEIR__DRIVER_CONSTANTS(VALUE)

int main(void)
{
    printf("as in cuda.h of version %d\n", CUDA_VERSION);
    return weir_test_layouts();
}

#endif
