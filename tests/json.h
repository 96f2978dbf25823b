/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_JSON_H
#define WEIR_TESTS_JSON_H

/* A strict reader of JSON (RFC 8259): every deviation is a fault. Values are found by walking. */

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    double number;
    char *text; /* of a string; the key of a member is in .key */
    char *key;
    struct json *items; /* items[n] of an array or object */
    size_t n;
};

/* NULL: not JSON. To be freed by json_free(). */
struct json *json_parse(const char *text);
void json_free(struct json *json);
/* The member with that key, NULL: none, or no object. */
const struct json *json_get(const struct json *object, const char *key);
/* The member's number or text; 0 and "" if there is none. */
double json_number(const struct json *object, const char *key);
const char *json_text(const struct json *object, const char *key);

#endif
