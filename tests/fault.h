/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_FAULT_H
#define WEIR_TESTS_FAULT_H

/* What a judge of results finds wrong, in words. The text is the file's, until the next one. */

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 1, 2))) static inline const char *fault(const char *format, ...)
{
    static char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return text;
}

#endif
