/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <graph/error.h>

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[512];

const char *weir_error_name(int code)
{
    switch (code) {
#define WEIR_X(name, value, phrase)                                                                                    \
    case WEIR_##name: return "WEIR_" #name;
        WEIR_ERROR_TABLE(WEIR_X)
#undef WEIR_X
    default: return "WEIR_E_UNKNOWN";
    }
}

const char *weir_error_string(int code)
{
    switch (code) {
#define WEIR_X(name, value, phrase)                                                                                    \
    case WEIR_##name: return phrase;
        WEIR_ERROR_TABLE(WEIR_X)
#undef WEIR_X
    default: return "unknown error";
    }
}

const char *weir_error_text(void)
{
    return text;
}

int weir__fail(int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return code;
}
