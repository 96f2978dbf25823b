/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Copy routines, each direction, blocks of one to four dimensions. */
#include <limits.h>

#include "check.h"

static void plain(int host)
{
    enum { N = 1000 };
    int a[N], b[N], *d0 = omp_target_alloc(sizeof a, 0), *d1 = omp_target_alloc(sizeof a, 1);
    for (int i = 0; i < N; i++) a[i] = i, b[i] = -1;
    CHECK(d0 && d1);
    CHECK(!omp_target_memcpy(d0, a, sizeof a, 0, 0, 0, host));
    CHECK(!omp_target_memcpy(d1, d0, sizeof a, 0, 0, 1, 0));
    CHECK(!omp_target_memcpy(d1, d1, 40, 400, 0, 1, 1));
    CHECK(!omp_target_memcpy(b, d1, sizeof a - 8, 8, 0, host, 1));
    for (int i = 2; i < N; i++) CHECK(b[i] == (i - 2 >= 100 && i - 2 < 110 ? i - 102 : i - 2));
    CHECK(b[0] == -1);
    CHECK(!omp_target_memcpy(b, a, sizeof a, 0, 0, host, host) && b[7] == 7);
    CHECK(!omp_target_memcpy(NULL, a, 0, 0, 0, 0, host));
    CHECK(omp_target_memcpy(NULL, a, 4, 0, 0, 0, host));
    CHECK(omp_target_memset(d0, 0x5a, 16, 0) == d0 && !omp_target_memcpy(b, d0, 20, 0, 0, host, 0));
    CHECK(b[0] == 0x5a5a5a5a && b[3] == 0x5a5a5a5a && b[4] == 4);
    CHECK(omp_target_memset(b, 0, 4, host) == b && b[0] == 0);
    omp_target_free(d0, 0);
    omp_target_free(d1, 1);
    omp_target_free(NULL, 0);
}

/* The same block by hand. */
static void blocks(int host)
{
    enum { MOST = 4 };
    size_t dims[MOST] = {5, 6, 7, 8}, other[MOST] = {6, 7, 8, 9}, volume[MOST] = {2, 3, 4, 5};
    size_t to_at[MOST] = {1, 2, 3, 1}, from_at[MOST] = {3, 1, 2, 3};
    static int from[5 * 6 * 7 * 8], to[6 * 7 * 8 * 9], want[6 * 7 * 8 * 9];
    for (int i = 0; i < 5 * 6 * 7 * 8; i++) from[i] = i + 1;
    CHECK(omp_target_memcpy_rect(NULL, NULL, 4, 0, 0, 0, 0, 0, 0, 0, 0) == INT_MAX);
    for (int n = 1; n <= MOST; n++) {
        size_t *d = dims + MOST - n, *o = other + MOST - n, *v = volume + MOST - n;
        size_t *t = to_at + MOST - n, *f = from_at + MOST - n, index[MOST] = {0}, total = 1;
        memset(want, 0, sizeof want);
        for (int i = 0; i < n; i++) total *= v[i];
        for (size_t k = 0; k < total; k++) {
            size_t rest = k, source = 0, target = 0;
            for (int i = n; i-- > 0; rest /= v[i]) index[i] = rest % v[i];
            for (int i = 0; i < n; i++) {
                source = source * d[i] + f[i] + index[i];
                target = target * o[i] + t[i] + index[i];
            }
            want[target] = from[source];
        }
        int *device = omp_target_alloc(sizeof to, 2);
        omp_target_memset(device, 0, sizeof to, 2);
        CHECK(!omp_target_memcpy_rect(device, from, sizeof(int), n, v, t, f, o, d, 2, host));
        CHECK(!omp_target_memcpy(to, device, sizeof to, 0, 0, host, 2));
        CHECK(!memcmp(to, want, sizeof want));
        memset(to, 0, sizeof to);
        CHECK(!omp_target_memcpy_rect(to, from, sizeof(int), n, v, t, f, o, d, host, host));
        CHECK(!memcmp(to, want, sizeof want));
        memset(to, 0, sizeof to);
        CHECK(!omp_target_memcpy_rect(to, device, sizeof(int), n, v, t, t, o, o, host, 2));
        CHECK(!memcmp(to, want, sizeof want));
        v[0] = 100; /* does not fit */
        CHECK(omp_target_memcpy_rect(to, device, sizeof(int), n, v, t, t, o, o, host, 2));
        v[0] = 0;
        CHECK(!omp_target_memcpy_rect(to, device, sizeof(int), n, v, t, t, o, o, host, 2));
        v[0] = (size_t)(2 + MOST - n);
        omp_target_free(device, 2);
    }
}

int main(void)
{
    int host = omp_get_initial_device();
    plain(host);
    blocks(host);
    return finish();
}
