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

typedef struct { Message *at; int n, cap; } Queue;      /* of a pair: sends, or receives, in the order of their begin */
typedef struct { const Folder *f; Machine *m; Queue *sent, *wanted; Played *sum; } Game;

static Queue *queue(const Game *g, Queue *of, int from, int to)
{
    return &of[from * g->f->stages + to];
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

static void own(Machine *m, const Site *s, int64_t lo, int64_t hi, bool writes, const char *what)
{
    machine_take(m, s, lo, hi, writes, what);
    *ADD(&m->flight) = (Flight){lo, hi, writes, s->line, what};
}

/* One term for all that a stage tells others, where each of several runs must tell the same. */
static void tell(const Game *g, Machine *m, const int64_t *what, int n, const Pieces *of, int64_t lo)
{
    static LIST(Term) arg;
    arg.n = 0;
    *ADD(&arg) = m->talk;
    for (int i = 0; i < n; i++)
        *ADD(&arg) = term_int(what[i]);
    for (int i = 0; i < of->n; i++) {
        const Piece *p = &of->at[i];
        *ADD(&arg) = term_int(p->hi - lo);
        *ADD(&arg) = p->term ? term_slice(p->term, p->from, p->hi - p->lo) : 0;
    }
    if (g->f->overlap)
        m->talk = term_of(head_of("messages", "", ""), 0, arg.n, arg.at);
}

static void begin_transfer(Game *g, int d, const Site *s, const int *param, bool sends)
{
    Machine *m = &g->m[d];
    int64_t lo = arg_place(m, s, 0, param), number = arg_int(m, s, 1, param), peer = arg_int(m, s, 2, param);
    int64_t bytes = arg_int(m, s, 4, param);
    if (number < 0 || number > 255 || peer < 0 || peer >= g->f->stages || peer == d || bytes <= 0)
        call_fault(m, s, "request %lld, peer %lld, %lld bytes: none of that is there", (long long)number, (long long)peer,
                   (long long)bytes);
    Request *r = &m->request[number];
    if (r->busy)
        call_fault(m, s, "request %lld has not been waited for", (long long)number);
    own(m, s, lo, lo + bytes, !sends, sends ? "send" : "receive");
    Queue *q = sends ? queue(g, g->sent, d, (int)peer) : queue(g, g->wanted, (int)peer, d);
    *r = (Request){true, sends, (int)peer, q->n, lo, lo + bytes, s->line};
    Message *to = ADD(q);
    *to = (Message){.bytes = bytes, .lo = lo, .tag = (int)arg_int(m, s, 3, param), .line = s->line, .clock = m->clock};
    if (sends)
        region_get(&m->region, lo, lo + bytes, &to->piece);
    tell(g, m, (int64_t[]){sends, peer, to->tag, bytes}, 4, &to->piece, lo);
    for (int i = 0; i < to->piece.n; i++)
        if (to->piece.at[i].term == 0)
            call_fault(m, s, "nothing has written byte %lld of what is sent", (long long)to->piece.at[i].lo);
}

static bool end_transfer(Game *g, int d, const Site *s, const int *param)
{
    Machine *m = &g->m[d];
    int64_t number = arg_int(m, s, 0, param);
    if (number < 0 || number > 255 || !m->request[number].busy)
        call_fault(m, s, "request %lld has not begun", (long long)number);
    Request *r = &m->request[number];
    int from = r->sends ? d : r->peer, to = r->sends ? r->peer : d;
    Queue *sent = queue(g, g->sent, from, to), *wanted = queue(g, g->wanted, from, to);
    if (r->number >= sent->n || r->number >= wanted->n)
        return false;
    Message *a = &sent->at[r->number], *b = &wanted->at[r->number];
    if (a->bytes != b->bytes || a->tag != b->tag)
        call_fault(m, s, "message %d from stage %d to %d is %lld bytes with tag %d where it is sent, stage%d.c:%d, and %lld "
                   "bytes with tag %d where it is received, stage%d.c:%d", r->number, from, to, (long long)a->bytes, a->tag,
                   from, a->line, (long long)b->bytes, b->tag, to, b->line);
    tell(g, m, (int64_t[]){r->sends, r->peer, r->number}, 3, &(Pieces){0}, 0);
    flight_end(&m->flight, r->lo, r->hi, r->line);
    r->busy = false;
    if (r->sends)
        return true;
    region_bring(&m->region, &a->piece, r->lo - a->lo);
    m->clock = a->clock > m->clock ? a->clock : m->clock;
    g->sum->messages++;
    g->sum->link[from * g->f->stages + to] += a->bytes;
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
    if (!strcmp(name, "transfer_wait") && !end_transfer(g, d, s, f->param))
        return false;
    f->at++;
    if (!s->row)
        enter(m, s, f);
    else if (!strcmp(name, "send_begin") || !strcmp(name, "recv_begin"))
        begin_transfer(g, d, s, f->param, *name == 's');
    else if (!strcmp(name, "offload_begin") || !strcmp(name, "fetch_begin"))
        copy_begin(m, s, f->param, *name == 'o');
    else if (!strcmp(name, "copy_wait"))
        copy_end(m, s, f->param);
    else if (!strcmp(name, "step_begin"))
        begin_step(g->f, m, s, f->param);
    else if (strcmp(name, "transfer_wait") && strcmp(name, "action"))
        call_do(m, s, f->param);
    return true;
}

/* ---- begin and end of a step ------------------------------------------------------------------------------------- */

static Term held_before(const Folder *f, int stage, const Held *h, int older)
{
    Reads r = overlap_slot(f, stage, h->kept, older);
    Term newer = state_begin(h->param, h->kind, h->whole, -r.version);
    if (!r.ahead && !r.behind)
        return newer;
    Term other = r.behind ? state_begin(h->param, "drift", h->whole, 0) :
                 state_begin(h->param, h->kind, h->whole, 1 - r.version);
    return predicted_term(h->whole, newer, other, r);
}

/* Version v of the weights is in slot v mod `kept`: before a run that of its first step, and those before it. */
static void put_states(const Folder *f, const Stage *s, Machine *m, int first)
{
    for (int i = 0; i < s->held.n; i++) {
        const Held *h = &s->held.at[i];
        Site here = {.line = h->line};
        for (int k = 0; k < h->kept; k++) {
            int slot = ((first - k) % h->kept + h->kept) % h->kept;
            int64_t lo = h->at + slot * h->stride;
            machine_take(m, &here, lo, lo + h->bytes, true, "a state");
            if (strcmp(h->kind, "grad"))
                region_set(&m->region, (Piece){lo, lo + h->bytes, h->from, held_term(f, h, held_before(f, m->stage, h, k))});
        }
    }
}

enum { PROLOGUE, PERIOD, EPILOGUE, ALONE, EVAL, PIECES };

static void add_todo(const Stage *s, Machine *m, const char *name)
{
    int k = map_at(&s->program.routines, name);
    if (k < 0)
        stop(NOT_READ, "%s.c: there is no routine %s", s->name, name);
    *ADD(&m->todo) = &s->program.routine.at[k];
}

static void add_piece(const Stage *s, Machine *m, int step, int piece)
{
    const Node *n = s->pieces->child;
    for (int k = step % s->phases * PIECES + piece; k > 0 && n; k--)
        n = n->next;
    if (!n || n->kind != N_NAME)
        stop(NOT_READ, "%s: piece %d of phase %d is missing", s->name, piece, step % s->phases);
    add_todo(s, m, n->text);
}

static void open_stage(const Folder *f, int d, Machine *m, Run run)
{
    const Stage *s = &f->stage[d];
    *m = (Machine){.name = s->name, .stage = d, .devices = f->devices, .program = (Program *)&s->program, .arena = s->arena,
                   .host_bytes = s->host, .vals = s->vals, .evaluates = run.eval};
    put_states(f, s, m, run.first);
    if (!f->overlap) {
        add_todo(s, m, run.eval ? s->eval : s->step);
    } else if (run.eval || run.alone) {
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
        const Request *r = &m->request[arg_int(m, s, 0, f->param)];
        call_fault(m, s, "it waits for ever: stage %d never begins its half of the %s that began in line %d, however fast the "
                   "others are", r->peer, r->sends ? "send" : "receive", r->line);
    }
}

static void at_rest(const Game *g, int d)
{
    const Machine *m = &g->m[d];
    for (int i = 0; i < 256; i++)
        if (m->request[i].busy)
            stop(NOT_PROVED, "%s.c:%d: request %d is never waited for", m->name, m->request[i].line, i);
    copies_at_rest(m);
}

Machine *play(const Folder *f, Run run, Played *sum)
{
    size_t pairs = (size_t)f->stages * (size_t)f->stages;
    Game g = {.f = f, .m = room(sizeof(Machine) * (size_t)f->stages), .sent = room(sizeof(Queue) * pairs),
              .wanted = room(sizeof(Queue) * pairs), .sum = sum};
    *sum = (Played){.steps = run.steps, .link = room(sizeof(int64_t) * pairs)};
    for (int d = 0; d < f->stages; d++)
        open_stage(f, d, &g.m[d], run);
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
