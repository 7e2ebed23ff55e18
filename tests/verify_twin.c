/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_twin.c: a job whose calls compute no numbers: a second opinion on what dpgen-verify says of an emitted folder.
 *
 * A folder is compiled against this file in place of the runtime and the kernels.  So the C compiler reads the stages, not a
 * parser of ours, and folds every offset.  Each byte of an arena has 64 bits that stand for its value; a call mixes the bits of
 * all bytes that it reads with its literals.  There are no terms, no regions and no reference: two folders agree if the bytes
 * of their states do.  What a call reads and writes is in verify/calls.def, as C expressions (verify_twin.awk).
 *
 * Stages are coroutines, one for each device of a stage.  A wait passes when both halves of its message have begun, a sum over
 * devices when all of them have come to it: it is a function of what each of them has.  Prints the sum of all states and losses
 * and ends with 0; with 1 and the reason where a byte is read that nothing has written, where bytes of a transfer are touched,
 * or where all stages wait.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include "job.h"

typedef enum { CALL, LANES, SUM, COPY, JOINED, TEAM } Kind;
enum { MOST = 48, STACK = 1 << 18, FLIGHTS = 4096, COPIES = 4096, VALS = 112, QUEUE = 1 << 12, SUMS = 1 << 12 };
static const uint64_t ZERO = 0x5851f42d4c957f2d;

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static uint64_t text_bits(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    while (*s)
        h = (h ^ (unsigned char)*s++) * 0x100000001b3u;
    return h;
}

/* ---- stages ---------------------------------------------------------------------------------------------------------- */

typedef struct { int64_t lo, hi; bool writes; } Own;
typedef struct { uint64_t *bytes; int64_t lo, n; int tag; } Half;
typedef struct { Half half[2][QUEUE]; int n[2]; } Pair;         /* sent, wanted */
typedef struct { bool busy, sends; int peer, number; Own own; } Request;
typedef struct { bool busy, out; Own here, there; } HostCopy;
typedef struct {
    Stage st;
    StageInfo info;
    uint64_t *at, *host;
    Own own[FLIGHTS], host_own[FLIGHTS];
    int owns, host_owns;
    Request request[256];
    HostCopy copy[COPIES];
    ucontext_t context;
    char *stack;
    bool ended, moved, first;
    int64_t steps;
    uint64_t loss, told, reported;
    uint64_t gave[SUMS];        /* to sums over the devices of the stage */
    int sums;
    void (*todo[256])(Stage *);
    int todos;
} Twin;

static Twin *twin;
static Pair *pairs;
static int stages, all;         /* devices of all: device d of stage s is d * stages + s */
static ucontext_t scheduler;
static uint64_t sum = 1;       /* of all runs so far */
static const Job *job;
static int levels;

static Twin *of(Stage *st)
{
    return &twin[st->index];
}

static _Noreturn void refuse(const char *why)
{
    printf("refused: %s\n", why);
    exit(1);
}

void stage_take(Stages *to, const StageInfo *s)
{
    StageInfo *own = &to->stage[to->n++];
    size_t bytes = (size_t)s->parameters * sizeof *s->parameter;
    *own = *s;
    own->parameter = bytes ? memcpy(malloc(bytes), s->parameter, bytes) : NULL;     /* the stage has it on its stack */
}

/* ---- bytes ----------------------------------------------------------------------------------------------------------- */

static void not_owned(const Own *list, int n, int64_t lo, int64_t hi, bool writes)
{
    for (int i = 0; i < n; i++)
        if (list[i].lo < hi && lo < list[i].hi && (writes || list[i].writes))
            refuse("bytes of a transfer");
}

static int64_t touch(Twin *t, const void *p, int64_t bytes, bool writes)
{
    int64_t lo = (const unsigned char *)p - t->st.arena;
    if (bytes < 0 || lo < 0 || lo + bytes > (int64_t)t->info.arena)
        refuse("outside of the arena");
    not_owned(t->own, t->owns, lo, lo + bytes, writes);
    return lo;
}

static void disown(Own *list, int *n, Own o)
{
    for (int i = 0; i < *n; i++)
        if (list[i].lo == o.lo && list[i].hi == o.hi && list[i].writes == o.writes) {
            list[i] = list[--*n];
            return;
        }
}

static void own(Own *list, int *n, Own o)
{
    if (*n == FLIGHTS)
        refuse("too many transfers");
    list[(*n)++] = o;
}

static uint64_t fold(const uint64_t *at, int64_t lo, int64_t hi, uint64_t h)
{
    for (int64_t i = lo; i < hi; i++) {
        if (!at[i])
            refuse("a byte that nothing has written");
        h = mix(h, at[i]);
    }
    return h;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

typedef struct { char mode; int64_t lo, width, n; bool lane; int k; } Operand;
typedef struct { Twin *t; Kind kind; uint64_t head, vals; Operand of[MOST]; int n, acc, words; int64_t hits; bool zero; } Call;

static Call begin(Stage *st, const char *name, Kind kind)
{
    return (Call){.t = of(st), .kind = kind, .head = text_bits(name), .hits = -1};
}

static void operand(Call *c, char mode, const void *p, long width, long n, int optional, int lane)
{
    int k = c->words++;
    if (optional && !p)
        return;
    if (n < 0 || n > (1l << 40))
        refuse("a size that no operand has");
    bool writes = mode == 'w' || mode == 'a' || mode == 'u' || mode == 't';
    int64_t lo = touch(c->t, p, width * n, writes);
    c->of[c->n++] = (Operand){mode, lo, width, n, lane, k};
}

static void literal(Call *c, int64_t i)
{
    c->head = mix(c->head, (uint64_t)i);
}

static void real_literal(Call *c, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    c->head = mix(c->head, bits);
}

/* Step values: what a step has from its begin, a count of targets, the place of the hits. */
static void values(Call *c, char mode, const void *vals, int count)
{
    if (!vals)
        return;
    int64_t lo = touch(c->t, vals, VALS, false);
    c->vals = fold(c->t->at, lo, lo + 16, c->vals);
    c->vals = fold(c->t->at, lo + 80, lo + 108, c->vals);
    if ((mode == 'x' || mode == 'z') && (count < 0 || count > 5))
        refuse("a count");
    if (mode == 'x' || mode == 'z')
        c->vals = fold(c->t->at, lo + 16 + 8 * count, lo + 24 + 8 * count, c->vals);
    if (mode == 'y' || mode == 'z')
        c->hits = touch(c->t, (const char *)vals + 108, 4, true);
}

static void apart(const Call *c)
{
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < c->n; j++) {
            const Operand *a = &c->of[i], *b = &c->of[j];
            int64_t ahi = a->lo + a->width * a->n, bhi = b->lo + b->width * b->n;
            bool bwrites = strchr("waut", b->mode) != NULL;
            if (i == j || !strchr("waut", a->mode) || a->lo >= bhi || b->lo >= ahi)
                continue;
            if (c->kind == CALL || c->kind == TEAM || a->lo != b->lo || ahi != bhi || bwrites)
                refuse("operands share bytes");
        }
}

static uint64_t element(const Call *c, const Operand *o, int64_t e)
{
    int64_t lo = o->lo + e * o->width;
    return fold(c->t->at, lo, lo + o->width, 7);
}

static bool is_zero(const Call *c, const Operand *o, int64_t e)
{
    for (int64_t i = 0; i < o->width; i++)
        if (c->t->at[o->lo + e * o->width + i] != ZERO)
            return false;
    return true;
}

static void put_element(const Call *c, uint64_t *made, const Operand *o, int64_t e, uint64_t h)
{
    (void)c;
    for (int64_t i = 0; i < o->width; i++)
        made[e * o->width + i] = mix(h, (uint64_t)i) | 1;
}

static uint64_t sum_of(uint64_t a, uint64_t b, int64_t width)
{
    return mix(mix(mix(77, (uint64_t)width), a < b ? a : b), a < b ? b : a);
}

static const Operand *operand_in(const Call *c, char mode, int nth)
{
    for (int i = 0; i < c->n; i++)
        if (c->of[i].mode == mode && nth-- == 0)
            return &c->of[i];
    return NULL;
}

/* Sums and copies: the second operand, where there is one, is added. */
static void run_sum(Call *c)
{
    const Operand *to = c->of[0].mode == 'u' ? &c->of[0] : operand_in(c, 'w', 0);
    const Operand *a = c->of[0].mode == 'u' ? &c->of[0] : operand_in(c, 'r', 0);
    const Operand *b = c->kind == COPY ? NULL : operand_in(c, 'r', c->of[0].mode == 'u' ? 0 : 1);
    size_t bytes = (size_t)(to->width * to->n);
    uint64_t *made = malloc(bytes * sizeof *made + 8);
    for (int64_t e = 0; e < to->n; e++) {
        int64_t from = a->lo + e * a->width;
        if (!b || (c->zero && is_zero(c, b, e))) {
            fold(c->t->at, from, from + a->width, 0);
            memcpy(made + e * to->width, c->t->at + from, (size_t)to->width * sizeof *made);
        } else if (c->zero && is_zero(c, a, e)) {
            memcpy(made + e * to->width, c->t->at + b->lo + e * b->width, (size_t)to->width * sizeof *made);
        } else {
            put_element(c, made, to, e, sum_of(element(c, a, e), element(c, b, e), to->width));
        }
    }
    memcpy(c->t->at + to->lo, made, bytes * sizeof *made);
    free(made);
}

static bool reads(char mode)
{
    return mode == 'r' || mode == 'u';
}

/* Element k of a result is made of element k of each operand of n elements, and of the others whole. */
static void run_lanes(Call *c)
{
    uint64_t whole = mix(c->head, c->vals), *made[MOST] = {0};
    int64_t n = -1;
    for (int i = 0; i < c->n; i++)
        if (reads(c->of[i].mode) && !c->of[i].lane)
            whole = fold(c->t->at, c->of[i].lo, c->of[i].lo + c->of[i].width * c->of[i].n, mix(whole, (uint64_t)c->of[i].k));
        else if (c->of[i].lane)
            n = c->of[i].n;
    for (int i = 0; i < c->n; i++)
        if (strchr("wu", c->of[i].mode))
            made[i] = malloc((size_t)(c->of[i].width * c->of[i].n) * sizeof **made + 8);
    for (int64_t e = 0; e < n; e++) {
        uint64_t h = whole;
        for (int i = 0; i < c->n; i++)
            if (reads(c->of[i].mode) && c->of[i].lane)
                h = mix(mix(h, (uint64_t)c->of[i].k), element(c, &c->of[i], e));
        for (int i = 0; i < c->n; i++)
            if (made[i])
                put_element(c, made[i], &c->of[i], e, mix(h, 1000 + (uint64_t)c->of[i].k));
    }
    for (int i = 0; i < c->n; i++)
        if (made[i]) {
            memcpy(c->t->at + c->of[i].lo, made[i], (size_t)(c->of[i].width * c->of[i].n) * sizeof **made);
            free(made[i]);
        }
}

static void pass_on(Twin *t);

/* What all devices of the stage bring, in their order. */
static uint64_t together(Twin *t, uint64_t mine)
{
    int n = t->sums++;
    if (n == SUMS)
        refuse("too many sums");
    t->gave[n] = mine;
    for (int d = t->st.index % stages; d < all; d += stages)
        while (twin[d].sums <= n)
            pass_on(t);
    t->moved = true;
    uint64_t h = 31;
    for (int d = t->st.index % stages; d < all; d += stages)
        h = mix(h, twin[d].gave[n]);
    return h;
}

static void run_call(Call *c)
{
    uint64_t h = mix(c->head, c->vals), *at = c->t->at, old[MOST];
    bool first = true;
    for (int i = 0; i < c->n; i++) {
        const Operand *o = &c->of[i];
        int64_t hi = o->lo + o->width * o->n;
        if (reads(o->mode))
            h = fold(at, o->lo, hi, mix(h, (uint64_t)o->k));
        else if (o->mode == 'e' || o->mode == 'o')
            fold(at, o->lo, hi, 0);
        old[i] = o->mode == 'a' && c->acc ? fold(at, o->lo, hi, 3) : 0;
    }
    if (c->kind == TEAM)
        h = together(c->t, h);
    const Operand *onto = operand_in(c, 'o', 0);
    for (int i = 0; i < c->n; i++) {
        const Operand *o = &c->of[i];
        uint64_t result = mix(mix(h, 1000 + (uint64_t)o->k), old[i]);
        if (!strchr("wau", o->mode))
            continue;
        for (int64_t e = 0; e < o->n; e++)
            for (int64_t b = 0; b < o->width; b++) {
                uint64_t x = mix(result, (uint64_t)(e * o->width + b));
                if (onto && first)
                    x = mix(sum_of(mix(result, (uint64_t)e), element(c, onto, e), o->width), (uint64_t)b);
                at[o->lo + e * o->width + b] = x | 1;
            }
        first = false;
    }
    for (int i = 0; i < 4 && c->hits >= 0; i++)
        at[c->hits + i] = mix(mix(h, 4711), (uint64_t)i) | 1;
}

static void run(Call *c)
{
    apart(c);
    if (c->kind == SUM || c->kind == COPY)
        run_sum(c);
    else if (c->kind == LANES)
        run_lanes(c);
    else
        run_call(c);
    for (int i = 0; i < c->n; i++)
        for (int64_t b = 0; c->of[i].mode == 't' && b < c->of[i].width * c->of[i].n; b++)
            c->t->at[c->of[i].lo + b] = 0;
}

static long up64(long n)
{
    return (n + 63) / 64 * 64;
}

/* Devices of a stage. */
static long team(void)
{
    return all / stages;
}

#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define owned(all, room) (room)
#define own(all, room) (room)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "twin_calls.h"
#undef own

/* ---- calls that are no kernels --------------------------------------------------------------------------------------- */

static void fill(Twin *t, int64_t lo, int64_t n, uint64_t h)
{
    for (int64_t i = 0; i < n; i++)
        t->at[lo + i] = mix(h, (uint64_t)i) | 1;
}

void action(Stage *st, int number, const char *text)
{
    (void)st, (void)number, (void)text;
}

void step_begin(Stage *st, Values *vals)
{
    Twin *t = of(st);
    int sets = job->param_groups + 1;
    int64_t lo = touch(t, vals, (int64_t)sets * VALS, true);
    for (int k = 0; k < sets; k++)
        fill(t, lo + k * VALS, VALS, mix(mix(11, (uint64_t)t->steps), (uint64_t)k));
    t->steps++;
    for (int i = 16; i < 80; i++)
        t->at[lo + i] = ZERO;
    for (int i = 108; i < VALS; i++)
        t->at[lo + i] = ZERO;
}

void step_end(Stage *st, Values *vals)
{
    Twin *t = of(st);
    int64_t lo = touch(t, vals, VALS, false);
    t->told = mix(fold(t->at, lo + 64, lo + 80, mix(t->told, t->reported)), t->loss);
    t->loss = 0;
}

void data_count(Stage *st, Values *vals, int input, int ignore, int count)
{
    Call c = begin(st, "data_count", CALL);
    values(&c, 'v', vals, 0);
    if (count < 0 || count > 5)
        refuse("a count");
    int64_t lo = touch(c.t, vals, VALS, true);
    fill(c.t, lo + 16 + 8 * count, 8, mix(mix(mix(c.head, (uint64_t)input), (uint64_t)ignore), c.vals));
}

void data_load(Stage *st, void *to, Values *vals, int input, int mb, long bytes)
{
    Call c = begin(st, "data_load", CALL);
    values(&c, 'v', vals, 0);
    int64_t lo = touch(c.t, to, bytes, true);
    fill(c.t, lo, bytes, mix(mix(mix(c.head, (uint64_t)input), (uint64_t)mb), c.vals));
}

void loss_report(Stage *st, const float *x, Values *vals, int acc)
{
    Twin *t = of(st);
    int64_t from = touch(t, x, 4, false), lo = touch(t, vals, VALS, true) + 64;
    uint64_t one = fold(t->at, from, from + 4, 5), before = acc ? fold(t->at, lo, lo + 8, 6) : 0;
    if (acc && t->first)
        refuse("the first loss is added");
    t->first = false;
    t->loss = acc ? mix(t->loss, one) : mix(9, one);
    fill(t, lo, 8, mix(before, one));
}

void output_put(Stage *st, const real *x, const Values *vals, int mb, int output, long n)
{
    Twin *t = of(st);
    int64_t from = touch(t, x, n * (long)sizeof(real), false);
    touch(t, vals, VALS, false);
    t->loss = mix(mix(mix(fold(t->at, from, from + n * (long)sizeof(real), 5), (uint64_t)mb), (uint64_t)output), t->loss);
}

void norm_gather(Stage *st, double *into, const double *from, long n)
{
    Call c = begin(st, "norm_gather", SUM);
    c.zero = true;
    operand(&c, 'u', into, 8, n, 0, 1);
    operand(&c, 'r', from, 8, n, 0, 1);
    run(&c);
}

void fill_zero(Stage *st, void *to, long bytes)
{
    int64_t lo = touch(of(st), to, bytes, true);
    for (long i = 0; i < bytes; i++)
        of(st)->at[lo + i] = ZERO;
}

/* Blocks of a norm are 8 bytes each; the norm is of those bytes. */
static uint64_t block(const Twin *t, int64_t lo, int64_t hi)
{
    return fold(t->at, lo, hi, 21);
}

void norm_blocks(Stage *st, double *blocks, const float *g, long n, long each, long first)
{
    Twin *t = of(st);
    if (n <= 0 || each <= 0 || first < 0)
        refuse("sizes that no norm has");
    int64_t from = touch(t, g, 4 * n, false), to = touch(t, blocks + first, 8 * ((n + each - 1) / each), true);
    for (long k = 0; k * each < n; k++)
        fill(t, to + 8 * k, 8, block(t, from + 4 * k * each, from + 4 * (k * each + each < n ? k * each + each : n)));
}

static void put_norm(Twin *t, double *norm, long index, uint64_t h)
{
    if (index < 0)
        refuse("a place that no norm has");
    fill(t, touch(t, norm + index, 8, true), 8, h);
}

void norm_sum(Stage *st, double *norm, const double *blocks, long n, long first, long index)
{
    Twin *t = of(st);
    if (n <= 0 || first < 0)
        refuse("sizes that no norm has");
    int64_t from = touch(t, blocks + first, 8 * n, false);
    put_norm(t, norm, index, fold(t->at, from, from + 8 * n, 22));
}

void norm_partial(Stage *st, double *norm, const float *g, long n, long index)
{
    Twin *t = of(st);
    long each = (n + 16 * 256 - 1) / (16 * 256) * 16;
    if (n <= 0)
        refuse("sizes that no norm has");
    int64_t from = touch(t, g, 4 * n, false);
    uint64_t h = 22;
    for (long k = 0; k * each < n; k++) {
        uint64_t b = block(t, from + 4 * k * each, from + 4 * (k * each + each < n ? k * each + each : n));
        for (int i = 0; i < 8; i++)
            h = mix(h, mix(b, (uint64_t)i) | 1);
    }
    put_norm(t, norm, index, h);
}

/* Rows of a device: its part of what is whole, and what all devices have. */
void part_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    Call c = begin(st, "part_forward", CALL);
    long size = (long)sizeof(real), from = st->index / stages * n, here = whole - from < n ? whole - from : n;
    operand(&c, 'w', y, sizeof(real), n, 0, 0);
    operand(&c, 'r', x, sizeof(real), whole, 0, 0);
    apart(&c);
    fold(c.t->at, c.of[1].lo, c.of[1].lo + whole * size, 0);
    for (long i = 0; i < n * size; i++)         /* behind the last ones 0 */
        c.t->at[c.of[0].lo + i] = i < here * size ? c.t->at[c.of[1].lo + from * size + i] : 0;
}

void gather_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    Call c = begin(st, "gather_forward", TEAM);
    operand(&c, 'w', y, sizeof(real), whole, 0, 0);
    operand(&c, 'r', x, sizeof(real), n, 0, 0);
    run(&c);
}

static void moved(Stage *st, const char *name, real *y, const real *x, long out, long in, const long number[4])
{
    Call c = begin(st, name, TEAM);
    operand(&c, 'w', y, sizeof(real), out, 0, 0);
    operand(&c, 'r', x, sizeof(real), in, 0, 0);
    for (int i = 0; i < 4; i++)
        literal(&c, number[i]);
    run(&c);
}

void rows_to_heads(Stage *st, real *y, const real *x, long rows, long mine, long pieces, long width)
{
    const long number[] = {rows, mine, pieces, width};
    moved(st, "rows_to_heads", y, x, rows * pieces * width / team(), mine * pieces * width, number);
}

void heads_to_rows(Stage *st, real *y, const real *x, long rows, long mine, long pieces, long width)
{
    const long number[] = {rows, mine, pieces, width};
    moved(st, "heads_to_rows", y, x, mine * pieces * width, rows * pieces * width / team(), number);
}

void norm_team(Stage *st, double *norm, const float *g, long n, long outer, long room, long index)
{
    Twin *t = of(st);
    long mine = outer * room;
    if (n <= 0 || outer <= 0)
        refuse("sizes that no norm has");
    int64_t from = touch(t, g, 4 * mine, false);
    put_norm(t, norm, index, together(t, mix(mix(fold(t->at, from, from + 4 * mine, 23), (uint64_t)n), (uint64_t)outer)));
}

void norm_total(Stage *st, float *clip, const double *norm, Values *vals, long count, float limit)
{
    Call c = begin(st, "norm_total", CALL);
    literal(&c, count);
    real_literal(&c, limit);
    operand(&c, 'r', norm, 8, count, 0, 0);
    operand(&c, 'w', clip, 4, 1, 0, 0);
    run(&c);
    if (vals)
        fill(c.t, touch(c.t, vals, VALS, true) + 72, 8, fold(c.t->at, c.of[0].lo, c.of[0].lo + 8 * count, c.head));
}

#include "verify_twin_run.h"
