/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Interop objects come and go, are asked through libomp and without it, and leave nothing behind. */
// flags: -ldl
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED => PASS
// run: OMP_DEFAULT_DEVICE=2 => PASS
#include <sys/wait.h>

#include "foreign.h"

/* Those that weir has fixed; every compiler brings an omp.h of its own. */
static void numbers(void)
{
    static const int properties[] = {omp_ipr_targetsync, omp_ipr_device_context, omp_ipr_device,
                                     omp_ipr_platform,   omp_ipr_device_num,     omp_ipr_vendor_name,
                                     omp_ipr_vendor,     omp_ipr_fr_name,        omp_ipr_fr_id};
    for (int i = 0; i < 9; i++) CHECK(properties[i] == i - 9);
    CHECK(omp_ipr_first == -9 && omp_interop_none == 0);
    CHECK(omp_irc_no_value == 1 && omp_irc_success == 0 && omp_irc_empty == -1 && omp_irc_out_of_range == -2);
    CHECK(omp_irc_type_int == -3 && omp_irc_type_ptr == -4 && omp_irc_type_str == -5 && omp_irc_other == -6);
    CHECK(omp_ifr_cuda == 1 && omp_ifr_cuda_driver == 2 && omp_ifr_opencl == 3 && omp_ifr_level_zero == 6);
}

static void nothing_to_ask(int n)
{
    omp_interop_t none = omp_interop_none, host = (omp_interop_t)1, wrong = (omp_interop_t)1;
    for (int p = omp_ipr_first; p < 0; p++) {
        int rc[3] = {99, 99, 99};
        CHECK(!omp_get_interop_int(none, p, &rc[0]) && rc[0] == omp_irc_empty);
        CHECK(!omp_get_interop_ptr(none, p, &rc[1]) && rc[1] == omp_irc_empty);
        CHECK(!omp_get_interop_str(none, p, &rc[2]) && rc[2] == omp_irc_empty);
        CHECK(!omp_get_interop_ptr(none, p, NULL));
        CHECK(omp_get_interop_name(none, p) && omp_get_interop_type_desc(none, p));
    }
    for (int rc = omp_irc_other; rc <= omp_irc_no_value; rc++)
        CHECK(omp_get_interop_rc_desc(none, (omp_interop_rc_t)rc));
    CHECK(omp_get_num_interop_properties(none) == 3);
#pragma omp interop use(none)
#pragma omp interop destroy(none)
#pragma omp interop init(targetsync : host) device(n)
    CHECK(host == omp_interop_none);
    if (!n) return;
#pragma omp interop init(targetsync : wrong) device(n + 5)
    CHECK(wrong == omp_interop_none && strstr(omp_get_interop_rc_desc(wrong, omp_irc_empty), "out of range"));
}

static int one(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Compilers say "target" for both orders of target and targetsync. */
static omp_interop_t make(int type, int d)
{
    omp_interop_t o = omp_interop_none;
    if (type == 0) {
#pragma omp interop init(target : o) device(d)
    } else if (type == 1) {
#pragma omp interop init(targetsync : o) device(d)
    } else if (type == 2) {
#pragma omp interop init(target, targetsync : o) device(d)
    } else {
#pragma omp interop init(targetsync, target : o) device(d)
    }
    return o;
}

/* On a CUDA device the compiler's preference is lost, so that it is the first runtime of the device: CUDA's own. */
static void handles(omp_interop_t o, int d)
{
    int rc = 99, is_cuda = foreign_is_cuda(o);
    const char *name = omp_get_interop_str(o, omp_ipr_fr_name, &rc);
    CHECK(!rc && !strcmp(name, is_cuda ? "cuda" : "weir"));
    if (is_cuda) {
        CHECK(omp_get_interop_int(o, omp_ipr_device, &rc) == d && !rc);
        CHECK(!omp_get_interop_ptr(o, omp_ipr_device_context, &rc) && rc == omp_irc_no_value);
    } else {
        CHECK(omp_get_interop_ptr(o, omp_ipr_device, &rc) && !rc);
        CHECK(omp_get_interop_ptr(o, omp_ipr_device_context, &rc) && !rc);
    }
}

static void each_type(int d)
{
    void *streams[4];
    for (int type = 0; type < 4; type++) {
        omp_interop_t o = make(type, d), other = make(type, d);
        int value = 0, rc = 99;
        CHECK(o != omp_interop_none && omp_get_interop_int(o, omp_ipr_device_num, &rc) == d && !rc);
        handles(o, d);
        CHECK(!omp_get_interop_ptr(o, omp_ipr_platform, &rc) && rc == omp_irc_no_value);
        streams[type] = omp_get_interop_ptr(o, omp_ipr_targetsync, &rc);
        CHECK(streams[type] && !rc && omp_get_interop_ptr(other, omp_ipr_targetsync, NULL) != streams[type]);
        foreign_enqueue(o, one, &value);
#pragma omp interop use(o)
        CHECK(value == 1);
        foreign_enqueue(o, one, &value);
        foreign_enqueue(other, one, &value);
#pragma omp interop destroy(o)
#pragma omp interop destroy(other)
        CHECK(value == 3 && o == omp_interop_none && other == omp_interop_none);
    }
}

static void wrong_device(void)
{
    omp_interop_t o;
    int value = 0;
#pragma omp interop init(targetsync : o) device(0)
    foreign_enqueue(o, one, &value);
#pragma omp interop use(o) device(1)
    CHECK(value == 1 && strstr(omp_get_interop_rc_desc(omp_interop_none, omp_irc_empty), "not on 1"));
#pragma omp interop destroy(o) device(1)
    CHECK(o == omp_interop_none);
}

static long resident_pages(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &resident) != 2) resident = 0;
    if (file) fclose(file);
    return resident;
}

static void cycles(int n)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        omp_interop_t o;
#pragma omp interop init(targetsync : o) nowait depend(inout : value)
        foreign_enqueue(o, one, &value);
#pragma omp interop use(o) nowait depend(inout : value)
        foreign_enqueue(o, one, &value);
        if (i % 2) {
#pragma omp interop destroy(o) nowait depend(inout : value)
        } else {
#pragma omp interop destroy(o)
        }
        if (i % 64 == 63) {
#pragma omp taskwait
        }
    }
#pragma omp taskwait
    CHECK(value == 2 * n);
}

/* One object for long: what its constructs leave behind does not grow. */
static void long_life(int n)
{
    omp_interop_t o;
    int value = 0;
#pragma omp interop init(targetsync : o)
    for (int i = 0; i < n; i++) {
        foreign_enqueue(o, one, &value);
#pragma omp interop use(o) nowait depend(inout : value)
        if (i % 64 == 63) {
#pragma omp taskwait
        }
    }
#pragma omp interop destroy(o)
#pragma omp taskwait
    CHECK(value == n);
}

static void leaves_nothing(void)
{
    cycles(1000), long_life(2000);
    long before = resident_pages();
    cycles(5000), long_life(20000);
    CHECK(resident_pages() < before + 512);
}

/* A child has no devices; what it inherits can be asked, not used. */
static void forked(void)
{
    omp_interop_t o;
    int status = -1;
#pragma omp interop init(target : o)
    pid_t child = fork();
    if (!child) {
        int rc = 99;
        CHECK(omp_get_interop_int(o, omp_ipr_vendor, &rc) == 9 && rc == omp_irc_success);
        CHECK(!omp_get_interop_ptr(o, omp_ipr_targetsync, &rc) && rc == omp_irc_other);
#pragma omp interop use(o)
#pragma omp interop destroy(o)
        CHECK(o == omp_interop_none);
        _exit(failures);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
#pragma omp interop destroy(o)
}

static int endless(void *arg)
{
    (void)arg;
    usleep(1000);
    return 0;
}

int main(void)
{
#pragma omp target
    {
    }
    int n = omp_get_num_devices();
    numbers();
    nothing_to_ask(n);
    if (!n) return finish();
    for (int d = 0; d < n; d++) each_type(d);
    wrong_device();
    leaves_nothing();
    forked();
    /* What is never destroyed does not keep the process. */
    omp_interop_t forgotten;
#pragma omp interop init(targetsync : forgotten)
    foreign_enqueue(forgotten, endless, NULL);
    return finish();
}
