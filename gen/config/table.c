/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c: a schedule as a table of PyTorch's form: a row a device, cells with commas between.
 *
 *     0F0,0F1,,0I0,0W0,0B1        stage, F I W or B, micro-batch; an empty cell is idle time, which lists leave out
 *     (2F1;1B0)OVERLAP_F_B        a pair that overlaps there is one after the other here
 *
 * fails   at the cell, with err(): a stage on two devices, a cell twice or without what must stand before it, micro-batches
 *         that do not ascend within a stage, a cell that is missing, lists that wait in a circle.  Messages between two
 *         stages keep their order, because micro-batches ascend.
 *
 * Cost: linear in the cells, but for the replay, which asks each device once a round.
 */
#include "graph.h"
#include <ctype.h>

enum { MOST_DIGITS = 6, MOST_ROWS = 256 };
static const char form[] = "cells such as 0F0, 1I2, 1W2 or 0B3";

typedef struct {
    int file, line;
    const char *begin;          /* of the line */
    OrderTable *t;
    VEC(Loc) first;             /* by stage: its first cell */
} TableReader;

const char *table_name(const TableCell *x)
{
    return strf("%d%c%d", x->chunk, x->kind, x->mb);
}

static Loc loc_at(const TableReader *r, const char *p)
{
    return (Loc){r->file, r->line, (int)(p - r->begin) + 1};
}

/* ---- cells ----------------------------------------------------------------------------------------------------------- */

static int number(const TableReader *r, const char **p, const char *end)
{
    int n = 0;
    const char *from = *p;
    for (; *p < end && isdigit((unsigned char)**p); ++*p) {
        if (*p - from >= MOST_DIGITS)
            err(loc_at(r, from), NULL, "a number of more than %d digits", MOST_DIGITS);
        n = 10 * n + (**p - '0');
    }
    return *p > from ? n : -1;
}

static void take_cell(TableReader *r, const char *from, const char *end)
{
    const char *p = from;
    TableCell x = {.at = loc_at(r, from)};
    x.chunk = number(r, &p, end);
    x.kind = p < end ? *p++ : 0;
    x.mb = number(r, &p, end);
    if (x.chunk < 0 || x.mb < 0 || p < end || !x.kind || !strchr("FIWB", x.kind))
        err(x.at, form, "'%.*s' is no cell", end - from > 40 ? 40 : (int)(end - from), from);
    int device = r->t->line.n - 1;
    while (r->t->map.n <= x.chunk) {
        *PUSH(&r->t->map) = -1;
        PUSH(&r->first);
    }
    int *home = &r->t->map.at[x.chunk];
    if (*home >= 0 && *home != device)
        err(x.at, NULL, "stage %d is on two devices: row %d has it from line %d, column %d on", x.chunk, *home + 1,
            r->first.at[x.chunk].line, r->first.at[x.chunk].col);
    if (*home < 0)
        r->first.at[x.chunk] = x.at;
    *home = device;
    r->t->split |= x.kind == 'I' || x.kind == 'W';
    r->t->micro = x.mb >= r->t->micro ? x.mb + 1 : r->t->micro;
    *PUSH(&r->t->line.at[r->t->line.n - 1]) = x;
}

static void take_cells(TableReader *r, const char *from, const char *end)
{
    static const char pair[] = ")OVERLAP_F_B";
    while (from < end && isspace((unsigned char)*from))
        from++;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    size_t n = sizeof pair - 1;
    const char *half = from < end && *from == '(' ? memchr(from, ';', (size_t)(end - from)) : NULL;
    if (half && (size_t)(end - half) > n && !memcmp(end - n, pair, n)) {
        take_cell(r, from + 1, half);
        take_cell(r, half + 1, end - n);
    } else if (from < end) {
        take_cell(r, from, end);
    }
}

static void read_row(TableReader *r, const char *end)
{
    if (r->t->line.n == MOST_ROWS)
        err(loc_at(r, r->begin), NULL, "more than %d rows", MOST_ROWS);
    PUSH(&r->t->line);
    for (const char *p = r->begin; p <= end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *stop = comma ? comma : end;
        take_cells(r, p, stop);
        p = stop + 1;
    }
    if (r->t->line.at[r->t->line.n - 1].n == 0)
        err(loc_at(r, r->begin), form, "a row without a cell: device %d would do nothing", r->t->line.n - 1);
}

static void read_rows(TableReader *r, const char *text, size_t n)
{
    const char *end = text + n;
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    if (end == text)
        err((Loc){r->file, 1, 1}, form, "the table is empty");
    for (r->begin = text; r->begin <= end;) {
        const char *stop = memchr(r->begin, '\n', (size_t)(end - r->begin));
        r->line++;
        read_row(r, stop ? stop : end);
        r->begin = (stop ? stop : end) + 1;
    }
    r->t->devices = r->t->line.n;
    r->t->chunks = r->t->map.n;
    for (int c = 0; c < r->t->chunks; c++)
        if (r->t->map.at[c] < 0)
            err((Loc){r->file, r->line, 1}, "a row for each device, stages numbered from 0 on",
                "no row has stage %d, and there is a stage %d: a row is missing", c, r->t->chunks - 1);
}

/* ---- one stage ------------------------------------------------------------------------------------------------------- */

typedef struct { const TableCell *f, *i, *w; } TableSeen; /* of a micro-batch; a B is both i and w */
typedef struct { int f, i, w; } Last;

static void once(const TableCell *x, const TableCell *before)
{
    if (before)
        err(x->at, NULL, "%s: %s is in line %d, column %d already", table_name(x), table_name(before), before->at.line,
            before->at.col);
}

static void behind(const TableCell *x, const TableCell *before, char kind)
{
    if (!before)
        err(x->at, NULL, "%s has no %d%c%d before it", table_name(x), x->chunk, kind, x->mb);
}

static void ascend(const TableCell *x, int *last)
{
    if (x->mb < *last)
        err(x->at, NULL, "%s stands behind micro-batch %d: within a stage they ascend", table_name(x), *last);
    *last = x->mb;
}

static void judge(const TableCell *x, TableSeen *s, Last *last)
{
    bool i = x->kind == 'I' || x->kind == 'B', w = x->kind == 'W' || x->kind == 'B';
    if (x->kind == 'F') {
        once(x, s->f);
        ascend(x, &last->f);
        s->f = x;
    }
    if (i) {
        once(x, s->i);
        behind(x, s->f, 'F');
        ascend(x, &last->i);
        s->i = x;
    }
    if (w) {
        once(x, s->w);
        behind(x, s->i, 'I');
        ascend(x, &last->w);
        s->w = x;
    }
}

static void judge_stages(const TableReader *r)
{
    const OrderTable *t = r->t;
    VEC(const TableCell *) *of = alloc(sizeof *of * (size_t)t->chunks);
    for (int d = 0; d < t->devices; d++)
        for (int k = 0; k < t->line.at[d].n; k++)
            *PUSH(&of[t->line.at[d].at[k].chunk]) = &t->line.at[d].at[k];
    TableSeen *seen = alloc(sizeof *seen * (size_t)t->micro);
    char backward = t->split ? 'I' : 'B';
    for (int c = 0; c < t->chunks; c++) {
        Last last = {0};
        for (int k = 0; k < of[c].n; k++)
            judge(of[c].at[k], &seen[of[c].at[k]->mb], &last);
        for (int mb = 0; mb < t->micro; mb++) {
            char lacks = !seen[mb].f ? 'F' : !seen[mb].i ? backward : !seen[mb].w ? 'W' : 0;
            if (lacks)
                err(r->first.at[c], NULL, "stage %d has no %d%c%d, and the table has %s", c, c, lacks, mb,
                    count_text(t->micro, "micro-batch"));
            seen[mb] = (TableSeen){0};
        }
    }
}

/* ---- all of them ----------------------------------------------------------------------------------------------------- */

typedef struct { const OrderTable *t; int *next; bool *f, *b; } TableReplay;

/* The stage that it waits for; -1: none. */
static int waits_for(const TableReplay *x, const TableCell *k)
{
    int from = k->kind == 'F' ? k->chunk - 1 : k->kind == 'W' ? -1 : k->chunk + 1;
    if (k->kind != 'F' && !x->f[k->chunk * x->t->micro + k->mb])
        return k->chunk;
    if (from < 0 || from >= x->t->chunks)
        return -1;
    return (k->kind == 'F' ? x->f : x->b)[from * x->t->micro + k->mb] ? -1 : from;
}

static bool advance(TableReplay *x, int d)
{
    const TableRow *row = &x->t->line.at[d];
    int from = x->next[d];
    for (; x->next[d] < row->n && waits_for(x, &row->at[x->next[d]]) < 0; x->next[d]++) {
        const TableCell *k = &row->at[x->next[d]];
        int at = k->chunk * x->t->micro + k->mb;
        x->f[at] |= k->kind == 'F';
        x->b[at] |= k->kind == 'I' || k->kind == 'B';
    }
    return x->next[d] > from;
}

static const TableCell *head(const TableReplay *x, int d)
{
    return &x->t->line.at[d].at[x->next[d]];
}

/* From a device that waits to the one that it waits for, until it must be in the circle. */
static Circle circle(const TableReplay *x, int d)
{
    for (int i = 0; i < x->t->devices; i++)
        d = x->t->map.at[waits_for(x, head(x, d))];
    const TableCell *k = head(x, d);
    int from = waits_for(x, k), e = x->t->map.at[from], i = x->next[e];
    const TableCell *row = x->t->line.at[e].at;
    bool forward = k->kind == 'F' || from == k->chunk;
    while (row[i].chunk != from || row[i].mb != k->mb || (row[i].kind == 'F') != forward)
        i++;
    return (Circle){k, &row[i], head(x, e)};
}

Circle table_circle(const OrderTable *t)
{
    size_t all = (size_t)t->chunks * (size_t)t->micro;
    TableReplay x = {t, alloc(sizeof(int) * (size_t)t->devices), alloc(all), alloc(all)};
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < t->devices; d++)
            moved |= advance(&x, d);
    }
    for (int d = 0; d < t->devices; d++)
        if (x.next[d] < t->line.at[d].n)
            return circle(&x, d);
    return (Circle){0};
}

OrderTable *table_read(const char *path)
{
    size_t n;
    const char *text = file_read(path, "dpgen schedules --csv writes one", &n);
    size_t mark = n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;    /* of UTF-8; spreadsheets write it */
    text += mark, n -= mark;
    TableReader r = {.file = diag_file(path, text, n), .t = alloc(sizeof(OrderTable))};
    read_rows(&r, text, n);
    judge_stages(&r);
    Circle c = table_circle(r.t);
    if (c.waits)
        err(c.waits->at, NULL, "the lists wait in a circle: %s waits for %s, which stands behind %s in line %d, column %d",
            table_name(c.waits), table_name(c.wants), table_name(c.before), c.before->at.line, c.before->at.col);
    return r.t;
}
