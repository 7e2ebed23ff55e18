/* SPDX-License-Identifier: Apache-2.0
 *
 * comm.c: do the devices' lists, run together, come to an end?  Checks of comm and lower.  What they share with those passes is
 * the rule of recomputation (calls_of), versions, and which part of the update or of a fold takes a gradient.
 *
 * Begins of one directed pair must stand in the same order on both sides.  list/rendezvous.c decides whether anybody waits for
 * ever: it plays the lists and knows none of their rules.  Copies to the host and back wait for nobody; they must come in turn.
 */
#include "check.h"
#include "list/list.h"

typedef struct { int tag; Bytes bytes; int mb, step; } Post;
typedef VEC(Post) Posts;

/* [from * devices + to]: in the order in which they begin */
static Posts *posts(const Plan *p, ActionKind kind, const Actions *list)
{
    Posts *out = alloc(sizeof *out * (size_t)(p->devices * p->devices));
    for (int d = 0; d < p->devices; d++)
        for (EACH(const Action, k, list[d]))
            if (k->kind == kind)
                *PUSH(&out[kind == K_SEND ? d * p->devices + k->peer : k->peer * p->devices + d]) =
                    (Post){k->tag, k->bytes, k->mb, k->step};
    return out;
}

static void check_pairs(const Plan *p, const Actions *list)
{
    const Posts *sends = posts(p, K_SEND, list), *receives = posts(p, K_RECV, list);
    for (int a = 0; a < p->devices; a++)
        for (int b = 0; b < p->devices; b++) {
            const Posts sent = sends[a * p->devices + b], got = receives[a * p->devices + b];
            if (sent.n != got.n)
                die("device %d sends %d messages to %d, which receives %d", a, sent.n, b, got.n);
            for (int i = 0; i < sent.n; i++)
                if (sent.at[i].tag != got.at[i].tag || sent.at[i].bytes != got.at[i].bytes || sent.at[i].mb != got.at[i].mb ||
                    sent.at[i].step != got.at[i].step)
                    die("message %d from %d to %d: tag %d sent where tag %d is received",
                        i, a, b, sent.at[i].tag, got.at[i].tag);
        }
}

/* Each request number is begun, waited for, and only then begun again.  Where steps overlap, slots turn, and check_mem follows
 * them. */
static void check_requests(const Actions *list, int device, bool turns)
{
    const Action *busy[MOST_REQUESTS] = {NULL};
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        bool begins = k->kind == K_SEND || k->kind == K_RECV;
        if ((!begins && k->kind != K_WAIT) || is_copy(k))
            continue;
        if (k->request < 0 || k->request >= MOST_REQUESTS || !busy[k->request] != begins)
            die("device %d, action %d: request %d is begun twice or waited for twice", device, i, k->request);
        if (!begins && (!waits_for(k, busy[k->request]) || (k->slot != busy[k->request]->slot && !turns)))
            die("device %d, action %d: waits for another message than request %d", device, i, k->request);
        busy[k->request] = begins ? k : NULL;
    }
    for (int r = 0; r < MOST_REQUESTS; r++)
        if (busy[r])
            die("device %d: request %d is never waited for", device, r);
}

static void check_halts(const Plan *p, const Actions *list)
{
    int at, d = rendezvous_stops(p, list, &at);
    if (d >= 0)
        die("deadlock: device %d waits at action %d for %d", d, at, list[d].at[at].peer);
}

/* What may stand between two pieces: copies, and gradients on their way to and from other rows. */
static bool is_between(const Plan *p, int device, const Action *k)
{
    ActionKind kind = k->kind == K_WAIT ? k->of : k->kind;
    bool moves = kind == K_SEND || kind == K_RECV || kind == K_MERGE, grad = k->state >= 0;
    return is_copy(k) || (moves && grad && p->g->state.at[k->state].kind == S_GRAD &&
                          (kind == K_MERGE || plan_across(p, device, k)));
}

/* A piece goes on at the end of the one before it, with nothing else in between.  The last piece ends the line. */
static bool goes_on(const Action *a, const Action *before)
{
    return before && before->kind == a->kind && before->chunk == a->chunk && before->mb == a->mb && a->first > 0 &&
           before->until == a->first;
}

/* Pieces of computations are whole together. */
static void check_pieces(const Plan *p, int device)
{
    const Actions *list = &p->dev.at[device].list;
    const Action *open = NULL;
    const Backward *back = NULL;
    int *length = alloc(sizeof(int) * (size_t)plan_chunks(p) * (K_R + 1));
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        if (k->kind == K_FOLD)          /* of a part of the gradients: check_mem finds one that is folded twice, or too early */
            continue;
        if (k->first == 0 && k->until == 0 && (is_between(p, device, k) || !open))
            continue;
        int *n = k->until > 0 && k->kind <= K_R && k->chunk >= 0 ? &length[k->chunk * (K_R + 1) + (int)k->kind] : NULL;
        if (n && *n == 0) {
            back = back ? back : backwards_of(p);
            *n = calls_of(p, &back[k->chunk], k->chunk, k->kind).n;
        }
        if (!n || k->until <= k->first || (k->first > 0 && !goes_on(k, open)) || (k->first == 0 && open) || k->until > *n)
            die("device %d: action %d is no piece of the computation it belongs to", device, i);
        open = k->until < *n ? k : NULL;
    }
    if (open)
        die("device %d: the end of a computation is missing", device);
}

/* An offloaded tensor goes out behind its forward, is out, comes in, is in.  Each wait is for the last begin of its number.  No
 * copy takes a number in use. */
static void check_copies(const Plan *p, int device)
{
    enum { MADE_HERE, OUT, AWAY, IN, BACK };
    const Actions *list = &p->dev.at[device].list;
    const size_t micro = (size_t)p->g->micro, all = p->dev.at[device].copies ? (size_t)p->g->tensor.n * micro : 0;
    char *state = alloc(all);
    const Action **open = alloc(sizeof *open * (size_t)(p->dev.at[device].copies + 1));
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i], **at = open + k->request;
        if (!is_copy(k))
            continue;
        if (k->tensor < 0 || k->mb < 0 || k->request < 0 || k->request >= p->dev.at[device].copies || k->state >= 0)
            die("device %d: action %d is a copy of nothing", device, i);
        const Tensor *t = &p->g->tensor.at[k->tensor];
        char *s = &state[(size_t)k->tensor * micro + (size_t)k->mb];
        bool wait = k->kind == K_WAIT;
        char want = (k->kind == K_OUT ? MADE_HERE : k->kind == K_IN ? AWAY : k->of == K_OUT ? OUT : IN);
        if (p->fate.at[k->tensor] != FATE_OFFLOAD || t->op < 0 || !runs_on(p, t->op, device))
            die("device %d: action %d copies %s, which is not offloaded here", device, i, t->name);
        if (*s != want || k->bytes != t->bytes)
            die("device %d: action %d copies %s, micro-batch %d, out of turn", device, i, t->name, k->mb);
        if (wait ? !*at || (*at)->tensor != k->tensor || (*at)->mb != k->mb || (*at)->kind != k->of : *at != NULL)
            die("device %d: copy %d is begun twice or waited for twice", device, k->request);
        *at = wait ? NULL : k;
        *s = (char)(want + 1);
    }
    for (size_t i = 0; i < all; i++)
        if (state[i] != MADE_HERE && state[i] != BACK)
            die("device %d: %s, micro-batch %d, never comes back", device, p->g->tensor.at[i / micro].name, (int)(i % micro));
}

static bool computes(ActionKind k)
{
    return k == K_F || k == K_B || k == K_I || k == K_W || k == K_U || k == K_FOLD || k == K_VERSION ||
           k == K_PREDICT;
}

/* Are the two the same for the schedule?  Forward's flag adds up the loss of the step and is not the schedule's. */
static bool same_computation(const Plan *p, int device, const Action *a, const Action *b)
{
    bool acc = a->kind == K_F ? a->acc == (a->mb > plan_first(p, device, a->chunk)) : a->acc == b->acc;
    return a->kind == b->kind && a->chunk == b->chunk && a->mb == b->mb && a->variant == b->variant &&
           a->version == b->version && a->step == b->step && a->piece == b->piece && acc &&
           a->group == b->group && a->into == b->into;
}

/* Has this part of the update nothing to do for the chunk?  lower drops those. */
static bool is_empty(const Plan *p, const Action *k)
{
    for (int o = p->g->nb; o < p->g->op.n; o++)
        if (p->chunk.at[o] == k->chunk && update_part(p, o) == k->update)
            return false;
    return true;
}

static bool folds_nothing(const Plan *p, const Action *k)
{
    for (int s = 0; s < p->g->state.n; s++) {
        const State *x = &p->g->state.at[s];
        if (x->kind == S_GRAD && p->chunk.at[x->op] == k->chunk && fold_takes(p->g, k->fold, s))
            return false;
    }
    return true;
}

static bool keeps_nothing(const Plan *p, int chunk)
{
    for (int s = 0; s < p->g->state.n; s++)
        if (version_copied(p, s, chunk))
            return false;
    return true;
}

/* Has the chunk no operator of that phase?  Additions and reports have no backward of their own. */
static bool computes_nothing(const Plan *p, const Action *k)
{
    bool i = k->kind == K_B || k->kind == K_I, w = k->kind == K_B || k->kind == K_W;
    for (int o = p->g->nf; o < p->g->nb; o++)
        if (p->chunk.at[o] == k->chunk && ((i && p->g->op.at[o].phase == PH_I) || (w && p->g->op.at[o].phase == PH_W)))
            return false;
    return i || w;
}

/* Is the action allowed to vanish?  An exchange is; check_mem finds an update that reads less than the whole sum. */
static bool does_nothing(const Plan *p, const Action *k)
{
    bool weights = k->kind == K_VERSION || k->kind == K_PREDICT;
    return k->kind == K_MERGE || k->kind == K_SHARE || k->kind == K_ROOM || computes_nothing(p, k) ||
           (weights && keeps_nothing(p, k->chunk)) ||
           (k->kind == K_U && is_empty(p, k)) || (k->kind == K_FOLD && folds_nothing(p, k));
}

void check_comm(const Plan *p)
{
    check_moves(p);
    for (int periods = 0; order_overlap(p) > 0 && periods < 3; periods++)
        check_halts(p, rendezvous_meeting(p, periods));
    /* The computations are those that order gave, all of them, in its order, and no others. */
    for (int d = 0; d < p->devices; d++) {
        const Actions *order = &p->dev.at[d].order, *list = &p->dev.at[d].list;
        int j = 0;
        for (int i = 0; i < list->n; i++) {
            if (!computes(list->at[i].kind) || list->at[i].first > 0)
                continue;
            while (j < order->n && !same_computation(p, d, &list->at[i], &order->at[j]) && does_nothing(p, &order->at[j]))
                j++;
            if (j == order->n || !same_computation(p, d, &list->at[i], &order->at[j++]))
                die("device %d: action %d is not the computation that the schedule has there", d, i);
        }
        for (; j < order->n; j++)
            if (!does_nothing(p, &order->at[j]))
                die("device %d: computation %d of the schedule is missing from its list", d, j);
    }
    for (int d = 0; d < p->devices; d++) {
        check_pieces(p, d);
        check_copies(p, d);
    }
    for (int eval = 0; eval < 2; eval++)
        for (int steps = rendezvous_steps(p, eval); steps > 0; steps--) {
            const Actions *list = order_lists(p, eval, steps);
            check_pairs(p, list);
            for (int d = 0; d < p->devices; d++)
                check_requests(&list[d], d, order_overlap(p) > 0);
            check_halts(p, list);
        }
}

/* ---- lower ------------------------------------------------------------------------------------------------------- */

/* Bytes of a state that are there: of a moment, and of a gradient that drops, the part that the row updates. */
static Bytes state_bytes(const Plan *p, const Routine *r, const Op *o, int state)
{
    const State *s = &p->g->state.at[state];
    bool moment = s->kind == S_MOMENT1 || s->kind == S_MOMENT2 || s->kind == S_CENTRE;
    bool cut = moment || value_dropped(p, state) || (s->kind == S_PARAM && value_parted(p, state));
    if (!cut || o->phase != PH_U || value_cut(p, o) < 0)
        return s->bytes;
    Kept part = value_kept(p, plan_copy(p, r->device, r->chunk), state, plan_levels(p));
    return part.to - part.from;
}

static void check_call(const Plan *p, const Routine *r, const Call *c)
{
    const Op *o = &p->g->op.at[c->op];
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        bool value = a->kind == ARG_READ || a->kind == ARG_WRITE || a->kind == ARG_ADD || a->kind == ARG_UPDATE;
        if (a->kind == ARG_TMP && p->buf.at[c->buf.at[i]].bytes != o->tmp)
            die("%s: scratch of %s has the wrong size", r->name, o->name);
        if (!value)
            continue;
        const Buf *b = &p->buf.at[c->buf.at[i]];
        Bytes bytes = a->state ? state_bytes(p, r, o, a->index) : p->g->tensor.at[a->index].bytes;
        if (b->bytes != bytes)
            die("%s: %s of %s has %lld bytes in a buffer of %lld", r->name, a->token, o->name, (long long)bytes,
                (long long)b->bytes);
        if (b->device != r->device || (a->state ? b->state : b->tensor) != a->index)
            die("%s: operand %s of %s is in the buffer of something else", r->name, a->token, o->name);
        if (a->kind == ARG_WRITE && !a->state && (b->origin == REMADE) != c->again)
            die("%s: %s writes a buffer of another origin", r->name, o->name);
    }
}

/* Rows that call the operator: all, but those without a part of its parameter. */
static int callers(const Plan *p, int op)
{
    int n = 0, param = value_cut(p, &p->g->op.at[op]);
    for (int row = 0; row < plan_copies(p, p->chunk.at[op]); row++) {
        Kept part = param < 0 ? (Kept){0, 1} : value_kept(p, row, param, plan_levels(p));
        n += part.to > part.from;
    }
    return n;
}

/* Every operator runs once a micro-batch at its place, on buffers of its operands and their size.  A recomputation only repeats
 * forward operators.  check_mem shows that operands are alive. */
void check_lower(const Plan *p)
{
    const Graph *g = p->g;
    int *runs = alloc(sizeof(int) * (size_t)g->op.n);
    check_routines(p);
    for (EACH(const Routine, x, p->routine))
        for (EACH(const Call, c, x->call)) {
            if (c->again && c->op >= g->nf)
                die("%s: %s is no forward operator and cannot be recomputed", x->name, g->op.at[c->op].name);
            if (!runs_on(p, c->op, x->device))
                die("%s: %s runs on the wrong device", x->name, g->op.at[c->op].name);
            runs[c->op] += !c->again && !x->eval;
            check_call(p, x, c);
        }
    /* A copy moves all of a tensor between two buffers of that tensor. */
    for (int d = 0; d < p->devices; d++)
        for (int i = 0; i < p->dev.at[d].list.n; i++) {
            const Action *k = &p->dev.at[d].list.at[i];
            if (!is_copy(k))
                continue;
            const HostBuf *h = k->host >= 0 ? &p->host.at[k->host] : NULL;
            const Buf *b = k->buf >= 0 ? &p->buf.at[k->buf] : NULL;
            bool in = k->kind == K_IN || k->of == K_IN;
            if (!h || !b || h->device != d || h->tensor != k->tensor || h->bytes != k->bytes || b->device != d ||
                b->tensor != k->tensor || b->bytes != k->bytes || b->origin != (in ? FETCHED : MADE))
                die("device %d: action %d copies between the buffers of something else", d, i);
        }
    for (int o = 0; o < g->op.n; o++)
        if (runs[o] != callers(p, o))
            die("operator %s (%s) is called by %d routines", g->op.at[o].name, g->op.at[o].call, runs[o]);
}
