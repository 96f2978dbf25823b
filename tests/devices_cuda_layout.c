/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The other half of devices_cuda_header.c: our structures beside those of cuda.h. */
#include "devices_cuda_header.h"

#ifdef WEIR_TEST_CUDA_H

#include <cuda.h>

#include <devices/cuda/driver.h>

#define SIZE(own, theirs) _Static_assert(sizeof(struct own) == sizeof(theirs), #theirs ": another size");
#define FIELD(own, field, theirs, their_field)                                                                         \
    _Static_assert(offsetof(struct own, field) == offsetof(theirs, their_field) &&                                     \
                       sizeof(((struct own *)0)->field) == sizeof(((theirs *)0)->their_field),                         \
                   #theirs "." #their_field ": another place or size");

/* One side of a copy, @ours and @their are the beginnings of the names. */
#define SIDE(own, ours, theirs, their)                                                                                 \
    FIELD(own, ours##_x, theirs, their##XInBytes)                                                                      \
    FIELD(own, ours##_y, theirs, their##Y)                                                                             \
    FIELD(own, ours##_type, theirs, their##MemoryType)                                                                 \
    FIELD(own, ours##_host, theirs, their##Host)                                                                       \
    FIELD(own, ours##_device, theirs, their##Device)                                                                   \
    FIELD(own, ours##_array, theirs, their##Array)                                                                     \
    FIELD(own, ours##_pitch, theirs, their##Pitch)
#define SIDE_OF_PEER(ours, their)                                                                                      \
    SIDE(driver_copy_peer, ours, CUDA_MEMCPY3D_PEER, their)                                                            \
    FIELD(driver_copy_peer, ours##_z, CUDA_MEMCPY3D_PEER, their##Z)                                                    \
    FIELD(driver_copy_peer, ours##_lod, CUDA_MEMCPY3D_PEER, their##LOD)                                                \
    FIELD(driver_copy_peer, ours##_context, CUDA_MEMCPY3D_PEER, their##Context)                                        \
    FIELD(driver_copy_peer, ours##_height, CUDA_MEMCPY3D_PEER, their##Height)

SIZE(driver_copy_2d, CUDA_MEMCPY2D)
SIDE(driver_copy_2d, from, CUDA_MEMCPY2D, src)
SIDE(driver_copy_2d, to, CUDA_MEMCPY2D, dst)
FIELD(driver_copy_2d, bytes, CUDA_MEMCPY2D, WidthInBytes)
FIELD(driver_copy_2d, rows, CUDA_MEMCPY2D, Height)
SIZE(driver_copy_peer, CUDA_MEMCPY3D_PEER)
SIDE_OF_PEER(from, src)
SIDE_OF_PEER(to, dst)
FIELD(driver_copy_peer, bytes, CUDA_MEMCPY3D_PEER, WidthInBytes)
FIELD(driver_copy_peer, rows, CUDA_MEMCPY3D_PEER, Height)
FIELD(driver_copy_peer, planes, CUDA_MEMCPY3D_PEER, Depth)
_Static_assert(sizeof(WEIR__DRIVER_ADDRESS) == sizeof(CUdeviceptr), "CUdeviceptr: another size");
_Static_assert(sizeof(enum driver_result) == sizeof(CUresult), "CUresult: another size");

#endif

int weir_test_layouts(void)
{
    return 0;
}
