/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Pointers inside structures, and mappers. */
#include "check.h"

struct vector {
    int before;
    int *data;
    int n;
};
#pragma omp declare mapper(deep : struct vector v) map(v, v.data[0 : v.n])

struct node {
    struct node *next;
    int value;
};

static void fill(struct vector *v, int n)
{
    v->before = 5;
    v->n = n;
    v->data = malloc((size_t)n * sizeof *v->data);
    for (int i = 0; i < n; i++) v->data[i] = i;
}

static void members(void)
{
    struct vector s;
    fill(&s, 10);
    int *host = s.data;
#pragma omp target map(tofrom : s, s.data[0 : 10])
    {
        s.before++;
        for (int i = 0; i < s.n; i++) s.data[i] += s.before;
    }
    CHECK(s.data == host && s.before == 6);
    for (int i = 0; i < 10; i++) CHECK(s.data[i] == i + 6);
    struct vector *p = &s;
#pragma omp target map(tofrom : p->before, p->n, p->data[0 : 4])
    {
        p->before++;
        p->data[3] = -1;
    }
    CHECK(s.before == 7 && s.data[3] == -1 && s.data == host);
    free(s.data);
}

static void attach_later(void)
{
    struct vector s;
    fill(&s, 10);
    int *host = s.data;
#pragma omp target enter data map(to : s)
#pragma omp target enter data map(to : s.data[0 : 10])
#pragma omp target
    s.data[1] = 100;
#pragma omp target update from(s)
    CHECK(s.data == host);
#pragma omp target exit data map(from : s.data[0 : 10])
#pragma omp target exit data map(from : s)
    CHECK(s.data == host && s.data[1] == 100);
    free(s.data);
}

static void list(void)
{
    struct node third = {NULL, 3}, second = {&third, 2}, first = {&second, 1};
    int sum = 0;
#pragma omp target enter data map(to : third)
#pragma omp target enter data map(to : second, second.next[0 : 1])
#pragma omp target enter data map(to : first, first.next[0 : 1])
#pragma omp target map(from : sum)
    {
        sum = 0;
        for (struct node *n = &first; n; n = n->next) sum = sum * 10 + n->value;
    }
    CHECK(sum == 123);
#pragma omp target exit data map(delete : first, second, third)
}

static void mappers(void)
{
    struct vector v[3];
    for (int i = 0; i < 3; i++) fill(&v[i], 5 + i);
#pragma omp target map(mapper(deep), tofrom : v)
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < v[i].n; j++) v[i].data[j] += 10 * i;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < v[i].n; j++) CHECK(v[i].data[j] == j + 10 * i);
        free(v[i].data);
    }
}

int main(void)
{
    members();
    attach_later();
    list();
    mappers();
    return finish();
}
