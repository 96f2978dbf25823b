/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a test in the same process says to the emulated driver. Link to the emulator or look these names up in
 * libcuda.so.1; the real driver has none of them. All are callable from any thread unless said otherwise.
 */
#ifndef WEIR_EMULATOR_H
#define WEIR_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#define EMULATOR_API __attribute__((visibility("default")))

/**
 * Change a setting; README.md lists them. Those of devices take effect if set before cuInit.
 * Returns the value before, or INT64_MIN for an unknown name.
 */
EMULATOR_API int64_t emulator_set(const char *name, int64_t value);

/** The @nth call from now of @entry ("*": of any that needs cuInit) returns @code and does nothing else. 0: none. */
EMULATOR_API void emulator_fail(const char *entry, uint64_t nth, int code);

/** The @nth operation from now that runs on @device ends with the sticky error @code. 0 ends it. */
EMULATOR_API void emulator_fault(int device, uint64_t nth, int code);

/** Stop and start the clock of a device: nothing queued on it completes while it stands. -1: of all devices. */
EMULATOR_API void emulator_stop(int device);
EMULATOR_API void emulator_start(int device);

/** Let @count operations of a stopped device run, records and waits included; returns when they have. */
EMULATOR_API void emulator_step(int device, unsigned count);

/** Behave as after the driver's exit handler: all calls return 4. There is no way back. */
EMULATOR_API void emulator_shut_down(void);

/** Reports of misuse so far. The texts are the emulator's and live until they are taken. */
EMULATOR_API size_t emulator_report_count(void);
EMULATOR_API const char *emulator_report_text(size_t index);

/** Forget the reports, so that they do not count at exit; returns how many there were. */
EMULATOR_API size_t emulator_reports_take(void);

/** Calls of an entry point, and the time that callers were blocked in it; "*": all together. */
EMULATOR_API uint64_t emulator_calls(const char *entry);
EMULATOR_API uint64_t emulator_blocked_ns(const char *entry);

/** Records of events whose former record was pending, or for which a thread was waiting. */
EMULATOR_API uint64_t emulator_rerecords(void);

/** Whether kernels of @device can use the memory of @peer, if the setting `peer` allows any. Both below 16. */
EMULATOR_API void emulator_peer(int device, int peer, int can);

/** How often the current context of a thread became another one. */
EMULATOR_API uint64_t emulator_context_switches(void);
EMULATOR_API void emulator_counters_reset(void);

/** Objects that exist: streams, events, modules, device and pinned memory ranges of all devices. */
EMULATOR_API size_t emulator_live_objects(void);

struct emulator_launch {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    int device;
};

/** In a kernel: its launch; NULL elsewhere. A kernel is called once per launch, whatever its grid is. */
EMULATOR_API const struct emulator_launch *emulator_launch(void);

/** In a kernel: end it with the sticky error @code (700, 710, 719 ...). Does not return. */
EMULATOR_API _Noreturn void emulator_kernel_fault(int code);

#endif
