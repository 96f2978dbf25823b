/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include <tools/weir.h>
#include <trace/model.h>
#include <trace/write.h>

/* What a recording is to become. */
static int options_read(int argc, char **argv, struct weir__outputs *outputs, const char **record_out)
{
    const struct {
        const char *name;
        const char **value;
    } options[] = {{"--graph", &outputs->graph}, {"--trace", &outputs->timeline}, {"--report", &outputs->report}};
    int i = 0;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        size_t length = strcspn(argv[i], "="), o = 0;
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        while (o < 3 && (strlen(options[o].name) != length || strncmp(options[o].name, argv[i], length) != 0)) o++;
        if (o == 3) return weir__complain_usage("draw has no option '%s'", argv[i]);
        const char *value = argv[i][length] ? argv[i] + length + 1 : NULL;
        if (!value && o == 2) value = "1";
        if (!value && ++i < argc) value = argv[i];
        if (!value || !*value) return weir__complain_usage("%s wants a file", options[o].name);
        *options[o].value = value;
    }
    if (i + 1 != argc) return weir__complain_usage("draw wants one recording");
    *record_out = argv[i];
    return 0;
}

static void tell(const char *text)
{
    weir__complain("%s", text);
}

int weir__command_draw(int argc, char **argv)
{
    struct weir__outputs outputs = {0};
    const char *record = NULL;
    struct weir__trace *trace;
    if (argc > 0 && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))) {
        weir__print_usage();
        return 0;
    }
    int rc = options_read(argc, argv, &outputs, &record);
    if (rc) return rc;
    if (!outputs.graph && !outputs.timeline && !outputs.report) outputs.report = "1";
    if (weir__outputs_check(&outputs)) return weir__complain_usage("%s", weir_error_text());
    if (weir__trace_read(record, &trace)) {
        tell(weir_error_text());
        return 1;
    }
    rc = weir__outputs_write(trace, &outputs, tell);
    weir__trace_free(trace);
    return rc ? 1 : 0;
}
