/* SPDX-License-Identifier: Apache-2.0
 *
 * train.c: how the model is trained, on what, and what a run leaves behind: the sections train, data, checkpoint,
 * report.
 *
 * needs   inputs of the model        fills   Model.train, data, eval, ckpt, trace
 * fails   with bad(); a key that belongs to another kind of optimiser, schedule or format is a mistake, not ignored
 */
#include "schema.h"

enum { MOST_MICRO = 16384 };    /* of one step: each is written out in the generated source */
enum { MOST_BLOCKS = 16 };      /* the kernels have room for a tree of so many: rt/op/kernel.h */
#define MOST 0x1p40             /* steps, samples */
#define MOST_RATE 1e6           /* learning rates and what multiplies them */

/* A key that only some kinds of something have: a bit each. */
typedef struct { const char *key; int kinds; const char *kind_name; } Owner;

static void check_owners(const Node *map, const char *path, int kind, const Owner *owners, int n)
{
    for (int i = 0; i < n; i++) {
        const Node *value = node_get(map, owners[i].key);
        if (value && !(owners[i].kinds >> kind & 1))
            bad(value->loc, strf("delete it, or write type: %s", owners[i].kind_name),
                "%s.%s is only for type %s", path, owners[i].key, owners[i].kind_name);
    }
}

/* ---- train: precision and batch ---------------------------------------------------------------------- */

#define AT(field) offsetof(Train, field)

static void read_precision(const Spot *s)
{
    static const Field fields[] = {
        { "compute", read_choice, AT(compute), 0, 0, "f32 bf16 tf32 fp8 fp8-fast" },
        { "params", read_fixed, 0, 0, 0, "f32" },
        { "gradients", read_fixed, 0, 0, 0, "f32" },
    };
    Train *t = s->to;
    section(s->m, s->value, s->path, fields, COUNT(fields), t);
    t->tf32 = (int)t->compute == BF16 + 1;
    t->fast = (int)t->compute == BF16 + 3;
    t->fp8 = (int)t->compute == BF16 + 2 || t->fast;
    t->compute = t->tf32 ? F32 : t->fp8 ? BF16 : t->compute;
}

const char *compute_word(const Train *t)
{
    return t->tf32 ? "tf32" : t->fast ? "fp8-fast" : t->fp8 ? "fp8" : type_name(t->compute);
}

static void read_micro(const Spot *s)
{
    if (is_word(s->value, "auto"))
        *(int64_t *)s->to = 0;
    else
        read_int(s);
}

static void read_batch(const Spot *s)
{
    static const Field fields[] = {
        { "global", read_int, AT(global), 1, MOST, NULL },
        { "micro", read_micro, AT(batch), 1, 0x1p31, NULL },
        { "groups", read_int, AT(groups), 1, MOST_MICRO, NULL },
    };
    section(s->m, s->value, s->path, fields, COUNT(fields), s->to);
}

/* Blocks are added by a binary tree, of which each device of a stage has a subtree. */
static void read_blocks(const Spot *s)
{
    Train *t = s->to;
    t->blocks_at = s->value->loc;
    int64_t n = 1;
    read_int(spot_to(s, &n));
    int64_t down = 1;
    while (2 * down <= n && down < MOST_BLOCKS)
        down *= 2;
    if (n != down)
        bad(t->blocks_at, n < 1 ? "1 would do" : n > MOST_BLOCKS ? strf("%d would do", MOST_BLOCKS)
            : strf("%lld or %lld would do", (long long)down, (long long)(2 * down)),
            "train.blocks: %lld is no power of two from 1 to %d", (long long)n, MOST_BLOCKS);
    t->blocks = down;
}

/* ---- train: optimiser and learning rate -------------------------------------------------------------- */

enum { ADAMS = 1 << OPT_ADAMW | 1 << OPT_NADAMW, RMS = 1 << OPT_RMSPROP };
static const Owner optimizer_owners[] = {
    { "betas", ADAMS, "adamw or nadamw" }, { "eps", ADAMS | RMS, "adamw, nadamw or rmsprop" },
    { "momentum", 1 << OPT_SGD | RMS, "sgd or rmsprop" }, { "nesterov", 1 << OPT_SGD, "sgd" }, { "alpha", RMS, "rmsprop" },
    { "centered", RMS, "rmsprop" }
};

/* x2: so many times the rate of all others; or a rate. */
static void read_group_rate(const Spot *s)
{
    Node number = *s->value;
    bool times = number.kind == SCALAR && number.text[0] == 'x';
    Spot rest = *s;
    rest.value = &number;
    number.text += times;
    number.loc.col += times;
    read_float(&rest);
    ParamGroup *to = (ParamGroup *)(void *)((char *)s->to - offsetof(ParamGroup, lr));
    to->times = times;
}

static void read_groups(const Spot *s)
{
    static const Field fields[] = {
        { "match", read_texts, offsetof(ParamGroup, match), 1, 0, NULL },
        { "lr", read_group_rate, offsetof(ParamGroup, lr), 0, MOST_RATE, NULL },
        { "weight_decay", read_float, offsetof(ParamGroup, weight_decay), 0, MOST_RATE, NULL },
        { "betas", read_pair_below, offsetof(ParamGroup, beta1), 0, 1, NULL },
        { "eps", read_above, offsetof(ParamGroup, eps), 0, 1, NULL },
    };
    Train *t = s->to;
    if (!want(s, LIST, "a list of {match: PATTERNS, lr: x2}"))
        return;
    if (!s->value->n || s->value->n > MAX_PARAM_GROUPS)
        bad(s->value->loc, NULL, "%s: 1 to %d groups are expected, and %d found", s->path, MAX_PARAM_GROUPS, s->value->n);
    for (int i = 0; i < s->value->n && i < MAX_PARAM_GROUPS; i++) {
        const Spot *item = spot_item(s, i, NULL, NULL);
        ParamGroup *to = PUSH(&t->param_group);
        *to = (ParamGroup){ .lr = -1, .weight_decay = -1, .beta1 = -1, .eps = -1, .loc = item->value->loc };
        section(s->m, item->value, item->path, fields, COUNT(fields), to);
        if (item->value->kind == MAP && want_key(item->value, "match", item->path) && item->value->n == 1)
            bad(item->value->loc, "add one of lr, weight_decay, betas, eps", "%s changes nothing", item->path);
    }
}

static void read_optimizer(const Spot *s)
{
    static const Field fields[] = {
        { "type", read_choice, AT(opt), 0, 0, "sgd adamw nadamw rmsprop" },
        { "lr", read_float, AT(lr), 0, MOST_RATE, NULL },
        { "betas", read_pair_below, AT(beta1), 0, 1, NULL },
        { "eps", read_above, AT(eps), 0, 1, NULL },
        { "momentum", read_below, AT(momentum), 0, 1, NULL },
        { "nesterov", read_true, AT(nesterov), 0, 0, NULL },
        { "alpha", read_below, AT(alpha), 0, 1, NULL },
        { "centered", read_true, AT(centered), 0, 0, NULL },
        { "weight_decay", read_float, AT(weight_decay), 0, MOST_RATE, NULL },
        { "decay_only", read_second, AT(decay_matrices), 0, 0, "all matrices" },
        { "no_decay", read_texts, AT(no_decay), 0, 0, NULL },
        { "groups", read_groups, 0, 0, 0, NULL },
    };
    Train *t = s->to;
    section(s->m, s->value, s->path, fields, COUNT(fields), t);
    check_owners(s->value, s->path, t->opt, optimizer_owners, COUNT(optimizer_owners));
    if (node_get(s->value, "groups")) {
        /* What a group does not say is as for all others. */
        const Node *groups = node_get(s->value, "groups");
        const char *path = strf("%s.groups", s->path);
        for (int i = 0; i < t->param_group.n; i++) {
            ParamGroup *k = &t->param_group.at[i];
            k->lr = k->lr < 0 ? t->lr : k->times ? k->lr * t->lr : k->lr;
            k->weight_decay = k->weight_decay < 0 ? t->weight_decay : k->weight_decay;
            k->beta2 = k->beta1 < 0 ? t->beta2 : k->beta2;
            k->beta1 = k->beta1 < 0 ? t->beta1 : k->beta1;
            k->eps = k->eps < 0 ? t->eps : k->eps;
            if (groups->kind == LIST && groups->at[i]->kind == MAP)
                check_owners(groups->at[i], strf("%s[%d]", path, i), t->opt, optimizer_owners, COUNT(optimizer_owners));
        }
    }
    if (t->nesterov && t->momentum == 0)
        bad(node_get(s->value, "nesterov")->loc, "write momentum: 0.9 too", "%s.nesterov: there is no momentum", s->path);
}

static void read_schedule(const Spot *s)
{
    static const Field fields[] = {
        { "type", read_choice, AT(schedule), 0, 0, "constant cosine linear step" },
        { "warmup", read_int, AT(warmup), 0, MOST, NULL },
        { "final", read_float, AT(final), 0, 1, NULL },
        { "every", read_int, AT(every), 1, MOST, NULL },
        { "factor", read_above, AT(factor), 0, 1, NULL },
    };
    static const Owner owners[] = { { "every", 1 << LR_STEP, "step" }, { "factor", 1 << LR_STEP, "step" } };
    Train *t = s->to;
    section(s->m, s->value, s->path, fields, COUNT(fields), t);
    check_owners(s->value, s->path, t->schedule, owners, COUNT(owners));
    if (t->schedule == LR_STEP && s->value->kind == MAP)
        want_key(s->value, "every", s->path);
    const Node *final = node_get(s->value, "final");
    if (final && t->schedule != LR_COSINE && t->schedule != LR_LINEAR)
        bad(final->loc, "delete it", "%s.final is only for types cosine and linear", s->path);
}

static void read_seed(const Spot *s)
{
    static const Field bound = { NULL, NULL, 0, 0, 9223372036854774784.0, NULL };
    int64_t seed = 0;
    read_int(spot_as(s, &bound, &seed));
    *(uint64_t *)s->to = (uint64_t)seed;
}

static void read_deterministic(const Spot *s)
{
    bool yes = true;
    read_true(spot_to(s, &yes));
    if (!yes)
        bad(s->value->loc, "delete it", "a generated job always computes the same bits; this cannot be switched off");
}

void model_train(Model *m, Node *node)
{
    static const Field fields[] = {
        { "precision", read_precision, 0, 0, 0, NULL },
        { "batch", read_batch, 0, 0, 0, NULL },
        { "steps", read_int, AT(steps), 1, MOST, NULL },
        { "optimizer", read_optimizer, 0, 0, 0, NULL },
        { "schedule", read_schedule, 0, 0, 0, NULL },
        { "clip_norm", read_float, AT(clip), 0, 1e30, NULL },
        { "clip_scope", read_second, AT(clip_each), 0, 0, "global parameter" },
        { "shard", read_choice, AT(shard), 0, 0, "none optimizer gradients parameters" },
        { "blocks", read_blocks, 0, -MOST, MOST, NULL },
        { "seed", read_seed, AT(seed), 0, 0, NULL },
        { "freeze", read_texts, AT(freeze), 1, 0, NULL },
        { "deterministic", read_deterministic, 0, 0, 0, NULL },
    };
    Train *t = &m->train;
    *t = (Train){ .compute = F32, .batch = 1, .groups = 1, .blocks = 1, .steps = 1000, .opt = OPT_ADAMW, .lr = 3e-4,
                  .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .alpha = 0.99, .schedule = LR_CONSTANT, .every = 1,
                  .factor = 0.1, .seed = 1 };
    section(m, node, "train", fields, COUNT(fields), t);
    const Node *batch = node_get(node, "batch");
    /* What follows from the three numbers. */
    Loc at = batch ? batch->loc : node ? node->loc : (Loc){ 0, 0, 0 };
    if (!t->global)
        t->global = 8 * (t->batch ? t->batch : 1);
    if (!t->batch)
        return;
    t->micro = t->global / t->batch;
    int64_t down = t->micro * t->batch;
    if (t->global % t->batch)
        bad(at, down ? strf("%lld or %lld would do", (long long)down, (long long)(down + t->batch))
            : strf("%lld would do", (long long)t->batch),
            "a global batch of %lld samples is not a whole number of micro-batches of %lld", (long long)t->global,
            (long long)t->batch);
    else if (t->micro > MOST_MICRO)
        bad(at, "make train.batch.micro larger", "%lld micro-batches in a step; at most %d are planned",
            (long long)t->micro, MOST_MICRO);
    else if (t->micro % t->groups)
        bad(at, NULL, "%lld micro-batches do not divide into %lld equal groups", (long long)t->micro,
            (long long)t->groups);
}

/* ---- data -------------------------------------------------------------------------------------------- */

static int input_find(Model *m, const Node *name)
{
    const char *known[MAXINPUT];
    for (int i = 0; i < m->inputs.n; i++) {
        known[i] = m->inputs.at[i].name;
        if (!strcmp(known[i], name->text))
            return i;
    }
    bad(name->loc, did_you_mean(name->text, known, m->inputs.n, "inputs stand in model.inputs"),
        "the model has no input '%s'", name->text);
    return -1;
}

static void feed(DataSet *d, int input, const char *role, const char *path)
{
    *PUSH(&d->role) = role;
    *PUSH(&d->input) = input;
    *PUSH(&d->path) = path;
}

static void read_role(const Spot *s)
{
    int i = want(s, SCALAR, "the name of an input") ? input_find(s->m, s->value) : -1;
    if (i < 0)
        return;
    feed(s->to, i, s->field->key, NULL);
    if (s->m->inputs.at[i].type != I32)
        bad(s->value->loc, "write dtype: i32 there", "%s: the input '%s' is not i32", s->path, s->value->text);
    const Node *shape = s->m->inputs.at[i].shape;
    if (shape && shape->n != 2)
        bad(s->value->loc, "give it the shape [B, LENGTH]", "%s: the input '%s' does not have two dimensions", s->path,
            s->value->text);
}

/* A picture, or its label. */
static void read_field(const Spot *s)
{
    int i = want(s, SCALAR, "the name of an input") ? input_find(s->m, s->value) : -1;
    if (i < 0)
        return;
    bool picture = !strcmp(s->field->key, "image");
    feed(s->to, i, s->field->key, NULL);
    if (picture ? !s->m->inputs.at[i].bytes : s->m->inputs.at[i].type != I32)
        bad(s->value->loc, picture ? "write dtype: u8 there" : "write dtype: i32 there", "%s: the input '%s' is not %s",
            s->path, s->value->text, picture ? "u8" : "i32");
}

static void read_arrays(const Spot *s)
{
    if (!want(s, MAP, "a map of inputs and files"))
        return;
    for (int i = 0; i < s->value->n; i++) {
        const char *path = NULL;
        int input = input_find(s->m, s->value->key[i]);
        read_text(spot_key(s, i, NULL, &path));
        if (input >= 0 && path)
            feed(s->to, input, s->m->inputs.at[input].name, path);
    }
}

/* Which keys go with a format: the first is required, and the second where no input is fed. */
typedef struct { const char *format, *key[5]; } Keys;
static const Keys format_keys[] = {
    { "bytes", { "files", "tokens", "next" } }, { "llmc-tokens", { "files", "tokens", "next" } },
    { "megatron", { "files", "tokens", "next" } }, { "npy", { "arrays" } }, { "idx", { "arrays" } },
    { "cifar10", { "files", "image", "labels" } }, { "cifar100", { "files", "image", "labels", "coarse" } },
};

static const Keys *keys_of(const char *format)
{
    int i = INDEX_OF(format_keys, COUNT(format_keys), format);
    if (i < 0)
        die("data: format %s has no keys", format);
    return &format_keys[i];
}

static bool has_key(const Keys *k, const char *key)
{
    for (int i = 0; i < COUNT(k->key) && k->key[i]; i++)
        if (!strcmp(k->key[i], key))
            return true;
    return false;
}

static bool check_keys(const DataSet *d, Node *node, const char *path)
{
    static const char *const all[] = { "files", "tokens", "next", "arrays", "image", "labels", "coarse" };
    const Keys *mine = keys_of(d->format);
    want_key(node, mine->key[0], path);
    if (mine->key[1] && !d->input.n)
        want_key(node, mine->key[1], path);
    bool ok = true;
    for (int i = 0; i < COUNT(all); i++) {
        const Node *value = has_key(mine, all[i]) ? NULL : node_get(node, all[i]);
        if (value)
            bad(value->loc, "delete it", "%s.%s does not go with format %s", path, all[i], d->format);
        ok = ok && !value;
    }
    return ok;
}

/* What the evaluation set does not say, it has in common with the training set. */
static void inherit(DataSet *eval, const DataSet *train)
{
    if (!eval->format)
        eval->format = train->format;
    if (eval->input.n || !eval->format || !train->format || strcmp(eval->format, train->format)
        || has_key(keys_of(eval->format), "arrays"))
        return;
    eval->role = train->role;
    eval->input = train->input;
    eval->path = train->path;
}

static void check_fed(const Model *m, const DataSet *d, const char *path)
{
    int fed[MAXINPUT] = { 0 };
    for (int i = 0; i < d->input.n; i++)
        if (fed[d->input.at[i]]++ == 1)
            bad(d->loc, NULL, "%s feeds the input '%s' twice", path, m->inputs.at[d->input.at[i]].name);
    for (int i = 0; i < m->inputs.n; i++)
        if (!fed[i])
            bad(m->inputs.at[i].loc, "name it in the data section", "nothing in %s feeds the input '%s'", path,
                m->inputs.at[i].name);
}

static void read_set(const Spot *s)
{
#define SET(field) offsetof(DataSet, field)
    static const Field fields[] = {
        { "format", read_word, SET(format), 0, 0, "bytes llmc-tokens megatron npy idx cifar10 cifar100" },
        { "files", read_texts, SET(files), 1, 0, NULL },
        { "tokens", read_role, 0, 0, 0, NULL },
        { "next", read_role, 0, 0, 0, NULL },
        { "arrays", read_arrays, 0, 0, 0, NULL },
        { "image", read_field, 0, 0, 0, NULL },
        { "labels", read_field, 0, 0, 0, NULL },
        { "coarse", read_field, 0, 0, 0, NULL },
        { "order", read_second, SET(sequential), 0, 0, "shuffled sequential" },
        { "every", read_int, SET(every), 1, MOST, NULL },         /* these four: eval only */
        { "batches", read_int, SET(batches), 1, MOST_MICRO, NULL },
        { "keep_best", read_true, SET(keep_best), 0, 0, NULL },
        { "patience", read_int, SET(patience), 0, MOST, NULL },
    };
    DataSet *d = s->to;
    bool eval = d == &s->m->eval;
    d->loc = s->value->loc;
    d->every = eval ? 100 : 0;
    d->batches = eval ? 10 : 0;
    section(s->m, s->value, s->path, fields, COUNT(fields) - (eval ? 0 : 4), d);
    if (eval)
        inherit(d, &s->m->data);
    if (s->value->kind != MAP || (!d->format && !want_key(s->value, "format", s->path)) || !d->format)
        return;
    const Node *arrays = node_get(s->value, "arrays");
    static const char *const roles[] = { "tokens", "next", "image", "labels", "coarse" };
    int named = arrays ? arrays->n : 0;
    for (int i = 0; i < COUNT(roles); i++)
        named += node_get(s->value, roles[i]) != NULL;
    if (check_keys(d, s->value, s->path) && named <= d->input.n)     /* else a name was wrong, and is named already */
        check_fed(s->m, d, s->path);
}

void model_data(Model *m, Node *node)
{
    static const Field fields[] = {
        { "train", read_nothing, offsetof(Model, data), 0, 0, NULL },
        { "eval", read_set, offsetof(Model, eval), 0, 0, NULL },
    };
    if (!node)
        return;
    Node *train = node_get(node, "train");      /* first: the other inherits from it */
    if (train) {
        Spot s = { m, &fields[0], "data.train", train, &m->data };
        read_set(&s);
    } else if (node->kind == MAP) {
        want_key(node, "train", "data");
    }
    section(m, node, "data", fields, COUNT(fields), m);
}

/* ---- checkpoint, report ------------------------------------------------------------------------------ */

void model_checkpoint(Model *m, Node *node)
{
    static const Field fields[] = {
        { "every", read_int, offsetof(CkptSpec, every), 0, MOST, NULL },
        { "keep", read_int, offsetof(CkptSpec, keep), 1, 1000000, NULL },
        { "dir", read_text, offsetof(CkptSpec, dir), 0, 0, NULL },
        { "async", read_true, offsetof(CkptSpec, async), 0, 0, NULL },
        { "format", read_fixed, 0, 0, 0, "safetensors" },
    };
    m->ckpt = (CkptSpec){ .dir = "checkpoints", .every = 0, .keep = 3, .async = true };
    section(m, node, "checkpoint", fields, COUNT(fields), &m->ckpt);
}

/* ---- adapt: what learns beside a model that does not ------------------------------------------------------ */

void model_adapt(Model *m, Node *node)
{
    static const Field fields[] = {
        { "match", read_texts, offsetof(AdaptSpec, match), 1, 0, NULL },
        { "rank", read_int, offsetof(AdaptSpec, rank), 1, 1 << 20, NULL },
        { "alpha", read_float, offsetof(AdaptSpec, alpha), 0, MOST_RATE, NULL },
        { "dropout", read_below, offsetof(AdaptSpec, dropout), 0, 1, NULL },
        { "learn", read_texts, offsetof(AdaptSpec, learn), 1, 0, NULL },
    };
    m->adapt = (AdaptSpec){ .rank = 8, .alpha = 8, .loc = node ? node->loc : (Loc){ 0, 0, 0 } };
    if (!node)
        return;
    section(m, node, "adapt", fields, COUNT(fields), &m->adapt);
    if (node->kind == MAP)
        want_key(node, "match", "adapt");
    if (m->train.freeze.n)
        bad(mark_of(m, m->train.freeze.at[0], node->loc), "delete it; adapt.learn names what learns besides",
            "train.freeze and adapt exclude each other: beside adapters all is frozen");
}

/* Weights in 8 or 4 bits have kernels for processors. */
void model_quantize(Model *m, Node *node)
{
    static const Field fields[] = {
        { "type", read_choice, offsetof(QuantizeSpec, bits), 0, 0, "nf4 int8" },
        { "match", read_texts, offsetof(QuantizeSpec, match), 1, 0, NULL },
    };
    m->quantize = (QuantizeSpec){ .loc = node ? node->loc : (Loc){ 0, 0, 0 } };
    if (!node)
        return;
    section(m, node, "quantize", fields, COUNT(fields), &m->quantize);
    m->quantize.bits = m->quantize.bits ? 8 : 4;
    if (on_gpus(m))
        bad(node->loc, "delete section quantize, or name devices of kind cpu",
            "weights of %d bits have kernels for processors alone, and '%s' is of kind cuda", m->quantize.bits,
            m->devices.at[0].name);
}

static void read_html(const Spot *s)
{
    bool unused;
    read_true(spot_to(s, &unused));
}

void model_report(Model *m, Node *node)
{
    static const Field fields[] = {
        { "metrics", read_fixed, 0, 0, 0, "none jsonl" },
        { "trace", read_second, offsetof(Model, trace), 0, 0, "none chrome" },
        { "html", read_html, 0, 0, 0, NULL },
    };
    section(m, node, "report", fields, COUNT(fields), m);
}
