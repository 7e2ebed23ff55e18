/* SPDX-License-Identifier: Apache-2.0
 *
 * adapt.c: section `adapt`: a Linear beside which two small ones learn (E. Hu et al., LoRA: Low-Rank Adaptation of Large
 * Language Models, 2022), while it and all else is frozen.
 *
 *     y = W x + b + alpha / rank * B A dropout(x)
 *
 * A line that `match` names becomes Linear, Dropout (where there is one), Linear lora_A, Linear lora_B, Scale, Add: rows that
 * all kernel libraries have, that the planner cuts and prices, and whose bits are fixed.  Names and start values are those of
 * PEFT: NAME.lora_A.weight uniform within 1/sqrt(in), NAME.lora_B.weight zeros, so that the first loss is that of the model.
 *
 * needs   operands and attributes of a line.  fills   operators, State.adapter.
 * fails   with bad() where `match` names no Linear.
 */
#include "build.h"

/* Without a bias. */
static int small(Scope *s, const Node *line, const char *path, int x, int64_t out, Init init)
{
    Graph *g = s->b->g;
    Op o = {.attr = {NULL, 0, 0}};
    *PUSH(&o.in) = x;
    ATTRS(&o, {"out", out}, {"affine", 0});
    int op = op_new(s, line, path, row_find("Linear"), o);
    State *weight = &g->state.at[g->op.at[op].par.at[0]];
    weight->init = init;
    weight->adapter = true;
    return g->op.at[op].out.at[0];
}

static int passed(Scope *s, const Node *line, const char *path, const char *row, int x, const char *attr, double value)
{
    Op o = {.attr = {NULL, 0, 0}};
    *PUSH(&o.in) = x;
    attr_set_float(&o, attr, value);
    int op = op_new(s, line, path, row_find(row), o);
    return s->b->g->op.at[op].out.at[0];
}

int adapt(Scope *s, const Node *line, const char *path, Op o)
{
    static const Init down = {"lora_A", INIT_UNIFORM, 0, 0, FAN_IN, NULL}, up = {"zeros", INIT_ZEROS, 0, 0, FAN_NONE, NULL};
    const AdaptSpec *a = &s->b->m->adapt;
    Node here = {.kind = MAP, .loc = line->loc};        /* its keys are those of the line's own Linear */
    int x = o.in.at[0];
    int op = op_new(s, line, path, row_find("Linear"), o);
    int y = s->b->g->op.at[op].out.at[0];
    if (a->dropout > 0)
        x = passed(s, &here, path_join(path, "lora_dropout"), "Dropout", x, "drop", a->dropout);
    x = small(s, &here, path_join(path, "lora_A"), x, a->rank, down);
    x = small(s, &here, path_join(path, "lora_B"), x, attr_int(&o, "out"), up);
    x = passed(s, &here, path_join(path, "lora_scale"), "Scale", x, "factor", a->alpha / (double)a->rank);
    Op sum = {.attr = {NULL, 0, 0}};
    *PUSH(&sum.in) = y;
    *PUSH(&sum.in) = x;
    return op_new(s, &here, path_join(path, "adapted"), row_find("Add"), sum);
}

void linears_named(const Builder *b, const Strs *patterns, Loc loc, const char *key)
{
    Strs names = {0};
    for (EACH(const Op, o, b->g->op))
        if (!strcmp(row(o->row)->name, "Linear") && !b->g->state.at[o->par.at[0]].adapter)
            *PUSH(&names) = o->name;
    for (int i = 0; i < patterns->n; i++) {
        bool any = false;
        for (int k = 0; k < names.n; k++)
            any |= match(patterns->at[i], names.at[k]);
        if (!any)
            bad(mark_of(b->m, patterns->at[i], loc), names_remedy(patterns->at[i], &names),
                "%s: no Linear is named '%s'", key, patterns->at[i]);
    }
}
