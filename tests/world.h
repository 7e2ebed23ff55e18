/* SPDX-License-Identifier: Apache-2.0
 *
 * world.h: graphs made by hand, for the tests of the planning passes; nothing of config/ and build/ but their names is used.
 */
#ifndef WORLD_H
#define WORLD_H
#include "plan.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *test_name;
static int passed, failed;

static inline void check(bool right, const char *form, ...) PRINTF(2, 3);
static inline void check(bool right, const char *form, ...)
{
    va_list list;
    passed += right;
    failed += !right;
    if (right)
        return;
    va_start(list, form);
    fprintf(stderr, "%s: ", test_name);
    vfprintf(stderr, form, list);
    fputc('\n', stderr);
    va_end(list);
}

static uint64_t seed = 1;
static inline int dice(int n)          /* 0 .. n-1 */
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- graphs made by hand
 * ------------------------------------------------------------------------------------------------ */

typedef struct { Graph g; Cost c; Model m; Plan p; } World;

static inline void put_arg(Op *o, ArgKind kind, bool state, int index)
{
    *PUSH(&o->arg) = (Arg){.kind = kind, .token = "x", .state = state, .index = index};
}

static inline int add_tensor(World *w, TensorKind kind, Bytes bytes, int op)
{
    *PUSH(&w->g.tensor) = (Tensor){.name = strf("t%d", w->g.tensor.n), .kind = kind, .bytes = bytes, .op = op,
                                   .of = -1};
    return w->g.tensor.n - 1;
}

static inline Op *add_op(World *w, Phase phase, int fwd)
{
    int n = w->g.op.n;
    *PUSH(&w->g.op) = (Op){.name = strf("op%d", fwd >= 0 ? fwd : n), .layer = "", .phase = phase, .call = "call",
                           .fwd = phase == PH_F ? n : fwd};
    return &w->g.op.at[n];
}

static inline void set_times(World *w, Ns (*ns)(World *w, int op))
{
    w->c = (Cost){.signature = "test", .link = 1e18};
    enum { MOST = 64 };         /* devices, all alike */
    w->c.classes = 1;
    w->c.of = (Ints){alloc(sizeof(int) * MOST), MOST, MOST};
    w->c.ns = alloc(sizeof(Ns *));
    w->c.ns[0] = alloc(sizeof(Ns) * (size_t)w->g.op.n);
    for (int o = 0; o < w->g.op.n; o++)
        w->c.ns[0][o] = ns(w, o);
}

/* Some calls share a kernel with the one in front of them. */
static inline void set_pairs(World *w)
{
    w->c.alone = alloc(sizeof(Ns *) * (size_t)w->c.classes);
    for (int k = 0; k < w->c.classes; k++) {
        w->c.alone[k] = alloc(sizeof(Ns) * (size_t)w->g.op.n);
        for (int o = 0; o < w->g.op.n; o++)
            w->c.alone[k][o] = w->c.ns[k][o] + (o < w->g.nf && o % 2 ? 1 + w->c.ns[k][o] / (1 + o % 8) : 0);
    }
}

static inline void set_plan(World *w, const char *schedule, int devices)
{
    w->m.plan.planner = "exact";
    w->p = (Plan){.g = &w->g, .c = &w->c, .m = &w->m, .schedule = schedule, .devices = devices, .chunks = 1};
}

static inline void some_plan(World *w, int least, int more)
{
    const char *schedule = dice(2) ? "gpipe" : "1f1b";
    set_plan(w, schedule, least + dice(more));
}

static inline World *forward_chain(int n, int micro)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "chain", .batch = 1, .micro = micro, .groups = 1, .nf = n};
    for (int i = 0; i < n; i++)
        add_tensor(w, T_ACT, 1, i);
    for (int i = 0; i < n; i++) {
        Op *o = add_op(w, PH_F, i);
        put_arg(o, ARG_WRITE, false, i);
        if (i > 0)
            put_arg(o, ARG_READ, false, i - 1);
    }
    return w;
}

/* A chain of n operators: forward reads the tensor before; the input gradient reads that tensor, or the operator's own
 * result, and the gradient. */
static inline World *chain(int n, int micro, bool own)
{
    World *w = forward_chain(n, micro);
    for (int i = n - 1, grad = -1; i >= 0; i--) {
        int made = i > 0 ? add_tensor(w, T_GRAD, 1, w->g.op.n) : -1;
        Op *o = add_op(w, PH_I, i);
        if (made >= 0)
            put_arg(o, ARG_WRITE, false, made);
        if (grad >= 0)
            put_arg(o, ARG_READ, false, grad);
        put_arg(o, ARG_READ, false, i > 0 && !own ? i - 1 : i);
        grad = made;
    }
    w->g.nb = w->g.op.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    return w;
}

/* A chain of n operators with I and W apart.  Only I makes a gradient; W reads the gradient that I reads, and the operand of
 * forward. */
static inline World *apart_chain(int n, int micro)
{
    World *w = forward_chain(n, micro);
    for (int i = n - 1, grad = -1; i >= 0; i--) {
        int made = add_tensor(w, T_GRAD, 1, w->g.op.n);
        for (int k = 0; k < 2; k++) {
            Op *o = add_op(w, k ? PH_W : PH_I, i);
            if (k == 0)
                put_arg(o, ARG_WRITE, false, made);
            put_arg(o, ARG_READ, false, grad >= 0 ? grad : i);
            if (k == 1)
                put_arg(o, ARG_READ, false, i > 0 ? i - 1 : i);
        }
        grad = made;
    }
    w->g.nb = w->g.op.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    return w;
}

static inline void add_param(World *w, int uses)
{
    Bytes bytes = 1 + dice(40);
    int param = w->g.state.n, used[3];
    for (int i = 0; i < uses; i++)
        used[i] = dice(w->g.nf);
    for (int i = 0; i < uses; i++)
        for (int j = i + 1; j < uses; j++)
            if (used[j] < used[i]) {
                int swap = used[i];
                used[i] = used[j];
                used[j] = swap;
            }
    *PUSH(&w->g.state) = (State){.name = strf("w%d", param), .kind = S_PARAM, .bytes = bytes, .param = param,
                                 .op = used[0]};
    if (dice(2))
        *PUSH(&w->g.state) = (State){.name = "copy", .kind = S_COPY, .bytes = bytes / 2, .param = param, .op = used[0]};
    for (int i = 0; i < uses; i++)
        *PUSH(&w->g.state) = (State){.name = "grad", .kind = S_GRAD, .bytes = bytes, .param = param, .use = i,
                                     .op = used[i]};
    *PUSH(&w->g.state) = (State){.name = "m", .kind = S_MOMENT1, .bytes = bytes, .param = param, .op = used[0]};
}

static inline void stay_together(World *w, int one, int two)
{
    Strs *names = PUSH(&w->m.plan.same_stage);
    *PUSH(names) = w->g.op.at[one].name;
    *PUSH(names) = w->g.op.at[two].name;
}

/* Operators with up to three operands from anywhere before, skips included, and backward readers of any subset. */
static inline World *random_graph(int n)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "random", .batch = 1, .micro = 1 << dice(4), .nf = n};
    w->g.groups = 1 << dice(3);
    if (w->g.groups > w->g.micro)
        w->g.groups = w->g.micro;
    int input = add_tensor(w, T_INPUT, 1 + dice(9), -1), *made = alloc(sizeof(int) * (size_t)n);
    for (int i = 0; i < n; i++) {
        made[i] = add_tensor(w, T_ACT, 1 + dice(30), i);
        Op *o = add_op(w, PH_F, i);
        o->tmp = dice(20);
        if (i > 0 && dice(6) == 0)
            stay_together(w, i - 1, i);
        put_arg(o, ARG_WRITE, false, made[i]);
        put_arg(o, ARG_READ, false, i > 0 ? made[i - 1] : input);
        for (int k = dice(3); k > 0; k--)
            put_arg(o, ARG_READ, false, i > 0 ? made[dice(i)] : input);
    }
    for (int i = n - 1; i >= 0; i--)
        for (int k = 0; k < 2; k++) {
            Op *o = add_op(w, k ? PH_W : PH_I, i);
            for (int a = 0; a < w->g.op.at[i].arg.n; a++)
                if (dice(2))
                    put_arg(o, ARG_READ, false, w->g.op.at[i].arg.at[a].index);
        }
    w->g.nb = w->g.op.n;
    for (int k = dice(4); k > 0; k--)
        add_param(w, 1 + dice(3));
    w->g.vals = w->g.state.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    return w;
}

static inline Ns some_ns(World *w, int op)
{
    (void)w, (void)op;
    return dice(4) ? dice(20) : dice(60);
}

static inline void some_drops(World *w)
{
    w->m.plan.recompute = (Recompute[]){RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_LIST}[dice(3)];
    for (int o = 0; w->m.plan.recompute == RECOMPUTE_LIST && o < w->g.nf; o++)
        if (dice(2))
            *PUSH(&w->m.plan.names) = w->g.op.at[o].name;
    for (int o = 0; o < w->g.nf; o++)
        if (dice(8) == 0)
            *PUSH(&w->m.plan.keep) = w->g.op.at[o].name;
}

static inline int last_of(const Plan *p, int chunk)
{
    int last = -1;
    for (int o = 0; o < p->g->nf; o++)
        last = p->chunk.at[o] == chunk ? o : last;
    return last;
}

enum { UNIT = 1000000000 };     /* so long that loads and the ends of a step vanish in rounding */

static const Ns *forward_units, *backward_units;
static inline Ns unit_ns(World *w, int op)
{
    const Op *o = &w->g.op.at[op];
    return UNIT * (o->phase == PH_F ? forward_units[op] : backward_units[o->fwd]);
}

/* The status that a call ends with, its words thrown away. */
static inline int status_of(void (*call)(void *), void *with)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        call(with);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

#endif
