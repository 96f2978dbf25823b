/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include <tools/weir.h>
#include <trace/model.h>
#include <trace/write.h>

/* What a recording is to become. */
static int options_read(int argc, char **argv, struct weir__outputs *outputs, const char **record_out)
{
    static const char *const options[WEIR__OUTPUTS] = {
        [WEIR__OUTPUT_GRAPH] = "--graph", [WEIR__OUTPUT_TIMELINE] = "--trace", [WEIR__OUTPUT_REPORT] = "--report"};
    int i = 0;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        size_t length = strcspn(argv[i], "="), o = 0;
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        while (o < WEIR__OUTPUTS && (strlen(options[o]) != length || strncmp(options[o], argv[i], length) != 0)) o++;
        if (o == WEIR__OUTPUTS) return weir__complain_usage("draw has no option '%s'", argv[i]);
        const char *value = argv[i][length] ? argv[i] + length + 1 : NULL;
        if (!value && o == WEIR__OUTPUT_REPORT) value = "1";
        if (!value && ++i < argc) value = argv[i];
        if (!value || !*value) return weir__complain_usage("%s wants a file", options[o]);
        if (weir__output_check((enum weir__output)o, value)) return weir__complain_usage("%s", weir_error_text());
        outputs->name[o] = value;
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
    if (!outputs.name[WEIR__OUTPUT_GRAPH] && !outputs.name[WEIR__OUTPUT_TIMELINE] && !outputs.name[WEIR__OUTPUT_REPORT])
        outputs.name[WEIR__OUTPUT_REPORT] = "1";
    if (weir__trace_read(record, &trace)) {
        tell(weir_error_text());
        return 1;
    }
    rc = weir__outputs_write(trace, &outputs, tell);
    weir__trace_free(trace);
    return rc ? 1 : 0;
}
