/* SPDX-License-Identifier: Apache-2.0
 *
 * graphs.h: graphs with gradients, for the tests and measurements of planners.  Each forward operator reads the one before
 * it (seldom another) and up to `skips` from anywhere before; its backward reads what its readers' backward made for it,
 * some of its operands or its result, and makes a gradient for each operand; parameters, some of them tied.
 */
#ifndef GRAPHS_H
#define GRAPHS_H
#include "world.h"

typedef struct {
    int n, skips;               /* forward operators; at most so many more operands */
    int far;                    /* from so far back */
    Bytes most;                 /* of a tensor */
    int params;                 /* one operator in so many has one */
    bool ties;
    bool joint;                 /* W may read a gradient that its own I makes, a forward tensor that I does not, or alone a
                                 * gradient */
} Form;

static inline void take_gradients(Op *o, int fwd, const Ints *term)
{
    for (int i = 0; i < term[fwd].n; i++)
        put_arg(o, ARG_READ, false, term[fwd].at[i]);
}

/* I makes the gradients of the operands; W, where there is a parameter, reads the same. */
static inline void put_backward(World *w, int fwd, const Ints *operand, Ints *term, bool param, bool joint)
{
    Op *o = add_op(w, PH_I, fwd);
    int at = w->g.op.n - 1;
    if (!joint || !param || operand[fwd].n)
        take_gradients(o, fwd, term);
    if (dice(3) || fwd == w->g.nf - 1)
        put_arg(o, ARG_READ, false, dice(2) ? w->g.op.at[fwd].arg.at[0].index : w->g.op.at[fwd].arg.at[1].index);
    o->tmp = dice(3) ? 0 : dice(20);
    for (int i = 0; i < operand[fwd].n; i++) {
        int made = add_tensor(w, T_GRAD, w->g.tensor.at[operand[fwd].at[i]].bytes, at);
        put_arg(&w->g.op.at[at], ARG_WRITE, false, made);
        *PUSH(&term[w->g.tensor.at[operand[fwd].at[i]].op]) = made;
    }
    if (!param)
        return;
    o = add_op(w, PH_W, fwd);
    take_gradients(o, fwd, term);
    put_arg(o, ARG_READ, false, w->g.op.at[fwd].arg.at[1].index);
    o->tmp = joint && dice(2) ? dice(1000) : 0;
    if (joint && operand[fwd].n && dice(2)) {
        const Ints *made = &term[w->g.tensor.at[operand[fwd].at[0]].op];
        put_arg(o, ARG_READ, false, made->at[made->n - 1]);
    }
    if (joint && dice(2))
        put_arg(o, ARG_READ, false, w->g.op.at[fwd].arg.at[0].index);
}

static inline void put_param(World *w, int op, int also)
{
    Bytes bytes = 1 + dice(40);
    int param = w->g.state.n, uses = also > op ? 2 : 1;
    *PUSH(&w->g.state) = (State){.name = strf("w%d", param), .kind = S_PARAM, .bytes = bytes, .param = param, .op = op};
    for (int i = 0; i < uses; i++)
        *PUSH(&w->g.state) = (State){.name = strf("w%d.grad.%d", param, i), .kind = S_GRAD, .bytes = bytes, .param = param,
                                     .use = i, .op = i ? also : op};
    *PUSH(&w->g.state) = (State){.name = strf("w%d.m", param), .kind = S_MOMENT1, .bytes = bytes, .param = param, .op = op};
}

static inline World *gradient_graph(Form f, int64_t micro)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "gradients", .batch = 1, .micro = micro, .groups = 1, .nf = f.n};
    int input = add_tensor(w, T_INPUT, 1 + dice(9), -1), *made = alloc(sizeof(int) * (size_t)f.n);
    Ints *operand = alloc(sizeof(Ints) * (size_t)f.n), *term = alloc(sizeof(Ints) * (size_t)f.n);
    bool *param = alloc((size_t)f.n);
    for (int i = 0; i < f.n; i++) {
        made[i] = add_tensor(w, T_ACT, 1 + dice((int)f.most), i);
        Op *o = add_op(w, PH_F, i);
        o->tmp = dice(3) ? 0 : dice(20);
        put_arg(o, ARG_WRITE, false, made[i]);
        for (int k = f.skips ? dice(f.skips + 1) : 0, j; k >= 0; k--) {
            j = k == 0 && dice(16) ? i - 1 : i - 1 - dice(f.far);
            bool twice = false;
            for (int a = 0; a < operand[i].n; a++)
                twice |= j >= 0 && operand[i].at[a] == made[j];
            if (j >= 0 && !twice)
                put_arg(o, ARG_READ, false, *PUSH(&operand[i]) = made[j]);
        }
        if (!operand[i].n)
            put_arg(o, ARG_READ, false, input);
        param[i] = dice(f.params) == 0;
    }
    for (int i = f.n - 1; i >= 0; i--)
        put_backward(w, i, operand, term, param[i], f.joint);
    w->g.nb = w->g.op.n;
    for (int i = 0; i < f.n; i++)
        if (param[i])
            put_param(w, i, f.ties && dice(4) == 0 ? dice(f.n) : -1);
    w->g.vals = w->g.state.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    return w;
}
#endif
