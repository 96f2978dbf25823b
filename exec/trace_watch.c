/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/trace.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exec/environment.h>
#include <exec/work.h>
#include <trace/model.h>
#include <trace/write.h>

/*
 * Recording for a whole program, as its environment asks for it. At exit what was asked for is written. If a signal
 * ends the program, another one, `weir draw`, does it from the file of records: what a handler may call is fork, exec
 * and wait (signal-safety(7)). If it is killed, or calls _exit(), the file of records stays.
 */

static struct {
    struct weir__outputs outputs;
    char *record;    /* the file of records, NULL: memory */
    bool keep;       /* it is what was asked for */
    uint32_t owner;  /* generation of the process */
    char draw[4096]; /* the program `weir`, "" if it was not found */
    char *arguments[12];
} plan;

static void tell(const char *text)
{
    weir__log(1, "%s", text);
}

/* ---- names ---- */

static char *join(const char *a, const char *b)
{
    char *both = malloc(strlen(a) + strlen(b) + 1);
    if (both) sprintf(both, "%s%s", a, b);
    return both;
}

/* The program may go to another folder meanwhile. */
static char *absolute(char *name)
{
    char folder[4096];
    if (!name || name[0] == '/' || !getcwd(folder, sizeof folder - 1)) return name;
    char *slash = join(folder, "/"), *both = slash ? join(slash, name) : NULL;
    free(slash);
    return both ? both : name;
}

/* @text with the number of the process for each %p; NULL for "" and NULL. Never freed. */
static char *expand(const char *text)
{
    if (!text || !*text) return NULL;
    size_t room = strlen(text) * 6 + 16, used = 0;
    char *name = malloc(room);
    for (; name && *text; text++) {
        if (text[0] == '%' && text[1] == 'p') {
            used += (size_t)sprintf(name + used, "%ld", (long)getpid());
            text++;
        } else {
            name[used++] = *text;
        }
    }
    if (name) name[used] = '\0';
    return name;
}

static char *report_of(const char *text)
{
    if (!text || !strcmp(text, "0")) return NULL;
    return weir__report_is_stream(text) ? expand(text) : absolute(expand(text));
}

/* ---- at the end ---- */

static void finish(void)
{
    struct weir__trace *trace;
    /* Relaxed: see exec/context.h. In a child of fork the recording is the parent's. */
    if (plan.owner != atomic_load_explicit(&weir__generation, memory_order_relaxed)) return;
    weir__record_stop();
    weir__record_resources();
    if (!plan.outputs.graph && !plan.outputs.timeline && !plan.outputs.report) return;
    int rc = weir__trace_read(NULL, &trace);
    if (!rc) {
        rc = weir__outputs_write(trace, &plan.outputs, tell);
        weir__trace_free(trace);
    } else {
        tell(weir_error_text());
    }
    if (plan.record && !plan.keep && (!rc || rc == WEIR_E_UNSUPPORTED)) unlink(plan.record);
}

static void say(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n; /* nobody to tell */
}

/* Somebody else draws; then the signal does what it does. */
static void on_signal(int number)
{
    int error = errno, status;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(number, &usual, NULL);
    if (plan.owner == atomic_load_explicit(&weir__generation, memory_order_relaxed)) { /* as above */
        pid_t child = plan.draw[0] ? _Fork() : -1;
        if (child == 0) {
            execv(plan.draw, plan.arguments);
            _exit(127);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 127) {
            say("weir: the records are kept; to draw them: weir draw ");
            say(plan.record);
            say("\n");
        } else if (!plan.keep) {
            unlink(plan.record);
        }
    }
    errno = error;
    raise(number); /* blocked until this returns; a fault comes again by itself */
}

static void watch_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction ours = {.sa_handler = on_signal}, theirs;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!sigaction(numbers[i], NULL, &theirs) && !(theirs.sa_flags & SA_SIGINFO) && theirs.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &ours, NULL);
}

/* `weir` lies where this library's installation has it: lib/libweir.so, bin/weir. */
static void find_draw(void)
{
    Dl_info info;
    char path[4096];
    if (!dladdr((void *)(uintptr_t)weir__trace_watch, &info) || !info.dli_fname || !realpath(info.dli_fname, path))
        return;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (!slash) return;
        *slash = '\0';
    }
    if ((size_t)snprintf(plan.draw, sizeof plan.draw, "%s/bin/weir", path) >= sizeof plan.draw ||
        access(plan.draw, X_OK))
        plan.draw[0] = '\0';
}

static void plan_draw(void)
{
    int n = 0;
    find_draw();
    plan.arguments[n++] = plan.draw;
    plan.arguments[n++] = (char *)(uintptr_t)"draw";
    const struct {
        const char *option, *value;
    } options[] = {
        {"--graph=", plan.outputs.graph}, {"--trace=", plan.outputs.timeline}, {"--report=", plan.outputs.report}};
    for (size_t i = 0; i < 3; i++) {
        if (!options[i].value) continue;
        char *word = join(options[i].option, options[i].value);
        if (word) plan.arguments[n++] = word;
    }
    plan.arguments[n++] = (char *)(uintptr_t)"--";
    plan.arguments[n++] = plan.record;
    plan.arguments[n] = NULL;
}

/* ---- at the begin ---- */

static int start(void)
{
    size_t limit = (size_t)weir__environment_number("WEIR_TRACE_LIMIT", 256, 1, 65536) << 20;
    int rc = weir__record_start(limit, plan.record, false);
    if (rc == WEIR_E_BUSY && plan.record) { /* a second process of the same program */
        char number[32];
        snprintf(number, sizeof number, ".%ld", (long)getpid());
        plan.record = join(plan.record, number);
        rc = plan.record ? weir__record_start(limit, plan.record, false) : WEIR_E_NO_MEMORY;
    }
    if (rc && plan.record) {
        weir__log(1, "%s: the records are kept in memory", weir_error_text());
        plan.record = NULL;
        rc = weir__record_start(limit, NULL, false);
    }
    return rc;
}

static void watch(void)
{
    plan.outputs = (struct weir__outputs){absolute(expand(getenv("WEIR_GRAPH"))),
                                          absolute(expand(getenv("WEIR_TRACE"))), report_of(getenv("WEIR_REPORT"))};
    plan.record = absolute(expand(getenv("WEIR_RECORD")));
    plan.keep = plan.record != NULL;
    if (!plan.outputs.graph && !plan.outputs.timeline && !plan.outputs.report && !plan.record) return;
    if (weir__outputs_check(&plan.outputs)) {
        tell(weir_error_text());
        plan.outputs.graph = NULL;
    }
    const char *beside = plan.outputs.graph ? plan.outputs.graph : plan.outputs.timeline;
    if (!beside && plan.outputs.report && !weir__report_is_stream(plan.outputs.report)) beside = plan.outputs.report;
    if (!plan.record && beside) plan.record = join(beside, ".weir");
    plan.owner = atomic_load_explicit(&weir__generation, memory_order_relaxed); /* as above */
    if (start()) {
        tell(weir_error_text());
        return;
    }
    if (atexit(finish)) weir__log(1, "no exit handler: nothing will be drawn");
    if (!plan.record) return;
    plan_draw();
    watch_signals();
}

void weir__trace_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}
