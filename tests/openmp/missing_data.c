/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Mistakes in maps end the program and say which. */
// run: CASE=present => ABORT present
// run: CASE=extend => ABORT extension
#include "check.h"

int main(void)
{
    int a[100] = {0};
    if (!strcmp(getenv("CASE"), "present")) {
#pragma omp target map(present, tofrom : a)
        a[0]++;
    } else {
        int *p = a;
#pragma omp target enter data map(to : p[10 : 10])
#pragma omp target enter data map(to : p[10 : 20])
    }
    return finish();
}
