/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* timeline_check FILE: is it a timeline that viewers take as it is? Prints what is wrong, or what is there. */
#include <stdio.h>
#include <stdlib.h>

#include "timeline_rules.h"

static char *content_of(const char *name)
{
    FILE *file = fopen(name, "r");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    char *text = malloc(bytes + 1);
    rewind(file);
    if (text) text[fread(text, 1, bytes, file)] = '\0';
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    struct timeline_counts counts;
    char *text = argc == 2 ? content_of(argv[1]) : NULL;
    struct json *timeline = text ? json_parse(text) : NULL;
    const char *wrong = timeline ? timeline_fault(timeline, &counts) : "no such file, or no JSON";
    if (!wrong[0])
        printf("%zu slices: %zu on devices, %zu on the host, %zu issue, %zu wait; %zu arrows, %zu asynchronous, %zu "
               "counter values\n",
               counts.slices, counts.device, counts.host, counts.issue, counts.waits, counts.arrows,
               counts.asynchronous, counts.counters);
    else
        printf("%s\n", wrong);
    json_free(timeline);
    free(text);
    return wrong[0] != '\0';
}
