/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tools/weir.h>
#include <weir/weir.h>

static const char usage[] =
    "usage: weir run [options] program [arguments]   run an OpenMP program on weir\n"
    "       weir draw [options] RECORD               draw what was recorded (WEIR_RECORD, or of a program that was killed)\n"
    "       weir info                                what is here: devices, libraries, environment\n"
    "       weir --version | --help\n"
    "\n"
    "options of run:\n"
    "  --summary      one line at exit: tasks, edges and how they were realised\n"
    "  --graph FILE   at exit, a picture of the tasks and of what waited for what: .svg, .dot or .html\n"
    "  --trace FILE   at exit, a timeline for Perfetto (ui.perfetto.dev) or chrome://tracing\n"
    "  --report       at exit, a report: what became of the tasks, what waited, and why; --report=json, --report=FILE\n"
    "  --device NAME  which devices: host, cuda, plugin or all\n"
    "  --plugin FILE  with --device plugin: the plugin library of LLVM 14 to 16\n"
    "  --devices N    number of CPU devices\n"
    "  --window N     tasks in flight before the submitter helps or waits\n"
    "  --log LEVEL    0 none, 1 errors, 2 warnings, 3 information, 4 every task and copy on a device\n"
    "\n"
    "options of draw: --graph FILE, --trace FILE, --report[=json|=FILE]\n"
    "\n"
    "The exit code of run is the program's; 2 wrong use, 126 cannot be run on weir, 127 not found.\n";

void weir__complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("weir: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

int weir__complain_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("weir: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\nTry 'weir --help'.\n", stderr);
    va_end(args);
    return WEIR__EXIT_USAGE;
}

/* The folder of the libraries as a clean absolute path; false if it does not exist. */
static bool library_folder(char folder_out[PATH_MAX])
{
    char here[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    if (n < 0) return false;
    here[n] = '\0';
    char *slash = strrchr(here, '/');
    if (!slash) return false;
    *slash = '\0';
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", here, WEIR_LIB_FROM_BIN) >= (int)sizeof path) return false;
    return realpath(path, folder_out) != NULL;
}

void weir__places_find(struct weir__places *places_out)
{
    memset(places_out, 0, sizeof *places_out);
    char folder[PATH_MAX];
    if (!library_folder(folder)) return;
    size_t size = sizeof places_out->library;
    places_out->has_library = snprintf(places_out->library, size, "%s/libweir.so", folder) < (int)size &&
                              access(places_out->library, R_OK) == 0;
    places_out->has_dropin =
        snprintf(places_out->dropin, size, "%s/weir", folder) < (int)size && access(places_out->dropin, X_OK) == 0;
}

void weir__print_usage(void)
{
    fputs(usage, stdout);
}

static int command(int argc, char **argv)
{
    if (argc < 2) {
        fputs(usage, stderr);
        return WEIR__EXIT_USAGE;
    }
    const char *word = argv[1];
    if (!strcmp(word, "run")) return weir__command_run(argc - 2, argv + 2);
    if (!strcmp(word, "draw")) return weir__command_draw(argc - 2, argv + 2);
    if (!strcmp(word, "info")) return weir__command_info(argc - 2, argv + 2);
    if (!strcmp(word, "--version")) {
        int version = weir_version();
        printf("weir %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
        return 0;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        weir__print_usage();
        return 0;
    }
    return weir__complain_usage("there is no command '%s'", word);
}

int main(int argc, char **argv)
{
    int rc = command(argc, argv);
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        weir__complain("cannot write: %s", strerror(errno));
        return 1;
    }
    return rc;
}
