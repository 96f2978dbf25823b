/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <graph/certificate.h>

#include <stdlib.h>
#include <string.h>

/* A record's arrays start at these places of the two common arrays: those may move. */
struct entry {
    struct weir__certificate_record record;
    size_t first_edge, first_wait;
};

struct weir__certificate {
    struct entry *entries;
    struct weir__certificate_edge *edges;
    struct weir__certificate_wait *waits;
    size_t nentries, nedges, nwaits;
    size_t entry_room, edge_room, wait_room;
};

int weir__certificate_create(struct weir__certificate **certificate_out)
{
    struct weir__certificate *certificate = calloc(1, sizeof *certificate);
    if (!certificate) return WEIR_E_NO_MEMORY;
    *certificate_out = certificate;
    return WEIR_OK;
}

void weir__certificate_destroy(struct weir__certificate *certificate)
{
    if (!certificate) return;
    free(certificate->entries);
    free(certificate->edges);
    free(certificate->waits);
    free(certificate);
}

/* The array with room for @n more behind @used, NULL if there is no memory (the old one stays). */
static void *with_room(void *array, size_t *room, size_t used, size_t n, size_t size)
{
    size_t wanted = *room ? *room : 64;
    if (array && n <= *room - used) return array;
    while (wanted - used < n) wanted *= 2;
    void *larger = realloc(array, wanted * size);
    if (larger) *room = wanted;
    return larger;
}

int weir__certificate_add(struct weir__certificate *certificate, const struct weir__certificate_record *record)
{
    struct weir__certificate *c = certificate;
    void *larger = with_room(c->entries, &c->entry_room, c->nentries, 1, sizeof *c->entries);
    if (!larger) return WEIR_E_NO_MEMORY;
    c->entries = larger;
    larger = with_room(c->edges, &c->edge_room, c->nedges, record->nedges, sizeof *c->edges);
    if (!larger) return WEIR_E_NO_MEMORY;
    c->edges = larger;
    larger = with_room(c->waits, &c->wait_room, c->nwaits, record->nwaits, sizeof *c->waits);
    if (!larger) return WEIR_E_NO_MEMORY;
    c->waits = larger;
    if (record->nedges) memcpy(c->edges + c->nedges, record->edges, record->nedges * sizeof *c->edges);
    if (record->nwaits) memcpy(c->waits + c->nwaits, record->waits, record->nwaits * sizeof *c->waits);
    c->entries[c->nentries++] = (struct entry){*record, c->nedges, c->nwaits};
    c->nedges += record->nedges;
    c->nwaits += record->nwaits;
    return WEIR_OK;
}

size_t weir__certificate_count(const struct weir__certificate *certificate)
{
    return certificate->nentries;
}

struct weir__certificate_record weir__certificate_get(const struct weir__certificate *certificate, size_t index)
{
    const struct entry *entry = &certificate->entries[index];
    struct weir__certificate_record record = entry->record;
    record.edges = certificate->edges + entry->first_edge;
    record.waits = certificate->waits + entry->first_wait;
    return record;
}

const char *weir__certificate_how_name(uint32_t how)
{
    static const char *const names[] = {"unknown", "done", "stream", "known", "implied", "event", "host"};
    return how < sizeof names / sizeof names[0] ? names[how] : names[0];
}

static void print_record(const struct weir__certificate_record *record, FILE *file)
{
    fprintf(file, "task %llu on %u:%llu%s | edges", (unsigned long long)record->task, record->stream,
            (unsigned long long)record->position, record->again ? " again" : "");
    for (size_t i = 0; i < record->nedges; i++) {
        const struct weir__certificate_edge *edge = &record->edges[i];
        fprintf(file, "%s %u:%llu %s", i ? "," : "", edge->stream, (unsigned long long)edge->position,
                weir__certificate_how_name(edge->how));
        if (edge->how == WEIR__CERTIFICATE_IMPLIED || edge->how == WEIR__CERTIFICATE_EVENT)
            fprintf(file, " %u", edge->wait);
    }
    fputs(" | waits", file);
    for (size_t i = 0; i < record->nwaits; i++)
        fprintf(file, "%s %u:%llu%s", i ? "," : "", record->waits[i].stream,
                (unsigned long long)record->waits[i].position, record->waits[i].blind ? " blind" : "");
    fputc('\n', file);
}

void weir__certificate_print(const struct weir__certificate *certificate, FILE *file)
{
    for (size_t i = 0; i < certificate->nentries; i++) {
        struct weir__certificate_record record = weir__certificate_get(certificate, i);
        print_record(&record, file);
    }
}
