/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.c: one arena, and what a call does to it: terms of the operands in, terms of the results out.
 *
 * A call is bound once: its extents and the heads of its results follow from literals.  Then each run of it reads the terms
 * that stand in its operands' bytes, and writes those of its results.  A call stops the proof where it
 *
 *   reads a byte that nothing has written, or that scratch has spoilt
 *   reads or writes bytes that a transfer owns
 *   leaves its arena, or writes over its own operands
 *
 * Which value an operand should have is not asked here: a wrong one gives a term that the reference has not.
 */
#include "verify.h"
#include <string.h>

typedef struct { int64_t lo, hi; bool write; int k; } Span;

void call_refused(const Machine *m, const Site *s, const char *text)
{
    if (m->stage < 0)
        stop(NOT_READ, "model.graph:%d: %s: %s", s->line, s->row->name, text);
    stop(NOT_PROVED, "%s.c:%d: %s: %s", m->name, s->line, s->row ? s->row->name : "a routine", text);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

int64_t arg_int(const Machine *m, const Site *s, int k, const int *param)
{
    const Arg *a = &s->arg[k];
    if (a->kind != A_INT || a->slots >= 0)
        call_fault(m, s, "argument %d must be a whole number", k + 1);
    int64_t i = a->param < 0 ? a->i : param[a->param];
    if (i > MOST_BYTES || i < -MOST_BYTES)
        call_fault(m, s, "argument %d is a number that no call takes", k + 1);
    return i;
}

/* In the arena; or in the host's memory, where calls.def says that it is a number. */
int64_t arg_place(const Machine *m, const Site *s, int k, const int *param)
{
    const Arg *a = &s->arg[k];
    ArgKind kind = s->row->param[k].mode == 'n' ? A_HOST : A_PLACE;
    int64_t at = a->i;
    if (a->kind != kind || at > 40 * MOST_BYTES || at < -MOST_BYTES)
        call_fault(m, s, "'%s' must be a place", s->row->param[k].name);
    if (a->slots >= 0) {
        const Slots *t = &m->program->slots.at[a->slots];
        int slot = param[a->param];
        if (slot < 0 || slot >= t->n)
            call_fault(m, s, "slot %d of %s: there are %d", slot, t->name, t->n);
        at += t->at[slot];
    }
    return at;
}

bool is_absent(const Site *s, int k)
{
    const Arg *a = &s->arg[k];
    return s->row->param[k].optional && a->kind == A_INT && a->param < 0 && a->i == 0;
}

/* They are there, and no transfer owns them. */
void may_touch(const Machine *m, const Site *s, bool host, int64_t lo, int64_t hi, bool writes, const char *what)
{
    int64_t all = host ? m->host_bytes : m->arena;
    if (lo < 0 || hi < lo || hi > all)
        call_fault(m, s, "%s: bytes %lld to %lld leave the %s of %lld bytes", what, (long long)lo, (long long)hi,
                   host ? "host's memory" : "arena", (long long)all);
    for (int i = 0; i < m->open.n; i++) {
        const Transfer *t = m->open.at[i];
        int64_t from = host ? t->host : t->lo;
        if (from < hi && lo < from + t->bytes && (writes || t->out == host) && (!host || t->copy))
            call_fault(m, s, "%s %s bytes %lld to %lld while the %s of line %d owns bytes %lld to %lld", what,
                       writes ? "writes" : "reads", (long long)lo, (long long)hi, t->what, t->line, (long long)from,
                       (long long)(from + t->bytes));
    }
}

void machine_take(Machine *m, const Site *s, int64_t lo, int64_t hi, bool writes, const char *what)
{
    may_touch(m, s, false, lo, hi, writes, what);
    m->top = hi > m->top ? hi : m->top;
}

Term machine_read(Machine *m, const Site *s, int64_t lo, int64_t hi, const char *what)
{
    Pieces list = {0};
    machine_take(m, s, lo, hi, false, what);
    Term t = region_term(&m->region, lo, hi);
    if (t == 0 && hi > lo) {
        region_get(&m->region, lo, hi, &list);
        call_fault(m, s, "'%s' is bytes %lld to %lld of the arena, and nothing has written byte %lld", what, (long long)lo,
                   (long long)hi, (long long)region_hole(&list));
    }
    return t;
}

static Span span_of(Machine *m, const Site *s, int k, const int *param, bool write)
{
    int64_t lo = arg_place(m, s, k, param);
    Span sp = {lo, lo + s->bytes[k], write, k};
    machine_take(m, s, sp.lo, sp.hi, write, s->row->param[k].name);
    return sp;
}

static Term operand(Machine *m, const Site *s, int k, const int *param)
{
    int64_t lo = arg_place(m, s, k, param);
    return machine_read(m, s, lo, lo + s->bytes[k], s->row->param[k].name);
}

/* ---- step values ------------------------------------------------------------------------------------------------- */

void vals_begin(Machine *m, int64_t at, int64_t sets)
{
    Term step = term_int(m->steps++), zero = term_of(H_ZERO, 8, 0, NULL);
    for (int64_t k = 0; k < sets; k++) {
        int64_t lo = at + k * VALS_BYTES;
        Term of[2] = {step, term_int(k)};
        region_set(&m->region, (Piece){lo, lo + VALS_BYTES, 0, term_of(H_VALS, VALS_BYTES, k ? 2 : 1, of)});
    }
    region_set(&m->region, (Piece){at + VALS_VALID, at + VALS_LR, 0, zero});
    region_set(&m->region, (Piece){at + VALS_HITS, at + VALS_BYTES, 0, zero});
}

/* What a step has from its begin on: number, seed, rates, sizes. */
Term vals_of(Machine *m, const Site *s, int k, const int *param)
{
    int64_t at = arg_place(m, s, k, param);
    machine_take(m, s, at, at + VALS_BYTES, false, "vals");
    Piece all = region_piece(&m->region, at, at + VALS_VALID);
    Term rates = region_term(&m->region, at + VALS_LR, at + VALS_HITS);
    if (all.hi < at + VALS_VALID || !all.term || !rates)
        call_fault(m, s, "the step values are not there");
    if (term_view(all.term).head != H_VALS || all.from || rates != term_slice(all.term, VALS_LR, VALS_HITS - VALS_LR))
        call_fault(m, s, "these are not the step values that the step began with");
    return all.term;
}

/* What the runtime tells of a step. */
void step_ended(Machine *m, int64_t at)
{
    int k = m->ended.n, from = k < m->begun.n ? m->begun.at[k] : m->loss.n;     /* forwards of the next step may be under way */
    int until = k + 1 < m->begun.n ? m->begun.at[k + 1] : m->loss.n;
    *ADD(&m->ended) = (Ended){region_term(&m->region, at + VALS_LOSS, at + VALS_LOSS + 8),
                              region_term(&m->region, at + VALS_NORM, at + VALS_NORM + 8),
                              region_term(&m->region, at + VALS_HITS, at + VALS_BYTES), from, until - from};
}

static Term vals_field(Machine *m, const Site *s, int k, const int *param, int64_t field)
{
    int64_t at = arg_place(m, s, k, param) + field;
    return machine_read(m, s, at, at + 8, "vals");
}

static void vals_put(Machine *m, const Site *s, int k, const int *param, int64_t field, Term t)
{
    int64_t at = arg_place(m, s, k, param) + field, bytes = field == VALS_HITS ? 4 : 8;
    machine_take(m, s, at, at + bytes, true, "vals");
    region_set(&m->region, (Piece){at, at + bytes, 0, t});
}

/* Work that this machine has done before: a value that was dropped is made once more. */
static void count_again(Machine *m, Term t, int operands)
{
    static LIST(int) maker;
    while (maker.n <= (int)t)
        *ADD(&maker) = 0;
    m->again += operands > 0 && maker.at[t] == m->stage + 2;
    maker.at[t] = m->stage + 2;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void apart(const Machine *m, const Site *s, const Span *sp, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n && sp[i].write; j++) {
            bool in_place = s->row->kind != ROW_CALL && s->row->kind != ROW_TEAM && sp[i].lo == sp[j].lo &&
                sp[i].hi == sp[j].hi && !sp[j].write;
            if (i != j && sp[i].k != sp[j].k && sp[i].lo < sp[j].hi && sp[j].lo < sp[i].hi && !in_place)
                call_fault(m, s, "'%s' and '%s' share bytes", s->row->param[sp[i].k].name, s->row->param[sp[j].k].name);
        }
}

/* By parameter, terms of what a call reads, of what it adds to, and of what it leaves; and where its operands are. */
typedef struct { Term of[MOST_PARAMS], old[MOST_PARAMS], made[MOST_PARAMS], valid; Span span[MOST_PARAMS]; int spans; } Taken;

static bool is_written(char mode)
{
    return mode == 'w' || mode == 'a' || mode == 'u';
}

static void take_operand(Machine *m, const Site *s, int k, const int *param, bool acc, Taken *t)
{
    char mode = s->row->param[k].mode;
    if (is_absent(s, k))
        return;
    if (mode == 'r' || mode == 'u' || mode == 'o' || mode == 'e')
        t->of[k] = operand(m, s, k, param);
    else if (mode == 'a' && acc)
        t->old[k] = operand(m, s, k, param);
    t->span[t->spans++] = span_of(m, s, k, param, is_written(mode) || mode == 't');
}

/* Where the targets that count are, in the step values. */
static int64_t count_at(const Machine *m, const Site *s, const int *param)
{
    int64_t count = arg_int(m, s, row_param(s->row, "count"), param);
    if (count < 0 || count > 5)
        call_fault(m, s, "count %lld: there are six", (long long)count);
    return VALS_VALID + 8 * count;
}

static void take(Machine *m, const Site *s, const int *param, Taken *t)
{
    int at = row_param(s->row, "acc");
    bool acc = at >= 0 && (int)arg_int(m, s, at, param);          /* an int, as in C */
    memset(t->of, 0, sizeof *t->of * (size_t)s->n);
    memset(t->old, 0, sizeof *t->old * (size_t)s->n);
    t->spans = 0;
    for (int k = 0; k < s->n; k++) {
        const Param *p = &s->row->param[k];
        if (p->width)
            take_operand(m, s, k, param, acc, t);
        else if (p->mode >= 'v' && p->mode <= 'z')
            t->of[k] = vals_of(m, s, k, param);
        else if (p->mode == 'm')
            t->of[k] = term_int(arg_int(m, s, k, param));
        if (p->mode == 'x' || p->mode == 'z')
            t->valid = vals_field(m, s, k, param, count_at(m, s, param));
    }
    memcpy(t->made, t->of, sizeof *t->of * (size_t)s->n);
    apart(m, s, t->span, t->spans);
}

/* The term of a word of a step: of a parameter of the call, or of what an earlier step has made. */
static Term word_term(const Taken *t, const Term *between, int word)
{
    Term x = word >= 0 ? t->of[word] : word <= BETWEEN ? between[BETWEEN - word] : 0;
    return x ? x : term_of(H_ABSENT, 0, 0, NULL);
}

static int step_args(const Step *st, const Taken *t, const Term *between, bool evaluates, Term *arg)
{
    int n = 0;
    for (int k = 0; k < st->row->n; k++) {
        char mode = st->row->param[k].mode;
        if (mode == 'r' || mode == 'u' || mode == 'm' || (mode >= 'v' && mode <= 'z' && mode != 'w'))
            arg[n++] = word_term(t, between, st->word[k]);
        if (mode == 'x' || mode == 'z')
            arg[n++] = t->valid;
        if (mode == 'e' && evaluates)
            arg[n++] = word_term(t, between, st->word[k]);
    }
    return n;
}

/* What a step makes of the arguments, of which the last ones may be what is added to. */
static Term result_of(const Step *st, const int *head, int k, int64_t bytes, int n, const Term *arg)
{
    if (st->row->kind == ROW_COPY || (st->row->kind == ROW_SUM && term_view(arg[1]).head == H_ABSENT))
        return arg[0];
    if (st->row->kind == ROW_SUM)
        return term_sum(st->row->param[k].width, bytes, arg[0], arg[1]);
    return term_of(head[k], bytes, n, arg);
}

/* Of the whole that the call makes, each device keeps a contiguous part. */
static bool is_own_part(const Param *p) { return !strncmp(p->extent, "own(", 4); }

/* Of all rows each device has those of its experts. */
static bool is_owned(const Param *p) { return p->extent && strstr(p->extent, "owned("); }

/* A router's: of a norm, `offset` is a number. */
int offset_param(const Row *r)
{
    const int at = row_param(r, "offset");
    return at >= 0 && r->param[at].width ? at : -1;
}

/* Rows of the device's experts become all rows.  The offsets, which must be those of the slots; 0: no experts. */
static Term owners_lift(Machine *m, const Site *s, Term *of)
{
    int at = offset_param(s->row), slot = row_param(s->row, "slot");
    if (s->row->kind != ROW_TEAM || at < 0)
        return 0;
    const TermView a = term_view(of[at]), b = slot < 0 ? a : term_view(of[slot]);
    const Head *ha = head_view(a.head), *hb = head_view(b.head);
    if (strcmp(ha->call, "route_forward") || strcmp(ha->result, "offset") || ha->call != hb->call ||
        ha->literals != hb->literals || a.n != b.n || memcmp(a.arg, b.arg, sizeof *a.arg * (size_t)a.n) ||
        (slot >= 0 && strcmp(hb->result, "slot")))
        call_fault(m, s, "'offset'%s not what a router says of rows", slot < 0 ? " is" : " and 'slot' are");
    for (int k = 0; k < s->n; k++) {
        if (!is_owned(&s->row->param[k]) || !of[k])
            continue;
        Term by, whole = part_of(of[k], &by);
        if (by != of[at])
            call_fault(m, s, "'%s' is not what the %d devices of the stage have by 'offset'", s->row->param[k].name,
                       m->devices);
        of[k] = whole;
    }
    return of[at];
}

/* One step of a call: terms of what it makes go to `of` where a parameter is written, else between steps.  pieces: of what was
 * lifted, 0: nothing was. */
static void do_step(Machine *m, const Site *s, Step *st, int64_t pieces, Term offset, Taken *t, Term *between)
{
    Term arg[MOST_PARAMS], absent = term_of(H_ABSENT, 0, 0, NULL), onto = absent;
    int n = step_args(st, t, between, m->evaluates, arg), made = 0;
    for (int k = 0; k < st->row->n; k++)
        if (st->row->param[k].mode == 'o')
            onto = word_term(t, between, st->word[k]);
    for (int k = 0; k < st->row->n; k++) {
        int word = st->word[k], like = word >= 0 ? word : 0;
        bool wanted = word != NO_WORD && (word < 0 || !is_absent(s, word));
        if (!st->row->param[k].width || !is_written(st->row->param[k].mode) || !wanted)
            continue;
        const int at = s->lift == st ? k : word;
        int64_t stretches = pieces && at >= 0 ? pieces * s->lift->front[at] : 0;
        bool own = word >= 0 && is_own_part(&s->row->param[word]), owned = word >= 0 && is_owned(&s->row->param[word]);
        int64_t bytes = stretches || (pieces && word < 0) ? step_whole(m, st, s->bytes[like])
                      : own || owned ? owned_bytes(m, s, like) : s->bytes[like];
        arg[n] = word >= 0 ? t->old[word] : 0;
        Term x = result_of(st, pieces ? st->whole : st->head, k, bytes, n + (arg[n] != 0), arg);
        if (made == 0 && onto != absent)
            x = term_sum(st->row->param[k].width, bytes, x, onto);
        if (made++ == 0)
            count_again(m, x, n);
        *(word >= 0 ? &t->of[word] : &between[BETWEEN - word]) = x;     /* for the next step, all of it */
        x = stretches || own ? term_part(x, own ? 1 : stretches, s->bytes[like]) : x;
        if (word >= 0)
            t->made[word] = owned ? part_by(x, offset, s->bytes[like]) : x;
    }
}

/* Parts become the wholes, once for all steps. */
static int64_t lift_call(Machine *m, Site *s, Taken *t)
{
    Step *all = s->lift;
    int64_t pieces = all && (m->devices > 1 || s->row->kind == ROW_TEAM) ? part_lift(m, s, all, t->of, t->old) : 0;
    for (int i = 0; i < s->steps && pieces && all != s->step; i++) {
        step_along(m, s, &s->step[i], row_param(s->row, all->along));
        step_heads(m, s, &s->step[i], all->mine, all->all);
    }
    return pieces;
}

static void do_call(Machine *m, Site *s, const int *param)
{
    static Taken t;
    Term between[MOST_PARAMS] = {0};
    take(m, s, param, &t);
    const Term offset = owners_lift(m, s, t.of);
    const int64_t pieces = lift_call(m, s, &t);
    for (int i = 0; i < s->steps; i++)
        do_step(m, s, &s->step[i], pieces, offset, &t, between);
    for (int k = 0; k < s->n; k++)
        if (s->row->param[k].mode == 'y' || s->row->param[k].mode == 'z') {
            const Step *st = &s->step[0];
            Term arg[MOST_PARAMS];
            int n = step_args(st, &t, between, m->evaluates, arg), at = row_param(st->row, s->row->param[k].name);
            vals_put(m, s, k, param, VALS_HITS, term_of((pieces ? st->whole : st->head)[at], 4, n, arg));
        }
    for (int i = 0; i < t.spans; i++) {
        const Span *sp = &t.span[i];
        bool scratch = s->row->param[sp->k].mode == 't';
        if (sp->write && sp->hi > sp->lo)
            region_set(&m->region, (Piece){sp->lo, sp->hi, 0, scratch ? 0 : t.made[sp->k]});
    }
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

/* Of sums and copies every operand; of other rows those of n elements. */
static bool is_lane(const Site *s, int k)
{
    const Param *p = &s->row->param[k];
    bool reads = p->width && (p->mode == 'r' || p->mode == 'u') && !is_absent(s, k);
    return reads && (s->row->kind != ROW_LANES || !strcmp(p->extent, "n"));
}

/* Elements e to until-1 of count, which are elements from `from` on of terms that have `whole`.  Of parts, all by the same, the
 * terms are the wholes, of `all` elements: a part of each operand gives that part of the result. */
typedef struct { int64_t count, e, until, from, whole, all; Term by; } LaneRun;

/* The next elements that are of one term in every operand.  Terms are taken whole if all begin at the same element. */
static bool next_run(Machine *m, const Site *s, const int *param, LaneRun *r, Term *of)
{
    Piece at[MOST_PARAMS];
    bool even = true;
    r->e = r->until;
    r->from = r->whole = -1;
    r->until = INT64_MAX;
    for (int k = 0; k < s->n; k++) {
        if (!is_lane(s, k))
            continue;
        int w = s->row->param[k].width;
        int64_t lo = arg_place(m, s, k, param);
        r->count = s->bytes[k] / w;
        if (r->e == r->count)
            return false;
        Piece p = at[k] = region_piece(&m->region, lo + r->e * w, lo + s->bytes[k]);
        int64_t until = r->e + (p.hi - p.lo) / w, whole = term_view(p.term).bytes / w;
        if ((p.hi - p.lo) % w || p.from % w)
            call_fault(m, s, "'%s': a value begins inside of an element", s->row->param[k].name);
        r->until = until < r->until ? until : r->until;
        if (term_view(p.term).head == H_ZERO)
            continue;
        even = even && (r->from < 0 || (r->from == p.from / w && r->whole == whole));
        r->from = p.from / w;
        r->whole = whole;
    }
    for (int k = 0; k < s->n; k++)
        if (is_lane(s, k))
            of[k] = even ? at[k].term : term_slice(at[k].term, at[k].from, (r->until - r->e) * s->row->param[k].width);
    if (!even || r->from < 0)
        r->from = 0, r->whole = r->until - r->e;
    return true;
}

static void lift_lanes(const Site *s, LaneRun *r, Term *of)
{
    Term by;
    bool parts = true;
    r->by = 0;
    r->all = 0;
    for (int k = 0; k < s->n; k++)
        if (is_lane(s, k) && term_view(of[k]).head != H_ZERO) {
            Term x = part_of(of[k], &by);
            int64_t all = x ? term_view(x).bytes / s->row->param[k].width : 0;
            parts = parts && x && (!r->by || (by == r->by && all == r->all));
            r->by = by;
            r->all = all;
        }
    for (int k = 0; k < s->n && parts; k++)
        if (is_lane(s, k) && term_view(of[k]).head != H_ZERO)
            of[k] = part_of(of[k], &by);
    r->by = parts ? r->by : 0;
}

static Term lane_term(Machine *m, const Site *s, int k, const LaneRun *r, int n, const Term *arg)
{
    int64_t bytes = (r->by ? r->all : r->whole) * s->row->param[k].width;
    bool norms = s->row->kind == ROW_OTHER;     /* norm_gather; sums of squares: what is added to 0 is itself */
    for (int i = 0; i < 2 && norms; i++)
        if (term_view(arg[i]).head == H_ZERO)
            return arg[1 - i];
    Term t = norms ? term_sum(8, bytes, arg[0], arg[1]) : result_of(&s->step[0], s->step[0].head, k, bytes, n, arg);
    if (r->e == 0 && s->row->kind == ROW_LANES)
        count_again(m, t, n);
    return t;
}

static void do_lanes(Machine *m, const Site *s, const int *param)
{
    static Taken t;
    static Pieces made;
    take(m, s, param, &t);
    LaneRun r = {.until = 0};
    Term arg[MOST_PARAMS];
    made.n = 0;
    while (next_run(m, s, param, &r, t.of)) {
        lift_lanes(s, &r, t.of);
        int n = step_args(&s->step[0], &t, NULL, m->evaluates, arg);
        for (int i = 0; i < t.spans; i++) {
            const Span *sp = &t.span[i];
            int w = s->row->param[sp->k].width;
            if (!sp->write)
                continue;
            Term x = lane_term(m, s, sp->k, &r, n, arg);
            x = r.by ? part_by(x, r.by, r.whole * w) : x;
            *ADD(&made) = (Piece){sp->lo + r.e * w, sp->lo + r.until * w, r.from * w, x};
        }
    }
    for (int i = 0; i < made.n; i++)
        region_set(&m->region, made.at[i]);
}

/* ---- rows of their own ------------------------------------------------------------------------------------------- */

static void do_norm_total(Machine *m, const Site *s, const int *param)
{
    Term norm = operand(m, s, 1, param);
    Span clip = span_of(m, s, 0, param, true);
    region_set(&m->region, (Piece){clip.lo, clip.hi, 0, term_of(s->step[0].head[0], 4, 1, &norm)});
    if (!is_absent(s, 2))
        vals_put(m, s, 2, param, VALS_NORM, term_of(s->step[0].head[1], 8, 1, &norm));
}

static void do_loss_report(Machine *m, const Site *s, const int *param)
{
    Term x = operand(m, s, 0, param), both[2] = {0, x};
    bool acc = (int)arg_int(m, s, 2, param);
    if (acc && m->loss.n == (m->begun.n ? m->begun.at[m->begun.n - 1] : 0))
        call_fault(m, s, "the first loss of a step is added to those of the step before");
    if (acc)
        both[0] = vals_field(m, s, 1, param, VALS_LOSS);
    else
        *ADD(&m->begun) = m->loss.n;
    *ADD(&m->loss) = x;
    vals_put(m, s, 1, param, VALS_LOSS, term_of(head_of("loss_report", "loss", ""), 8, acc ? 2 : 1, acc ? both : both + 1));
}

/* Who reads it there knows it by output and micro-batch alone. */
static void do_output_put(Machine *m, const Site *s, const int *param)
{
    int mb = (int)arg_int(m, s, 2, param), output = (int)arg_int(m, s, 3, param);
    for (int i = 0; i < m->leaves.n; i++)
        if (m->leaves.at[i].mb == mb && m->leaves.at[i].output == output)
            call_fault(m, s, "output %d of micro-batch %d has left already", output, mb);
    if (m->leaves.n && m->leaves.at[m->leaves.n - 1].mb > mb)
        call_fault(m, s, "output %d of micro-batch %d leaves behind that of a later one", output, mb);
    Term x = operand(m, s, 0, param);
    *ADD(&m->leaves) = (Leaves){output, mb, s->line, x};
}

/* The device's part of what is whole, and back: rows; of rows_to_heads and heads_to_rows, of one kind to the other. */
static void do_rows(Machine *m, const Site *s, const int *param)
{
    Term x = operand(m, s, 1, param);
    Span y = span_of(m, s, 0, param, true), from = span_of(m, s, 1, param, false), both[2] = {y, from};
    const bool heads = s->n > 4, part = !strcmp(s->row->name, "part_forward"), to = !strcmp(s->row->name, "rows_to_heads");
    const int64_t all = heads ? s->bytes[!to] * m->devices : s->bytes[0];
    const int64_t cut = heads ? s->arg[2].i * s->arg[4].i : 1;          /* stretches, of which a device has a part each */
    int64_t stretches = 0;
    apart(m, s, both, 2);
    Term whole = part ? x : part_whole(x, &stretches);
    bool rows = !heads || to, fits = s->bytes[rows] * m->devices >= all && (!heads || s->arg[5].i % m->devices == 0);
    if (!part && (!whole || stretches != (rows ? 1 : cut) || term_view(whole).bytes != all || !fits))
        call_fault(m, s, "'x' is not what the %d devices of the stage have of %lld bytes, one part each", m->devices,
                   (long long)all);
    x = part || heads ? term_part(whole, to ? cut : 1, s->bytes[0]) : whole;
    count_again(m, x, 1);
    region_set(&m->region, (Piece){y.lo, y.hi, 0, x});
}

static void do_other(Machine *m, const Site *s, const int *param)
{
    const char *name = s->row->name;
    if (!strcmp(name, "norm_gather")) {
        do_lanes(m, s, param);
    } else if (!strcmp(name, "norm_partial") || !strcmp(name, "norm_blocks") || !strcmp(name, "norm_sum") ||
               !strcmp(name, "norm_team")) {
        do_norms(m, s, param);
    } else if (!strcmp(name, "part_forward") || !strcmp(name, "gather_forward") || !strcmp(name, "rows_to_heads") ||
               !strcmp(name, "heads_to_rows")) {
        do_rows(m, s, param);
    } else if (!strcmp(name, "norm_total")) {
        do_norm_total(m, s, param);
    } else if (!strcmp(name, "loss_report")) {
        do_loss_report(m, s, param);
    } else if (!strcmp(name, "output_put")) {
        do_output_put(m, s, param);
    } else if (!strcmp(name, "fill_zero")) {
        Span sp = span_of(m, s, 0, param, true);
        region_set(&m->region, (Piece){sp.lo, sp.hi, 0, term_of(H_ZERO, 8, 0, NULL)});
    } else if (!strcmp(name, "step_end")) {
        int64_t at = arg_place(m, s, 0, param);
        machine_take(m, s, at, at + VALS_BYTES, false, "vals");
        step_ended(m, at);
    } else if (!strcmp(name, "data_load")) {
        Term of[3] = {term_int(arg_int(m, s, 2, param)), term_int(arg_int(m, s, 3, param)), vals_of(m, s, 1, param)};
        Span sp = span_of(m, s, 0, param, true);
        region_set(&m->region, (Piece){sp.lo, sp.hi, 0, term_of(H_DATA, s->bytes[0], 3, of)});
    } else if (!strcmp(name, "data_count")) {
        Term of[3] = {term_int(arg_int(m, s, 1, param)), term_int(arg_int(m, s, 2, param)), vals_of(m, s, 0, param)};
        vals_put(m, s, 0, param, count_at(m, s, param), term_of(H_COUNT, 8, 3, of));
    } else {
        call_fault(m, s, "dpgen-verify does not know this call yet");
    }
}

void call_do(Machine *m, Site *s, const int *param)
{
    if (!s->bytes)
        site_bind(m, s);
    m->calls++;
    m->clock++;
    switch (s->row->kind) {
    case ROW_CALL: case ROW_JOINED: case ROW_TEAM:
        do_call(m, s, param);
        break;
    case ROW_LANES: case ROW_SUM: case ROW_COPY:
        do_lanes(m, s, param);
        break;
    case ROW_OTHER:
        do_other(m, s, param);
        break;
    }
}
