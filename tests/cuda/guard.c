/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Device memory that the host cannot touch. Each device has one file in memory, mapped twice: at the addresses that the
 * program sees, without any right, and elsewhere for copies and sets. While a kernel runs or is about to, the first
 * mapping of its device and of the peers that its context may use is opened, for all threads of the process: rights per
 * thread would need protection keys, which many processors lack. So a forgotten copy is a crash unless a kernel happens
 * to run at that moment. The variables of a module lie in the image that the dynamic loader mapped; their pages are
 * opened and closed likewise, but not those that the loader itself reads.
 *
 * A fault in a kernel ends it with the sticky error of the device, elsewhere it names the address and is passed on.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator.h"
#include "module.h"

static _Thread_local sigjmp_buf *kernel_end __attribute__((tls_model("initial-exec")));
static _Thread_local volatile int kernel_code __attribute__((tls_model("initial-exec")));
static struct sigaction before[NSIG];

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

bool emulator__arena_create(struct device *device)
{
    int rights = emulator__state.settings.protect ? PROT_NONE : PROT_READ | PROT_WRITE;
    size_t bytes = (size_t)emulator__state.settings.memory << 20;
    device->file = memfd_create("emulated-device", MFD_CLOEXEC);
    if (device->file < 0 || ftruncate(device->file, (off_t)bytes)) return false;
    device->base = mmap(NULL, bytes, rights, MAP_SHARED | MAP_NORESERVE, device->file, 0);
    device->alias = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, device->file, 0);
    if (device->base == MAP_FAILED || device->alias == MAP_FAILED) return false;
    madvise(device->base, bytes, MADV_DONTDUMP);
    madvise(device->alias, bytes, MADV_DONTDUMP);
    device->memory_bytes = bytes;
    return true;
}

static bool is_in_arena(const struct device *device, uint64_t address)
{
    return address - (uintptr_t)device->base < device->memory_bytes;
}

struct device *emulator__arena_of(uint64_t address)
{
    for (int i = 0; i < emulator__state.settings.devices; i++)
        if (is_in_arena(&emulator__state.devices[i], address)) return &emulator__state.devices[i];
    return NULL;
}

void *emulator__view(uint64_t address)
{
    struct device *device = emulator__arena_of(address);
    return device ? device->alias + (address - (uintptr_t)device->base) : (void *)(uintptr_t)address;
}

void emulator__guard_module(const struct module *module, bool is_open)
{
    int rights = is_open || !emulator__state.settings.protect ? PROT_READ | PROT_WRITE : PROT_NONE;
    size_t bytes = module->image.data_end - module->image.data_start;
    if (bytes) mprotect((void *)(uintptr_t)module->image.data_start, bytes, rights);
}

static void set_rights(struct device *device, bool is_open)
{
    if (!emulator__state.settings.protect) return;
    mprotect(device->base, device->memory_bytes, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
    for (struct module *module = device->modules; module; module = module->next)
        emulator__guard_module(module, is_open);
}

void emulator__memory_open(uint32_t devices)
{
    for (int i = 0; i < emulator__state.settings.devices; i++)
        if (devices >> i & 1 && emulator__state.devices[i].opened++ == 0) set_rights(&emulator__state.devices[i], true);
}

void emulator__memory_close(uint32_t devices)
{
    for (int i = 0; i < emulator__state.settings.devices; i++)
        if (devices >> i & 1 && --emulator__state.devices[i].opened == 0)
            set_rights(&emulator__state.devices[i], false);
}

void emulator__guard_open_all(void)
{
    emulator__memory_open((1u << MAX_DEVICES) - 1);
}

/* ---- faults ---- */

/* Reads lists that others may change under the lock, which a handler cannot take; the process is about to end. */
__attribute__((no_sanitize("thread"))) static const char *place_of(uint64_t address, int *ordinal)
{
    for (int i = 0; i < emulator__state.settings.devices; i++) {
        const struct device *device = &emulator__state.devices[i];
        *ordinal = i;
        if (is_in_arena(device, address)) return "memory";
        for (const struct module *module = device->modules; module; module = module->next)
            if (address >= module->image.data_start && address < module->image.data_end) return "module variables";
    }
    return NULL;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (kernel_end) {
        kernel_code = number == SIGSEGV || number == SIGBUS ? CUDA_ILLEGAL_ADDRESS : CUDA_LAUNCH_FAILED;
        siglongjmp(*kernel_end, 1);
    }
    int ordinal;
    const char *place = number == SIGSEGV ? place_of((uintptr_t)info->si_addr, &ordinal) : NULL;
    if (place) {
        char text[128];
        int length = snprintf(text, sizeof text, "emulator: the host touches %s of device %d at %p\n", place, ordinal,
                              info->si_addr);
        if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(98);
    }
    sigaction(number, &before[number], NULL); /* the access is repeated and meets it */
}

void emulator__guard_install(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, &before[signals[i]]);
}

int emulator__guard_run(void (*body)(void *arg), void *arg)
{
    sigjmp_buf end;
    kernel_code = 0;
    kernel_end = &end;
    if (!sigsetjmp(end, 0)) body(arg);
    kernel_end = NULL;
    return kernel_code;
}

void emulator_kernel_fault(int code)
{
    kernel_code = code;
    siglongjmp(*kernel_end, 1);
}
