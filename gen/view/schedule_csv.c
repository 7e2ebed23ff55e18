/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule_csv.c: the lists of a schedule as a table of PyTorch's form, which config/table.c reads back.
 *
 * A column is a unit of time.  F, I and W take one and B two; messages take none.  The table depends on devices, chunks and
 * micro-batches alone.
 */
#include "view.h"

typedef struct {
    const Plan *p;
    int m;
    int *f, *b;                 /* [chunk * m + micro-batch]: the unit at which it ends; 0: not yet */
    int *next, *now;            /* by device */
    Text *text;
} CsvClock;

/* The end of the neighbour that it waits for; -1: it is not done. */
static int ready(const CsvClock *x, const Action *k)
{
    int from = k->kind == K_F ? k->chunk - 1 : k->kind == K_W ? -1 : k->chunk + 1;
    if (from < 0 || from >= plan_chunks(x->p))
        return 0;
    int end = (k->kind == K_F ? x->f : x->b)[from * x->m + k->mb];
    return end ? end : -1;
}

static bool advance(CsvClock *x, int d)
{
    const Actions *list = &x->p->dev.at[d].order;
    int from = x->next[d];
    for (; x->next[d] < list->n; x->next[d]++) {
        const Action *k = &list->at[x->next[d]];
        if (k->kind != K_F && k->kind != K_B && k->kind != K_I && k->kind != K_W)
            continue;
        int begin = ready(x, k), units = 1 + (k->kind == K_B);
        if (begin < 0)
            break;
        for (; x->now[d] < begin; x->now[d]++)
            fputc(',', x->text[d].f);
        char kind = k->kind == K_F ? 'F' : k->kind == K_B ? 'B' : k->kind == K_I ? 'I' : 'W';
        fprintf(x->text[d].f, "%d%c%d%s", k->chunk, kind, k->mb, units == 2 ? ",," : ",");
        x->now[d] += units;
        if (k->kind != K_W)
            (k->kind == K_F ? x->f : x->b)[k->chunk * x->m + k->mb] = x->now[d];
    }
    return x->next[d] > from;
}

static void write_table(FILE *f, const Plan *p)
{
    int devices = plan_stages(p), m = plan_micro(p), all = plan_chunks(p) * m;
    CsvClock x = {.p = p, .m = m, .f = alloc(sizeof(int) * (size_t)all), .b = alloc(sizeof(int) * (size_t)all),
                  .next = alloc(sizeof(int) * (size_t)devices), .now = alloc(sizeof(int) * (size_t)devices),
                  .text = alloc(sizeof(Text) * (size_t)devices)};
    for (int d = 0; d < devices; d++)
        text_open(&x.text[d]);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < devices; d++)
            moved |= advance(&x, d);
    }
    /* Rows of one width. */
    int wide = 0;
    for (int d = 0; d < devices; d++)
        wide = x.now[d] > wide ? x.now[d] : wide;
    for (int d = 0; d < devices; d++) {
        for (; x.now[d] < wide; x.now[d]++)
            fputc(',', x.text[d].f);
        text_close(&x.text[d]);
        fprintf(f, "%.*s\n", (int)x.text[d].n - 1, x.text[d].at);
    }
}

int view_schedule_csv(const Options *x, const Model *m, const Schedule *k)
{
    if (m->plan.stages_min != m->plan.stages_max || m->train.batch == 0)
        err(m->plan.loc, "--stages N, --set train.batch.micro=N", "a table is of one number of stages and micro-batches");
    const Graph *g = graph_of(x, m);
    const Cost *c = cost(g, m, x->times);
    int stages = m->plan.stages_max;
    const char *why = order_refuses(g, m, k, stages);
    Plan *p = new_plan(g, cost_shared(c, m, devices_for(m, stages)), m, stages, k->name, NULL);
    if (why || order(p))
        err(m->plan.loc, NULL, "schedule %s: %s", k->name, why ? why : "there is no such list of these numbers");
    check_order(p);
    FILE *f = x->out ? file_begin(x->out) : stdout;
    write_table(f, p);
    if (x->out)
        file_end(f, x->out);
    return 0;
}
