/* SPDX-License-Identifier: Apache-2.0
 *
 * items.c: the states that belong in files and hashes, in one order that no partition changes: by name, as bytes.
 *
 * A tied parameter is listed once, at its home.  Of several gradients of one name, which the uses of a tied parameter
 * have, the first counts: it holds their sum after the update.
 */
#include <stdlib.h>
#include <string.h>
#include "run.h"

static const char *const suffixes[] = {[STATE_PARAM] = "", [STATE_GRAD] = "", [STATE_MOMENT1] = ".m",
                                       [STATE_MOMENT2] = ".v"};

/* Names with their suffixes, as if joined. */
static int compare_names(const Item *a, const Item *b)
{
    const char *x = a->state->name, *y = b->state->name;
    bool tail_x = false, tail_y = false;
    for (;; x++, y++) {
        if (!*x && !tail_x)
            x = a->suffix, tail_x = true;
        if (!*y && !tail_y)
            y = b->suffix, tail_y = true;
        if (*x != *y || !*x)
            return (int)(unsigned char)*x - (int)(unsigned char)*y;
    }
}

int item_compare(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    int order = compare_names(x, y);
    if (order == 0 && x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return order ? order : (x->state > y->state) - (x->state < y->state);
}

static int collect(Item *to, const Job *job, unsigned kinds, int stage)
{
    int n = 0;
    for (int k = 0; k < job->stages; k++)
        for (int i = 0; (stage < 0 || stage == k) && i < job->stage[k].states; i++) {
            const StateInfo *s = &job->stage[k].state[i];
            if (s->home && s->offset != NOWHERE && kinds >> s->kind & 1) {
                if (to)
                    to[n] = (Item){s, k, suffixes[s->kind]};
                n++;
            }
        }
    return n;
}

Item *items_make(const Job *job, unsigned kinds, int stage, int *n)
{
    int all = collect(NULL, job, kinds, stage);
    Item *item = malloc(((size_t)all + 1) * sizeof *item);
    if (!item)
        return NULL;
    collect(item, job, kinds, stage);
    if (all > 1)
        qsort(item, (size_t)all, sizeof *item, item_compare);
    *n = 0;
    for (int i = 0; i < all; i++)
        if (*n == 0 || compare_names(&item[*n - 1], &item[i]) != 0)
            item[(*n)++] = item[i];
    return item;
}

float *item_data(const Worker *w, const Item *item)
{
    return (float *)(void *)(w->stage.arena + item->state->offset);
}

long items_room(const Item *item, int n)
{
    long room = 4096;
    for (int i = 0; i < n; i++)
        room += (long)strlen(item[i].state->name) + 256;
    return room;
}
