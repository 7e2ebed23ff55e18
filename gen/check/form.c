/* SPDX-License-Identifier: Apache-2.0
 *
 * form.c: does each record say what its kind needs, and nothing that contradicts another?  The other checkers and the emitter
 * use these fields as indexes and as parameters of C functions, so this comes before them.
 *
 * needs   any plan whose names are known.  fails  die().
 */
#include "check.h"

static bool sends_or_receives(const Action *k)
{
    return k->kind == K_SEND || k->kind == K_RECV || (k->kind == K_WAIT && (k->of == K_SEND || k->of == K_RECV));
}

static void check_move(const Plan *p, int device, int at, const Action *k)
{
    if (k->kind == K_WAIT && !is_copy(k) && !sends_or_receives(k))
        die("device %d: action %d waits for what nobody begins", device, at);
    if (k->kind == K_COUNT && (k->input < 0 || k->input >= p->g->count.n))
        die("device %d: action %d counts the targets of input %d of %d", device, at, k->input, p->g->count.n);
    bool adds = k->kind == K_MERGE || k->kind == K_GATHER;
    if (adds && (k->state < 0 || k->from_device < 0 || k->from_device >= p->devices))
        die("device %d: action %d adds nothing, or what is of nobody", device, at);
    if (!sends_or_receives(k))
        return;
    if (k->peer < 0 || k->peer >= p->devices || k->peer == device)
        die("device %d: action %d is a message to or from device %d", device, at, k->peer);
    if (k->request < 0 || k->request >= MOST_REQUESTS || k->request >= p->dev.at[device].requests)
        die("device %d: action %d has request %d of %d", device, at, k->request, p->dev.at[device].requests);
    if ((k->tensor < 0) == (k->state < 0) || k->bytes <= 0)
        die("device %d: action %d is a message of nothing", device, at);
}

void check_moves(const Plan *p)
{
    for (int d = 0; d < p->devices; d++)
        for (int eval = 0; eval < 2; eval++) {
            const Actions *list = eval ? &p->dev.at[d].eval : &p->dev.at[d].list;
            for (int i = 0; i < list->n; i++)
                check_move(p, d, i, &list->at[i]);
        }
}

/* Is the wait for this message, and do both say so? */
bool waits_for(const Action *wait, const Action *begun)
{
    return wait->of == begun->kind && wait->peer == begun->peer && wait->tag == begun->tag && wait->tensor == begun->tensor &&
           wait->state == begun->state && wait->mb == begun->mb && wait->bytes == begun->bytes && wait->at == begun->at &&
           wait->pipeline == begun->pipeline && wait->back == begun->back && wait->buf == begun->buf;
}

/* ---- routines ---------------------------------------------------------------------------------------------------- */

static bool is_buffer(const Arg *a)
{
    return a->kind == ARG_READ || a->kind == ARG_WRITE || a->kind == ARG_ADD || a->kind == ARG_UPDATE || a->kind == ARG_TMP ||
           a->kind == ARG_VALS;
}

/* The next number that a library is told of; the site of a mask is of one call. */
static const Arg *next_number(const Op *o, int *i)
{
    while (*i < o->arg.n) {
        const Arg *a = &o->arg.at[(*i)++];
        if (a->kind == ARG_INT && arg_role(a) != ROLE_SITE)
            return a;
    }
    return NULL;
}

/* Two calls may share what a library prepared if they have the same name and numbers. */
static bool same_handle(const Op *x, const Op *y)
{
    int i = 0, j = 0;
    for (;;) {
        const Arg *a = next_number(x, &i), *b = next_number(y, &j);
        if (!a || !b)
            return !a && !b && strcmp(x->call, y->call) == 0;
        if (a->i != b->i)
            return false;
    }
}

static void check_operands(const Plan *p, const Routine *r, const Call *c, const Op **prepared)
{
    const Op *o = &p->g->op.at[c->op];
    int handles = p->dev.at[r->device].handles;
    bool wanted = false;
    if (c->buf.n != o->arg.n)
        die("%s: %s has %d operands of %d", r->name, o->name, c->buf.n, o->arg.n);
    for (int i = 0; i < o->arg.n; i++) {
        wanted |= o->arg.at[i].kind == ARG_HANDLE;
        if ((c->buf.at[i] >= 0) != is_buffer(&o->arg.at[i]))
            die("%s: operand %d of %s has %s buffer", r->name, i, o->name, c->buf.at[i] >= 0 ? "a" : "no");
    }
    if (wanted ? c->handle < 0 || c->handle >= handles : c->handle >= 0)
        die("%s: %s has the handle %d of %d", r->name, o->name, c->handle, handles);
    if (wanted && prepared[c->handle] && !same_handle(o, prepared[c->handle]))
        die("%s: %s has a handle that is prepared for %s", r->name, o->name, prepared[c->handle]->name);
    if (wanted)
        prepared[c->handle] = o;
}

/* A routine takes the numbers that its calls want, and the slots of each pool that they use. */
static void check_parameters(const Plan *p, const Routine *r)
{
    bool mb = false, acc = false, *used = alloc((size_t)p->pool.n + 1);
    int pools = 0;
    for (EACH(const Call, c, r->call)) {
        const Op *o = &p->g->op.at[c->op];
        for (int j = 0; j < o->arg.n; j++) {
            mb |= o->arg.at[j].kind == ARG_MB;
            acc |= o->arg.at[j].kind == ARG_ACC;
            int pool = c->buf.at[j] < 0 ? -1 : p->buf.at[c->buf.at[j]].pool;
            if (pool >= 0 && !used[pool]) {
                used[pool] = true;
                pools++;
            }
        }
    }
    for (int i = 0; i < r->pool.n; i++) {
        if (!used[r->pool.at[i]])
            die("%s takes a slot of %s, which no call of it uses, or takes it twice", r->name, p->pool.at[r->pool.at[i]].name);
        used[r->pool.at[i]] = false;
    }
    if (mb != r->mb || acc != r->acc || pools != r->pool.n)
        die("%s does not take the numbers that its calls want", r->name);
}

/* A buffer is of one thing.  It lives for ever only if it is of a state, and then so do the slots that it is in. */
static void check_buffer(const Plan *p, const Buf *b)
{
    const Pool *pool = b->pool >= 0 ? &p->pool.at[b->pool] : NULL;
    if ((b->tensor >= 0) + (b->state >= 0) + (b->op >= 0 && b->tensor < 0 && b->state < 0) != 1)
        die("device %d: buffer %s is not of one tensor, state or scratch", b->device, b->name);
    if (b->birth == AT_ALWAYS && b->state < 0)
        die("device %d: %s is no state and lives for ever", b->device, b->name);
    if (pool && (pool->device != b->device || (pool->birth == AT_ALWAYS) != (b->birth == AT_ALWAYS)))
        die("device %d: %s lives otherwise than the slots of %s", b->device, b->name, pool->name);
}

static bool runs(const Plan *p, int device, bool eval, const Action *k)
{
    const Routine *r = &p->routine.at[k->routine];
    bool of_states = k->kind == K_VERSION || k->kind == K_PREDICT;
    return r->device == device && r->eval == eval && r->kind == k->kind && r->chunk == k->chunk && r->first == k->first &&
           r->until == k->until && (of_states || r->variant == k->variant);
}

/* Actions that compute run a routine of their own kind and chunk, others none.  Each begins at the call behind the last one. */
static int check_list(const Plan *p, int device, bool eval, int tick)
{
    const Actions *list = eval ? &p->dev.at[device].eval : &p->dev.at[device].list;
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        bool moves = k->tensor >= 0 || k->state >= 0;
        bool computes = k->kind <= K_U || k->kind == K_R || k->kind == K_FOLD || k->kind == K_VERSION || k->kind == K_PREDICT;
        if (computes ? k->routine < 0 || !runs(p, device, eval, k) : k->routine >= 0)
            die("device %d: action %d does not run a routine of its kind and chunk", device, i);
        if (!computes && moves && (k->buf < 0 || p->buf.at[k->buf].device != device))
            die("device %d: action %d moves no buffer of the device", device, i);
        if (k->tick != tick)
            die("device %d: action %d does not come after the one before it: call %d, not %d", device, i, k->tick, tick);
        int calls = computes ? p->routine.at[k->routine].call.n : 1;
        tick += calls > 0 ? calls : 1;
    }
    return tick;
}

void check_routines(const Plan *p)
{
    for (int b = 0; b < p->buf.n; b++)
        check_buffer(p, &p->buf.at[b]);
    for (int d = 0; d < p->devices; d++) {
        int handles = p->dev.at[d].handles;
        if (handles < 0 || handles > MOST_HANDLES)
            die("device %d has %d handles", d, handles);
        const Op **prepared = alloc(sizeof *prepared * (size_t)(handles + 1));
        for (EACH(const Routine, x, p->routine)) {
            for (int i = 0; x->device == d && i < x->call.n; i++)
                check_operands(p, x, &x->call.at[i], prepared);
            if (x->device == d)
                check_parameters(p, x);
        }
        int ticks = check_list(p, d, true, check_list(p, d, false, 0));
        if (ticks != p->dev.at[d].ticks)
            die("device %d has %d calls, not %d", d, ticks, p->dev.at[d].ticks);
    }
}
