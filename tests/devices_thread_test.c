/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Threads of weir's own take no signals of the program's but their own faults. What a thread keeps goes with it. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <devices/thread.h>

static void *note_mask(void *mask)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    return mask;
}

Test(devices_thread, takes_its_own_faults_and_no_other_signal)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}, others[] = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD};
    sigset_t before, mask, after;
    pthread_t thread;
    void *returned;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    cr_assert_eq(weir__thread_start(&thread, note_mask, &mask), 0);
    cr_assert_eq(pthread_join(thread, &returned), 0);
    cr_expect_eq(returned, &mask);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) cr_expect_not(sigismember(&mask, faults[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) cr_expect(sigismember(&mask, others[i]));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < SIGRTMIN; number++)
        cr_expect_eq(sigismember(&after, number), sigismember(&before, number), "signal %d", number);
}

enum { SLOTS = 3, BYTES = 100 };
static void *slots[SLOTS];

static void *keep(void *arg)
{
    (void)arg;
    for (int i = 0; i < SLOTS; i++) {
        char *memory = weir__thread_memory(&slots[i], BYTES);
        cr_assert_not_null(memory);
        for (int j = 0; j < BYTES; j++) cr_expect_eq(memory[j], 0);
        memory[BYTES - 1] = 1;
        cr_expect_eq(weir__thread_memory(&slots[i], BYTES), (void *)memory);
        cr_expect_eq((uintptr_t)memory % _Alignof(max_align_t), 0);
    }
    return NULL;
}

Test(devices_thread, memory_of_a_thread_is_zeroed_and_ends_with_it)
{
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, keep, NULL), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        for (int i = 0; i < SLOTS; i++) cr_expect_null(slots[i]);
    }
}
