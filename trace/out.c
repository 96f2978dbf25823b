/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/out.h>

#include <stdarg.h>
#include <stdint.h>

void weir__room_add(struct weir__room *room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room->at, room->left, format, args);
    va_end(args);
    if (n < 0) return;
    size_t used = (size_t)n < room->left ? (size_t)n : room->left - 1;
    room->at += used;
    room->left -= used;
}

/* Length of the UTF-8 sequence at @text, 0: it is none. */
static size_t sequence(const unsigned char *text)
{
    size_t n = text[0] < 0x80                      ? 1
               : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
               : (text[0] & 0xf0) == 0xe0          ? 3
               : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                   : 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] >= 0xa0))) return 0;
    if (n == 4 && ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] >= 0x90))) return 0;
    return n;
}

/* Each character by @put, bad bytes as U+FFFD. */
static void each(FILE *file, const char *text, void (*put)(FILE *file, const unsigned char *at, size_t n))
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t n = sequence(at);
        if (n)
            put(file, at, n);
        else
            fputs("\xef\xbf\xbd", file);
        at += n ? n : 1;
    }
}

static void put_json(FILE *file, const unsigned char *at, size_t n)
{
    if (n == 1 && (*at < 0x20 || *at == '"' || *at == '\\' || *at == '<' || *at == '>' || *at == '&' || *at == 0x7f))
        fprintf(file, "\\u%04x", *at);
    else
        fwrite(at, 1, n, file);
}

void weir__out_json(FILE *file, const char *text)
{
    fputc('"', file);
    each(file, text, put_json);
    fputc('"', file);
}

static void put_xml(FILE *file, const unsigned char *at, size_t n)
{
    if (n > 1 || (*at >= 0x20 && *at != 0x7f && *at != '<' && *at != '>' && *at != '&' && *at != '"'))
        fwrite(at, 1, n, file);
    else if (*at == '<')
        fputs("&lt;", file);
    else if (*at == '>')
        fputs("&gt;", file);
    else if (*at == '&')
        fputs("&amp;", file);
    else if (*at == '"')
        fputs("&quot;", file);
    else
        fputs("\xef\xbf\xbd", file);
}

void weir__out_xml(FILE *file, const char *text)
{
    each(file, text, put_xml);
}

static void put_dot(FILE *file, const unsigned char *at, size_t n)
{
    if (n == 1 && (*at == '"' || *at == '\\')) fputc('\\', file);
    if (n == 1 && *at == '\n')
        fputs("\\n", file);
    else if (n == 1 && *at < 0x20)
        fputc(' ', file);
    else
        fwrite(at, 1, n, file);
}

void weir__out_dot(FILE *file, const char *text)
{
    fputc('"', file);
    each(file, text, put_dot);
    fputc('"', file);
}
