/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Short kernels on the submitting thread. To hand a stream to a thread of the device costs some lines of cache between
 * cores, and a system call if that thread sleeps: about a microsecond, on small virtual machines more. A kernel that
 * takes less is run where it is queued, if the submitter allows it (flush_here()).
 *
 * Whether it takes less is measured. A kernel's first runs happen on the device's threads; after CALLS_LEAST short ones
 * in a row it may run here, where every SAMPLE-th run is measured on. One that took long goes back to the threads, and
 * needs twice as many short runs as before to come here again: a kernel that is short for most data only stops the
 * submitter a few times in a program's life.
 *
 * The table is a cache: two kernels of one slot displace each other. Its words are relaxed atomics; what is read
 * decides where a kernel runs, never what it does, and a torn pair (a kernel with the other one's score) is no worse
 * than a kernel that has become long.
 */
#include <time.h>

#include "internal.h"

enum { SLOTS = 512, CALLS_LEAST = 8, STRIKES_MOST = 12, SAMPLE = 4 };

struct slot {
    _Atomic uintptr_t kernel;
    _Atomic uint32_t score;   /* short runs since it was long */
    _Atomic uint32_t strikes; /* how often it turned out long while it was held to be short */
};

static struct slot slots[SLOTS];

static struct slot *slot_of(const void *kernel)
{
    return &slots[((uintptr_t)kernel * UINT64_C(0x9e3779b97f4a7c15)) >> 55];
}

static uint32_t needed(const struct slot *slot)
{
    return CALLS_LEAST << atomic_load_explicit(&slot->strikes, memory_order_relaxed);
}

bool weir__host_kernel_is_short(const void *kernel)
{
    const struct slot *slot = slot_of(kernel);
    return atomic_load_explicit(&slot->kernel, memory_order_relaxed) == (uintptr_t)kernel &&
           atomic_load_explicit(&slot->score, memory_order_relaxed) >= needed(slot);
}

uint64_t weir__host_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void weir__host_kernel_measured(const void *kernel, uint64_t ns, uint32_t short_ns)
{
    struct slot *slot = slot_of(kernel);
    uint32_t score = atomic_load_explicit(&slot->score, memory_order_relaxed);
    if (atomic_load_explicit(&slot->kernel, memory_order_relaxed) != (uintptr_t)kernel) {
        atomic_store_explicit(&slot->kernel, (uintptr_t)kernel, memory_order_relaxed);
        atomic_store_explicit(&slot->strikes, 0, memory_order_relaxed);
        score = 0;
    }
    if (ns < short_ns) {
        score += score < UINT32_MAX;
    } else {
        uint32_t strikes = atomic_load_explicit(&slot->strikes, memory_order_relaxed);
        if (score >= needed(slot) && strikes < STRIKES_MOST)
            atomic_store_explicit(&slot->strikes, strikes + 1, memory_order_relaxed);
        score = 0;
    }
    atomic_store_explicit(&slot->score, score, memory_order_relaxed);
}

void weir__host_kernels_forget(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        atomic_store_explicit(&slots[i].kernel, 0, memory_order_relaxed);
        atomic_store_explicit(&slots[i].score, 0, memory_order_relaxed);
    }
}

/* Run the claimed stream up to the newest record. False: it has to wait for another stream. */
static bool run(struct host_stream *stream, const void *kernel)
{
    static _Thread_local unsigned runs __attribute__((tls_model("initial-exec")));
    bool measured = kernel && runs++ % SAMPLE == 0;
    uint64_t begin = measured ? weir__host_now_ns() : 0;
    enum host_run result = weir__host_stream_run(stream, stream->writer.recorded, HOST_HOLD);
    if (measured && result == HOST_RUN_REACHED)
        weir__host_kernel_measured(kernel, weir__host_now_ns() - begin, stream->device->short_ns);
    return result == HOST_RUN_REACHED;
}

bool weir__host_stream_flush_here(struct host_stream *stream)
{
    if (!stream->writer.is_short) {
        weir__host_stream_flush(stream);
        return false;
    }
    const void *kernel = stream->writer.kernel;
    uint64_t before = atomic_load_explicit(&stream->flushed, memory_order_relaxed); /* own store */
    weir__host_queue_restart(stream);
    weir__host_stream_publish(stream);
    if (!weir__host_stream_claim(stream)) {
        weir__host_stream_kick(stream);
        return false;
    }
    bool all = stream->reader.done == before && run(stream, kernel);
    weir__host_stream_leave(stream, HOST_RUNNING, stream->reader.done);
    return all;
}
