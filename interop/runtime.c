/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/runtime.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <devices/host/host.h>
#include <exec/environment.h>
#include <exec/work.h>

#include "interop/construct.h"
#include "interop/decode.h"
#include "interop/libomp.h"
#include "interop/mapping.h"
#include "interop/registry.h"
#include "interop/shim.h"
#include "interop/siblings.h"
#include "interop/target_task.h"

/*
 * Publication: `runtime` goes once from NULL to the finished runtime (R1) and is read everywhere with acquire (A1), so
 * its plain members need no lock. `forked` goes once from false to true, in a process that has one thread.
 * making        held while the context is made or devices become visible; the registry's lock is taken inside.
 * threads.lock  list of threads; nothing is taken inside.
 */
static _Atomic(struct weir__runtime *) runtime;
static _Atomic bool forked;
static _Atomic bool failed; /* the context could not be made; told once */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_making __attribute__((tls_model("initial-exec")));

static struct {
    pthread_mutex_t lock;
    pthread_cond_t unpinned;
    pthread_key_t key; /* valid once `runtime` is set */
    struct weir__thread *all, *free;
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER, .unpinned = PTHREAD_COND_INITIALIZER};

static _Thread_local struct weir__thread *self __attribute__((tls_model("initial-exec")));

/* ---- messages ---- */

static void say(const char *format, va_list args)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "weir: ");
    vsnprintf(text + n, sizeof text - (size_t)n - 1, format, args);
    strcat(text, "\n");
    fputs(text, stderr); /* one call: lines of several threads do not mix */
}

void weir__fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    abort();
}

void weir__warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

/* ---- policy ---- */

enum policy { POLICY_DISABLED, POLICY_DEFAULT, POLICY_MANDATORY };

static enum policy policy(void)
{
    static _Atomic int known = -1;
    /* Relaxed: every thread would compute the same value. */
    int value = atomic_load_explicit(&known, memory_order_relaxed);
    if (value < 0) {
        const struct weir__libomp *libomp = weir__libomp();
        value = libomp->target_offload ? libomp->target_offload() : POLICY_DEFAULT;
        atomic_store_explicit(&known, value, memory_order_relaxed);
    }
    return (enum policy)value;
}

bool weir__runtime_is_mandatory(void)
{
    return !atomic_load_explicit(&forked, memory_order_relaxed) && policy() == POLICY_MANDATORY;
}

/* ---- making the context ---- */

/*
 * libomp 19 waits at its end for the hidden helper threads that ran nowait regions; they do not exist in the child of a
 * fork, where exit() would never return. This runs after what the program registered with atexit(), and before libomp's
 * end.
 */
static void leave_child(int status, void *arg)
{
    (void)arg;
    if (!atomic_load_explicit(&forked, memory_order_relaxed)) return;
    fflush(NULL);
    _exit(status);
}

static void in_child(void)
{
    atomic_store_explicit(&forked, true, memory_order_relaxed);
}

static void thread_end(void *arg);

/* Threads of the context and handlers of the process point into this library: it stays. */
static void stay_loaded(void)
{
    Dl_info info;
    if (dladdr((void *)&runtime, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    (void)on_exit(leave_child, NULL);
}

void weir__runtime_stay(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, stay_loaded);
}

/* Which images a device takes. Who asks for CUDA devices gets them for programs of this machine too: an emulated driver can
 * load these, a real one refuses with a message. Who asks for a plugin's devices gets these in place of the CPU's. */
static uint32_t machine_of(const struct weir_device *device, enum weir__device_choice choice)
{
    const char *name = weir__device_ops_of(device)->name;
    bool elsewhere = choice == WEIR__DEVICES_CUDA || choice == WEIR__DEVICES_PLUGIN;
    if (!strcmp(name, "host")) return elsewhere ? 0 : WEIR__MACHINE_X86_64;
    if (!strcmp(name, "plugin")) return WEIR__MACHINE_X86_64;
    if (!strcmp(name, "cuda"))
        return choice == WEIR__DEVICES_CUDA ? WEIR__MACHINE_CUDA | WEIR__MACHINE_X86_64 : WEIR__MACHINE_CUDA;
    return 0;
}

static int target_init(struct weir__target *target, struct weir_context *context, uint32_t index)
{
    target->device = weir_device_get(context, (int)index);
    target->number = -1;
    target->index = index;
    target->machine = machine_of(target->device, weir__environment_device());
    pthread_mutex_init(&target->load, NULL);
    snprintf(target->uid, sizeof target->uid, "weir:%s", weir_device_name(target->device));
    return weir__table_create(context, target->device, &target->table);
}

static struct weir__runtime *runtime_fill(struct weir_context *context)
{
    uint32_t n = (uint32_t)weir_device_count(context);
    struct weir__runtime *new = calloc(1, sizeof *new);
    if (!new) return NULL;
    new->context = context;
    new->ntargets = n;
    new->targets = calloc(n ? n : 1, sizeof *new->targets);
    new->visible = calloc(n ? n : 1, sizeof(struct weir__target *));
    if (!new->targets || !new->visible) return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (target_init(&new->targets[i], context, i)) return NULL;
    if (pthread_key_create(&threads.key, thread_end)) return NULL;
    if (pthread_atfork(NULL, NULL, in_child)) return NULL;
    return new;
}

/* Under `making`. NULL: it cannot be made, which was told. */
static struct weir__runtime *runtime_make(void)
{
    /* As many as LLVM shows. */
    struct weir_context_options options = {
        .size = sizeof options, .host_devices = weir__environment_number("WEIR_HOST_DEVICES", 4, 1, WEIR__MAX_DEVICES)};
    struct weir_context *context = NULL;
    int rc = weir_context_create(&options, &context);
    struct weir__runtime *new = rc ? NULL : runtime_fill(context);
    if (!new) {
        weir__warn("no devices: %s", rc ? weir_error_text() : weir_error_string(WEIR_E_NO_MEMORY));
        atomic_store_explicit(&failed, true, memory_order_relaxed);
        return NULL;
    }
    /* Libraries of a program may be the only ones with target code, and go away after libomp. */
    (void)atexit(weir__runtime_drain_all);
    atomic_store_explicit(&runtime, new, memory_order_release); /* R1 */
    return new;
}

/* Under `making`. */
static void show_devices(struct weir__runtime *rt, uint32_t machines)
{
    int n = atomic_load_explicit(&rt->nvisible, memory_order_relaxed);
    uint32_t shown = atomic_load_explicit(&rt->machines, memory_order_relaxed);
    for (uint32_t i = 0; i < rt->ntargets; i++) {
        struct weir__target *target = &rt->targets[i];
        if (!(target->machine & machines) || target->number >= 0) continue;
        target->number = n;
        rt->visible[n++] = target;
    }
    atomic_store_explicit(&rt->nvisible, n, memory_order_release); /* R2: A2 in weir__runtime_devices() */
    atomic_store_explicit(&rt->machines, shown | machines, memory_order_release); /* R3: A3 there */
}

static void runtime_update(uint32_t machines)
{
    if (is_making) return; /* libomp asks while it initialises itself because of us */
    is_making = true;
    if (policy() != POLICY_DISABLED) {
        pthread_mutex_lock(&making);
        struct weir__runtime *rt = atomic_load_explicit(&runtime, memory_order_relaxed);
        if (!rt && !atomic_load_explicit(&failed, memory_order_relaxed)) rt = runtime_make();
        if (rt) show_devices(rt, machines);
        pthread_mutex_unlock(&making);
    }
    is_making = false;
}

bool weir__runtime_is_child(void)
{
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

bool weir__runtime_in_kernel(void)
{
    return weir__host_current_device() >= 0;
}

struct weir__runtime *weir__runtime_peek(void)
{
    if (atomic_load_explicit(&forked, memory_order_relaxed)) return NULL;
    return atomic_load_explicit(&runtime, memory_order_acquire); /* A1 */
}

int weir__runtime_devices(void)
{
    uint32_t machines = weir__registry_machines();
    if (!machines || atomic_load_explicit(&forked, memory_order_relaxed)) return 0;
    struct weir__runtime *rt = atomic_load_explicit(&runtime, memory_order_acquire);      /* A1 */
    if (!rt || (machines & ~atomic_load_explicit(&rt->machines, memory_order_acquire))) { /* A3 */
        if (atomic_load_explicit(&failed, memory_order_relaxed)) return 0;
        runtime_update(machines);
        rt = atomic_load_explicit(&runtime, memory_order_acquire); /* A1 */
        if (!rt) return 0;
    }
    return atomic_load_explicit(&rt->nvisible, memory_order_acquire); /* A2 */
}

/* ---- device numbers ---- */

static struct weir__target *visible_target(int number)
{
    struct weir__target *target = atomic_load_explicit(&runtime, memory_order_acquire)->visible[number]; /* A1 */
    weir__registry_load(target);
    return target;
}

struct weir__target *weir__runtime_target(int64_t device)
{
    int n = weir__runtime_devices();
    if (!n) {
        if (weir__runtime_is_mandatory())
            weir__fatal("OMP_TARGET_OFFLOAD=MANDATORY, but there is no device%s",
                        weir__registry_machines() ? "" : " that an image of this program fits");
        return NULL;
    }
    if (device == -1) device = weir__libomp()->default_device();
    if (device == n) return NULL; /* the host */
    if (device < 0 || device > n)
        weir__fatal("device number %lld is out of range: there are %d devices, and %d is the host", (long long)device,
                    n, n);
    return visible_target((int)device);
}

int weir__runtime_routine_target(int device, struct weir__target **target_out)
{
    int n = weir__runtime_devices();
    if (device < -1 || device > n) return WEIR_E_NO_DEVICE;
    *target_out = device == -1 || device == n ? NULL : visible_target(device);
    return WEIR_OK;
}

/* ---- threads ---- */

static struct weir__thread *thread_make(void)
{
    pthread_mutex_lock(&threads.lock);
    struct weir__thread *thread = threads.free;
    if (thread) threads.free = thread->next_free;
    pthread_mutex_unlock(&threads.lock);
    bool fresh = !thread;
    if (fresh) thread = calloc(1, sizeof *thread);
    if (!thread) weir__fatal("out of memory");
    struct weir__runtime *rt = atomic_load_explicit(&runtime, memory_order_acquire); /* A1 */
    int rc = weir_scope_create(rt->context, NULL, &thread->scope);
    if (rc) weir__fatal("a thread cannot offload: %s", weir_error_text());
    pthread_mutex_lock(&threads.lock);
    thread->live = true;
    if (fresh) {
        thread->next = threads.all;
        threads.all = thread;
    }
    pthread_mutex_unlock(&threads.lock);
    pthread_setspecific(threads.key, thread);
    return thread;
}

struct weir__thread *weir__runtime_thread(void)
{
    if (!self) self = thread_make();
    return self;
}

struct weir__thread *weir__runtime_thread_peek(void)
{
    return self;
}

static void thread_end(void *arg)
{
    struct weir__thread *thread = arg;
    self = NULL;
    if (atomic_load_explicit(&forked, memory_order_relaxed)) return;
    /* First, while weir__runtime_drain() still sees the scope. Failures were told by the constructs. */
    int rc = weir_scope_wait(thread->scope);
    (void)rc;
    pthread_mutex_lock(&threads.lock);
    while (thread->pins) pthread_cond_wait(&threads.unpinned, &threads.lock);
    thread->live = false;
    pthread_mutex_unlock(&threads.lock);
    rc = weir_scope_destroy(thread->scope);
    thread->scope = NULL;
    weir__construct_pool_free(thread);
    weir__target_task_free_pool(thread);
    pthread_mutex_lock(&threads.lock);
    thread->next_free = threads.free;
    threads.free = thread;
    pthread_mutex_unlock(&threads.lock);
}

/* ---- the end ---- */

void weir__runtime_drain(void)
{
    if (!weir__runtime_peek() || weir__runtime_in_kernel()) return;
    pthread_mutex_lock(&threads.lock);
    for (struct weir__thread *thread = threads.all; thread; thread = thread->next) {
        if (!thread->live) continue;
        thread->pins++; /* keeps the scope while the lock is not held */
        pthread_mutex_unlock(&threads.lock);
        int rc = weir_scope_wait(thread->scope);
        (void)rc;
        pthread_mutex_lock(&threads.lock);
        if (!--thread->pins) pthread_cond_broadcast(&threads.unpinned);
    }
    pthread_mutex_unlock(&threads.lock);
    weir__siblings_drain();
}

void weir__runtime_drain_all(void)
{
    if (atomic_load_explicit(&forked, memory_order_relaxed) || weir__runtime_in_kernel()) return;
    /* The task that calls exit() is never complete, nor is what follows it. */
    if (weir__target_task_current()) return;
    /* Target tasks wait in libomp for their predecessors: OpenMP 5.2 section 15.5, taskwait, finishes them too. */
    const struct weir__libomp *libomp = weir__libomp_find();
    if (libomp && libomp->taskwait) {
        int32_t gtid = libomp->global_thread_num(NULL);
        if (weir__shim_is_on()) weir__shim_settle(NULL, gtid);
        libomp->taskwait(NULL, gtid);
    }
    weir__runtime_drain();
}
