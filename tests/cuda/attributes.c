/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What devices answer when asked for their properties, and the texts of errors. */
#include "internal.h"

static int changing_attribute(int attribute, int *value)
{
    const struct settings *settings = &emulator__state.settings;
    switch (attribute) {
    case CUDA_ATTRIBUTE_STREAM_PRIORITIES:
        *value = settings->priorities > 1;
        return 0;
    case CUDA_ATTRIBUTE_MEMORY_POOLS:
        *value = settings->pools != 0;
        return 0;
    case CUDA_ATTRIBUTE_64_BIT_STREAM_MEMORY_OPERATIONS:
        *value = settings->memory_operations_64 != 0;
        return 0;
    case CUDA_ATTRIBUTE_WAIT_NOR:
        *value = settings->wait_nor != 0;
        return 0;
    default:
        return CUDA_INVALID_VALUE;
    }
}

int emulator__cuDeviceGetAttribute(int *value, int attribute, int ordinal)
{
    static const struct {
        int attribute, value;
    } constants[] = {
        {CUDA_ATTRIBUTE_THREADS_PER_BLOCK, 1024},
        {CUDA_ATTRIBUTE_BLOCK_X, 1024},
        {CUDA_ATTRIBUTE_BLOCK_Y, 1024},
        {CUDA_ATTRIBUTE_BLOCK_Z, 64},
        {CUDA_ATTRIBUTE_GRID_X, 2147483647},
        {CUDA_ATTRIBUTE_GRID_Y, 65535},
        {CUDA_ATTRIBUTE_GRID_Z, 65535},
        {CUDA_ATTRIBUTE_SHARED_MEMORY, 49152},
        {CUDA_ATTRIBUTE_TOTAL_CONSTANT, 65536},
        {CUDA_ATTRIBUTE_WARP, 32},
        {CUDA_ATTRIBUTE_MAX_PITCH, 2147483647},
        {CUDA_ATTRIBUTE_REGISTERS, 65536},
        {CUDA_ATTRIBUTE_CLOCK_RATE, 1000000},
        {CUDA_ATTRIBUTE_SM_COUNT, 4},
        {CUDA_ATTRIBUTE_INTEGRATED, 0},
        {CUDA_ATTRIBUTE_CAN_MAP_HOST, 1},
        {CUDA_ATTRIBUTE_COMPUTE_MODE, 0},
        {CUDA_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CUDA_ATTRIBUTE_PCI_BUS, 1},
        {CUDA_ATTRIBUTE_PCI_DEVICE, 0},
        {CUDA_ATTRIBUTE_PCI_DOMAIN, 0},
        {CUDA_ATTRIBUTE_THREADS_PER_SM, 2048},
        {CUDA_ATTRIBUTE_ASYNC_ENGINES, 2},
        {CUDA_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CUDA_ATTRIBUTE_CC_MAJOR, 9},
        {CUDA_ATTRIBUTE_CC_MINOR, 0},
        {CUDA_ATTRIBUTE_MANAGED, 0},
        {CUDA_ATTRIBUTE_PAGEABLE_ACCESS, 0},
        {CUDA_ATTRIBUTE_HOST_POINTER_FOR_REGISTERED, 1},
        {CUDA_ATTRIBUTE_STREAM_MEMORY_OPERATIONS_V1, 0},
        {CUDA_ATTRIBUTE_64_BIT_STREAM_MEMORY_OPERATIONS_V1, 0},
        {CUDA_ATTRIBUTE_WAIT_NOR_V1, 0},
        {CUDA_ATTRIBUTE_COOPERATIVE, 1},
        {CUDA_ATTRIBUTE_SHARED_MEMORY_OPTIN, 101376},
        {CUDA_ATTRIBUTE_FLUSH_REMOTE_WRITES, 0},
    };
    if (!value) return CUDA_INVALID_VALUE;
    if (!emulator__device(ordinal)) return CUDA_INVALID_DEVICE;
    for (unsigned i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (constants[i].attribute != attribute) continue;
        *value = attribute == CUDA_ATTRIBUTE_PCI_BUS ? 1 + ordinal : constants[i].value;
        return 0;
    }
    return changing_attribute(attribute, value);
}

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the library is a stub"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for this device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the memory is registered already"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not belong to a registered memory region"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would merge two independent captures"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not begun in this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capture"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture was begun by another thread"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_text(int code, const char **text, bool is_name)
{
    if (!text) return CUDA_INVALID_VALUE;
    *text = NULL;
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) *text = is_name ? errors[i].name : errors[i].text;
    return *text ? 0 : CUDA_INVALID_VALUE;
}

int emulator__cuGetErrorName(int code, const char **text)
{
    return error_text(code, text, true);
}

int emulator__cuGetErrorString(int code, const char **text)
{
    return error_text(code, text, false);
}
