/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include "json.h"

static bool value(const char **at, struct json *out, int depth);

static void space(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool word(const char **at, const char *text)
{
    if (strncmp(*at, text, strlen(text)) != 0) return false;
    *at += strlen(text);
    return true;
}

static bool hex4(const char **at, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, (*at)++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = **at ? strchr(digits, **at) : NULL;
        if (!digit) return false;
        *out = *out << 4 | (unsigned)((digit - digits) & 15);
    }
    return true;
}

static bool string(const char **at, char **out)
{
    if (*(*at)++ != '"') return false;
    size_t longest = 0; /* up to the quote that ends it */
    while ((*at)[longest] && (*at)[longest] != '"') longest += (*at)[longest] == '\\' && (*at)[longest + 1] ? 2 : 1;
    char *text = malloc(longest + 1), *to = text;
    *out = text;
    for (; **at != '"'; (*at)++) {
        static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
        if ((unsigned char)**at < 0x20) return false;
        if (**at != '\\') {
            *to++ = **at;
            continue;
        }
        const char *escape = *++*at && **at != 'u' ? strchr(escapes, **at) : NULL;
        if (escape) {
            *to++ = meant[escape - escapes];
            continue;
        }
        unsigned code;
        if (*(*at)++ != 'u' || !hex4(at, &code) || code >= 0x80) return false; /* nothing else is written here */
        *to++ = (char)code;
        (*at)--;
    }
    *to = '\0';
    (*at)++;
    return true;
}

static bool number(const char **at, double *out)
{
    const char *from = *at + (**at == '-'), *p = from;
    char *end;
    p += strspn(p, "0123456789");
    if (p == from || (from[0] == '0' && p > from + 1)) return false;
    if (*p == '.' && (p[1] < '0' || p[1] > '9')) return false;
    *out = strtod(*at, &end);
    *at = end;
    return true;
}

static bool members(const char **at, struct json *out, bool object, int depth)
{
    size_t room = 0;
    (*at)++;
    space(at);
    if (**at == (object ? '}' : ']')) return (*at)++, true;
    for (;;) {
        if (out->n == room) out->items = realloc(out->items, (room = room ? 2 * room : 8) * sizeof *out->items);
        struct json *item = &out->items[out->n++];
        memset(item, 0, sizeof *item);
        space(at);
        if (object && !string(at, &item->key)) return false;
        space(at);
        if (object && *(*at)++ != ':') return false;
        char *key = item->key;
        if (!value(at, item, depth + 1)) return false;
        item->key = key;
        space(at);
        if (**at == (object ? '}' : ']')) return (*at)++, true;
        if (*(*at)++ != ',') return false;
    }
}

static bool value(const char **at, struct json *out, int depth)
{
    space(at);
    if (depth > 100) return false;
    switch (**at) {
    case '{':
        return out->kind = JSON_OBJECT, members(at, out, true, depth);
    case '[':
        return out->kind = JSON_ARRAY, members(at, out, false, depth);
    case '"':
        return out->kind = JSON_STRING, string(at, &out->text);
    case 't':
        return out->kind = JSON_TRUE, word(at, "true");
    case 'f':
        return out->kind = JSON_FALSE, word(at, "false");
    case 'n':
        return out->kind = JSON_NULL, word(at, "null");
    default:
        return out->kind = JSON_NUMBER, number(at, &out->number);
    }
}

static void fini(struct json *json)
{
    for (size_t i = 0; i < json->n; i++) fini(&json->items[i]);
    free(json->items);
    free(json->text);
    free(json->key);
}

void json_free(struct json *json)
{
    if (json) fini(json);
    free(json);
}

struct json *json_parse(const char *text)
{
    struct json *json = calloc(1, sizeof *json);
    bool good = value(&text, json, 0);
    space(&text);
    if (good && !*text) return json;
    json_free(json);
    return NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
    for (size_t i = 0; object && object->kind == JSON_OBJECT && i < object->n; i++)
        if (strcmp(object->items[i].key, key) == 0) return &object->items[i];
    return NULL;
}

double json_number(const struct json *object, const char *key)
{
    const struct json *item = json_get(object, key);
    return item && item->kind == JSON_NUMBER ? item->number : 0;
}

const char *json_text(const struct json *object, const char *key)
{
    const struct json *item = json_get(object, key);
    return item && item->kind == JSON_STRING ? item->text : "";
}
