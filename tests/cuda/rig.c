/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rig_init(const struct setting *settings)
{
    for (; settings && settings->name; settings++)
        cr_assert_neq(emulator_set(settings->name, settings->value), INT64_MIN, "no setting %s", settings->name);
    OK(cuInit(0));
}

void *rig_file(const char *path, size_t *bytes_out)
{
    FILE *file = fopen(path, "rb");
    cr_assert(file, "cannot open %s", path);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    void *content = malloc((size_t)bytes);
    cr_assert(content && fread(content, 1, (size_t)bytes, file) == (size_t)bytes);
    fclose(file);
    if (bytes_out) *bytes_out = (size_t)bytes;
    return content;
}

struct rig rig_start(const struct setting *settings)
{
    struct rig rig;
    rig_init(settings);
    OK(cuDevicePrimaryCtxRetain(&rig.context, 0));
    OK(cuCtxSetCurrent(rig.context));
    void *image = rig_file(EMULATOR_IMAGE, NULL);
    OK(cuModuleLoadData(&rig.module, image));
    free(image);
    return rig;
}

void rig_stop(struct rig rig)
{
    OK(cuModuleUnload(rig.module));
    OK(cuCtxSetCurrent(NULL));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    for (size_t i = 0; i < emulator_report_count(); i++) cr_expect(false, "report: %s", emulator_report_text(i));
    cr_assert_eq(emulator_live_objects(), 0);
}

void *rig_function(struct rig rig, const char *name)
{
    void *function;
    OK(cuModuleGetFunction(&function, rig.module, name));
    return function;
}

void rig_launch(void *function, void *stream, uint64_t first, uint64_t second, uint64_t third)
{
    void *arguments[] = {&first, &second, &third, NULL};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

int64_t rig_read(uint64_t address)
{
    int64_t value;
    OK(cuMemcpyDtoH_v2(&value, address, sizeof value));
    return value;
}

void rig_expect_report(const char *text)
{
    size_t count = emulator_report_count();
    cr_assert(count, "no report of '%s'", text);
    cr_assert(strstr(emulator_report_text(count - 1), text), "report: %s", emulator_report_text(count - 1));
    emulator_reports_take();
}

void *rig_stream(void)
{
    void *stream;
    OK(cuStreamCreateWithPriority(&stream, CUDA_STREAM_NON_BLOCKING, 0));
    return stream;
}

void *rig_event(void)
{
    void *event;
    OK(cuEventCreate(&event, CUDA_EVENT_NO_TIMING));
    return event;
}

uint64_t rig_alloc(size_t bytes)
{
    uint64_t address;
    OK(cuMemAlloc_v2(&address, bytes));
    return address;
}

void *rig_pinned(size_t bytes)
{
    void *memory;
    OK(cuMemHostAlloc(&memory, bytes, 1));
    return memset(memory, 0, bytes);
}
