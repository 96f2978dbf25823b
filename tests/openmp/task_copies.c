/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The asynchronous copy routines with dependence objects, among target tasks and host tasks. */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED => PASS
// run: OMP_NUM_THREADS=1 => PASS
// run: KMP_BLOCKTIME=0 => PASS
// preload only: OMP_THREAD_LIMIT=1 => PASS
#include "task_check.h"

enum { ROWS = 12, COLUMNS = 16, BYTES = ROWS * COLUMNS, STEPS = 40 };

struct bed {
    unsigned char host[BYTES], *device; /* the two copies */
    unsigned char want_host[BYTES], want_device[BYTES];
    omp_depend_t read[2], write[2]; /* of host[], of device[] */
    int here, there;
};

static void setup(struct bed *b)
{
    memset(b->host, 1, BYTES);
    memset(b->want_host, 1, BYTES);
    memset(b->want_device, 2, BYTES);
    b->here = omp_get_initial_device();
    b->there = omp_get_num_devices() ? (int)(draw() % 4) : b->here;
    b->device = omp_target_alloc(BYTES, b->there);
    unsigned char *host = b->host, *device = b->device;
    omp_depend_t *r = b->read, *w = b->write;
#pragma omp depobj(r[0]) depend(in : host[0])
#pragma omp depobj(w[0]) depend(inout : host[0])
#pragma omp depobj(r[1]) depend(in : device[0])
#pragma omp depobj(w[1]) depend(inout : device[0])
    CHECK(omp_target_memset_async(device, 2, BYTES, b->there, 1, &w[1]) == device);
}

/* Rows and columns of a block, copied in one direction or the other. */
static void block(struct bed *b, int home)
{
    size_t volume[2] = {1 + draw() % ROWS, 1 + draw() % COLUMNS}, whole[2] = {ROWS, COLUMNS};
    size_t to[2] = {draw() % (ROWS - volume[0] + 1), draw() % (COLUMNS - volume[1] + 1)};
    size_t from[2] = {draw() % (ROWS - volume[0] + 1), draw() % (COLUMNS - volume[1] + 1)};
    unsigned char *target = home ? b->want_host : b->want_device, *source = home ? b->want_device : b->want_host;
    for (size_t i = 0; i < volume[0]; i++) {
        memcpy(target + (to[0] + i) * COLUMNS + to[1], source + (from[0] + i) * COLUMNS + from[1], volume[1]);
    }
    omp_depend_t both[2] = {home ? b->write[0] : b->read[0], home ? b->read[1] : b->write[1]};
    void *dst = home ? (void *)b->host : b->device, *src = home ? (void *)b->device : b->host;
    CHECK(!omp_target_memcpy_rect_async(dst, src, 1, 2, volume, to, from, whole, whole, home ? b->here : b->there,
                                        home ? b->there : b->here, 2, both));
    /* Libomptarget reads the five vectors when the task runs; weir has read them. */
    if (!strict()) {
#pragma omp taskwait
    }
    memset(volume, 0xff, sizeof volume);
    memset(whole, 0xff, sizeof whole);
    memset(to, 0xff, sizeof to);
    memset(from, 0xff, sizeof from);
}

static void flat(struct bed *b, int home)
{
    size_t n = draw() % BYTES + 1, to = draw() % (BYTES - n + 1), from = draw() % (BYTES - n + 1);
    omp_depend_t both[2] = {home ? b->write[0] : b->read[0], home ? b->read[1] : b->write[1]};
    if (home) {
        memcpy(b->want_host + to, b->want_device + from, n);
        CHECK(!omp_target_memcpy_async(b->host, b->device, n, to, from, b->here, b->there, 2, both));
    } else {
        memcpy(b->want_device + to, b->want_host + from, n);
        CHECK(!omp_target_memcpy_async(b->device, b->host, n, to, from, b->there, b->here, 2, both));
    }
}

static void fill(struct bed *b)
{
    size_t at = draw() % BYTES, n = draw() % (BYTES - at) + 1;
    int value = (int)(draw() % 256);
    memset(b->want_device + at, value, n);
    CHECK(omp_target_memset_async(b->device + at, value, n, b->there, 1, &b->write[1]) == b->device + at);
}

static void step(struct bed *b, int what)
{
    unsigned char *device = b->device, *host = b->host;
    int there = b->there, add = (int)(draw() % 200);
    unsigned z = draw();
    switch (what) {
    case 0:
        for (int k = 0; k < BYTES; k++) b->want_device[k] = (unsigned char)(b->want_device[k] * 3 + add);
#pragma omp target nowait is_device_ptr(device) depend(inout : device[0]) device(there)
        {
            nap(z);
            for (int k = 0; k < BYTES; k++) device[k] = (unsigned char)(device[k] * 3 + add);
        }
        return;
    case 1:
        for (int k = 0; k < BYTES; k++) b->want_host[k] = (unsigned char)(b->want_host[k] * 3 + add);
#pragma omp task depend(inout : host[0]) firstprivate(host, add, z)
        {
            nap(z);
            for (int k = 0; k < BYTES; k++) host[k] = (unsigned char)(host[k] * 3 + add);
        }
        return;
    case 2:
        return fill(b);
    case 3:
    case 4:
        return flat(b, what == 3);
    case 5:
    case 6:
        return block(b, what == 5);
    default: {
        unsigned char want = b->want_host[add % BYTES], *at = &host[add % BYTES];
#pragma omp task depend(in : host[0]) firstprivate(at, want)
        CHECK(*at == want);
    }
    }
}

static void all(void)
{
    struct bed b;
    unsigned char out[BYTES];
    setup(&b);
    for (int i = 0; i < STEPS; i++) step(&b, (int)(draw() % 8));
    CHECK(!omp_target_memcpy_async(out, b.device, BYTES, 0, 0, b.here, b.there, 1, &b.read[1]));
#pragma omp taskwait
    CHECK(!memcmp(b.host, b.want_host, BYTES));
    CHECK(!memcmp(out, b.want_device, BYTES));
    omp_target_free(b.device, b.there);
    for (int i = 0; i < 2; i++) {
#pragma omp depobj(b.read[i]) destroy
#pragma omp depobj(b.write[i]) destroy
    }
}

int main(void)
{
    return everywhere(all, 5, 4);
}
