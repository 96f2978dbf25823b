/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The driver interface as the emulator understands it: names, numbers and layouts of CUDA 13.0's cuda.h. Declared here
 * once more on purpose: an error in devices/cuda is not repeated by including its header. Handles are void pointers,
 * because their kind is checked at run time. cuda_emulator_types_test compares sizes and numbers with cuda.h if it is
 * installed.
 */
#ifndef WEIR_EMULATOR_TYPES_H
#define WEIR_EMULATOR_TYPES_H

#include <stddef.h>
#include <stdint.h>

enum cuda_result {
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_DEINITIALIZED = 4,
    CUDA_STUB_LIBRARY = 34,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_ECC_UNCORRECTABLE = 214,
    CUDA_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_INVALID_PTX = 218,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_PEER_ACCESS_NOT_ENABLED = 705,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_ASSERT = 710,
    CUDA_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_NOT_PERMITTED = 800,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_INVALIDATED = 901,
    CUDA_CAPTURE_MERGE = 902,
    CUDA_CAPTURE_UNMATCHED = 903,
    CUDA_CAPTURE_UNJOINED = 904,
    CUDA_CAPTURE_ISOLATION = 905,
    CUDA_CAPTURE_IMPLICIT = 906,
    CUDA_CAPTURED_EVENT = 907,
    CUDA_CAPTURE_WRONG_THREAD = 908,
    CUDA_GRAPH_EXEC_UPDATE_FAILURE = 910,
    CUDA_UNKNOWN = 999,
};

enum cuda_flag {
    CUDA_STREAM_LEGACY = 1, /* handles */
    CUDA_STREAM_PER_THREAD = 2,
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_BLOCKING_SYNC = 1,
    CUDA_EVENT_NO_TIMING = 2,
    CUDA_EVENT_INTERPROCESS = 4,
    CUDA_EVENT_EXTERNAL = 1,
    CUDA_HOST_WRITE_COMBINED = 4,
    CUDA_WAIT_GEQ = 0,
    CUDA_WAIT_EQ = 1,
    CUDA_WAIT_AND = 2,
    CUDA_WAIT_NOR = 3,
    CUDA_WAIT_FLUSH = 1 << 30,
    CUDA_MEMORY_HOST = 1,
    CUDA_MEMORY_DEVICE = 2,
    CUDA_MEMORY_ARRAY = 3,
    CUDA_MEMORY_UNIFIED = 4,
    CUDA_LAUNCH_END = 0,
    CUDA_LAUNCH_BUFFER_POINTER = 1,
    CUDA_LAUNCH_BUFFER_SIZE = 2,
};

enum cuda_device_attribute {
    CUDA_ATTRIBUTE_THREADS_PER_BLOCK = 1,
    CUDA_ATTRIBUTE_BLOCK_X = 2,
    CUDA_ATTRIBUTE_BLOCK_Y = 3,
    CUDA_ATTRIBUTE_BLOCK_Z = 4,
    CUDA_ATTRIBUTE_GRID_X = 5,
    CUDA_ATTRIBUTE_GRID_Y = 6,
    CUDA_ATTRIBUTE_GRID_Z = 7,
    CUDA_ATTRIBUTE_SHARED_MEMORY = 8,
    CUDA_ATTRIBUTE_TOTAL_CONSTANT = 9,
    CUDA_ATTRIBUTE_WARP = 10,
    CUDA_ATTRIBUTE_MAX_PITCH = 11,
    CUDA_ATTRIBUTE_REGISTERS = 12,
    CUDA_ATTRIBUTE_CLOCK_RATE = 13,
    CUDA_ATTRIBUTE_SM_COUNT = 16,
    CUDA_ATTRIBUTE_INTEGRATED = 18,
    CUDA_ATTRIBUTE_CAN_MAP_HOST = 19,
    CUDA_ATTRIBUTE_COMPUTE_MODE = 20,
    CUDA_ATTRIBUTE_CONCURRENT_KERNELS = 31,
    CUDA_ATTRIBUTE_PCI_BUS = 33,
    CUDA_ATTRIBUTE_PCI_DEVICE = 34,
    CUDA_ATTRIBUTE_THREADS_PER_SM = 39,
    CUDA_ATTRIBUTE_ASYNC_ENGINES = 40,
    CUDA_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CUDA_ATTRIBUTE_PCI_DOMAIN = 50,
    CUDA_ATTRIBUTE_CC_MAJOR = 75,
    CUDA_ATTRIBUTE_CC_MINOR = 76,
    CUDA_ATTRIBUTE_STREAM_PRIORITIES = 78,
    CUDA_ATTRIBUTE_MANAGED = 83,
    CUDA_ATTRIBUTE_PAGEABLE_ACCESS = 88,
    CUDA_ATTRIBUTE_HOST_POINTER_FOR_REGISTERED = 91,
    CUDA_ATTRIBUTE_STREAM_MEMORY_OPERATIONS_V1 = 92,
    CUDA_ATTRIBUTE_64_BIT_STREAM_MEMORY_OPERATIONS_V1 = 93,
    CUDA_ATTRIBUTE_WAIT_NOR_V1 = 94,
    CUDA_ATTRIBUTE_COOPERATIVE = 95,
    CUDA_ATTRIBUTE_SHARED_MEMORY_OPTIN = 97,
    CUDA_ATTRIBUTE_FLUSH_REMOTE_WRITES = 98,
    CUDA_ATTRIBUTE_MEMORY_POOLS = 115,
    CUDA_ATTRIBUTE_64_BIT_STREAM_MEMORY_OPERATIONS = 122,
    CUDA_ATTRIBUTE_WAIT_NOR = 123,
};

enum cuda_pointer_attribute {
    CUDA_POINTER_CONTEXT = 1,
    CUDA_POINTER_MEMORY_TYPE = 2,
    CUDA_POINTER_DEVICE_POINTER = 3,
    CUDA_POINTER_HOST_POINTER = 4,
    CUDA_POINTER_SYNC_MEMOPS = 6,
    CUDA_POINTER_BUFFER_ID = 7,
    CUDA_POINTER_IS_MANAGED = 8,
    CUDA_POINTER_DEVICE_ORDINAL = 9,
    CUDA_POINTER_RANGE_START = 11,
    CUDA_POINTER_RANGE_SIZE = 12,
    CUDA_POINTER_MEMPOOL = 17,
};

enum cuda_pool_attribute {
    CUDA_POOL_FOLLOW_EVENT = 1,
    CUDA_POOL_OPPORTUNISTIC = 2,
    CUDA_POOL_INTERNAL_DEPENDENCIES = 3,
    CUDA_POOL_RELEASE_THRESHOLD = 4,
    CUDA_POOL_RESERVED_CURRENT = 5,
    CUDA_POOL_RESERVED_HIGH = 6,
    CUDA_POOL_USED_CURRENT = 7,
    CUDA_POOL_USED_HIGH = 8,
};

struct cuda_uuid {
    char bytes[16];
};

struct cuda_copy_2d {
    size_t from_x_bytes, from_y;
    int from_type;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x_bytes, to_y;
    int to_type;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch;
    size_t width_bytes, height;
};

/* CUDA_MEMCPY3D, and, with contexts in the place of the reserved pointers, CUDA_MEMCPY3D_PEER. */
struct cuda_copy_3d {
    size_t from_x_bytes, from_y, from_z, from_lod;
    int from_type;
    const void *from_host;
    uint64_t from_device;
    void *from_array, *from_context;
    size_t from_pitch, from_height;
    size_t to_x_bytes, to_y, to_z, to_lod;
    int to_type;
    void *to_host;
    uint64_t to_device;
    void *to_array, *to_context;
    size_t to_pitch, to_height;
    size_t width_bytes, height, depth;
};

struct cuda_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};

union cuda_memory_operation {
    struct {
        int operation; /* 1 and 4: wait for 32 and 64 bits; 2 and 5: write 32 and 64 bits; 3: flush */
        uint64_t address;
        uint64_t value; /* the first four bytes of it for 32 bits */
        unsigned flags;
        uint64_t alias;
    } value;
    uint64_t room[6];
};

struct cuda_kernel_node {
    void *function;
    unsigned grid[3], block[3], shared_bytes;
    void **arguments, **extra;
    void *kernel, *context; /* instead of a function */
};

struct cuda_host_node {
    void (*function)(void *arg);
    void *arg;
};

struct cuda_update_info {
    int result; /* 0, or what did not fit */
    void *error_node, *error_from_node;
};

enum cuda_update_result { CUDA_UPDATE_TOPOLOGY_CHANGED = 2, CUDA_UPDATE_NODE_TYPE_CHANGED = 3 };

struct cuda_copy_attributes {
    int access_order;
    struct {
        int type, id;
    } from_hint, to_hint;
    unsigned flags;
};

#endif
