/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c: the end of stageN.c: what the runtime knows of the stage.
 *
 * A row is one parameter with the offsets of all its states, by the names of stageN.h, so that an auditor meets each offset
 * and each text once.  It is an object of a function, for C has no constant initialiser that names a constant wider than int.
 */
#include "list/list.h"
#include "list/transport.h"
#include "stage.h"

/* By state and by buffer: 1 + the next buffer of it that lives for ever, 0: none; by parameter: 1 + its compute copy. */
typedef struct { Stager *w; int *first, *next, *copy; } Table;

static void find_states(Table *t)
{
    const Plan *p = t->w->p;
    t->first = alloc(sizeof(int) * (size_t)p->g->state.n);
    t->copy = alloc(sizeof(int) * (size_t)p->g->state.n);
    t->next = alloc(sizeof(int) * (size_t)p->buf.n);
    for (int b = p->buf.n - 1; b >= 0; b--) {
        const Buf *x = &p->buf.at[b];
        bool stays = x->birth == AT_ALWAYS || x->death == AT_ALWAYS;
        if (x->state < 0 || !stays || x->device != t->w->device)
            continue;
        t->next[b] = t->first[x->state];
        t->first[x->state] = b + 1;
    }
    for (int s = p->g->state.n - 1; s >= 0; s--)
        if (p->g->state.at[s].kind == S_COPY)
            t->copy[p->g->state.at[s].param] = s + 1;
}

/* The name of its offset; NULL: it is not here. */
static const char *name_of(const Table *t, int state, int way)
{
    for (int b = state >= 0 ? t->first[state] : 0; b > 0; b = t->next[b - 1])
        if (t->w->p->buf.at[b - 1].pipeline == way)
            return t->w->buf[b - 1];
    return NULL;
}

/* Slots of a state and bytes between them: versions of a parameter, sets of gradients; 1 where there is one. */
static int slots_of(const Table *t, int state, Bytes *stride)
{
    const Plan *p = t->w->p;
    for (int b = state >= 0 ? t->first[state] : 0; b > 0; b = t->next[b - 1]) {
        const Buf *x = &p->buf.at[b - 1];
        if (x->pool < 0)
            continue;
        int sets = p->g->state.at[state].kind == S_GRAD ? order_accumulators(p, p->chunk.at[p->g->state.at[state].op]) : 1;
        *stride = p->pool.at[x->pool].stride * sets;
        return p->pool.at[x->pool].count / sets;
    }
    return 1;
}

/* ---- a row ------------------------------------------------------------------------------------------------------- */

static const char *shape_of(const Table *t, int param)
{
    const Stager *w = t->w;
    const State *s = &w->p->g->state.at[param];
    if (s->outer) {             /* of all devices of the stage */
        const char *text = "";
        Shape whole = shape_whole(s);
        for (int i = 0; i < whole.n; i++)
            text = strf("%s%s%" PRId64, text, i ? ", " : "", whole.d[i]);
        return text;
    }
    return stage_shape(w, &(Buf){.tensor = -1, .state = param}, &s->shape);
}

static const char *start_of(const State *param)
{
    static const char *const name[] = {"ZEROS", "ONES", "NORMAL", "UNIFORM", "SINES"};
    bool plain = param->init.kind == INIT_ZEROS || param->init.kind == INIT_ONES;
    if (param->init.kind == INIT_VALUES)
        return strf("VALUES(%s)", param->init.values);
    return plain ? name[param->init.kind]
                 : strf("%s(%s, %s)", name[param->init.kind], number_text(param->init.a, 1), number_text(param->init.b, 1));
}

/* The states of a parameter that have a field; one that others update in part may have nothing here. */
static bool put_states(const Table *t, int param, int way, Strs *word)
{
    static const char *const field[] = {[S_GRAD] = "grad", [S_MOMENT1] = "moment1", [S_MOMENT2] = "moment2",
                                        [S_CENTRE] = "centre", [S_DRIFT] = "drift", [S_VALUES] = NULL};
    const Plan *p = t->w->p;
    const Graph *g = p->g;
    const char *master = name_of(t, param, way), *copy = name_of(t, t->copy[param] - 1, way);
    bool home = device_of(p, plan_replica(p, t->w->device), g->state.at[param].op) == t->w->device;
    bool any = master || copy || (home && plan_parted(p, param));
    if (any && (master || !copy))
        *PUSH(word) = master ? strf(".param = AT(%s)", master) : ".param = EMPTY";
    if (copy)
        *PUSH(word) = strf(".copy = AT(%s)", copy);
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        const char *at = name_of(t, s, way);
        bool empty = !at && home && x->kind != S_PARAM && x->param >= 0 && plan_sharded(p, x->param);
        if (x->param != param || s == param || x->kind > S_VALUES || !field[x->kind] || (!at && !empty) ||
            (x->kind == S_GRAD && (x->use != 0 || g->state.at[param].tracked)))
            continue;               /* what statistics add up in is no gradient */
        *PUSH(word) = at ? strf(".%s = AT(%s)", field[x->kind], at) : strf(".%s = EMPTY", field[x->kind]);
        any = true;
    }
    return any;
}

static int find_state(const Graph *g, int param, StateKind kind)
{
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].param == param && g->state.at[s].kind == kind)
            return s;
    return -1;
}

/* Versions, sets of sums, the part of a replica: what few rows have. */
static void put_rest(const Table *t, int param, int way, Strs *word)
{
    const Plan *p = t->w->p;
    const State *x = &p->g->state.at[param];
    int replica = plan_replica(p, t->w->device), grad = find_state(p->g, param, S_GRAD);
    Bytes stride = 0, size = type_bytes(F32);
    int kept = slots_of(t, param, &stride), copies = slots_of(t, t->copy[param] - 1, &stride);
    if (kept > 1 || copies > 1)
        *PUSH(word) = strf(".versions = {%d, %d, %" PRId64 "}", kept, copies, stride);
    int sums = slots_of(t, grad, &stride);
    if (sums > 1)
        *PUSH(word) = strf(".sums = {%d, %" PRId64 "}", sums, stride);
    if (way != 0 || device_of(p, 0, x->op) != t->w->device)         /* the first row's owns it */
        *PUSH(word) = ".shared = 1";
    if (plan_sharded(p, param)) {
        Extent part = plan_own(p, replica, param);
        *PUSH(word) = strf(".cut = %d", 1 + 2 * (grad >= 0 && plan_drops(p, grad)) + 4 * plan_parted(p, param));
        *PUSH(word) = strf(".from = %" PRId64, part.from / size);
        *PUSH(word) = strf(".part = %" PRId64, (part.until - part.from) / size);
    }
    if (x->outer) {
        *PUSH(word) = strf(".outer = %" PRId64, x->outer);
        *PUSH(word) = strf(".room = %" PRId64, shape_elements(&x->shape) / x->outer);
    }
    if (x->bits)
        *PUSH(word) = strf(".bits = %d", x->bits);
    if (x->adapter)
        *PUSH(word) = ".files = FILES_MAY";
    else if (x->tracked && row(p->g->op.at[x->op].row)->fp8)
        *PUSH(word) = ".files = FILES_DO_NOT";
    else if (match_any(&p->m->weights.fresh, x->name))
        *PUSH(word) = ".files = FILES_GET";
}

static int print_rows(const Table *t)
{
    const Stager *w = t->w;
    const Graph *g = w->p->g;
    int n = 0;
    fprintf(w->f, "    const Parameter parameter[] = {\n");
    for (int way = 0; way < plan_ways(w->p); way++)
        for (int s = 0; s < g->state.n; s++) {
            Strs word = {0};
            if (g->state.at[s].kind != S_PARAM)
                continue;
            *PUSH(&word) = strf("{.name = %s", quote_c(g->state.at[s].name));
            *PUSH(&word) = strf(".shape = {%s}", shape_of(t, s));
            *PUSH(&word) = strf(".start = %s", start_of(&g->state.at[s]));
            put_rest(t, s, way, &word);
            if (!put_states(t, s, way, &word))
                continue;
            fprintf(w->f, "        ");
            emit_wrap(w->f, 8, 9, &word, "},");
            n++;
        }
    fprintf(w->f, "        {0}\n    };\n");
    return n;
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static void print_times(const Stager *w, const char *name, const Strs *number)
{
    fprintf(w->f, "    static const int64_t %s[] = {\n        ", name);
    emit_wrap(w->f, 8, 8, number, "");
    fprintf(w->f, "    };\n");
}

/* Begin and end of each action; of a paced job also what each takes of its stage, and what its message takes of the wire. */
static void print_actions(const Stager *w)
{
    const Plan *p = w->p;
    const DevicePlan *d = &p->dev.at[w->device];
    Strs predicted = {0}, pace = {0};
    for (EACH(const Action, k, d->list)) {
        *PUSH(&predicted) = strf("%" PRId64, k->from);
        *PUSH(&predicted) = strf("%" PRId64, k->to);
        Ns message = k->kind == K_SEND ? cost_wire(p->c, w->device, k->peer, k->bytes)
                   : k->kind == K_OUT || k->kind == K_IN ? cost_host(p->c, w->device, k->bytes)
                   : k->kind == K_RECV ? cost_latency(p->c, k->peer, w->device) : 0;
        *PUSH(&pace) = strf("%" PRId64, action_time(p, w->device, k));
        *PUSH(&pace) = strf("%" PRId64, message);
    }
    print_times(w, "predicted", &predicted);
    if (emit_paced(p))
        print_times(w, "pace", &pace);
}

/* ---- the stage --------------------------------------------------------------------------------------------------- */

/* The pipeline whose losses the device has: that of the last chunk there; 0: it has none, or of the first. */
static int loss_way(const Plan *p, int device)
{
    int last = plan_chunks(p) - 1;
    return plan_holds(p, device, last) ? plan_row_of(p, device, last) % plan_ways(p) : 0;
}

static void put_memory(const Table *t, Strs *word)
{
    const Plan *p = t->w->p;
    int d = t->w->device;
    const DevicePlan *x = &p->dev.at[d];
    Bytes workspace = p->m->devices.at[d].workspace, behind = (x->arena + 255) / 256 * 256, all = behind + workspace;
    Bytes load = transport_load(p, d, false), landing = transport_landing(p, d), at = (all + 255) / 256 * 256;
    const char *vals = name_of(t, p->g->vals, 0);
    *PUSH(word) = workspace ? strf(".arena = %" PRId64, landing ? at + landing : all) : ".arena = arena_bytes";
    *PUSH(word) = strf(".vals = %s", vals ? vals : "NOWHERE");
    if (workspace) {
        *PUSH(word) = strf(".workspace = %" PRId64, behind);
        *PUSH(word) = strf(".workspace_bytes = %" PRId64, workspace);
    }
    if (workspace && load > 0)
        *PUSH(word) = strf(".load = %" PRId64, load);
    if (landing)
        *PUSH(word) = strf(".landing = %" PRId64, at);
    if (x->copies) {
        *PUSH(word) = ".host = host_bytes";
        *PUSH(word) = strf(".copies = %d", x->copies);
        *PUSH(word) = strf(".lanes = %d", cost_host_half(p->c, d) ? 1 : 2);
    }
}

void table_print(Stager *w)
{
    Table t = {.w = w};
    const Plan *p = w->p;
    int d = w->device;
    const DevicePlan *x = &p->dev.at[d];
    find_states(&t);
    fprintf(w->f, "\n/* What the runtime knows of this stage: its parameters and their states, and what is predicted of "
            "actions, in ns. */\nvoid stage%d(Stages *to)\n{\n", d);
    int n = print_rows(&t);
    print_actions(w);
    if (order_overlap(p) > 0) {
        /* The functions of a stage that runs in pieces: a row a phase, as job.h orders them. */
        int phases = version_phases(w->p, w->device);
        bool alone = order_overlap(w->p) > 1;
        fprintf(w->f, "    static void (*const piece[])(Stage *) = {\n");
        for (int k = 0; k < phases; k++) {
            Strs word = {0};
            for (Piece piece = PIECE_PROLOGUE; piece < PIECES; piece++)
                *PUSH(&word) = piece < PIECE_ALONE || alone ? strf("stage%d_%s", w->device, emit_piece(piece, k)) : "0";
            *PUSH(&word) = strf("stage%d_eval_%d", w->device, k);
            fprintf(w->f, "        ");
            emit_wrap(w->f, 8, 8, &word, ",");
        }
        fprintf(w->f, "    };\n");
    }
    Strs word = {0};
    *PUSH(&word) = strf(".name = \"stage%d\"", d);
    put_memory(&t, &word);
    if (loss_way(p, d) > 0)
        *PUSH(&word) = strf(".pipeline = %d", loss_way(p, d));
    if (plan_uneven(p))
        *PUSH(&word) = strf(".like = %d, .copy = %d, .turns = %d", plan_stage(p, d), plan_replica(p, d),
                            plan_turns(p, plan_stage(p, d)));
    *PUSH(&word) = strf(".threads = %d", p->m->devices.at[d].threads);
    *PUSH(&word) = strf(".actions = %d", x->list.n);
    *PUSH(&word) = strf(".eval_actions = %d", x->eval.n);
    *PUSH(&word) = strf(".open = stage%d_open", d);
    if (order_overlap(p) > 0) {
        *PUSH(&word) = strf(".phases = %d", version_phases(p, d));
        *PUSH(&word) = ".piece = piece";
    } else {
        *PUSH(&word) = strf(".step = stage%d_step", d);
        *PUSH(&word) = strf(".eval = stage%d_eval", d);
    }
    *PUSH(&word) = strf(".parameters = %d", n);
    *PUSH(&word) = ".parameter = parameter";
    *PUSH(&word) = ".predicted = predicted";
    if (emit_paced(p))
        *PUSH(&word) = ".pace = pace";
    fprintf(w->f, "    stage_take(to, &(const StageInfo){\n        ");
    emit_wrap(w->f, 8, 8, &word, "});");
    fprintf(w->f, "}\n");
}
