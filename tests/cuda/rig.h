/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What tests of the emulator begin with. Each Criterion test is a process of its own. */
#ifndef WEIR_EMULATOR_RIG_H
#define WEIR_EMULATOR_RIG_H

#include <criterion/criterion.h>

#include "driver.h"

#define OK(call) cr_assert_eq((call), 0)

struct rig {
    void *context, *module;
};

/* @settings: names and values, ended by NULL; then cuInit. */
struct setting {
    const char *name;
    int64_t value;
};

/* The clock of the device stands, and memory can be freed meanwhile. */
#define STOPPED ((struct setting[]){{"stopped", 1}, {"free_blocks", 0}, {NULL, 0}})

void rig_init(const struct setting *settings);
/* The primary context of device 0, current, with the test kernels loaded. */
struct rig rig_start(const struct setting *settings);
/* Unload, release; and no report is left. */
void rig_stop(struct rig rig);
void *rig_function(struct rig rig, const char *name);
void rig_launch(void *function, void *stream, uint64_t first, uint64_t second, uint64_t third);
int64_t rig_read(uint64_t address);
/* The newest report holds @text; takes all. */
void rig_expect_report(const char *text);
void *rig_stream(void);
void *rig_event(void);
uint64_t rig_alloc(size_t bytes);
/* Zeroed memory of the host. */
void *rig_pinned(size_t bytes);
/* Reads a whole file; ends the test if it cannot. */
void *rig_file(const char *path, size_t *bytes_out);

#endif
