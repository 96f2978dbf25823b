/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * A main() for Criterion tests under the thread sanitizer, where Criterion's own runner dies: it maps its arena where
 * the sanitizer's shadow lives. Each test runs in a forked child; the functions behind the assert macros are replaced.
 * Known are init, fini, disabled and timeout of suites and tests, a test's signal, skips, and no other feature.
 */

#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, FAILED = 1 };

extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[] __attribute__((weak)), *__stop_cr_sts[] __attribute__((weak));

static atomic_int failures;

void criterion_send_assert(struct criterion_assert_stats *stats)
{
    if (stats->passed) return;
    atomic_fetch_add(&failures, 1);
    fprintf(stderr, "%s:%u: %s\n", stats->file, stats->line, stats->message);
}

void cri_asserts_passed_incr(void) {}
void criterion_continue_test(void) {}
void criterion_internal_test_setup(void) {}
void criterion_internal_test_teardown(void) {}

void criterion_internal_test_main(void (*fn)(void))
{
    fn();
}

void criterion_abort_test(void)
{
    _exit(FAILED);
}

void criterion_skip_test(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    _exit(SKIPPED);
}

static const struct criterion_test_extra_data *suite_of(const struct criterion_test *test)
{
    static const struct criterion_test_extra_data none;
    for (struct criterion_suite **suite = __start_cr_sts; suite < __stop_cr_sts; suite++)
        if (*suite && !strcmp((*suite)->name, test->category)) return (*suite)->data ? (*suite)->data : &none;
    return &none;
}

/* In the child. exit() rather than _exit(): the sanitizer reports at the end. */
static void run(const struct criterion_test *test, const struct criterion_test_extra_data *suite)
{
    double timeout = test->data->timeout > 0 ? test->data->timeout : suite->timeout;
    if (timeout > 0) alarm((unsigned)timeout + 1);
    if (suite->init) suite->init();
    if (test->data->init) test->data->init();
    test->test();
    if (test->data->fini) test->data->fini();
    if (suite->fini) suite->fini();
    exit(atomic_load(&failures) ? FAILED : 0);
}

/* Returns the exit status of the test, FAILED for a signal other than the expected one. */
static int run_in_child(const struct criterion_test *test, const struct criterion_test_extra_data *suite)
{
    int status;
    pid_t child = fork();
    if (child == 0) run(test, suite);
    if (child < 0 || waitpid(child, &status, 0) != child) return FAILED;
    if (test->data->signal) {
        if (WIFSIGNALED(status) && WTERMSIG(status) == test->data->signal) return 0;
        fprintf(stderr, "%s: no signal %d\n", test->name, test->data->signal);
        return FAILED;
    }
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    fprintf(stderr, "%s: signal %d\n", test->name, WTERMSIG(status));
    return FAILED;
}

int main(void)
{
    int passed = 0, failed = 0, skipped = 0;
    for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
        if (!*test) continue;
        const struct criterion_test_extra_data *suite = suite_of(*test);
        int status = (*test)->data->disabled || suite->disabled ? SKIPPED : run_in_child(*test, suite);
        passed += status == 0;
        skipped += status == SKIPPED;
        failed += status != 0 && status != SKIPPED;
        if (status) fprintf(stderr, "[%s] %s\n", status == SKIPPED ? "SKIP" : "FAIL", (*test)->name);
    }
    fprintf(stderr, "%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed || !(passed + skipped) ? FAILED : 0;
}
