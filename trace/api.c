/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <weir/trace.h>

#include <graph/error.h>
#include <trace/model.h>
#include <trace/write.h>

int weir_trace_start(const struct weir_trace_options *options)
{
    if (options && options->size != sizeof *options)
        return weir__fail(WEIR_E_VERSION, "struct weir_trace_options of %zu bytes is not known", options->size);
    if (!options) return weir__record_start(0, NULL, false);
    return weir__record_start(options->limit_bytes, options->file, options->resume);
}

void weir_trace_stop(void)
{
    weir__record_stop();
}

int weir_trace_write(const char *file, enum weir_trace_format format)
{
    struct weir__trace *trace;
    weir__record_resources();
    int rc = weir__trace_read(NULL, &trace);
    if (rc) return rc;
    rc = weir__trace_write(trace, file, format);
    weir__trace_free(trace);
    return rc;
}

void weir_trace_name(const void *address, size_t bytes, const char *name)
{
    if (!name || !weir__record_is_on()) return;
    uint32_t text = weir__record_text(name);
    uint64_t *at = text ? weir__record_claim(4) : NULL;
    if (!at) return;
    weir__record_head(at, WEIR__RECORD_MEMORY, 4, 0, 0);
    at[1] = (uint64_t)(uintptr_t)address;
    at[2] = bytes;
    at[3] = text;
    weir__record_commit(4);
}
