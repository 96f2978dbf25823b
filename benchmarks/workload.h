/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_BENCHMARKS_WORKLOAD_H
#define WEIR_BENCHMARKS_WORKLOAD_H

/*
 * What the benchmarks run: a list of tiny tasks, each of which reads up to three cells and changes one, the result of a
 * serial run to compare with, and the line that is printed. Used by one thread but for workload_body().
 */

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { WORKLOAD_REPEATS = 64 };

enum work_kind {
    WORK_UPDATE = 0, /* x[out] = 3 * x[out] + what it reads + number */
    WORK_READ,       /* reads in[0], no out */
    WORK_SET,        /* adds to x[out], concurrently with its neighbours */
};

struct work {
    uint32_t in[3];
    uint32_t out;
    uint8_t nin;
    uint8_t kind; /* enum work_kind */
};

struct workload {
    const char *name;
    uint32_t n, capacity;
    uint32_t ncells, stride; /* in 8-byte words */
    struct work *work;
    uint64_t *cells, *expected;
    double edges;                                             /* dependences a task, without doubles */
    double submit[WORKLOAD_REPEATS], total[WORKLOAD_REPEATS]; /* seconds; the first is cold */
    long base_kb;
};

/* The first task of a held run waits here, so that everything behind it is pending. */
struct workload_gate {
    _Atomic int started, open;
    int hold;
};

static inline double workload_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static inline uint64_t *workload_cell(const struct workload *w, uint32_t cell)
{
    return &w->cells[(size_t)cell * w->stride];
}

static inline void workload_body(const struct workload *w, uint32_t i)
{
    const struct work *t = &w->work[i];
    uint64_t *out = workload_cell(w, t->out), v = i + 1;
    for (uint32_t k = 0; k < t->nin; k++) v += *workload_cell(w, t->in[k]);
    if (t->kind == WORK_UPDATE)
        *out = *out * 3 + v;
    else if (t->kind == WORK_SET)
        __atomic_fetch_add(out, v, __ATOMIC_RELAXED);
}

static void workload_add(struct workload *w, uint8_t kind, uint8_t nin, const uint32_t *in, uint32_t out)
{
    if (w->n == w->capacity) {
        w->capacity = w->capacity ? 2 * w->capacity : 1024;
        w->work = realloc(w->work, w->capacity * sizeof(*w->work));
        if (w->work == NULL) abort();
    }
    struct work *t = &w->work[w->n++];
    *t = (struct work){.out = out, .nin = nin, .kind = kind};
    for (uint32_t k = 0; k < nin; k++) t->in[k] = in[k];
}

static inline uint32_t workload_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

static void workload_stencil(struct workload *w, uint32_t n)
{
    const char *text = getenv("PEERS_W");
    uint32_t width = text ? (uint32_t)atoi(text) : 256;
    w->ncells = 2 * width;
    for (uint32_t step = 0; step < n / width; step++)
        for (uint32_t i = 0; i < width; i++) {
            uint32_t from = ((step + 1) & 1) * width, to = (step & 1) * width;
            uint32_t in[3] = {from + (i + width - 1) % width, from + i, from + (i + 1) % width};
            workload_add(w, WORK_UPDATE, 3, in, to + i);
        }
}

static void workload_cholesky(struct workload *w, uint32_t n)
{
    uint32_t nt = 1;
    while ((uint64_t)(nt + 1) * (nt + 2) * (nt + 3) / 6 <= n) nt++;
    w->ncells = nt * nt;
    for (uint32_t k = 0; k < nt; k++) {
        uint32_t in[2] = {k * nt + k};
        workload_add(w, WORK_UPDATE, 0, NULL, k * nt + k);
        for (uint32_t m = k + 1; m < nt; m++) workload_add(w, WORK_UPDATE, 1, in, m * nt + k);
        for (uint32_t m = k + 1; m < nt; m++) {
            in[0] = m * nt + k;
            workload_add(w, WORK_UPDATE, 1, in, m * nt + m);
            for (uint32_t j = k + 1; j < m; j++) {
                in[1] = j * nt + k;
                workload_add(w, WORK_UPDATE, 2, in, m * nt + j);
            }
        }
    }
}

static void workload_irregular(struct workload *w, uint32_t n)
{
    uint64_t state = 0x9E3779B97F4A7C15u;
    w->ncells = 1024;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c[4];
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t same;
            do {
                c[k] = workload_random(&state) & 1023;
                same = 0;
                for (uint32_t j = 0; j < k; j++) same |= c[j] == c[k];
            } while (same);
        }
        workload_add(w, WORK_UPDATE, 3, c, c[3]);
    }
}

/* Per cell the tasks that the next one must follow: the last writer, and the readers since. Counts distinct pairs. */
static void workload_count_edges(struct workload *w)
{
    struct reader {
        uint32_t task, next;
    } *readers = malloc(((size_t)w->n * 3 + 1) * sizeof(*readers));
    uint32_t *writer = calloc(w->ncells, 4), *head = calloc(w->ncells, 4), *mark = calloc((size_t)w->n + 1, 4);
    uint64_t edges = 0;
    uint32_t used = 0;
    if (readers == NULL || writer == NULL || head == NULL || mark == NULL) abort();
    /* Tasks count from 1 here; 0 is none. */
    for (uint32_t i = 1; i <= w->n; i++) {
        const struct work *t = &w->work[i - 1];
        for (uint32_t k = 0; k < t->nin; k++) {
            uint32_t p = writer[t->in[k]];
            if (p != 0 && mark[p] != i) mark[p] = i, edges++;
            readers[++used] = (struct reader){i, head[t->in[k]]};
            head[t->in[k]] = used;
        }
        if (t->kind != WORK_UPDATE) continue;
        if (head[t->out] == 0) {
            uint32_t p = writer[t->out];
            if (p != 0 && mark[p] != i) mark[p] = i, edges++;
        }
        for (uint32_t r = head[t->out]; r != 0; r = readers[r].next)
            if (mark[readers[r].task] != i) mark[readers[r].task] = i, edges++;
        head[t->out] = 0;
        writer[t->out] = i;
    }
    w->edges = w->n ? (double)edges / w->n : 0;
    free(readers);
    free(writer);
    free(head);
    free(mark);
}

static inline void workload_clear(struct workload *w)
{
    memset(w->cells, 0, (size_t)w->ncells * w->stride * 8);
}

/* 0, or -1 for an unknown name. Memory lives until the process ends. */
static int workload_make(struct workload *w, const char *name, uint32_t n)
{
    uint32_t zero[1] = {0};
    memset(w, 0, sizeof(*w));
    w->name = name;
    w->ncells = 1;
    if (strcmp(name, "chain") == 0) {
        for (uint32_t i = 0; i < n; i++) workload_add(w, WORK_UPDATE, 0, NULL, 0);
    } else if (strcmp(name, "indep") == 0) {
        w->ncells = n;
        for (uint32_t i = 0; i < n; i++) workload_add(w, WORK_UPDATE, 0, NULL, i);
    } else if (strcmp(name, "chains16") == 0) {
        w->ncells = 16;
        for (uint32_t i = 0; i < n; i++) workload_add(w, WORK_UPDATE, 0, NULL, i % 16);
    } else if (strcmp(name, "readers") == 0) {
        for (uint32_t i = 0; i < n / 2; i++) workload_add(w, WORK_READ, 1, zero, 0);
        for (uint32_t i = 0; i < n / 2; i++) workload_add(w, WORK_SET, 0, NULL, 0);
    } else if (strcmp(name, "stencil") == 0) {
        workload_stencil(w, n);
    } else if (strcmp(name, "random") == 0) {
        workload_irregular(w, n);
    } else if (strcmp(name, "chol") == 0) {
        workload_cholesky(w, n);
    } else {
        return -1;
    }
    w->stride = w->ncells <= 4096 ? 8 : 1; /* a line each while that is affordable */
    w->cells = aligned_alloc(64, ((size_t)w->ncells * w->stride * 8 + 63) & ~(size_t)63);
    w->expected = malloc((size_t)w->ncells * w->stride * 8);
    if (w->cells == NULL || w->expected == NULL) abort();
    workload_count_edges(w);
    workload_clear(w);
    for (uint32_t i = 0; i < w->n; i++) workload_body(w, i);
    memcpy(w->expected, w->cells, (size_t)w->ncells * w->stride * 8);
    return 0;
}

/* Number of cells that differ from the serial run. */
static inline uint32_t workload_check(const struct workload *w)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < w->ncells; i++) bad += *workload_cell(w, i) != w->expected[(size_t)i * w->stride];
    if (bad > 0) printf("WRONG RESULT in %u cells\n", bad);
    return bad;
}

static inline long workload_rss_kb(void)
{
    long pages = 0, unused;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%ld %ld", &unused, &pages) != 2) pages = 0;
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline int workload_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One line: the cold repeat, then the medians of the others, in ns a task; memory is the growth of the peak over n. */
static void workload_report(struct workload *w, const char *who, int repeats)
{
    struct rusage usage;
    uint32_t bad = workload_check(w);
    int k = repeats - 1;
    double scale = 1e9 / w->n, cold = w->total[0] * scale;
    getrusage(RUSAGE_SELF, &usage);
    qsort(w->submit + 1, (size_t)k, sizeof(double), workload_compare);
    qsort(w->total + 1, (size_t)k, sizeof(double), workload_compare);
    printf("%-22s %-11s n=%-8u edges/task=%-5.2f cold=%-8.0f submit=%-8.0f total=%-8.0f min=%-8.0f max=%-8.0f "
           "peak_kB=%ld B/task=%.0f%s\n",
           who, w->name, w->n, w->edges, cold, w->submit[1 + k / 2] * scale, w->total[1 + k / 2] * scale,
           w->total[1] * scale, w->total[k] * scale, usage.ru_maxrss,
           (double)(usage.ru_maxrss - w->base_kb) * 1024 / w->n, bad ? " BAD" : "");
    fflush(stdout);
}

#endif
