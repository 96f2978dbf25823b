/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A library with target code is loaded and unloaded again and again. */
// lib: yes
// flags: -ldl
#ifdef CASE_LIB
#pragma omp begin declare target
int library_value = 10;
#pragma omp end declare target

int library_run(int x)
{
#pragma omp target map(tofrom : x)
    {
        library_value++;
        x += library_value;
    }
    return x;
}

void *library_address(void)
{
    return &library_value;
}
#else
#include <dlfcn.h>

#include "check.h"

int main(void)
{
    int x = 1;
#pragma omp target map(tofrom : x)
    x++;
    CHECK(x == 2);
    for (int round = 0; round < 10; round++) {
        void *library = dlopen(getenv("CASE_LIB"), RTLD_NOW | RTLD_LOCAL);
        CHECK(library != NULL);
        if (!library) return puts(dlerror()), finish();
        int (*run)(int) = (int (*)(int))dlsym(library, "library_run");
        void *(*address)(void) = (void *(*)(void))dlsym(library, "library_address");
        void *variable = address();
        CHECK(run(100) == 111); /* a fresh copy of the variable each time */
        CHECK(run(100) == 112);
        CHECK(omp_target_is_present(variable, 0));
        CHECK(!dlclose(library));
        CHECK(!omp_target_is_present(variable, 0));
#pragma omp target map(tofrom : x)
        x++;
    }
    CHECK(x == 12);
    return finish();
}
#endif
