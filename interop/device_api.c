/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include <devices/host/host.h>

#include "interop/decode.h"
#include "interop/entries.h"
#include "interop/runtime.h"

/* libomp answers these for programs and asks for the number here, by one name or the other. */
WEIR__EXPORT int __tgt_get_num_devices(void)
{
    return weir__runtime_devices();
}

WEIR__EXPORT int omp_get_num_devices(void)
{
    return weir__runtime_devices();
}

WEIR__EXPORT int omp_get_initial_device(void)
{
    return weir__runtime_devices();
}

/* OpenMP 5.2 section 18.7.5: the device that executes the caller, which may be a kernel of a CPU device. */
WEIR__EXPORT int omp_get_device_num(void)
{
    int n = weir__runtime_devices(), here = weir__host_current_device();
    struct weir__runtime *rt = weir__runtime_peek();
    for (int i = 0; i < n && here >= 0; i++)
        if (rt->visible[i]->machine == WEIR__MACHINE_X86_64 && here-- == 0) return i;
    return n;
}

/* OpenMP 6.0 section 24.7: the host is a device with an identifier too. -2 (omp_invalid_device) if there is none. */
static const char host_uid[] = "weir:initial";

WEIR__EXPORT int omp_get_device_from_uid(const char *uid)
{
    int n = weir__runtime_devices();
    struct weir__runtime *rt = weir__runtime_peek();
    if (!uid) return -2;
    if (!strcmp(uid, host_uid)) return n;
    for (int i = 0; i < n; i++)
        if (!strcmp(uid, rt->visible[i]->uid)) return i;
    return -2;
}

WEIR__EXPORT const char *omp_get_uid_from_device(int device)
{
    int n = weir__runtime_devices();
    if (device == n || device == -1) return host_uid;
    if (device < 0 || device > n) return NULL;
    return weir__runtime_peek()->visible[device]->uid;
}
