/* SPDX-License-Identifier: Apache-2.0
 *
 * lower.c: from actions to straight lines of kernel calls.
 *
 * Method: each (chunk, phase) becomes one routine, written once, whatever the number of micro-batches.  Two runs of it
 * differ only in literal slot numbers.  Every operand becomes a buffer of the device.  A tensor can have several on one device,
 * by origin: MADE by its own operator, REMADE in backward, RECEIVED from another device, FETCHED from the host.  A reader takes
 * the one that is alive at its place.
 *
 * A buffer touched by one routine alone is local to it.  The others are grouped in pools by (chunk, birth, death), and mem
 * counts the slots.  The buffers of an offloaded tensor, before and after, stand alone, since their turn is short.  Pool names
 * are two letters, birth and death:
 *   f forward  r recomputation  b backward  w weight gradient  l load  x received activation  g received gradient  s sent
 *
 * Cost: linear in calls, and in distinct library handles times calls.
 */
#include "list/list.h"

typedef struct {
    Plan *p;
    int device;
    Backward *back;             /* by chunk */
    int *tensor[2][4];          /* [eval][origin][tensor] -> buffer of this device, + 1 */
    int *state;                 /* [way * states + state] -> buffer of this device, + 1 */
    int *norm_in;               /* [peer] -> buffer of received partial norms, + 1 */
    int *host;                  /* [tensor] -> host buffer, + 1 */
    int *merge;                 /* [level * states + state] -> buffer of a received gradient, + 1 */
    int *room;                  /* [state] -> buffer of a parameter's room, + 1 */
    int bufs, routines;         /* there were before this device */
    Room *scratch;
    Strs handle;                /* what each handle is for */
    bool eval;
    int chunk;                  /* of the routine being written; -1 in the update */
    bool backward;
} Lower;

/* Some device has several. */
static bool several_chunks(const Plan *p)
{
    return p->chunks * plan_ways(p) > 1;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static int new_buf(Lower *w, Buf b)
{
    b.device = w->device;
    b.pool = -1;
    *PUSH(&w->p->buf) = b;
    return w->p->buf.n - 1;
}

static int tensor_buf(Lower *w, int t, Origin origin)
{
    static const char *const suffix[] = {"", "_r", "_in", "_back"};
    int *slot = &w->tensor[w->eval][origin][t];
    if (*slot == 0) {
        const Tensor *x = &w->p->g->tensor.at[t];
        const char *name = strf("%s%s%s", x->name, suffix[origin], w->eval ? "_eval" : "");
        int chunk = x->op >= 0 && origin != RECEIVED ? w->p->chunk.at[x->op] : w->chunk;
        *slot = 1 + new_buf(w, (Buf){.name = name, .chunk = chunk, .eval = w->eval, .tensor = t, .state = -1,
                                     .origin = origin, .op = -1, .bytes = x->bytes});
    }
    return *slot - 1;
}

/* The owner of the value of a state.  Parameters and their states live with their first use, in every row. */
static int owner_of(const Lower *w, int s, int way)
{
    const Graph *g = w->p->g;
    const State *x = &g->state.at[s];
    int row = plan_replica(w->p, w->device) * plan_ways(w->p) + way;
    if (x->kind == S_GRAD)
        return device_of(w->p, row, x->op);
    if (x->param >= 0)
        return device_of(w->p, row, g->state.at[x->param].op);
    return -1;
}

/* Step values are of all the device computes; of the others each pipeline that it is in has its own. */
static int state_buf(Lower *w, int s, int way)
{
    int *slot = &w->state[way * w->p->g->state.n + s];
    if (*slot == 0) {
        const State *x = &w->p->g->state.at[s];
        int owner = owner_of(w, s, way);
        bool mine = owner < 0 || owner == w->device;
        bool passing = x->kind == S_GRAD && !mine;          /* a remote use's gradient, alive in the update alone */
        bool kept = mine && version_kept(w->p, s), ring = s == w->p->g->vals && order_overlap(w->p) > 0;
        bool drops = plan_drops(w->p, s), cut = drops ? passing : x->kind >= S_MOMENT1 && x->kind <= S_DRIFT;
        cut |= x->kind == S_PARAM && plan_parted(w->p, s);
        Extent part = cut ? plan_piece(w->p, plan_replica(w->p, w->device), s) : (Extent){0, x->bytes};
        const char *more = way == 0 || (mine && owner >= 0) ? "" : strf("_%d", way + 1);
        *slot = 1 + new_buf(w, (Buf){.name = strf("%s%s%s", x->name, mine ? "" : "_in", more), .state = s,
            .pipeline = way, .tensor = -1,
            .chunk = x->op >= 0 && (x->kind == S_GRAD || kept) ? w->p->chunk.at[x->op] : -1,
            .origin = mine ? MADE : RECEIVED, .op = -1, .bytes = part.until - part.from,
            .birth = passing ? AT_RECV : drops ? AT_B : AT_ALWAYS,
            .death = passing || drops || kept ? AT_U : ring ? AT_F : AT_ALWAYS});
    }
    return *slot - 1;
}

/* Where computations read it; it is free between their sessions. */
static int room_buf(Lower *w, int s)
{
    const State *x = &w->p->g->state.at[s];
    if (w->room[s] == 0)
        w->room[s] = 1 + new_buf(w, (Buf){.name = strf("%s_room", x->name), .state = s, .tensor = -1,
            .chunk = w->p->chunk.at[x->op], .origin = REMADE, .op = -1, .bytes = x->bytes, .birth = AT_RECV,
            .death = AT_B});
    return w->room[s] - 1;
}

/* The pipeline whose copy of the chunk at hand the device holds. */
static int way_of(const Lower *w)
{
    return w->chunk < 0 ? 0 : plan_row_of(w->p, w->device, w->chunk) % plan_ways(w->p);
}

static int norm_buf(Lower *w, int s, int peer)
{
    if (w->norm_in[peer] == 0)
        w->norm_in[peer] = 1 + new_buf(w, (Buf){.name = strf("%s_in%d", w->p->g->state.at[s].name, peer), .state = s,
            .tensor = -1, .chunk = -1, .origin = RECEIVED, .op = -1, .bytes = w->p->g->state.at[s].bytes,
            .birth = AT_RECV, .death = AT_U});
    return w->norm_in[peer] - 1;
}

/* What the update, or a message to another stage, takes of a gradient: of one that drops, the part. */
static int summed_buf(Lower *w, int s, int way)
{
    bool mine = plan_drops(w->p, s) && owner_of(w, s, way) == w->device;
    return mine ? w->merge[(plan_levels(w->p) - 1) * w->p->g->state.n + s] - 1 : state_buf(w, s, way);
}

/* The buffer from which a call of the routine at hand reads tensor t. */
static int read_buf(Lower *w, int t)
{
    const Tensor *x = &w->p->g->tensor.at[t];
    if (x->op < 0)
        return tensor_buf(w, t, MADE);
    if (w->backward && x->kind != T_GRAD && w->back[w->chunk].remade[t])
        return tensor_buf(w, t, REMADE);
    if (w->backward && x->kind != T_GRAD && w->back[w->chunk].fetched[t])
        return tensor_buf(w, t, FETCHED);
    bool here = device_of(w->p, plan_row_of(w->p, w->device, w->chunk), x->op) == w->device;
    return tensor_buf(w, t, here ? MADE : RECEIVED);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static int handle_of(Lower *w, const Op *o)
{
    const char *key = o->call;
    bool wanted = false;
    for (EACH(const Arg, a, o->arg))
        wanted |= a->kind == ARG_HANDLE;
    if (!wanted)
        return -1;
    for (EACH(const Arg, a, o->arg))
        if (a->kind == ARG_INT && arg_role(a) != ROLE_SITE)
            key = strf("%s %lld", key, (long long)a->i);
    for (int i = 0; i < w->handle.n; i++)
        if (strcmp(w->handle.at[i], key) == 0)
            return i;
    *PUSH(&w->handle) = key;
    return w->handle.n - 1;
}

static int arg_buf(Lower *w, const Op *o, const Arg *a, bool again)
{
    switch (a->kind) {
    case ARG_READ:
        return !a->state ? read_buf(w, a->index) : o->phase == PH_U ? summed_buf(w, a->index, way_of(w))
             : plan_room(w->p, a->index) ? room_buf(w, a->index) : state_buf(w, a->index, way_of(w));
    case ARG_WRITE:
        return a->state && w->p->g->state.at[a->index].kind == S_COPY && plan_room(w->p, a->index) ? room_buf(w, a->index)
             : a->state ? state_buf(w, a->index, way_of(w)) : tensor_buf(w, a->index, again ? REMADE : MADE);
    case ARG_UPDATE:
        return summed_buf(w, a->index, way_of(w));
    case ARG_ADD:
        return state_buf(w, a->index, way_of(w));
    case ARG_VALS:
        return state_buf(w, w->p->g->vals, 0);
    case ARG_TMP:
        return new_buf(w, (Buf){.name = strf("%s.tmp%s%s", o->name, again ? "_r" : o->phase == PH_F ? "" : "_b",
                                             w->eval ? "_eval" : ""),
                                .chunk = w->chunk, .eval = w->eval, .tensor = -1, .state = -1,
                                .op = (int)(o - w->p->g->op.at), .bytes = o->tmp});
    default:
        return -1;
    }
}

static void add_call(Lower *w, Routine *r, int op, bool again)
{
    const Op *o = &w->p->g->op.at[op];
    Call *call = PUSH(&r->call);
    *call = (Call){.op = op, .again = again, .handle = handle_of(w, o)};
    for (EACH(const Arg, a, o->arg)) {
        int b = arg_buf(w, o, a, again);
        *PUSH(&call->buf) = b;
        r->mb |= a->kind == ARG_MB;
        r->acc |= a->kind == ARG_ACC;
    }
}

/* ---- routines ---------------------------------------------------------------------------------------------------- */

static Routine *new_routine(Lower *w, ActionKind kind, int chunk, const char *name)
{
    Routine *r = PUSH(&w->p->routine);
    *r = (Routine){.name = name, .device = w->device, .chunk = chunk, .kind = kind, .eval = w->eval};
    w->chunk = chunk;
    w->backward = kind == K_R || kind == K_B || kind == K_I || kind == K_W;
    return r;
}

/* The calls of a computation, or of a piece of it. */
static void line_routine(Lower *w, const Action *k)
{
    static const char *const name[] = {[K_F] = "forward", [K_R] = "recompute", [K_B] = "backward", [K_I] = "backward_x",
                                       [K_W] = "backward_w"};
    const char *piece = k->until ? strf("_%d", k->first) : "";
    const Backward none = {.loss = -1};
    Room *room = mem_in(w->scratch);
    Lines line = calls_of(w->p, w->eval ? &none : &w->back[k->chunk], k->chunk, k->kind);
    mem_in(room);
    Routine *r = new_routine(w, k->kind, k->chunk, strf("chunk%d_%s%s", k->chunk, w->eval ? "eval" : name[k->kind], piece));
    r->first = k->first;
    r->until = k->until;
    for (int i = k->first; i < (k->until ? k->until : line.n); i++)
        add_call(w, r, line.at[i].op, line.at[i].again);
}

/* Its row may have no part of the parameter. */
static bool has_part(const Lower *w, int op)
{
    int param = plan_cuts_op(w->p, op);
    Extent part = param < 0 ? (Extent){0, 1} : plan_own(w->p, plan_replica(w->p, w->device), param);
    return part.until > part.from;
}

static void update_routine(Lower *w, int chunk, int part)
{
    static const char *const name[U_PARTS] = {[U_TIES] = "ties", [U_GATHER] = "gather", [U_SUMS] = "sums",
                                              [U_NORM] = "norm", [U_STEP] = "update", [U_COPIES] = "copies",
                                              [U_ROOMS] = "rooms"};
    Routine *r = new_routine(w, K_U, chunk, several_chunks(w->p) ? strf("chunk%d_%s", chunk, name[part]) : name[part]);
    r->update = part;
    for (int o = w->p->g->nb; o < w->p->g->op.n; o++)
        if (w->p->chunk.at[o] == chunk && (int)update_part(w->p, o) == part && has_part(w, o))
            add_call(w, r, o, false);
}

static bool has_gradients(const Plan *p, const Action *fold)
{
    for (int s = 0; s < p->g->state.n; s++)
        if (p->g->state.at[s].kind == S_GRAD && p->chunk.at[p->g->state.at[s].op] == fold->chunk
            && fold_takes(p->g, fold->fold, s) && fold_in(p->g, fold->first, fold->until, s))
            return true;
    return false;
}

static bool has_versions(const Plan *p, int chunk)
{
    for (int s = 0; s < p->g->state.n; s++)
        if (version_copied(p, s, chunk))
            return true;
    return false;
}

static void fold_routine(Lower *w, const Action *k)
{
    static const char *const end[] = {[FOLD_ALL] = "", [FOLD_I] = "_input", [FOLD_W] = "_weight"};
    const char *piece = k->until ? strf("_%d", k->first) : "";
    Routine *r = new_routine(w, K_FOLD, k->chunk, strf("chunk%d_fold%s%s", k->chunk, end[k->fold], piece));
    r->fold = k->fold;
    r->first = k->first;
    r->until = k->until;
}

/* The routine of an action, written when first met; -1 where it would be empty. */
static int routine_of(Lower *w, const Action *k)
{
    Plan *p = w->p;
    bool weights = k->kind == K_VERSION || k->kind == K_PREDICT, states = k->kind == K_FOLD || weights;     /* no calls */
    if ((k->kind == K_FOLD && !has_gradients(p, k)) || (weights && !has_versions(p, k->chunk)))
        return -1;
    for (int r = w->routines; r < p->routine.n; r++) {
        const Routine *x = &p->routine.at[r];
        if (x->kind == k->kind && x->chunk == k->chunk && (weights || x->variant == k->variant) &&
            x->eval == w->eval && x->first == k->first && x->until == k->until)
            return states || x->call.n > 0 ? r : -1;
    }
    switch (k->kind) {
    case K_U:    update_routine(w, k->chunk, k->update); break;
    case K_FOLD: fold_routine(w, k); break;
    case K_VERSION: new_routine(w, K_VERSION, k->chunk, strf("chunk%d_version", k->chunk)); break;
    case K_PREDICT: new_routine(w, K_PREDICT, k->chunk, strf("chunk%d_predict", k->chunk)); break;
    default:     line_routine(w, k); break;
    }
    return states || p->routine.at[p->routine.n - 1].call.n > 0 ? p->routine.n - 1 : -1;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static bool computes(ActionKind kind)
{
    return kind == K_F || kind == K_R || kind == K_B || kind == K_I || kind == K_W || kind == K_U || kind == K_FOLD ||
           kind == K_VERSION || kind == K_PREDICT;
}

/* The pipeline whose copy of a state moves.  A gradient that rows exchange is that of the chunk that the device holds. */
static int way_moved(Lower *w, const Action *k)
{
    int op = w->p->g->state.at[k->state].op;
    w->chunk = k->pipeline || op < 0 ? -1 : w->p->chunk.at[op];
    int way = k->pipeline ? k->pipeline - 1 : plan_ways(w->p) > 1 ? way_of(w) : 0;
    w->chunk = -1;
    return way;
}

static int moved_buf(Lower *w, const Action *k)
{
    ActionKind kind = k->kind == K_WAIT ? k->of : k->kind;
    const Graph *g = w->p->g;
    if (kind == K_GATHER)
        return norm_buf(w, k->state, k->from_device);
    if (kind == K_MERGE || (kind == K_RECV && !k->back && k->state >= 0 && plan_across(w->p, w->device, k))) {
        /* The buffer for another row's sum of a part of a gradient: one for each level, so that none lives longer than its
         * own.  Of a gradient that drops, that of the last level becomes the part that the row keeps. */
        const State *x = &w->p->g->state.at[k->state];
        int *slot = &w->merge[k->tree_level * w->p->g->state.n + k->state];
        bool part = k->tree_level == plan_levels(w->p) - 1 && plan_drops(w->p, k->state);
        const char *name = part ? strf("%s_part", x->name)
                         : strf("%s_in%d", x->name, kind == K_MERGE ? k->from_device : k->peer);
        if (*slot == 0)
            *slot = 1 + new_buf(w, (Buf){.name = name, .state = k->state, .tensor = -1,
                .chunk = x->op < 0 ? -1 : w->p->chunk.at[x->op], .origin = RECEIVED, .op = -1, .bytes = k->bytes,
                .birth = AT_RECV, .death = part ? AT_ALWAYS : AT_U});
        return *slot - 1;
    }
    if (k->state >= 0 && plan_room(w->p, k->state))
        return room_buf(w, k->state);
    if (kind == K_SEND && k->state >= 0 && !plan_across(w->p, w->device, k))
        return summed_buf(w, k->state, way_moved(w, k));
    if (k->state >= 0)
        return kind == K_RECV && g->state.at[k->state].kind == S_NORM ? norm_buf(w, k->state, k->peer)
                                                                      : state_buf(w, k->state, way_moved(w, k));
    return tensor_buf(w, k->tensor, kind == K_RECV ? RECEIVED : kind == K_IN ? FETCHED : MADE);
}

static int lower_list(Lower *w, Actions *list, int tick)
{
    int kept = 0;
    for (int i = 0; i < list->n; i++) {
        Action k = list->at[i];
        k.tick = tick;
        k.host = -1;
        if (computes(k.kind)) {
            k.routine = routine_of(w, &k);
            if (k.routine < 0)
                continue;                       /* nothing to do here: no action at all */
        } else if (k.tensor >= 0 || k.state >= 0) {
            w->chunk = -1;
            k.buf = moved_buf(w, &k);
            if (is_copy(&k)) {
                const Tensor *x = &w->p->g->tensor.at[k.tensor];
                if (w->host[k.tensor] == 0) {
                    *PUSH(&w->p->host) = (HostBuf){.name = strf("%s_host", x->name), .device = w->device, .tensor = k.tensor,
                                                   .bytes = x->bytes};
                    w->host[k.tensor] = w->p->host.n;
                }
                k.host = w->host[k.tensor] - 1;
            }
        }
        int calls = k.routine >= 0 ? w->p->routine.at[k.routine].call.n : 1;
        tick += calls > 0 ? calls : 1;
        list->at[kept++] = k;
    }
    list->n = kept;
    return tick;
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

typedef struct { int routine; bool many; When birth, last; bool sent, away, back; int chunk; } Touch;

static When when_of(ActionKind kind)
{
    switch (kind) {
    case K_F: return AT_F;
    case K_R: return AT_R;
    case K_W: return AT_W;
    case K_U: return AT_U;
    default:  return AT_B;
    }
}

/* Pieces of one computation follow each other with copies and exchanges in between.  A buffer that only they touch is local. */
static bool same_computation(const Plan *p, int a, int b)
{
    const Routine *x = &p->routine.at[a], *y = &p->routine.at[b];
    return x->kind == y->kind && x->chunk == y->chunk && x->variant == y->variant && x->eval == y->eval;
}

static void touch_routine(const Lower *w, Touch *touch, int r)
{
    const Plan *p = w->p;
    const Routine *x = &p->routine.at[r];
    for (int i = 0; i < x->call.n; i++)
        for (int j = 0; j < x->call.at[i].buf.n; j++) {
            int b = x->call.at[i].buf.at[j];
            if (b < 0)
                continue;
            Touch *t = &touch[b - w->bufs];
            When now = when_of(x->kind);
            if (t->routine < 0 && !t->many)
                t->birth = t->last = now;
            t->many |= t->routine >= 0 && !same_computation(p, t->routine, r);
            t->routine = r;
            if (now > t->last)
                t->last = now;
            if (t->chunk < 0)
                t->chunk = x->chunk;
        }
}

static void touch_moves(const Lower *w, Touch *touch, const Actions *list)
{
    const Plan *p = w->p;
    for (EACH(const Action, k, *list)) {
        if (k->buf < 0)
            continue;
        Touch *t = &touch[k->buf - w->bufs];
        bool back = k->tensor >= 0 && p->g->tensor.at[k->tensor].kind == T_GRAD;
        t->many = true;
        if (k->kind == K_SEND)
            t->sent = true;
        else if (k->kind == K_OUT)
            t->away = true;
        else if (k->kind == K_IN)
            t->back = true;
        else if (k->kind == K_LOAD)
            t->birth = AT_LOAD;
        else if (k->kind == K_RECV)
            t->birth = back ? AT_RECVB : AT_RECV;
    }
}

/* Accumulators of all chunks of a device are one pool: folds of a chunk take its part of the slots. */
static int pool_of(Plan *p, const Buf *b)
{
    static const char letter[] = {[AT_F] = 'f', [AT_R] = 'r', [AT_B] = 'b', [AT_W] = 'w', [AT_LOAD] = 'l', [AT_RECV] = 'x',
                                  [AT_RECVB] = 'g', [AT_SEND] = 's', [AT_U] = 'u', [AT_ALWAYS] = 'a',
                                  [AT_OUT] = 'o', [AT_IN] = 'i'};
    bool always = b->birth == AT_ALWAYS;
    int chunk = always && several_chunks(p) ? -1 : b->chunk;
    for (int i = 0; i < p->pool.n; i++) {
        const Pool *x = &p->pool.at[i];
        if (x->device == b->device && x->chunk == chunk && x->birth == b->birth && x->death == b->death)
            return i;
    }
    const char *name = strf("%c%c", letter[b->birth], letter[b->death]);
    if (always)
        name = b->death == AT_U ? "weights" : b->death == AT_F ? "values" : "grads";
    *PUSH(&p->pool) = (Pool){.device = b->device, .chunk = chunk, .birth = b->birth, .death = b->death,
                             .name = several_chunks(p) && !always ? strf("%s%d", name, b->chunk) : name};
    return p->pool.n - 1;
}

/* The pools that each routine of a device names, from the buffers of its calls.  After mem they are others than before. */
void lower_pools(Plan *p, int device)
{
    for (EACH(Routine, x, p->routine)) {
        x->pool.n = x->device == device ? 0 : x->pool.n;
        for (int i = 0; x->device == device && i < x->call.n; i++)
            for (int j = 0; j < x->call.at[i].buf.n; j++) {
                int b = x->call.at[i].buf.at[j], pool = b < 0 ? -1 : p->buf.at[b].pool, seen = 0;
                for (int s = 0; s < x->pool.n; s++)
                    seen |= x->pool.at[s] == pool;
                if (pool >= 0 && !seen)
                    *PUSH(&x->pool) = pool;
            }
    }
}

/* Finds birth, death and pool of every tensor buffer of this device. */
static void find_pools(Lower *w)
{
    Plan *p = w->p;
    bool holds = order_holds(p, w->device);
    int here = p->buf.n - w->bufs;
    Room *room = mem_in(w->scratch);
    Touch *touch = alloc(sizeof *touch * (size_t)(here + 1));
    mem_in(room);
    for (int i = 0; i < here; i++)
        touch[i].routine = touch[i].chunk = -1;
    for (int r = w->routines; r < p->routine.n; r++)
        touch_routine(w, touch, r);
    touch_moves(w, touch, &p->dev.at[w->device].list);
    touch_moves(w, touch, &p->dev.at[w->device].eval);
    for (int i = w->bufs; i < p->buf.n; i++) {
        Buf *b = &p->buf.at[i];
        const Touch *t = &touch[i - w->bufs];
        if (b->state >= 0) {
            bool sums = p->g->state.at[b->state].kind == S_GRAD && (order_accumulators(p, b->chunk) > 1 || holds);
            if (b->birth == AT_ALWAYS && (sums || b->death != AT_ALWAYS))
                b->pool = pool_of(p, b);
            continue;
        }
        if (b->chunk < 0)
            b->chunk = t->chunk;
        b->birth = t->back ? AT_IN : t->birth;
        b->death = t->away ? AT_OUT : t->sent && t->last <= t->birth ? AT_SEND : t->last;
        if (t->many && !b->eval && !t->away && !t->back)        /* mem gives those slots of their own, if they need any */
            b->pool = pool_of(p, b);
    }
    lower_pools(p, w->device);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static void lower_device(Lower *w, int device)
{
    Plan *p = w->p;
    size_t nt = sizeof(int) * (size_t)p->g->tensor.n;
    w->device = device;
    w->bufs = p->buf.n;
    w->routines = p->routine.n;
    w->handle = (Strs){0};
    Room *room = mem_in(w->scratch);
    w->state = alloc(sizeof(int) * (size_t)p->g->state.n * (size_t)plan_ways(p));
    w->norm_in = alloc(sizeof(int) * (size_t)p->devices);
    w->merge = alloc(sizeof(int) * (size_t)(plan_levels(p) * p->g->state.n + 1));
    w->room = alloc(sizeof(int) * (size_t)p->g->state.n);
    for (int e = 0; e < 2; e++)
        for (int o = 0; o < 4; o++)
            w->tensor[e][o] = alloc(nt);
    w->host = alloc(nt);
    mem_in(room);
    w->eval = false;
    w->chunk = -1;
    state_buf(w, p->g->vals, 0);
    DevicePlan *d = &p->dev.at[device];
    d->ticks = lower_list(w, &d->list, 0);
    w->eval = true;
    d->ticks = lower_list(w, &d->eval, d->ticks);
    d->handles = w->handle.n;
    if (d->handles > MOST_HANDLES)
        fail(EXIT_NOFIT, "device %d calls %d differently sized library kernels, %d can be prepared", device, d->handles,
             MOST_HANDLES);
    find_pools(w);
}

/* needs: dev[].list and eval, chunk, fate.  fills: routine, buf (but for offsets), pool (but for counts), each action's
 * routine, buf and tick; dev[].ticks, handles.  Actions that would call nothing are dropped. */
int lower(Plan *p)
{
    Room *scratch = mem_room(), *room = mem_in(scratch);
    Lower w = {.p = p, .back = backwards_of(p), .scratch = scratch};
    mem_in(room);
    for (int d = 0; d < p->devices; d++)
        lower_device(&w, d);
    mem_drop(scratch);
    return 0;
}
