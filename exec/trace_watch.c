/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/trace.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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
 * ends the program, another one, `weir draw`, does it from the records: what a handler may call is fork, exec and wait
 * (signal-safety(7)). If it is killed, or calls _exit(), the file of records stays.
 */

static struct {
    struct weir__outputs outputs;
    char *record;    /* the file of records, NULL: memory */
    int fd;          /* of the records */
    char memory[40]; /* a name of theirs for the program that draws, which inherits the descriptor */
    bool keep;       /* the file is what was asked for */
    uint32_t owner;  /* generation of the process */
    volatile sig_atomic_t is_over; /* all is written */
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
    char *slash = join(folder, folder[1] ? "/" : ""), *both = slash ? join(slash, name) : NULL;
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

static bool has_outputs(void)
{
    for (int i = 0; i < WEIR__OUTPUTS; i++)
        if (plan.outputs.name[i]) return true;
    return false;
}

/* ---- at the end ---- */

static void finish(void)
{
    struct weir__trace *trace;
    /* Relaxed: see exec/context.h. In a child of fork the recording is the parent's. */
    if (plan.owner != atomic_load_explicit(&weir__generation, memory_order_relaxed)) return;
    weir__record_stop();
    weir__record_resources();
    if (!has_outputs()) return;
    int rc = weir__trace_read(NULL, &trace);
    if (!rc) {
        rc = weir__outputs_write(trace, &plan.outputs, tell);
        weir__trace_free(trace);
    } else {
        tell(weir_error_text());
    }
    if (plan.record && !plan.keep && (!rc || rc == WEIR_E_UNSUPPORTED)) unlink(plan.record);
    plan.is_over = 1;
}

static void say(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n; /* nobody to tell */
}

static void tell_lost(void)
{
    if (plan.record) {
        say("weir: the records are kept; to draw them: weir draw ");
        say(plan.record);
        say("\n");
    } else {
        say("weir: no report: it needs the program bin/weir beside the library, or a file's name\n");
    }
}

/* Somebody else draws; then the signal does what it does. */
static void on_signal(int number)
{
    int error = errno, status;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(number, &usual, NULL);
    /* The generation: as in finish(). */
    if (!plan.is_over && plan.owner == atomic_load_explicit(&weir__generation, memory_order_relaxed)) {
        pid_t child = plan.draw[0] && has_outputs() ? _Fork() : -1;
        if (child == 0) {
            if (!plan.record) (void)fcntl(plan.fd, F_SETFD, 0);
            execv(plan.draw, plan.arguments);
            _exit(127);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
            tell_lost();
        else if (plan.record && !plan.keep)
            unlink(plan.record);
    }
    errno = error;
    raise(number); /* blocked until this returns; a fault comes again by itself */
}

static void watch_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, theirs;
    weir__record_signal_stacks();
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
    static const char *const options[WEIR__OUTPUTS] = {
        [WEIR__OUTPUT_GRAPH] = "--graph=", [WEIR__OUTPUT_TIMELINE] = "--trace=", [WEIR__OUTPUT_REPORT] = "--report="};
    for (int i = 0; i < WEIR__OUTPUTS; i++) {
        char *word = plan.outputs.name[i] ? join(options[i], plan.outputs.name[i]) : NULL;
        if (word) plan.arguments[n++] = word;
    }
    plan.arguments[n++] = (char *)(uintptr_t)"--";
    (void)weir__record_arena(&plan.fd);
    snprintf(plan.memory, sizeof plan.memory, "/proc/self/fd/%d", plan.fd);
    plan.arguments[n++] = plan.record ? plan.record : plan.memory;
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
        bool in_memory = has_outputs();
        weir__log(1, "%s: %s", weir_error_text(), in_memory ? "the records are kept in memory" : "nothing is recorded");
        plan.record = NULL;
        if (in_memory) rc = weir__record_start(limit, NULL, false);
    } else if (rc) {
        tell(weir_error_text());
    }
    return rc;
}

static void read_environment(void)
{
    plan.outputs.name[WEIR__OUTPUT_GRAPH] = absolute(expand(getenv("WEIR_GRAPH")));
    plan.outputs.name[WEIR__OUTPUT_TIMELINE] = absolute(expand(getenv("WEIR_TRACE")));
    plan.outputs.name[WEIR__OUTPUT_REPORT] = report_of(getenv("WEIR_REPORT"));
    plan.record = absolute(expand(getenv("WEIR_RECORD")));
    plan.keep = plan.record != NULL;
    for (int i = 0; i < WEIR__OUTPUTS; i++) {
        if (!plan.outputs.name[i] || !weir__output_check((enum weir__output)i, plan.outputs.name[i])) continue;
        tell(weir_error_text()); /* now, not when the program has run for hours */
        plan.outputs.name[i] = NULL;
    }
}

/* The first file that was asked for, NULL: none. */
static const char *first_file(void)
{
    for (int i = 0; i < WEIR__OUTPUTS; i++) {
        const char *name = plan.outputs.name[i];
        if (name && !weir__report_is_stream(name) && !weir__output_is_special(name)) return name;
    }
    return NULL;
}

static void watch(void)
{
    read_environment();
    if (!has_outputs() && !plan.record) return;
    const char *beside = first_file();
    if (!plan.record && beside) plan.record = join(beside, ".weir");
    plan.owner = atomic_load_explicit(&weir__generation, memory_order_relaxed); /* as above */
    if (start()) return;
    if (atexit(finish)) weir__log(1, "no exit handler: nothing will be drawn");
    plan_draw();
    watch_signals();
}

void weir__trace_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}
