/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TOOLS_WEIR_H
#define WEIR_TOOLS_WEIR_H

/*
 * Parts of the command `weir`. One thread; everything may block. Exit codes follow env(1): 2 wrong use,
 * 126 the program cannot be run on weir, 127 it was not found.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum weir__exit { WEIR__EXIT_USAGE = 2, WEIR__EXIT_CANNOT = 126, WEIR__EXIT_NOT_FOUND = 127 };

/* Where the pieces of this installation (or build tree) are, found from the place of the running command. */
struct weir__places {
    char library[PATH_MAX]; /* …/lib/libweir.so */
    char dropin[PATH_MAX];  /* …/lib/weir, the folder of the links under LLVM's names */
    bool has_library;
    bool has_dropin;
};

void weir__places_find(struct weir__places *places_out);

/* `weir run` and `weir info` with the arguments after that word. Return the exit code; run returns only on errors. */
int weir__command_run(int argc, char **argv);
int weir__command_info(int argc, char **argv);
/* `weir draw`: what became of a recording. */
int weir__command_draw(int argc, char **argv);

/* Digits only, and in range. */
bool weir__number_in_range(const char *text, unsigned long least, unsigned long most);
/* @words: separated by a comma and a space. */
bool weir__is_one_of(const char *word, const char *words);
/* The text of --help on stdout. */
void weir__print_usage(void);

/* One message on stderr, "weir: …", newline added. */
void weir__complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* weir__complain()'s brother for wrong use: adds where to find help and returns WEIR__EXIT_USAGE. */
int weir__complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
