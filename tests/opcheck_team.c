/* SPDX-License-Identifier: Apache-2.0
 *
 * opcheck_team.c: calls of stages of several devices.  In one block, and without a team, their bits are those of the calls of
 * one device; in blocks tests/axes.c and unit_rt_team.c look at them, over devices tests/width.sh.
 */
#include "opcheck.h"
#include "../rt/real.h"
#include <string.h>

void alike(const char *call, Tensor *got, Tensor *want)
{
    expect(!memcmp(got->k, want->k, (size_t)got->n * sizeof(real)), "%s: not the bits of two calls", call);
}

static void linear_parts(void)
{
    if (folds())                /* GPUs: products of a library, tests/cuda_teams.sh */
        return;
    const long shapes[][4] = {{1, 1, 2, 2}, {17, 29, 33, 3}, {9, 16, 32, 1}};
    for (int s = 0; s < 3; s++) {
        const long *d = shapes[s];
        Tensor *w = operand(REAL, d[2] * d[1], -1, 1), *dy = operand(REAL, d[0] * d[2], -1, 1);
        Tensor *want = result(REAL, d[0] * d[1]), *got = result(REAL, d[0] * d[1]);
        linear_backward_x(stage, want->k, dy->k, w->k, 0, d[0], d[1], d[2]);
        linear_pieces_backward_x(stage, got->k, dy->k, w->k, 0, d[0], d[1], d[2], d[3]);
        alike("linear_pieces_backward_x", got, want);
        Tensor *tmp = sizeof(real) == 4 ? NULL : result(FLOAT, d[0] * (d[1] > d[2] ? d[1] : d[2]));
        linear_columns_backward_x(stage, got->k, dy->k, w->k, tmp ? tmp->k : 0, 0, d[0], d[1], d[2], d[3], d[2]);
        alike("linear_columns_backward_x", got, want);
        Tensor *x = operand(REAL, d[0] * d[1], -1, 1), *b = s % 2 ? operand(REAL, d[2], -1, 1) : NULL;
        Tensor *y = result(REAL, dy->n), *parts = result(REAL, dy->n);
        linear_forward(stage, y->k, x->k, w->k, b ? b->k : 0, 0, d[0], d[1], d[2]);
        linear_rows_forward(stage, parts->k, x->k, w->k, b ? b->k : 0, tmp ? tmp->k : 0, 0, d[0], d[1], d[2]);
        alike("linear_rows_forward", parts, y);
        Tensor *sums = result(FLOAT, d[0] * (d[1] > d[2] ? d[1] : d[2]));
        linear_rows_scatter_forward(stage, parts->k, x->k, w->k, b ? b->k : 0, sums->k, 0, d[0], d[1], d[2], d[0]);
        alike("linear_rows_scatter_forward", parts, y);
        linear_columns_scatter_x(stage, got->k, dy->k, w->k, sums->k, 0, d[0], d[1], d[2], d[3], d[2],
                                 d[0]);
        alike("linear_columns_scatter_x", got, want);
        rows_to_heads(stage, parts->k, dy->k, d[0], d[0], 1, d[2]);
        alike("rows_to_heads", parts, dy);
        heads_to_rows(stage, parts->k, y->k, d[0], d[0], 1, d[2]);
        alike("heads_to_rows", parts, y);
        Tensor *dw[2], *room = result(FLOAT, d[2] * (d[1] + 1));
        for (int i = 0; i < 2; i++)
            dw[i] = result(FLOAT, w->n + d[2]);
        linear_backward_w(stage, dw[0]->k, (float *)dw[0]->k + w->n, dy->k, x->k, 0, 0, d[0], d[1], d[2]);
        linear_positions_backward_w(stage, dw[1]->k, (float *)dw[1]->k + w->n, dy->k, x->k, room->k, 0, 0, d[0], d[1], d[2],
                                    d[0]);
        expect(!memcmp(dw[0]->k, dw[1]->k, (size_t)dw[0]->n * sizeof(float)), "linear_positions_backward_w: other bits");
        case_end();
    }
}

static void row_parts(void)
{
    Tensor *x = operand(REAL, 77, -1, 1), *y = result(REAL, 77), *more = result(REAL, 80);
    part_forward(stage, y->k, x->k, 77, 77);
    alike("part_forward", y, x);
    part_forward(stage, more->k, x->k, 80, 77);
    expect(!memcmp(more->k, x->k, 77 * sizeof(real)) && get(more->k, 77) == 0 && get(more->k, 79) == 0,
           "part_forward: no zeros behind a shorter part");
    gather_forward(stage, y->k, x->k, 77, 77);
    alike("gather_forward", y, x);
    case_end();
}

static void conv_parts(void)
{
    const long shapes[][13] = {{2, 6, 5, 7, 6, 5, 9, 3, 3, 1, 1, 1, 1}, {1, 7, 4, 16, 3, 2, 33, 3, 2, 2, 0, 0, 1},
                               {2, 3, 4, 40, 3, 4, 20, 1, 1, 1, 0, 0, 1}};
    for (int s = 0; s < 3; s++) {
        const long *d = shapes[s];
#define ALL d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8], d[9], d[10], d[11], d[12], 1
        Tensor *x = operand(REAL, d[0] * d[1] * d[2] * d[3], -1, 1), *dy = operand(REAL, d[0] * d[4] * d[5] * d[6], -1, 1);
        Tensor *w = operand(REAL, d[6] * d[3] * d[7] * d[8], -1, 1), *b = s % 2 ? operand(REAL, d[6], -1, 1) : NULL;
        Tensor *y[2], *dx[2], *tmp = sizeof(real) == 4 ? NULL : result(FLOAT, x->n > dy->n ? x->n : dy->n);
        for (int i = 0; i < 2; i++)
            y[i] = result(REAL, dy->n), dx[i] = result(REAL, x->n);
        conv_forward(stage, y[0]->k, x->k, w->k, b ? b->k : 0, 0, ALL);
        conv_rows_forward(stage, y[1]->k, x->k, w->k, b ? b->k : 0, tmp ? tmp->k : 0, ALL);
        alike("conv_rows_forward", y[1], y[0]);
        conv_backward_x(stage, dx[0]->k, dy->k, w->k, 0, ALL);
        conv_columns_backward_x(stage, dx[1]->k, dy->k, w->k, tmp ? tmp->k : 0, ALL);
        alike("conv_columns_backward_x", dx[1], dx[0]);
        case_end();
#undef ALL
    }
}

static void same_floats(const char *call, const float *got, const float *want, long n)
{
    expect(!memcmp(got, want, (size_t)n * sizeof *got), "%s: not the bits of the whole", call);
}

static void table_parts(void)
{
    enum { N = 40, WIDTH = 70, ROWS = 9 };
    Tensor *w = operand(REAL, ROWS * WIDTH, -1, 1), *dy = operand(REAL, N * WIDTH, -1, 1);
    Tensor *y = result(REAL, N * WIDTH), *parts = result(REAL, N * WIDTH), *dw[2];
    int32_t *id = ids(N, 0, ROWS);
    embedding_forward(stage, y->k, id, w->k, N, WIDTH, ROWS);
    embedding_rows_forward(stage, parts->k, id, w->k, N, WIDTH, ROWS, ROWS);
    alike("embedding_rows_forward", parts, y);
    embedding_rows_scatter_forward(stage, parts->k, id, w->k, N, WIDTH, ROWS, ROWS, N);
    alike("embedding_rows_scatter_forward", parts, y);
    for (int i = 0; i < 2; i++)
        dw[i] = result(FLOAT, ROWS * WIDTH);
    for (int acc = 0; acc < 2; acc++) {
        embedding_backward(stage, dw[0]->k, dy->k, id, acc, N, WIDTH, ROWS);
        embedding_rows_backward(stage, dw[1]->k, dy->k, id, acc, N, WIDTH, ROWS, ROWS);
        same_floats("embedding_rows_backward", dw[1]->k, dw[0]->k, ROWS * WIDTH);
    }
    case_end();
}

static void expert_parts(void)
{
    enum { ROWS = 18, IN = 29, OUT = 33, EXPERTS = 3 };
    const int32_t offset[EXPERTS + 1] = {0, 7, 7, ROWS};
    Tensor *w = operand(REAL, EXPERTS * OUT * IN, -1, 1), *x = operand(REAL, ROWS * IN, -1, 1);
    Tensor *bias = operand(REAL, EXPERTS * OUT, -1, 1), *dy = operand(REAL, ROWS * OUT, -1, 1);
    Tensor *y[2], *dx[2], *tmp = sizeof(real) == 4 ? NULL : result(FLOAT, ROWS * OUT);
    for (int i = 0; i < 2; i++)
        y[i] = result(REAL, dy->n), dx[i] = result(REAL, x->n);
    grouped_forward(stage, y[0]->k, x->k, offset, w->k, bias->k, ROWS, IN, OUT, EXPERTS);
    grouped_rows_forward(stage, y[1]->k, x->k, offset, w->k, bias->k, tmp ? tmp->k : 0, ROWS, IN, OUT, EXPERTS);
    alike("grouped_rows_forward", y[1], y[0]);
    grouped_backward_x(stage, dx[0]->k, dy->k, offset, w->k, ROWS, IN, OUT, EXPERTS);
    grouped_columns_backward_x(stage, dx[1]->k, dy->k, offset, w->k, tmp ? tmp->k : 0, ROWS, IN, OUT, EXPERTS);
    alike("grouped_columns_backward_x", dx[1], dx[0]);
    case_end();
}

/* Of one device all experts are there. */
static void whole_experts_of(long in)
{
    enum { TOKENS = 9, TOP = 2, ROWS = TOKENS * TOP, OUT = 33, EXPERTS = 3 };
    const int32_t offset[EXPERTS + 1] = {0, 7, 7, ROWS};
    int32_t slot[ROWS];
    Tensor *w = operand(REAL, EXPERTS * OUT * in, -1, 1), *x = operand(REAL, ROWS * in, -1, 1);
    Tensor *bias = operand(REAL, EXPERTS * OUT, -1, 1), *dy = operand(REAL, ROWS * OUT, -1, 1);
    Tensor *share = operand(REAL, ROWS, 0, 1), *tmp = result(REAL, ROWS * in);
    Tensor *y[2], *dx[2], *ds[2], *dw[2], *db[2];
    for (int i = 0; i < 2; i++) {
        y[i] = result(REAL, dy->n), dx[i] = result(REAL, x->n), ds[i] = result(REAL, ROWS);
        dw[i] = result(FLOAT, w->n), db[i] = result(FLOAT, bias->n);
    }
    for (int i = 0; i < ROWS; i++)
        slot[i] = i * 5 % ROWS;
    grouped_forward(stage, y[0]->k, x->k, offset, w->k, bias->k, ROWS, in, OUT, EXPERTS);
    grouped_experts_forward(stage, y[1]->k, x->k, offset, w->k, bias->k, ROWS, ROWS, in, OUT, EXPERTS);
    alike("grouped_experts_forward", y[1], y[0]);
    grouped_backward_x(stage, dx[0]->k, dy->k, offset, w->k, ROWS, in, OUT, EXPERTS);
    grouped_experts_backward_x(stage, dx[1]->k, dy->k, offset, w->k, ROWS, ROWS, in, OUT, EXPERTS);
    alike("grouped_experts_backward_x", dx[1], dx[0]);
    grouped_backward_w(stage, dw[0]->k, db[0]->k, dy->k, x->k, offset, 0, ROWS, in, OUT, EXPERTS);
    grouped_experts_backward_w(stage, dw[1]->k, db[1]->k, dy->k, x->k, offset, 0, ROWS, ROWS, in, OUT, EXPERTS);
    same_floats("grouped_experts_backward_w", dw[1]->k, dw[0]->k, w->n);
    same_floats("grouped_experts_backward_w dbias", db[1]->k, db[0]->k, bias->n);
    dispatch_forward(stage, dx[0]->k, x->k, slot, TOKENS, TOP, in);
    dispatch_experts_forward(stage, dx[1]->k, x->k, slot, offset, TOKENS, TOP, in, EXPERTS);
    alike("dispatch_experts_forward", dx[1], dx[0]);
    combine_backward(stage, dx[0]->k, ds[0]->k, y[0]->k, x->k, share->k, slot, TOKENS, TOP, in);
    combine_experts_backward(stage, dx[1]->k, ds[1]->k, y[0]->k, x->k, share->k, slot, offset, TOKENS, TOP, in, EXPERTS);
    alike("combine_experts_backward", dx[1], dx[0]);
    alike("combine_experts_backward dshare", ds[1], ds[0]);
    for (int i = 0; i < 2; i++)
        y[i] = result(REAL, TOKENS * in);
    combine_forward(stage, y[0]->k, x->k, share->k, slot, TOKENS, TOP, in);
    combine_experts_forward(stage, y[1]->k, x->k, share->k, slot, offset, tmp->k, TOKENS, TOP, in, EXPERTS);
    alike("combine_experts_forward", y[1], y[0]);
    dispatch_backward(stage, y[0]->k, x->k, slot, TOKENS, TOP, in);
    dispatch_experts_backward(stage, y[1]->k, x->k, slot, offset, tmp->k, TOKENS, TOP, in, EXPERTS);
    alike("dispatch_experts_backward", y[1], y[0]);
    dispatch_experts_scatter_backward(stage, y[1]->k, x->k, slot, offset, tmp->k, TOKENS, TOP, in, EXPERTS, TOKENS);
    alike("dispatch_experts_scatter_backward", y[1], y[0]);
    combine_forward(stage, y[0]->k, x->k, share->k, slot, TOKENS, TOP, in);
    combine_experts_scatter_forward(stage, y[1]->k, x->k, share->k, slot, offset, tmp->k, TOKENS, TOP, in, EXPERTS, TOKENS);
    alike("combine_experts_scatter_forward", y[1], y[0]);
    case_end();
}

static void whole_experts(void)
{
    whole_experts_of(29);
    whole_experts_of(32);
}

static void norm_parts(void)
{
    enum { ROWS = 19, WIDTH = 70 };
    Tensor *x = operand(REAL, ROWS * WIDTH, -1, 1), *dy = operand(REAL, x->n, -1, 1), *w = operand(FLOAT, WIDTH, -1, 1);
    Tensor *y = result(REAL, x->n), *mean = result(FLOAT, ROWS), *rstd = result(FLOAT, ROWS), *tmp = result(FLOAT, 2 * WIDTH);
    Tensor *dx[2], *dw[2], *db[2];
    for (int i = 0; i < 2; i++)
        dx[i] = result(REAL, x->n), dw[i] = filled(FLOAT, WIDTH, 0.5), db[i] = filled(FLOAT, WIDTH, 0.25);
#define NORM(i) stage, dx[i]->k, dw[i]->k, db[i]->k, dy->k, x->k, w->k, mean->k, rstd->k, y->k
    layernorm_forward(stage, y->k, mean->k, rstd->k, x->k, w->k, w->k, ROWS, WIDTH, 1e-5f);
    for (int acc = 0; acc < 2; acc++) {
        layernorm_backward(NORM(0), acc, ROWS, WIDTH);
        layernorm_rows_backward(NORM(1), tmp->k, acc, ROWS, WIDTH, ROWS);
        alike("layernorm_rows_backward", dx[1], dx[0]);
        same_floats("layernorm_rows_backward dweight", dw[1]->k, dw[0]->k, WIDTH);
        same_floats("layernorm_rows_backward dbias", db[1]->k, db[0]->k, WIDTH);
        rmsnorm_backward(stage, dx[0]->k, dw[0]->k, dy->k, x->k, w->k, rstd->k, 0, acc, ROWS, WIDTH);
        rmsnorm_rows_backward(stage, dx[1]->k, dw[1]->k, dy->k, x->k, w->k, rstd->k, 0, tmp->k, acc, ROWS, WIDTH, ROWS);
        alike("rmsnorm_rows_backward", dx[1], dx[0]);
        same_floats("rmsnorm_rows_backward dweight", dw[1]->k, dw[0]->k, WIDTH);
        rmsnorm_offset_backward(stage, dx[0]->k, dw[0]->k, dy->k, x->k, w->k, rstd->k, 0, acc, ROWS, WIDTH, 1.0f);
        rmsnorm_offset_rows_backward(stage, dx[1]->k, dw[1]->k, dy->k, x->k, w->k, rstd->k, 0, tmp->k, acc, ROWS, WIDTH, 1.0f,
                                     ROWS);
        alike("rmsnorm_offset_rows_backward", dx[1], dx[0]);
        same_floats("rmsnorm_offset_rows_backward dweight", dw[1]->k, dw[0]->k, WIDTH);
    }
    case_end();
}

static void draw_parts(void)
{
    enum { SAMPLES = 2, PIECES = 3, PER = 60 };
    Tensor *x = operand(REAL, SAMPLES * PER, -1, 1), *onto = operand(REAL, x->n, -1, 1), *y[2];
    const Values vals = {.seed = 7, .batch = SAMPLES};
    for (int i = 0; i < 2; i++)
        y[i] = result(REAL, x->n);
    dropout_forward(stage, y[0]->k, x->k, onto->k, &vals, 1, SAMPLES, PER, 0.4f, 99);
    dropout_part_forward(stage, y[1]->k, x->k, onto->k, &vals, 1, SAMPLES, PER, PIECES, 0.4f, 99);
    alike("dropout_part_forward", y[1], y[0]);
    dropout_rows_forward(stage, y[1]->k, x->k, onto->k, &vals, 1, SAMPLES, PER, SAMPLES * PER, 0.4f, 99);
    alike("dropout_rows_forward", y[1], y[0]);
    case_end();
}

static void loss_parts(void)
{
    enum { ROWS = 700, WIDTH = 65, NONE = -100, TOP = 3 };
    Tensor *x = operand(REAL, ROWS * WIDTH, -1, 1), *dloss = filled(FLOAT, 1, 0.5), *dx[2], *loss[2], *lse[2];
    int32_t *target = ids(ROWS, 0, WIDTH);
    Values vals = {.valid = {ROWS}, .eval = 1};
    for (int i = 0; i < 2; i++)
        dx[i] = result(REAL, x->n), loss[i] = result(FLOAT, 1), lse[i] = result(FLOAT, ROWS);
    target[5] = NONE;
    xent_forward(stage, loss[0]->k, lse[0]->k, x->k, target, &vals, ROWS, WIDTH, NONE, 0);
    xent_part_forward(stage, loss[1]->k, lse[1]->k, x->k, target, &vals, ROWS, WIDTH, NONE, 0, WIDTH);
    same_floats("xent_part_forward", loss[1]->k, loss[0]->k, 1);
    same_floats("xent_part_forward lse", lse[1]->k, lse[0]->k, ROWS);
    xent_backward(stage, dx[0]->k, dloss->k, x->k, lse[0]->k, target, &vals, ROWS, WIDTH, NONE, 0);
    xent_part_backward(stage, dx[1]->k, dloss->k, x->k, lse[0]->k, target, &vals, ROWS, WIDTH, NONE, 0, WIDTH);
    alike("xent_part_backward", dx[1], dx[0]);
    hit_report(stage, x->k, target, &vals, ROWS, WIDTH, NONE, TOP);
    int32_t hits = vals.hits;
    hit_part_report(stage, x->k, target, &vals, ROWS, WIDTH, NONE, TOP, WIDTH);
    expect(hits > 0 && vals.hits == hits, "hit_part_report: %d, not %d", vals.hits, hits);
    xent_smooth_forward(stage, loss[0]->k, lse[0]->k, x->k, target, &vals, ROWS, WIDTH, NONE, 0, 0.1f);
    xent_smooth_part_forward(stage, loss[1]->k, lse[1]->k, x->k, target, &vals, ROWS, WIDTH, NONE, 0, 0.1f, WIDTH);
    same_floats("xent_smooth_part_forward", loss[1]->k, loss[0]->k, 1);
    xent_smooth_backward(stage, dx[0]->k, dloss->k, x->k, lse[0]->k, target, &vals, ROWS, WIDTH, NONE, 0, 0.1f);
    xent_smooth_part_backward(stage, dx[1]->k, dloss->k, x->k, lse[0]->k, target, &vals, ROWS, WIDTH, NONE, 0, 0.1f, WIDTH);
    alike("xent_smooth_part_backward", dx[1], dx[0]);
    case_end();
}

static void head_parts(void)
{
    if (folds())
        return;
    enum { ROWS = 33, IN = 16, OUT = 257, CHUNK = 100, NONE = -100, TOP = 50 };
    Tensor *x = operand(REAL, ROWS * IN, -1, 1), *w = operand(REAL, OUT * IN, -1, 1), *b = operand(REAL, OUT, -1, 1);
    Tensor *dloss = filled(FLOAT, 1, 0.5), *tmp = result(FLOAT, ROWS * (CHUNK + 2 * IN + 24));
    Tensor *loss[2], *lse[2], *dx[2], *dw[2];
    int32_t *id = ids(ROWS, 0, OUT);
    Values v = {.valid = {ROWS}, .eval = 1};
    for (int i = 0; i < 2; i++)
        loss[i] = result(FLOAT, 1), lse[i] = result(FLOAT, ROWS), dx[i] = result(REAL, x->n), dw[i] = result(FLOAT, w->n);
#define OF(i) loss[i]->k, lse[i]->k, x->k, w->k, b->k, id, tmp->k, &v, 0, ROWS, IN, OUT, CHUNK, NONE, 0
#define BACK(i) \
    dx[i]->k, dw[i]->k, 0, dloss->k, x->k, w->k, b->k, lse[0]->k, id, tmp->k, &v, 0, 0, ROWS, IN, OUT, CHUNK, NONE, 0
    linear_xent_forward(stage, OF(0));
    linear_xent_part_forward(stage, OF(1), OUT);
    same_floats("linear_xent_part_forward", loss[1]->k, loss[0]->k, 1);
    same_floats("linear_xent_part_forward lse", lse[1]->k, lse[0]->k, ROWS);
    linear_xent_hits_forward(stage, OF(0), TOP);
    int32_t hits = v.hits;
    linear_xent_part_hits_forward(stage, OF(1), TOP, OUT);
    same_floats("linear_xent_part_hits_forward", loss[1]->k, loss[0]->k, 1);
    expect(hits > 0 && v.hits == hits, "linear_xent_part_hits_forward: %d, not %d", v.hits, hits);
    linear_xent_backward(stage, BACK(0));
    linear_xent_part_backward(stage, BACK(1), OUT);
    alike("linear_xent_part_backward", dx[1], dx[0]);
    same_floats("linear_xent_part_backward dweight", dw[1]->k, dw[0]->k, OUT * IN);
    case_end();
}

const Check team_checks[] = {
    {" conv_rows_forward conv_columns_backward_x ", conv_parts},
    {" linear_pieces_backward_x linear_columns_backward_x linear_rows_forward linear_rows_scatter_forward "
     "linear_columns_scatter_x linear_positions_backward_w rows_to_heads heads_to_rows ", linear_parts},
    {" part_forward gather_forward ", row_parts},
    {" layernorm_rows_backward rmsnorm_rows_backward rmsnorm_offset_rows_backward ", norm_parts},
    {" embedding_rows_forward embedding_rows_scatter_forward embedding_rows_backward ", table_parts},
    {" grouped_columns_backward_x grouped_rows_forward ", expert_parts},
    {" dispatch_experts_forward dispatch_experts_backward combine_experts_forward combine_experts_backward "
     "dispatch_experts_scatter_backward combine_experts_scatter_forward "
     "grouped_experts_forward grouped_experts_backward_x grouped_experts_backward_w ", whole_experts},
    {" dropout_part_forward dropout_rows_forward ", draw_parts},
    {" xent_part_forward xent_part_backward xent_smooth_part_forward xent_smooth_part_backward hit_part_report ", loss_parts},
    {" linear_xent_part_forward linear_xent_part_hits_forward linear_xent_part_backward ", head_parts},
    {0}
};
