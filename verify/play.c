/* SPDX-License-Identifier: Apache-2.0
 *
 * play.c: all stages through one step, with messages.
 *
 * A transfer owns its bytes from begin to wait: those of a send may be read and not written, those of a receive neither.  So
 * its bytes are the same whenever it completes between the two, and one order of play stands for all: what a stage does depends
 * on others by the bytes of its messages alone.
 *
 * Message n from one stage to another is the n-th send that one begins and the n-th receive that the other begins; tag and
 * bytes must agree.  Every message is a rendezvous: a wait passes once both halves have begun.  If the stages come to an end
 * so, no transport can block them (Siegel, Efficient Verification of Halting Properties for MPI Programs with Wildcard
 * Receives, 2005).
 *
 * Cost: linear in calls.
 */
#include "verify.h"
#include <string.h>

typedef LIST(Transfer *) Queue;     /* of a pair: sends, or receives, in the order of their begin */
typedef struct { const Folder *f; Machine *m; Queue *sent, *wanted; Played *sum; } Game;

/* ---- transfers --------------------------------------------------------------------------------------------------- */

/* Messages of the pair that d sends to, or receives from: sends, or receives. */
static Queue *queue(const Game *g, int d, const Transfer *t, bool sends)
{
    int from = t->out ? d : t->peer, to = t->out ? t->peer : d;
    return &(sends ? g->sent : g->wanted)[from * g->f->stages + to];
}

/* One term for all that a stage tells others, where each of several runs must tell the same. */
static void tell(const Game *g, Machine *m, const Transfer *t, bool begins)
{
    static LIST(Term) arg;
    const int64_t what[] = {begins, t->out, t->peer, t->tag, t->nth, t->bytes};
    arg.n = 0;
    *ADD(&arg) = m->talk;
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        *ADD(&arg) = term_int(what[i]);
    for (int i = 0; i < t->piece.n; i++) {
        const Piece *p = &t->piece.at[i];
        *ADD(&arg) = term_int(p->hi - t->lo);
        *ADD(&arg) = term_slice(p->term, p->from, p->hi - p->lo);
    }
    if (g->f->overlap)
        m->talk = term_of(head_of("messages", "", ""), 0, arg.n, arg.at);
}

/* Which of those that have begun has this number, of messages or of copies; -1. */
static int begun(const Machine *m, const Site *s, bool copy, int64_t number)
{
    int most = copy ? 4096 : 256;
    if (number < 0 || number >= most)
        call_fault(m, s, "%s %lld: there are %d", copy ? "copy" : "request", (long long)number, most);
    for (int i = 0; i < m->open.n; i++)
        if (m->open.at[i]->copy == copy && m->open.at[i]->number == number)
            return i;
    return -1;
}

static int64_t named(const Machine *m, const Site *s, const int *param, const char *name)
{
    return arg_int(m, s, row_param(s->row, name), param);
}

static void begin_message(Game *g, int d, const Site *s, const int *param, Transfer *t)
{
    Machine *m = &g->m[d];
    int64_t peer = named(m, s, param, "peer");
    if (peer < 0 || peer >= g->f->stages || peer == d)
        call_fault(m, s, "there is no peer %lld", (long long)peer);
    t->peer = (int)peer;
    t->tag = (int)named(m, s, param, "tag");
    Queue *q = queue(g, d, t, t->out);
    t->nth = q->n;
    *ADD(q) = t;
    t->run = m->together > 0 ? m->run : 0;
    m->together -= m->together > 0;
    t->last = t->nth;
    for (int i = t->nth; t->run && i >= 0 && q->at[i]->run == t->run; i--)
        q->at[i]->last = t->nth;
    tell(g, m, t, true);
}

/* What stands there now is what it brings; of a copy out of the host's memory, what stands there. */
static void begin_transfer(Game *g, int d, const Site *s, const int *param)
{
    Machine *m = &g->m[d];
    const char *name = s->row->name;
    Transfer *t = room(sizeof *t);
    *t = (Transfer){.what = name_of(name, strcspn(name, "_")), .copy = *name == 'o' || *name == 'f', .line = s->line,
                    .out = *name == 'o' || *name == 's', .lo = arg_place(m, s, 0, param), .clock = m->clock,
                    .bytes = named(m, s, param, "bytes")};
    int64_t number = named(m, s, param, t->copy ? "copy" : "request");
    if (begun(m, s, t->copy, number) >= 0 || t->bytes <= 0)
        call_fault(m, s, "%s %lld: %s", t->copy ? "copy" : "request", (long long)number,
                   t->bytes <= 0 ? "it moves nothing" : "it has not been waited for");
    t->number = (int)number;
    t->host = t->copy ? arg_place(m, s, 1, param) : 0;
    machine_take(m, s, t->lo, t->lo + t->bytes, !t->out, t->what);
    if (t->copy)
        may_touch(m, s, true, t->host, t->host + t->bytes, t->out, t->what);
    if (t->out)
        region_get(&m->region, t->lo, t->lo + t->bytes, &t->piece);
    else if (t->copy)
        region_get(&m->host, t->host, t->host + t->bytes, &t->piece);
    if (region_hole(&t->piece) >= 0)
        call_fault(m, s, "nothing has written byte %lld of what is %s", (long long)region_hole(&t->piece),
                   t->copy ? "copied" : "sent");
    *ADD(&m->open) = t;
    if (!t->copy)
        begin_message(g, d, s, param, t);
}

/* False: the other half has not begun. */
static bool end_message(Game *g, int d, const Site *s, Transfer *t)
{
    Machine *m = &g->m[d];
    const Queue *sent = queue(g, d, t, true), *wanted = queue(g, d, t, false);
    if (t->nth >= sent->n || t->nth >= wanted->n)
        return false;
    const Transfer *a = sent->at[t->nth], *b = wanted->at[t->nth];
    int from = b->peer, to = a->peer;
    if (g->m[from].together + g->m[to].together > 0 || a->last >= wanted->n || b->last >= sent->n)
        return false;           /* what leaves together arrives together */
    if (a->bytes != b->bytes || a->tag != b->tag)
        call_fault(m, s, "message %d from stage %d to %d is %lld bytes with tag %d where it is sent, stage%d.c:%d, and %lld "
                   "bytes with tag %d where it is received, stage%d.c:%d", t->nth, from, to, (long long)a->bytes, a->tag,
                   from, a->line, (long long)b->bytes, b->tag, to, b->line);
    tell(g, m, t, false);
    if (t->out)
        return true;
    region_bring(&m->region, &a->piece, t->lo - a->lo);
    m->clock = a->clock > m->clock ? a->clock : m->clock;
    g->sum->messages++;
    g->sum->link[from * g->f->stages + to] += a->bytes;
    return true;
}

static bool end_transfer(Game *g, int d, const Site *s, const int *param)
{
    Machine *m = &g->m[d];
    bool copy = *s->row->name == 'c';
    int at = begun(m, s, copy, arg_int(m, s, 0, param));
    if (at < 0)
        call_fault(m, s, "it waits for what has not begun");
    Transfer *t = m->open.at[at];
    if (!copy && !end_message(g, d, s, t))
        return false;
    m->open.at[at] = m->open.at[--m->open.n];
    if (copy)
        region_bring(t->out ? &m->host : &m->region, &t->piece, t->out ? t->host - t->lo : t->lo - t->host);
    return true;
}

/* ---- one stage, as far as it goes -------------------------------------------------------------------------------- */

static void enter(Machine *m, const Site *s, const Frame *from)
{
    const Routine *r = &m->program->routine.at[s->routine];
    Frame to = {.routine = r};
    for (int k = 0; k < s->n; k++) {
        int64_t i = s->arg[k].param < 0 ? s->arg[k].i : from->param[s->arg[k].param];
        if (s->arg[k].kind != A_INT || s->arg[k].slots >= 0 || i < INT32_MIN || i > INT32_MAX)
            call_fault(m, s, "an argument of %s that is no int", r->name);
        to.param[k] = (int)i;
    }
    if (m->frame.n > 64)
        call_fault(m, s, "routines too deep");
    *ADD(&m->frame) = to;
}

static void begin_step(const Folder *f, Machine *m, const Site *s, const int *param)
{
    int64_t at = arg_place(m, s, 0, param), sets = f->param_groups + 1;
    machine_take(m, s, at, at + sets * VALS_BYTES, true, "vals");
    vals_begin(m, at, sets);
}

static bool advance(Game *g, int d)
{
    Machine *m = &g->m[d];
    while (m->frame.n && m->frame.at[m->frame.n - 1].at == m->frame.at[m->frame.n - 1].routine->site.n)
        m->frame.n--;
    if (m->frame.n == 0 && m->done < m->todo.n)
        *ADD(&m->frame) = (Frame){.routine = m->todo.at[m->done++]};
    if (m->frame.n == 0)
        return false;
    Frame *f = &m->frame.at[m->frame.n - 1];
    if (f->at == f->routine->site.n)
        return true;
    Site *s = &f->routine->site.at[f->at];
    const char *name = s->row ? s->row->name : "";
    term_origin = (Origin){m->stage, s->line, -1};
    bool wait = !strcmp(name, "transfer_wait") || !strcmp(name, "copy_wait");
    if (wait && !end_transfer(g, d, s, f->param))
        return false;
    f->at++;
    if (m->together > 0 && strcmp(name, "send_begin") && strcmp(name, "recv_begin") && strcmp(name, "action"))
        call_fault(m, s, "%lld more messages are to begin before this", (long long)m->together);
    if (!s->row)
        enter(m, s, f);
    else if (!strcmp(name, "step_begin"))
        begin_step(g->f, m, s, f->param);
    else if (!strcmp(name, "messages_together"))
        m->run++, m->together = arg_int(m, s, 0, f->param);
    else if (strstr(name, "_begin"))
        begin_transfer(g, d, s, f->param);
    else if (!wait && strcmp(name, "action"))
        call_do(m, s, f->param);
    return true;
}

/* ---- begin and end of a step ------------------------------------------------------------------------------------- */

/* Version v of the weights is in slot v mod `kept`: before a run that of its first step, and those before it. */
static void put_states(const Folder *f, const Reference *r, const Stage *s, Machine *m, int first)
{
    for (int i = 0; i < s->held.n; i++) {
        const Held *h = &s->held.at[i];
        Site here = {.line = h->line};
        for (int k = 0; k < h->kept; k++) {
            int slot = ((first - k) % h->kept + h->kept) % h->kept;
            int64_t lo = h->at + slot * h->stride;
            machine_take(m, &here, lo, lo + h->bytes, true, "a state");
            if (strcmp(h->kind, "grad"))
                region_set(&m->region, (Piece){lo, lo + h->bytes, h->from, held_term(f, r, m, h, 0, k)});
        }
    }
}

static void add_piece(const Stage *s, Machine *m, int step, int piece)
{
    int k = step % s->phases * PIECES + piece, routine = k < s->piece.n ? map_at(&s->program.routines, s->piece.at[k]) : -1;
    if (routine < 0)
        stop(NOT_READ, "%s.c: there is no routine %s", s->name, k < s->piece.n ? s->piece.at[k] : "of this phase");
    *ADD(&m->todo) = &s->program.routine.at[routine];
}

static void open_stage(const Folder *f, const Reference *r, int d, Machine *m, Run run)
{
    const Stage *s = &f->stage[d];
    *m = (Machine){.name = s->name, .stage = d, .devices = f->devices, .program = (Program *)&s->program, .arena = s->arena,
                   .host_bytes = s->host, .vals = s->vals, .evaluates = run.eval || run.infer};
    put_states(f, r, s, m, run.first);
    if (!f->overlap || run.eval || run.alone) {
        add_piece(s, m, run.first, run.eval ? EVAL : ALONE);
    } else {
        add_piece(s, m, run.first, PROLOGUE);
        for (int k = 0; k < run.steps - f->overlap; k++)
            add_piece(s, m, run.first + k, PERIOD);
        add_piece(s, m, run.first + run.steps - f->overlap, EPILOGUE);
    }
}

static void stuck(const Game *g)
{
    for (int d = 0; d < g->f->stages; d++) {
        const Machine *m = &g->m[d];
        if (m->frame.n == 0)
            continue;
        const Frame *f = &m->frame.at[m->frame.n - 1];
        const Site *s = &f->routine->site.at[f->at];
        const Transfer *t = m->open.at[begun(m, s, false, arg_int(m, s, 0, f->param))];
        call_fault(m, s, "it waits for ever: stage %d never begins its half of the %s that began in line %d, however fast the "
                   "others are", t->peer, t->what, t->line);
    }
}

static void at_rest(const Game *g, int d)
{
    const Machine *m = &g->m[d];
    if (m->open.n)
        stop(NOT_PROVED, "%s.c:%d: %s %d is never waited for", m->name, m->open.at[0]->line,
             m->open.at[0]->copy ? "copy" : "request", m->open.at[0]->number);
}

Machine *play(const Folder *f, const Reference *r, Run run, Played *sum)
{
    size_t pairs = (size_t)f->stages * (size_t)f->stages;
    Game g = {.f = f, .m = room(sizeof(Machine) * (size_t)f->stages), .sent = room(sizeof(Queue) * pairs),
              .wanted = room(sizeof(Queue) * pairs), .sum = sum};
    *sum = (Played){.steps = run.steps, .link = room(sizeof(int64_t) * pairs)};
    for (int d = 0; d < f->stages; d++)
        open_stage(f, r, d, &g.m[d], run);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < f->stages; d++)
            while (advance(&g, d))
                moved = true;
    }
    stuck(&g);
    for (int d = 0; d < f->stages; d++) {
        at_rest(&g, d);
        sum->calls += g.m[d].calls;
        sum->again += g.m[d].again;
        sum->chain = g.m[d].clock > sum->chain ? g.m[d].clock : sum->chain;
    }
    return g.m;
}
