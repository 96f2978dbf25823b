/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <exec/work.h>
#include <tools/environment.h>
#include <tools/weir.h>
#include <weir/weir.h>

static int print_devices(void)
{
    struct weir_context *context;
    int rc = weir_context_create(NULL, &context);
    if (rc) {
        weir__complain("no devices: %s", weir_error_text());
        return 1;
    }
    int n = weir_device_count(context);
    printf("devices   %d\n", n);
    for (int i = 0; i < n; i++) {
        const struct weir_device *device = weir_device_get(context, i);
        printf("          %-8s  %s\n", weir_device_name(device), weir__device_info_of(device)->text);
    }
    const char *absence = weir__context_absence(context);
    if (absence) printf("          cuda      none: %s\n", absence);
    return weir_context_destroy(context) ? 1 : 0;
}

/* First line of `program --version`, if there is such a program. */
static bool print_version_of(const char *program)
{
    char command[PATH_MAX];
    snprintf(command, sizeof command, "%s --version 2>/dev/null", program);
    FILE *output = popen(command, "r");
    if (!output) return false;
    char line[256];
    bool found = fgets(line, sizeof line, output) != NULL;
    pclose(output);
    if (found) printf("          %-8s  %s", program, line);
    return found;
}

/* The files that match, each real file once. */
static int print_files(const char *const *patterns, size_t n)
{
    int found = 0;
    char seen[8][PATH_MAX];
    for (size_t i = 0; i < n; i++) {
        glob_t paths;
        if (glob(patterns[i], 0, NULL, &paths) != 0) continue;
        for (size_t j = 0; j < paths.gl_pathc && found < 8; j++) {
            if (!realpath(paths.gl_pathv[j], seen[found])) continue;
            int k = 0;
            while (strcmp(seen[k], seen[found]) != 0) k++;
            if (k < found) continue;
            printf("          %s\n", seen[found++]);
        }
        globfree(&paths);
    }
    return found;
}

static void print_found(void)
{
    static const char *const compilers[] = {"clang-22", "clang-19", "clang-16", "clang-15", "clang-14", "clang"};
    static const char *const libraries[] = {
        "/usr/lib/*-linux-gnu/libomp.so.5",
        "/usr/lib/llvm-*/lib/libomp.so.5",
        "/usr/local/lib/libomp.so*",
        "/usr/lib/*-linux-gnu/libomptarget.so.*[0-9]",
        "/usr/lib/llvm-*/lib/libomptarget.so*",
        "/usr/local/lib/libomptarget.so*",
    };
    printf("found\n");
    int found = 0;
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) found += print_version_of(compilers[i]);
    found += print_files(libraries, sizeof libraries / sizeof libraries[0]);
    if (!found) printf("          neither clang nor LLVM's OpenMP libraries in their usual places\n");
}

/* What is in effect, and why. */
static void print_variable(const char *name, unsigned long least, unsigned long most, const char *standard, const char *meaning)
{
    const char *value = getenv(name);
    if (!value || !*value) printf("          %s is not set: %s\n", name, standard);
    else if (weir__number_in_range(value, least, most)) printf("          %s=%s\n", name, value);
    else printf("          %s=%s is not a number from %lu to %lu: %s\n", name, value, least, most, standard);
    printf("                    %s\n", meaning);
}

static void print_word(const char *name, const char *words, const char *standard, const char *meaning)
{
    const char *value = getenv(name);
    if (!value || !*value) printf("          %s is not set: %s\n", name, standard);
    else if (weir__is_one_of(value, words)) printf("          %s=%s\n", name, value);
    else printf("          %s=%s is none of %s: %s\n", name, value, words, standard);
    printf("                    %s\n", meaning);
}

static void print_text(const char *name, const char *values, const char *standard, const char *meaning)
{
    const char *value = getenv(name);
    if (value && *value) printf("          %s=%s\n", name, value);
    else printf("          %s is not set: %s\n", name, standard);
    printf("                    %s: %s\n", values, meaning);
}

static void print_environment(void)
{
    printf("environment\n");
#define WEIR_X(name, least, most, standard, meaning) print_variable(name, least, most, standard, meaning);
    WEIR_ENVIRONMENT_TABLE(WEIR_X)
#undef WEIR_X
#define WEIR_Y(name, words, standard, meaning) print_word(name, words, standard, meaning);
    WEIR_ENVIRONMENT_WORDS(WEIR_Y)
#undef WEIR_Y
#define WEIR_T(name, values, standard, meaning) print_text(name, values, standard, meaning);
    WEIR_ENVIRONMENT_TEXTS(WEIR_T)
#undef WEIR_T
}

int weir__command_info(int argc, char **argv)
{
    if (argc > 0) return weir__complain_usage("info takes no argument such as '%s'", argv[0]);
    struct weir__places places;
    weir__places_find(&places);
    int version = weir_version();
    printf("weir      %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
    printf("library   %s%s\n", places.library, places.has_library ? "" : " (missing)");
    printf("drop-in   %s%s\n", places.dropin, places.has_dropin ? "" : " (missing)");
    int rc = print_devices();
    print_found();
    print_environment();
    return rc;
}
