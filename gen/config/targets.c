/* SPDX-License-Identifier: Apache-2.0
 *
 * targets.c: the traits of devices, kernel libraries and transports, by the words that the model file has for them.
 */
#include "model.h"

static const Target targets[] = {
#define TARGET(word, library, ...) {.name = word, .kernels = library, __VA_ARGS__},
#include "targets.def"
    {.name = NULL}
};
static const Library libraries[] = {
#define LIBRARY(word, ...) {.name = word, __VA_ARGS__},
#define OWN LIBRARY
#include "targets.def"
    {.name = NULL}
};
static const Transport transports[] = {
#define TRANSPORT(word, ...) {.name = word, __VA_ARGS__},
#include "targets.def"
    {.name = NULL}
};

static const struct { const char *file, *library; } needs[] = {
#define NEEDS(file, library) {file, library},
#include "targets.def"
    {NULL, NULL}
};

const char target_words[] =
#define TARGET(word, ...) " " word
#include "targets.def"
;
const char library_words[] =
#define LIBRARY(word, ...) " " word
#include "targets.def"
;
const char transport_words[] =
#define TRANSPORT(word, ...) " " word
#include "targets.def"
;

/* The row with that word; without one the first. */
#define FIND(table, word) \
    do { \
        for (int i = 0; (word) && (table)[i].name; i++) \
            if (!strcmp((table)[i].name, word)) \
                return &(table)[i]; \
        return table; \
    } while (0)

const Target *target_of(const Device *d)
{
    FIND(targets, d->kind);
}

bool on_gpus(const Model *m)
{
    return m->devices.n > 0 && target_of(&m->devices.at[0])->gpu;
}

static const Library *library_named(const char *word)
{
    FIND(libraries, word);
}

const Library *library_of(const Device *d)
{
    return library_named(d->kernels);
}

const Library *library_linked(const Device *d)
{
    const char *linked = target_of(d)->linked;
    return linked ? library_named(linked) : library_of(d);
}

const Transport *transport_of(const Model *m)
{
    FIND(transports, m->plan.transport);
}

bool cudnn_proven(const Device *d)
{
    return !d->arch || atoi(d->arch + 3) < 100;
}

int64_t widest_head(const Device *d)
{
    if (!cudnn_proven(d))
        return 0;
    return d->arch && !strncmp(d->arch, "sm_90", 5) ? 256 : 128;
}

int64_t norm_block(const Model *m, int64_t n)
{
    const Blocks *rule = &library_of(&m->devices.at[0])->blocks;
    int64_t each = (n + rule->most - 1) / rule->most;
    each = (each + rule->round - 1) / rule->round * rule->round;
    return each > rule->least ? each : rule->least;
}

const char *library_needed(const char *file)
{
    for (int i = 0; needs[i].file; i++)
        if (!strcmp(needs[i].file, file))
            return needs[i].library;
    return NULL;
}
