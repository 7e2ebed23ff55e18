/* SPDX-License-Identifier: Apache-2.0
 *
 * items.c: the states that belong in files and hashes, in one order that no partition changes: by name, as bytes.
 *
 * A tied parameter is listed once, at its home.  Of several gradients of one name, which the uses of a tied parameter
 * have, the first counts: it holds their sum after the update.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "run.h"

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

/* By name with suffix, as bytes. */
static int item_compare(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    int order = compare_names(x, y);
    if (order == 0 && x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return order ? order : (x->state > y->state) - (x->state < y->state);
}

int state_versions(const StateInfo *s)
{
    int most = s->kept > s->copies ? s->kept : s->copies;
    return s->kind != STATE_PARAM || most < 1 ? 1 : most;
}

void state_suffix(char to[16], int kind, int age)
{
    static const char *const suffix[] = {[STATE_PARAM] = "", [STATE_GRAD] = "", [STATE_MOMENT1] = ".m",
                                         [STATE_MOMENT2] = ".v", [STATE_DRIFT] = ".drift", [STATE_CENTRE] = ".centre"};
    int n = snprintf(to, 16, "%s", suffix[kind]);
    if (age)
        snprintf(to + n, (size_t)(16 - n), ".old%d", age);
}

static int collect(Item *to, const Job *job, unsigned kinds, int stage)
{
    int n = 0;
    for (int k = 0; k < job->stages; k++)
        for (int i = 0; (stage < 0 || stage == k) && i < job->stage[k].states; i++) {
            const StateInfo *s = &job->stage[k].state[i];
            bool here = s->offset != NOWHERE || s->cut || (s->kind == STATE_PARAM && s->copy != NOWHERE);
            bool wanted = s->owned && here && kinds >> s->kind & 1;
            for (int age = 0; wanted && age < (kinds >> STATE_OLD & 1 ? state_versions(s) : 1); age++, n++)
                if (to) {
                    to[n] = (Item){.state = s, .stage = k, .age = age};
                    state_suffix(to[n].suffix, s->kind, age);
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

static size_t slot(const StateInfo *s, int64_t n, int slots)
{
    return slots > 1 ? (size_t)((n % slots + slots) % slots) * s->stride : 0;
}

float *state_data(const Worker *w, const StateInfo *s, int64_t n)
{
    return s->offset == NOWHERE ? NULL : (float *)(void *)(w->stage.arena + s->offset + slot(s, n, s->kept));
}

uint16_t *state_copy(const Worker *w, const StateInfo *s, int64_t n)
{
    return s->copy == NOWHERE ? NULL : (uint16_t *)(void *)(w->stage.arena + s->copy + slot(s, n, s->copies));
}

/* Gradients are those of the last step. */
float *item_data(const Worker *w, const Item *item)
{
    const StateInfo *s = item->state;
    if (item->age && s->kept < 2)
        return NULL;
    return state_data(w, s, w->done - item->age - (s->kind == STATE_GRAD));
}

const uint16_t *item_copy(const Worker *w, const Item *item)
{
    return state_copy(w, item->state, w->done - item->age);
}

typedef struct { ArenaTake take; void *to; } Wide;

static bool widen(void *at, const void *piece, size_t bytes)
{
    const Wide *x = at;
    float wide[4096];
    long n = (long)(bytes / sizeof(uint16_t));
    for (long from = 0, k; from < n; from += k) {
        k = n - from < 4096 ? n - from : 4096;
        init_widen(wide, (const uint16_t *)piece + from, k);
        if (!x->take(x->to, wide, (size_t)k * sizeof *wide))
            return false;
    }
    return true;
}

/* A parameter of which each replica has a part. */
static bool is_parted(const StateInfo *s)
{
    return s->cut && s->kind == STATE_PARAM;
}

bool item_read(Worker *w, const Item *item, long from, long n, ArenaTake take, void *to)
{
    const float *data = item_data(w, item);
    Wide x = {take, to};
    if (is_parted(item->state))
        return job_parts.parted->read(w, item, from, n, take, to);
    if (item->state->outer)
        return job_parts.divided->read(w, item, from, n, take, to);
    if (item->state->bits)
        return job_parts.quantized->read(w, item->state, from, n, take, to);
    return data ? arena_read(w, data + from, (size_t)n * sizeof *data, take, to)
                : arena_read(w, item_copy(w, item) + from, (size_t)n * sizeof(uint16_t), widen, &x);
}

bool item_here(const Worker *w, const Item *item)
{
    bool first = w->stage.index == item->stage;
    if (is_parted(item->state))
        return home_at(w->run->job, w->stage.index) == item->stage;
    return first || (item->state->outer && w->stage.index % firsts_of(w->run->job) == item->stage);
}

/* Further replicas list their states in the order of the first one. */
const float *item_part(const Worker *w, const Item *item, long *from, long *n)
{
    const Job *job = w->run->job;
    *from = *n = 0;
    if (home_at(job, w->stage.index) != item->stage)
        return NULL;
    const StateInfo *state = &w->info->state[item->state - job->stage[item->stage].state];
    Item here = *item;
    here.state = state;
    const float *data = state->cut && state->part == 0 ? NULL : item_data(w, &here);
    *from = state->cut ? state->from : 0;
    *n = state->cut ? state->part : copy_of(w) == 0 ? state->n : 0;
    return data && state->whole ? data + state->from : data;
}

long items_room(const Item *item, int n)
{
    long room = 4096;
    for (int i = 0; i < n; i++)
        room += (long)strlen(item[i].state->name) + 256;
    return room;
}
