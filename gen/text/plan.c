/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: Plan as text.
 *
 *     dpgen-plan 1
 *     plan ref-gpt schedule=1f1b devices=2 chunks=1 ...
 *     chunk 1 device=1
 *     place F:h.0.ln_1 chunk=0
 *     fate h.0.gelu is=recompute
 *     device 0 arena=... bound=... limit=...
 *     order 0 kind=F chunk=0 mb=0         what device 0 computes; `action` its whole step, `eval` an evaluation
 *     pool 0:fb ...                       slots; a device's number stands in front of names that are its own
 *     buf 0:h_0_ln_1 tensor=h.0.ln_1 pool=0:fb offset=...
 *     host 0:h_0_ln_1_host tensor=h.0.ln_1 offset=...
 *     routine 0:chunk0_forward kind=F chunk=0 ...
 *     call 0:chunk0_forward op=F:wte buf=0:wte,0:tokens,...
 *
 * A plan is read beside its graph, whose names it uses.  A dump behind one pass prints the records that this pass
 * fills; the whole plan is all of them.  What a tensor's fate is not said is kept.
 *
 * needs   any plan.  fails  reading: with err(); chunks, devices and micro-batches are in range when it returns, and
 * whether the plan is right is for the checkers to say.  Cost and Model are not part of it: whoever reads a plan sets
 * them.
 */
#include "text.h"
#include <ctype.h>

typedef struct { DevicePlan d; Bytes target; } Machine;         /* with what Plan says about it */
typedef struct { Fate is; } TextChoice;
typedef struct { int chunk; } ChunkRecord;
typedef struct { int device, replica; } HomeRecord;

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const char *const kinds[] = {"F", "B", "I", "W", "U", "begin", "count", "load", "R", "send", "recv", "wait",
                                    "out", "in", "fold", "gather", "merge", "end", "version",
                                    "predict", "share", "room", NULL};
static const char *const pieces[] = {"step", "prologue", "period", "epilogue", "alone", NULL};
static const char *const whens[] = {"F", "R", "B", "W", "load", "recv", "recvb", "send", "U", "always", "out", "in", NULL};
static const char *const origins[] = {"made", "remade", "received", "fetched", NULL};
static const char *const fates[] = {"keep", "recompute", "offload", NULL};

#define F_(key, type, struct, member) {key, type, .at = offsetof(struct, member)}
#define REF_(key, type, struct, member, to) {key, type, .at = offsetof(struct, member), .ref = to}
#define WORD_(key, struct, member, list, other) \
    {key, V_WORD, .at = offsetof(struct, member), .words = list, .first = other}

static const TextField plan_fields[] = {
    F_("schedule", V_TEXT, Plan, schedule), F_("devices", V_INT, Plan, devices), F_("chunks", V_INT, Plan, chunks),
    F_("replicas", V_INT, Plan, replicas),
    F_("space", V_TEXT, Plan, proof.space), F_("bound", V_LONG, Plan, proof.bound), F_("note", V_TEXT, Plan, proof.note),
    F_("step", V_LONG, Plan, step), F_("key", V_TEXT, Plan, key), {0}
};
static const TextField chunk_fields[] = {
    F_("device", V_INT, HomeRecord, device), F_("replica", V_INT, HomeRecord, replica), {0}};
static const TextField place_fields[] = {F_("chunk", V_INT, ChunkRecord, chunk), {0}};
static const TextField fate_fields[] = {WORD_("is", TextChoice, is, fates, false), {0}};
static const TextField device_fields[] = {
    F_("soft", V_LONG, Machine, target), F_("arena", V_LONG, Machine, d.arena), F_("bound", V_LONG, Machine, d.bound),
    F_("limit", V_LONG, Machine, d.limit), F_("state", V_LONG, Machine, d.state), F_("peak", V_INT, Machine, d.peak),
    F_("ticks", V_INT, Machine, d.ticks), F_("requests", V_INT, Machine, d.requests),
    F_("handles", V_INT, Machine, d.handles), F_("copies", V_INT, Machine, d.copies),
    F_("host", V_LONG, Machine, d.host), F_("host_bound", V_LONG, Machine, d.host_bound),
    F_("busy", V_LONG, Machine, d.busy), F_("place", V_INT, Machine, d.entry), {0}
};
static const TextField action_fields[] = {
    WORD_("kind", Action, kind, kinds, false), F_("chunk", V_INDEX, Action, chunk), F_("mb", V_INDEX, Action, mb),
    WORD_("piece", Action, piece, pieces, true), F_("step", V_INT, Action, step),
    F_("version", V_INT, Action, version), F_("part", V_INT, Action, variant),
    F_("acc", V_INT, Action, acc), F_("group", V_INT, Action, group), F_("into", V_INT, Action, into),
    {"of", V_WORD, .at = offsetof(Action, of), .words = kinds, .only = K_WAIT + 1},
    REF_("tensor", V_REF, Action, tensor, R_TENSOR), REF_("state", V_REF, Action, state, R_STATE),
    F_("way", V_INT, Action, pipeline), F_("from_device", V_INDEX, Action, from_device), F_("peer", V_INDEX, Action, peer),
    F_("tag", V_INDEX, Action, tag),
    F_("request", V_INDEX, Action, request), REF_("host", V_REF, Action, host, R_HOST),
    F_("host_slot", V_INT, Action, host_slot), F_("first", V_INT, Action, first), F_("until", V_INT, Action, until),
    F_("input", V_INDEX, Action, input), F_("bytes", V_LONG, Action, bytes),
    F_("at", V_LONG, Action, at), F_("back", V_BOOL, Action, back),
    REF_("routine", V_REF, Action, routine, R_ROUTINE), REF_("buf", V_REF, Action, buf, R_BUF),
    F_("slot", V_INDEX, Action, slot), F_("tick", V_INT, Action, tick), F_("slots", V_INTS, Action, slots),
    F_("from", V_LONG, Action, from), F_("to", V_LONG, Action, to), F_("wire_from", V_LONG, Action, wire_from),
    F_("wire_to", V_LONG, Action, wire_to), {0}
};
static const TextField host_fields[] = {
    REF_("tensor", V_REF, HostBuf, tensor, R_TENSOR), F_("bytes", V_LONG, HostBuf, bytes), F_("count", V_INT, HostBuf, count),
    F_("stride", V_LONG, HostBuf, stride), F_("offset", V_LONG, HostBuf, offset), F_("first", V_INT, HostBuf, first),
    F_("last", V_INT, HostBuf, last), {0}
};
static const TextField pool_fields[] = {
    F_("chunk", V_INDEX, Pool, chunk), F_("eval", V_BOOL, Pool, eval), WORD_("birth", Pool, birth, whens, false),
    WORD_("death", Pool, death, whens, false), F_("count", V_INT, Pool, count), F_("stride", V_LONG, Pool, stride),
    F_("offset", V_LONG, Pool, offset), {0}
};
static const TextField buf_fields[] = {
    F_("chunk", V_INDEX, Buf, chunk), F_("eval", V_BOOL, Buf, eval), REF_("tensor", V_REF, Buf, tensor, R_TENSOR),
    REF_("state", V_REF, Buf, state, R_STATE), F_("way", V_INT, Buf, pipeline), REF_("op", V_REF, Buf, op, R_OP),
    WORD_("origin", Buf, origin, origins, true),
    WORD_("birth", Buf, birth, whens, false), WORD_("death", Buf, death, whens, false),
    REF_("pool", V_REF, Buf, pool, R_POOL), F_("bytes", V_LONG, Buf, bytes), F_("offset", V_LONG, Buf, offset),
    F_("first", V_INT, Buf, first), F_("last", V_INT, Buf, last), {0}
};
static const TextField routine_fields[] = {
    WORD_("kind", Routine, kind, kinds, false), F_("chunk", V_INDEX, Routine, chunk),
    F_("part", V_INT, Routine, variant), F_("first", V_INT, Routine, first), F_("until", V_INT, Routine, until),
    F_("eval", V_BOOL, Routine, eval), REF_("pool", V_REFS, Routine, pool, R_POOL),
    F_("mb", V_BOOL, Routine, mb), F_("acc", V_BOOL, Routine, acc), {0}
};
static const TextField call_fields[] = {
    REF_("op", V_REF, Call, op, R_OP), F_("again", V_BOOL, Call, again), F_("handle", V_INDEX, Call, handle),
    REF_("buf", V_REFS, Call, buf, R_BUF), {0}
};

/* Records of one kind, in the order in which they are printed, and need each other. */
typedef struct PlanRecords {
    Table t;
    const char *letters;        /* of the dumps that show them */
    void (*print)(Printer *, const Plan *, const struct PlanRecords *);
    void (*read)(Scanner *, const Record *, Plan *, const struct PlanRecords *);
    size_t at;                  /* of actions: their list in DevicePlan; of what has a name of its own: its VEC in Plan, */
    size_t size, name, device;  /* ... an element, and in it its name and device */
    RefKind ref;
} PlanRecords;
typedef VEC(char) AnyList;      /* lists of all types begin alike */
#define LIST_OF(base, x) ((const AnyList *)(const void *)((const char *)(base) + (x)->at))
#define IN(type, element, field) (*(type *)(void *)((element) + (field)))

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void print_plan_line(Printer *w, const Plan *p, const PlanRecords *x)
{
    text_record(w, &x->t, p->g->name, p, NOWHERE);
}

static void print_chunks(Printer *w, const Plan *p, const PlanRecords *x)
{
    for (int q = 0; q < p->home.n; q++)
        for (int c = 0; c < p->home.at[q].n; c++)
            text_record(w, &x->t, strf("%d", c), &(HomeRecord){plan_home(p, q, c), q}, NOWHERE);
}

static void print_places(Printer *w, const Plan *p, const PlanRecords *x)
{
    for (int i = 0; i < p->chunk.n; i++)
        text_record(w, &x->t, w->ref[R_OP].name.at[i], &(ChunkRecord){p->chunk.at[i]}, NOWHERE);
}

static void print_fates(Printer *w, const Plan *p, const PlanRecords *x)
{
    for (int i = 0; i < p->fate.n; i++)
        if (p->fate.at[i] != FATE_KEEP)
            text_record(w, &x->t, w->ref[R_TENSOR].name.at[i], &(TextChoice){(Fate)p->fate.at[i]}, NOWHERE);
}

static void print_devices(Printer *w, const Plan *p, const PlanRecords *x)
{
    for (int i = 0; i < p->dev.n; i++)
        text_record(w, &x->t, strf("%d", i), &(Machine){p->dev.at[i], p->target ? p->target[i] : 0}, NOWHERE);
}

/* A computation moves nothing, whatever the fields of a move hold. */
static void print_actions(Printer *w, const Plan *p, const PlanRecords *x)
{
    for (int d = 0; d < p->dev.n; d++) {
        const Actions *at = (const Actions *)(const void *)LIST_OF(&p->dev.at[d], x);
        for (int i = 0; i < at->n; i++) {
            Action k = at->at[i];
            if (k.kind <= K_U || k.kind == K_R || k.kind == K_FOLD || k.kind == K_VERSION ||
                k.kind == K_PREDICT)
                k.tensor = k.state = k.tag = k.from_device = k.buf = k.slot = k.request = k.peer = k.host = -1;
            text_record(w, &x->t, strf("%d", d), &k, NOWHERE);
        }
    }
}

static void print_named(Printer *w, const Plan *p, const PlanRecords *x)
{
    for (int i = 0; i < LIST_OF(p, x)->n; i++) {
        const char *name = w->ref[x->ref].name.at[i];
        text_record(w, &x->t, name, LIST_OF(p, x)->at + (size_t)i * x->size, NOWHERE);
        for (int k = 0; x->ref == R_ROUTINE && k < p->routine.at[i].call.n; k++)      /* calls are the next kind of records */
            text_record(w, &x[1].t, name, &p->routine.at[i].call.at[k], NOWHERE);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int number(const Record *r, int n)
{
    return (int)text_integer(text_at(r, r->name_col), r->name, 0, n - 1);
}

static void in_range(const Record *r, const char *what, int i, int low, int n)
{
    if (i < low || i >= n)
        err(r->at, NULL, "%s: %s %d is not within %d .. %d", r->word, what, i, low, n - 1);
}

/* Numbers that say which one of several things. */
static void check_ranges(const Record *r, const Table *t, const void *from, const Plan *p)
{
    const struct { const char *key; int n; } ranges[] = {
        {"chunk", plan_chunks(p)}, {"mb", (int)p->g->micro}, {"peer", p->devices}, {"from_device", p->devices}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (const TextField *f = t->field; f->key; f++)
            if (f->kind == V_INDEX && !strcmp(f->key, ranges[i].key))
                in_range(r, f->key, *(const int *)(const void *)((const char *)from + f->at), -1, ranges[i].n);
}

/* Copies of the model, before all of them have chunks. */
static int rows_said(const Plan *p)
{
    const Schedule *k = p->schedule ? schedule_of(p->schedule) : NULL;
    return plan_replicas(p) * (k ? schedule_ways(k) : 1);
}

static void read_plan_line(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    enum { MOST = 65536 };
    if (p->schedule)
        err(r->at, NULL, "a second plan");
    if (strcmp(r->name, p->g->name))
        err(text_at(r, r->name_col), NULL, "a plan of %s, beside the graph of %s", r->name, p->g->name);
    text_clear(&x->t, p);
    text_take(s, &x->t, r, r->pair.n, p);
    in_range(r, "devices", p->devices, 1, MOST);
    in_range(r, "chunks", p->chunks, 1, MOST / p->devices + 1);
    in_range(r, "replicas", p->replicas, 0, MOST);
    int rest = plan_uneven(p) ? p->devices - devices_for(p->m, plan_stages(p)) : p->devices % plan_replicas(p);
    if (rest || p->g->groups % rows_said(p) || plan_replicas(p) & (plan_replicas(p) - 1))
        err(r->at, NULL, "%d replicas on %d devices, of %lld gradient groups", p->replicas, p->devices,
            (long long)p->g->groups);
    Strs names = {0};
    for (const Schedule *s = schedules; s->name; s++)
        *PUSH(&names) = s->name;
    if (schedule_open(p->schedule) || !schedule_of(p->schedule))
        err(text_value(r, "schedule"), did_you_mean(p->schedule, names.at, names.n, "schedule=auto"),
            "no schedule is called '%s'", p->schedule);
    p->key_at = text_value(r, "key");
    p->space_at = text_value(r, "space");
    /* A remark for people: no sign in it means anything to a shell, a page or a terminal. */
    const char *c = p->proof.note;
    while (isalnum((unsigned char)*c) || (*c && strchr(" .,;:%()+-*/='_", *c)))
        c++;
    if (*c)
        err(text_value(r, "note"), "plan again; or delete note=", "no note has a byte %d", (unsigned char)*c);
    p->proof.note = *p->proof.note ? p->proof.note : NULL;
    for (int d = 0; d < p->devices; d++)
        PUSH(&p->dev)->device = d;
    p->target = alloc((size_t)p->devices * sizeof *p->target);
    for (int i = 0; i < p->g->tensor.n; i++)
        *PUSH(&p->fate) = FATE_KEEP;
}

static void read_chunk(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    HomeRecord c = {0};
    text_take(s, &x->t, r, r->pair.n, &c);
    in_range(r, "device", c.device, 0, p->devices);
    in_range(r, "replica", c.replica, 0, rows_said(p));
    int next = c.replica < p->home.n ? p->home.at[c.replica].n : 0;
    if (c.replica > p->home.n || number(r, p->devices * p->chunks) != next)
        err(text_at(r, r->name_col), NULL, "chunk %d should stand here", next);
    plan_settle(p, c.replica, c.device);
}

static void read_place(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    ChunkRecord c = {0};
    text_take(s, &x->t, r, r->pair.n, &c);
    in_range(r, "chunk", c.chunk, 0, plan_chunks(p));
    if (text_ref(s, R_OP, text_at(r, r->name_col), r->name) != p->chunk.n)
        err(text_at(r, r->name_col), "of another graph? plan again", "operators stand in graph order, each once");
    *PUSH(&p->chunk) = c.chunk;
}

static void read_fate(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    TextChoice f = {0};
    text_take(s, &x->t, r, r->pair.n, &f);
    int tensor = text_ref(s, R_TENSOR, text_at(r, r->name_col), r->name);
    in_range(r, "tensor", tensor, 0, p->g->tensor.n);
    p->fate.at[tensor] = (int)f.is;
}

static void read_device(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    int d = number(r, p->devices);
    Machine to = {.d = p->dev.at[d]};
    text_take(s, &x->t, r, r->pair.n, &to);
    p->dev.at[d] = to.d;
    ((Bytes *)(uintptr_t)p->target)[d] = to.target;
}

static void read_action(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    Actions *list = (Actions *)(void *)(uintptr_t)LIST_OF(&p->dev.at[number(r, p->devices)], x);
    Action *k = PUSH(list);
    text_clear(&x->t, k);
    text_take(s, &x->t, r, r->pair.n, k);
    check_ranges(r, &x->t, k, p);
}

static void read_named(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    AnyList *list = (AnyList *)(uintptr_t)LIST_OF(p, x);
    list->at = vec_grow(list->at, list->n, &list->cap, x->size);
    char *to = list->at + (size_t)list->n++ * x->size;
    text_clear(&x->t, to);
    text_take(s, &x->t, r, r->pair.n, to);
    /* "2:name#3" -> device 2, name */
    const char *colon = strchr(r->name, ':');
    Loc at = text_at(r, r->name_col);
    if (!colon)
        err(at, "such as 0:name", "the device's number is missing");
    IN(int, to, x->device) = (int)text_integer(at, strf("%.*s", (int)(colon - r->name), r->name), 0, p->devices - 1);
    const char *name = strf("%.*s", (int)strcspn(colon + 1, "#"), colon + 1);
    text_name(at, name, "");
    IN(const char *, to, x->name) = name;
    if (x->ref == R_HOST)
        in_range(r, "tensor", ((HostBuf *)(void *)to)->tensor, 0, p->g->tensor.n);
    if (x->ref != R_POOL) {
        check_ranges(r, &x->t, to, p);
        return;
    }
    /* Pools are words of the emitted C as they stand: those that lower and mem make, and no other. */
    size_t letters = strspn(name, "frbwlxgsuaoi"), n = letters + strspn(name + letters, "0123456789");
    bool slots = letters == 2 && !name[n], single = letters == 1 && *name == 'o' && n > 1 && !name[n];
    if (!slots && !single && strcmp(name, "grads") && strcmp(name, "weights") && strcmp(name, "values"))
        err(at, "such as 0:fb, 0:xf1, 0:o1 or 0:grads", "no pool is called '%s'", name);
}

static void read_call(Scanner *s, const Record *r, Plan *p, const PlanRecords *x)
{
    int routine = text_ref(s, R_ROUTINE, text_at(r, r->name_col), r->name);
    in_range(r, "routine", routine, 0, p->routine.n);
    Call *k = PUSH(&p->routine.at[routine].call);
    text_clear(&x->t, k);
    text_take(s, &x->t, r, r->pair.n, k);
    in_range(r, "operator", k->op, 0, p->g->op.n);
    if (k->buf.n != p->g->op.at[k->op].arg.n)
        err(r->at, NULL, "%d buffers for a call of %d arguments", k->buf.n, p->g->op.at[k->op].arg.n);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

#define ACTIONS(list) print_actions, read_action, .at = offsetof(DevicePlan, list)
#define NAMED(type, list, kind) print_named, read_named, .at = offsetof(Plan, list), .size = sizeof(type), \
    .name = offsetof(type, name), .device = offsetof(type, device), .ref = kind
static const PlanRecords records[] = {
    {{"plan", plan_fields, 0}, "opkcmt", print_plan_line, read_plan_line, .ref = R_KINDS},
    {{"chunk", chunk_fields, 0}, "o", print_chunks, read_chunk, .ref = R_KINDS},
    {{"place", place_fields, 0}, "p", print_places, read_place, .ref = R_KINDS},
    {{"fate", fate_fields, 0}, "k", print_fates, read_fate, .ref = R_KINDS},
    {{"device", device_fields, 0}, "opmt", print_devices, read_device, .ref = R_KINDS},
    {{"order", action_fields, offsetof(Action, kind)}, "o", ACTIONS(order), .ref = R_KINDS},
    {{"pool", pool_fields, 0}, "lm", NAMED(Pool, pool, R_POOL)},
    {{"buf", buf_fields, 0}, "lm", NAMED(Buf, buf, R_BUF)},
    {{"host", host_fields, 0}, "lm", NAMED(HostBuf, host, R_HOST)},
    {{"routine", routine_fields, 0}, "l", NAMED(Routine, routine, R_ROUTINE)},
    {{"call", call_fields, 0}, "", print_named, read_call, .ref = R_KINDS},       /* printed behind each routine */
    {{"action", action_fields, offsetof(Action, kind)}, "clmt", ACTIONS(list), .ref = R_KINDS},
    {{"eval", action_fields, offsetof(Action, kind)}, "clm", ACTIONS(eval), .ref = R_KINDS},
};
enum { RECORDS = sizeof records / sizeof *records };

void print_plan(FILE *f, const Plan *p, char what)
{
    Printer w = {.f = f};
    Plan with = *p;
    with.proof = plan_proof(p);         /* a plan half made has no other proof than its planner's */
    text_graph_refs(p->g, w.ref);
    for (const PlanRecords *x = records; x < records + RECORDS; x++) {
        for (int i = 0; x->ref != R_KINDS && i < LIST_OF(p, x)->n; i++) {
            char *from = LIST_OF(p, x)->at + (size_t)i * x->size;
            *PUSH(&w.ref[x->ref].name) = strf("%d:%s", IN(int, from, x->device), IN(const char *, from, x->name));
        }
        if (x->ref != R_KINDS)
            refs_seal(&w.ref[x->ref]);
    }
    fprintf(f, "dpgen-plan 1\n");
    for (const PlanRecords *x = records; x < records + RECORDS; x++)
        if (*x->letters && (!what || strchr(x->letters, what)))
            x->print(&w, &with, x);
}

static void check_whole(const Scanner *s, const Plan *p)
{
    Loc top = {s->file, 1, 1};
    if (!p->schedule)
        err(top, "plan NAME schedule=... devices=N chunks=N", "no record begins with 'plan'");
    /* Every replica shares out the same chunks in the same way, over devices that are all used. */
    if (plan_chunks(p) < plan_stages(p))
        err(top, NULL, "%d stages, and %d chunks that have one", plan_stages(p), plan_chunks(p));
    if (p->home.n != rows_said(p))
        err(top, NULL, "%d replicas, and %d that have chunks", rows_said(p), p->home.n);
    for (int q = 0; q < p->home.n; q++)
        if (p->home.at[q].n != plan_chunks(p))
            err(top, NULL, "replica %d has %d chunks, and replica 0 has %d", q, p->home.at[q].n, plan_chunks(p));
    for (int q = 0; q < p->home.n; q++)
        for (int c = 0; c < plan_chunks(p); c++)
            if (plan_chunk_at(p, q, plan_home(p, q, c)) != plan_chunk_at(p, 0, stage_of(p, c)))
                err(top, NULL, "replica %d shares out its chunks in another way than replica 0", q);
    for (int d = 0; d < p->devices; d++) {
        bool any = false;
        for (int q = 0; q < p->home.n; q++)
            any |= plan_chunk_at(p, q, d) >= 0;
        if (!any)
            err(top, NULL, "device %d has no chunk", d);
    }
    if (p->chunk.n && p->chunk.n != p->g->op.n)
        err(top, NULL, "%d operators, and %d of them have a place", p->g->op.n, p->chunk.n);
}

Plan *read_plan(const char *path, const Graph *g, const Model *m)
{
    Scanner s = {0};
    Plan *p = alloc(sizeof *p);
    const Table *tables[RECORDS + 1] = {0};
    p->g = g;
    p->m = m;
    for (int k = 0; k < RECORDS; k++)
        tables[k] = &records[k].t;
    text_scan(&s, path, "dpgen-plan 1");
    text_known(&s, tables);
    text_graph_refs(g, s.ref);
    for (int k = 0; k < RECORDS; k++)
        if (records[k].ref != R_KINDS)
            text_once(&s, records[k].ref, &records[k].t);
    /* Every operator that was planned has a record `place`, in order.  Where fuse has joined others, or none, their number
     * is another one than here. */
    const Record *first = NULL;         /* that differs */
    int n = 0;
    for (EACH(const Record, r, s.record)) {
        if (strcmp(r->word, "place"))
            continue;
        if (!first && (n >= g->op.n || strcmp(r->name, s.ref[R_OP].name.at[n])))
            first = r;
        n++;
    }
    if (first && n != g->op.n)
        err(text_at(first, first->name_col), n < g->op.n ? "joined then and not here? --fuse auto, or plan again"
            : "joined here and not then? --fuse none, or plan again", "%d operators were planned, and here are %d", n, g->op.n);
    for (int k = 0; k < RECORDS; k++)
        for (int i = 0; i < s.record.n; i++)
            if (!strcmp(s.record.at[i].word, records[k].t.word)) {
                if (k > 0 && !p->schedule)
                    check_whole(&s, p);
                records[k].read(&s, &s.record.at[i], p, &records[k]);
            }
    check_whole(&s, p);
    return p;
}
