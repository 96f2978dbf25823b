/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Asynchronous copies wait for their dependences, not for their caller, and keep nothing of the caller's vectors. */
#include "check.h"

enum { R = 12, C = 10 };

static void ordered(int host)
{
    enum { N = 500 };
    int h[N], back[N], gate = 0, opened = 0, *d = omp_target_alloc(sizeof h, 0);
    uintptr_t flag = (uintptr_t)&gate;
    omp_depend_t device = NULL, result = NULL;
#pragma omp depobj(device) depend(inout : d[0])
#pragma omp depobj(result) depend(inout : back[0])
    for (int i = 0; i < N; i++) h[i] = i, back[i] = -1;
#pragma omp target nowait depend(depobj : device) map(from : opened) is_device_ptr(d)
    {
        opened = wait_flag(flag, 1);
        for (int i = 0; i < N; i++) d[i] = -5;
    }
    omp_depend_t both[2] = {device, result};
    CHECK(!omp_target_memcpy_async(d, h, sizeof h, 0, 0, 0, host, 1, &device));
    CHECK(!omp_target_memcpy_async(back, d, sizeof back, 0, 0, host, 0, 2, both));
    add_flag(flag);
#pragma omp taskwait depend(in : back[0])
    for (int i = 0; i < N; i++) CHECK(back[i] == i);
#pragma omp taskwait
    CHECK(opened);
    CHECK(!omp_target_memcpy_async(back, d, 40, 0, 400, host, 0, 0, NULL));
#pragma omp taskwait
    CHECK(back[0] == 100);
#pragma omp depobj(device) destroy
#pragma omp depobj(result) destroy
    omp_target_free(d, 0);
}

static void rectangles(int host)
{
    int from[R][C], to[R][C], *d = omp_target_alloc(sizeof from, 1);
    size_t dims[2] = {R, C}, volume[2] = {4, 3}, from_at[2] = {2, 5}, to_at[2] = {7, 1}, all[2] = {R, C};
    size_t zero[2] = {0, 0};
    omp_depend_t order = NULL;
#pragma omp depobj(order) depend(inout : d[0])
    for (int i = 0; i < R * C; i++) from[i / C][i % C] = i, to[i / C][i % C] = -1;
    CHECK(omp_target_memset_async(d, 0x11, sizeof from, 1, 1, &order) == d);
    CHECK(
        !omp_target_memcpy_rect_async(d, from, sizeof(int), 2, volume, to_at, from_at, dims, dims, 1, host, 1, &order));
    CHECK(!omp_target_memcpy_rect_async(to, d, sizeof(int), 2, all, zero, zero, dims, dims, host, 1, 1, &order));
    volume[0] = to_at[0] = all[0] = dims[0] = 1;
    from_at[0] = 9;
#pragma omp taskwait
    for (int i = 0; i < R; i++)
        for (int j = 0; j < C; j++) {
            int inside = i >= 7 && i < 11 && j >= 1 && j < 4;
            CHECK(to[i][j] == (inside ? (i - 5) * C + j + 4 : 0x11111111));
        }
#pragma omp depobj(order) destroy
    omp_target_free(d, 1);
}

int main(void)
{
    int host = omp_get_initial_device();
    ordered(host);
    rectangles(host);
    CHECK(omp_target_memcpy_async(NULL, &host, 4, 0, 0, 0, host, 0, NULL));
    CHECK(omp_target_memcpy_async(&host, &host, 4, 0, 0, 77, host, 0, NULL));
    return finish();
}
