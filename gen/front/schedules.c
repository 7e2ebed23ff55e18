/* SPDX-License-Identifier: Apache-2.0
 *
 * schedules.c: the traits of each schedule, by the word that the model file has for it, and its closed form.  order.c has
 * their lists.
 */
#include "model.h"

#include <string.h>

const Schedule schedules[] = {
#define SCHEDULE(word, make, text, ...) {.name = word, .about = text, __VA_ARGS__},
#define LATER(word)
#include "schedules.def"
#undef SCHEDULE
    {.name = NULL}
};

const char schedule_words[] = "auto"
#define SCHEDULE(word, ...) " " word
#include "schedules.def"
#undef SCHEDULE
#undef LATER
#define SCHEDULE(word, ...)
#define LATER(word) " " word
#include "schedules.def"
;

const Schedule *schedule_of(const char *name)
{
    for (const Schedule *k = schedules; k->name; k++)
        if (strcmp(name, "auto") ? !strcmp(k->name, name) : k->usual)
            return k;
    return NULL;
}

typedef struct { int p, m, v; } Sizes;

static bool look_up(void *ctx, const char *name, double *value)
{
    const Sizes *n = ctx;
    *value = *name == 'p' ? n->p : *name == 'm' ? n->m : n->v;
    return strchr("pmv", *name) && !name[1];
}

/* The form of a row that deals out no chunks is of one chunk a device. */
int64_t schedule_form(const Schedule *k, int p, int m, int v)
{
    Sizes n = {p, m, v};
    Loc nowhere = {0};
    bool known = k->form && (k->chunks || v == 1) && (!k->holds || m >= expr_int(nowhere, k->holds, look_up, &n));
    return known ? expr_int(nowhere, k->form, look_up, &n) : 0;
}
