/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tools/environment.h>
#include <tools/weir.h>
#include <trace/write.h>

/* ---- options ------------------------------------------------------------------------------------ */

enum takes { NOTHING, NUMBER, WORD, FILE_NAME, GRAPH, TIMELINE, REPORT };

struct option {
    const char *name;
    const char *variable;
    enum takes takes; /* NOTHING: the variable becomes 1; NUMBER: within its limits; WORD: one of its words; REPORT: 1, or
                         what stands behind = */
};

static const struct option options[] = {
    {"--summary", "WEIR_SUMMARY", NOTHING},
    {"--report", "WEIR_REPORT", REPORT},
    {"--graph", "WEIR_GRAPH", GRAPH},
    {"--trace", "WEIR_TRACE", TIMELINE},
    {"--devices", "WEIR_HOST_DEVICES", NUMBER},
    {"--window", "WEIR_WINDOW", NUMBER},
    {"--log", "WEIR_LOG", NUMBER},
    {"--device", "WEIR_DEVICE", WORD},
    {"--plugin", "WEIR_PLUGIN", FILE_NAME},
};

static const struct option *option_find(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strlen(options[i].name) == length && !strncmp(options[i].name, word, length)) return &options[i];
    return NULL;
}

bool weir__number_in_range(const char *text, unsigned long least, unsigned long most)
{
    if (*text < '0' || *text > '9') return false;
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    return !errno && !*end && value >= least && value <= most;
}

static void limits_of(const char *variable, unsigned long *least_out, unsigned long *most_out)
{
#define WEIR_X(name, least, most, standard, meaning)                                                                   \
    if (!strcmp(variable, name)) *least_out = least, *most_out = most;
    WEIR_ENVIRONMENT_TABLE(WEIR_X)
#undef WEIR_X
}

bool weir__is_one_of(const char *word, const char *words)
{
    size_t length = strlen(word);
    for (const char *at = words; length && *at; at += strspn(at, ", ")) {
        size_t n = strcspn(at, ",");
        if (n == length && !strncmp(at, word, n)) return true;
        at += n;
    }
    return false;
}

static const char *words_of(const char *variable)
{
#define WEIR_Y(name, words, standard, meaning)                                                                         \
    if (!strcmp(variable, name)) return words;
    WEIR_ENVIRONMENT_WORDS(WEIR_Y)
#undef WEIR_Y
    return "";
}

static int output_check(const struct option *option, const char *value)
{
    enum weir__output what = option->takes == GRAPH      ? WEIR__OUTPUT_GRAPH
                             : option->takes == TIMELINE ? WEIR__OUTPUT_TIMELINE
                                                         : WEIR__OUTPUT_REPORT;
    if (!value && what == WEIR__OUTPUT_REPORT) return 0;
    if (!value || !*value) return weir__complain_usage("%s%s wants a file", option->name, value ? "=" : "");
    return weir__output_check(what, value) ? weir__complain_usage("%s", weir_error_text()) : 0;
}

/* 0, or an exit code, having complained. */
static int value_check(const struct option *option, const char *value)
{
    unsigned long least = 0, most = 0;
    switch (option->takes) {
    case NUMBER:
        limits_of(option->variable, &least, &most);
        if (!value) return weir__complain_usage("%s wants a number", option->name);
        if (weir__number_in_range(value, least, most)) return 0;
        return weir__complain_usage("%s wants a number from %lu to %lu, not '%s'", option->name, least, most, value);
    case WORD:
        if (!value) return weir__complain_usage("%s wants a word", option->name);
        if (weir__is_one_of(value, words_of(option->variable))) return 0;
        return weir__complain_usage("%s wants one of %s, not '%s'", option->name, words_of(option->variable), value);
    case FILE_NAME:
        return value && *value ? 0 : weir__complain_usage("%s wants a file", option->name);
    case GRAPH:
    case TIMELINE:
    case REPORT:
        return output_check(option, value);
    default:
        return value ? weir__complain_usage("%s takes no value", option->name) : 0;
    }
}

/* Takes "--name value", "--name=value" and "--"; sets the variables. @used_out: how many words were options; negative:
 * help is asked for. */
static int options_read(int argc, char **argv, int *used_out)
{
    int i = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *word = argv[i];
        if (!strcmp(word, "--")) {
            i++;
            break;
        }
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            *used_out = -1;
            return 0;
        }
        size_t length = strcspn(word, "=");
        const struct option *option = option_find(word, length);
        if (!option) return weir__complain_usage("run has no option '%s'", word);
        const char *value = word[length] ? word + length + 1 : NULL;
        if (option->takes != NOTHING && option->takes != REPORT && !value && ++i < argc) value = argv[i];
        int rc = value_check(option, value);
        if (rc) return rc;
        setenv(option->variable, value ? value : "1", 1);
    }
    *used_out = i;
    return 0;
}

/* ---- finding and judging the program ------------------------------------------------------------- */

/* As execvp() would find it. Returns 0 or an exit code, having complained. */
static int program_find(const char *name, char path_out[PATH_MAX])
{
    if (strchr(name, '/')) {
        snprintf(path_out, PATH_MAX, "%s", name);
    } else {
        const char *path = getenv("PATH");
        bool found = false;
        for (const char *p = path ? path : "/usr/bin:/bin"; !found && *p;) {
            size_t n = strcspn(p, ":");
            int length = snprintf(path_out, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? p : ".", name);
            struct stat status;
            found = length < PATH_MAX && access(path_out, X_OK) == 0 && !stat(path_out, &status) &&
                    S_ISREG(status.st_mode);
            p += n + (p[n] == ':');
        }
        if (!found) {
            weir__complain("%s: not found in PATH", name);
            return WEIR__EXIT_NOT_FOUND;
        }
    }
    struct stat status;
    if (stat(path_out, &status) != 0) {
        weir__complain("%s: %s", path_out, strerror(errno));
        return errno == ENOENT ? WEIR__EXIT_NOT_FOUND : WEIR__EXIT_CANNOT;
    }
    if (!S_ISREG(status.st_mode) || access(path_out, X_OK) != 0) {
        weir__complain("%s: %s", path_out,
                       S_ISDIR(status.st_mode) ? "is a folder" : S_ISREG(status.st_mode) ? "is not executable" : "is no file");
        return WEIR__EXIT_CANNOT;
    }
    return 0;
}

/* What kind of file it is. NULL: a dynamically linked program of this machine; else why weir cannot run it. */
static const char *image_fault(const unsigned char *image, size_t size)
{
    if (size >= 2 && image[0] == '#' && image[1] == '!')
        return "is a script; give weir the program that the script starts (in the script: weir run program)";
    Elf64_Ehdr header;
    if (size < sizeof header || memcmp(image, ELFMAG, SELFMAG) != 0) return "is not an ELF program";
    memcpy(&header, image, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) return "is not an x86-64 program";
    for (size_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        size_t at = header.e_phoff + i * sizeof segment;
        if (at > size || size - at < sizeof segment) return "is a damaged ELF file";
        memcpy(&segment, image + at, sizeof segment);
        if (segment.p_type == PT_INTERP) return NULL;
    }
    return "is linked statically: no library can be put in front of it; link it without -static";
}

static const char *program_fault(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return strerror(errno);
    struct stat status;
    const char *fault = "is empty";
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        fault = image == MAP_FAILED ? strerror(errno) : image_fault(image, size);
        if (image != MAP_FAILED) munmap(image, size);
    }
    close(fd);
    return fault;
}

/*
 * Does the dynamic loader bring LLVM's offload library (or weir itself) in, directly or through another library? The
 * loader lists what it would load and runs nothing (ld.so(8), LD_TRACE_LOADED_OBJECTS).
 */
static bool program_offloads(const char *path)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return true; /* cannot tell */
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        dup2(ends[1], STDOUT_FILENO);
        execl(path, path, (char *)NULL);
        _exit(WEIR__EXIT_CANNOT);
    }
    close(ends[1]);
    bool found = child < 0;
    FILE *list = child < 0 ? NULL : fdopen(ends[0], "r");
    if (list) {
        char line[PATH_MAX];
        while (fgets(line, sizeof line, list))
            if (strstr(line, "libomptarget.so") || strstr(line, "libweir.so")) found = true;
        fclose(list);
    } else {
        close(ends[0]);
    }
    if (child > 0) waitpid(child, NULL, 0);
    return found;
}

/* ---- running ------------------------------------------------------------------------------------- */

/* @value in front of what the variable holds. */
static int prepend(const char *variable, const char *value)
{
    const char *old = getenv(variable);
    if (!old || !*old) return setenv(variable, value, 1);
    size_t size = strlen(value) + strlen(old) + 2;
    char *both = malloc(size);
    if (!both) return -1;
    snprintf(both, size, "%s:%s", value, old);
    int rc = setenv(variable, both, 1);
    free(both);
    return rc;
}

static int libraries_set(void)
{
    struct weir__places places;
    weir__places_find(&places);
    if (!places.has_library || !places.has_dropin) {
        weir__complain("no %s beside this command: the installation is not complete",
                       places.has_library ? "lib/weir" : "lib/libweir.so");
        return WEIR__EXIT_CANNOT;
    }
    if (strpbrk(places.library, " :;$")) {
        weir__complain("%s: the dynamic loader cannot preload a path with a space, colon, semicolon or dollar sign",
                       places.library);
        return WEIR__EXIT_CANNOT;
    }
    if (prepend("LD_PRELOAD", places.library) != 0 || prepend("LD_LIBRARY_PATH", places.dropin) != 0) {
        weir__complain("out of memory");
        return WEIR__EXIT_CANNOT;
    }
    return 0;
}

int weir__command_run(int argc, char **argv)
{
    int used = 0;
    int rc = options_read(argc, argv, &used);
    if (rc) return rc;
    if (used < 0) {
        weir__print_usage();
        return 0;
    }
    if (used == argc) return weir__complain_usage("run wants a program");
    char path[PATH_MAX];
    rc = program_find(argv[used], path);
    if (rc) return rc;
    const char *fault = program_fault(path);
    if (fault) {
        weir__complain("%s: %s", path, fault);
        return WEIR__EXIT_CANNOT;
    }
    if (!program_offloads(path)) {
        struct weir__places places;
        weir__places_find(&places);
        weir__complain(
            "%s: does not use libomptarget, so there is nothing for weir to do; compile it with clang, "
            "-fopenmp and -fopenmp-targets=… (behind a launcher: mpirun weir run program; if it opens OpenMP "
            "libraries by itself with dlopen: LD_LIBRARY_PATH=%s program)",
            path, places.dropin);
        return WEIR__EXIT_CANNOT;
    }
    rc = libraries_set();
    if (rc) return rc;
    execv(path, argv + used);
    weir__complain("%s: %s", path, strerror(errno));
    return WEIR__EXIT_CANNOT;
}
