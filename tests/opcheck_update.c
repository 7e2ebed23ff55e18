/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of losses, gradient norms and optimisers.  See opcheck.h.
 */
#include <math.h>
#include <string.h>
#include "opcheck.h"

enum { IGNORE = -100 };

/* d rows width count */
static void ref_xent(const Case *c, double *y)
{
    double sum = 0;
    for (long r = 0; r < c->d[0]; r++) {
        const double *x = c->in[0]->v + r * c->d[1];
        double all = 0;
        for (long i = 0; i < c->d[1]; i++)
            all += exp(x[i]);
        if (c->ids[r] != IGNORE)
            sum += log(all) - x[c->ids[r]];
    }
    *y = c->vals.valid[c->d[2]] ? sum / (double)c->vals.valid[c->d[2]] : 0;
}

static void ref_log_sum(const Case *c, double *y)
{
    for (long r = 0; r < c->d[0]; r++) {
        double all = 0;
        for (long i = 0; i < c->d[1]; i++)
            all += exp(c->in[0]->v[r * c->d[1] + i]);
        y[r] = log(all);
    }
}

static void xent(void)
{
    const long shapes[][2] = {{1, 2}, {7, 11}, {33, 257}, {2, 5003}, {5, 16}, {300, 40}, {3, 1536}, {4100, 3},
                              {5, 8200}};           /* the last: rows behind each other in a block of a GPU */
    for (int s = 0; s < 9; s++) {
        long rows = shapes[s][0], width = shapes[s][1], count = s % 3;
        double far = s ? 5 : 1;                /* two scores far apart leave a loss of a few units in the last place */
        Tensor *x = operand(REAL, rows * width, -far, far), *loss = result(FLOAT, 1), *lse = result(FLOAT, rows);
        Tensor *dloss = filled(FLOAT, 1, s ? 1 : 0.5), *dx = result(REAL, x->n);
        int32_t *target = ids(rows, 0, width);
        if (s)
            target[rows / 2] = IGNORE;
        Case c = {.d = {rows, width, count}, .ids = target, .in = {x}};
        c.vals.valid[count] = s == 4 ? 0 : 3 * rows - 1;
        xent_forward(stage, loss->k, lse->k, x->k, target, &c.vals, rows, width, IGNORE, (int)count);
        check_value("xent_forward", loss, ref_xent, &c);
        check_value("xent_forward lse", lse, ref_log_sum, &c);
        xent_backward(stage, dx->k, dloss->k, x->k, lse->k, target, &c.vals, rows, width, IGNORE, (int)count);
        check_gradient("xent_backward", dx, ref_xent, &c, 0, dloss);
        Tensor *loss2 = result(FLOAT, 1), *lse2 = result(FLOAT, rows), *dx2 = result(REAL, x->n);
        xent_both(stage, loss2->k, lse2->k, dx2->k, dloss->k, x->k, target, &c.vals, rows, width, IGNORE, (int)count);
        same_bits("xent_both: loss", width, loss2, loss);
        same_bits("xent_both: lse", width, lse2, lse);
        same_bits("xent_both: dx", width, dx2, dx);
        for (long i = 0; s && i < width; i++)
            expect(dx->v[rows / 2 * width + i] == 0, "xent_backward: an ignored row has gradient");
        case_end();
    }
}

/* Is the target among the first `top` of a row, where the first largest is taken away, `top` times? */
static int taken(const double *row, long width, long top, long target)
{
    char gone[1200] = {0};
    while (top-- > 0) {
        long best = 0;
        for (long i = 0; i < width; i++)
            if (!gone[i] && (gone[best] || row[i] > row[best]))
                best = i;
        gone[best] = 1;
    }
    return gone[target];
}

static void hits(void)
{
    const long shapes[][3] = {{1, 2, 1}, {300, 7, 1}, {41, 257, 5}, {9, 12, 11}, {64, 10, 3}, {4, 6, 1}};
    for (int s = 0; s < 6; s++) {
        long rows = shapes[s][0], width = shapes[s][1], top = shapes[s][2], found = 0;
        Tensor *x = s == 4 ? filled(REAL, rows * width, 2) : s == 5 ? filled(REAL, rows * width, NAN)
            : operand(REAL, rows * width, -1, 1);       /* of bf16 some are equal */
        int32_t *target = ids(rows, 0, width);
        for (long r = 0; r < rows; r++) {
            target[r] = r % 4 == 3 ? IGNORE : target[r];
            found += s < 5 && target[r] != IGNORE && taken(x->v + r * width, width, top, target[r]);
        }
        Values vals = {.loss = 3, .hits = 7, .eval = 1};
        hit_report(stage, x->k, target, &vals, rows, width, IGNORE, top);
        expect(vals.hits == found && vals.loss == 3, "hit_report: %d, not %ld", vals.hits, found);
        hash(&vals.hits, 1, sizeof vals.hits);
        case_end();
    }
}

/* d rows out count in: the scores of a row are what Linear makes of it */
static void score_row(const Case *c, long r, double *score)
{
    for (long o = 0; o < c->d[1]; o++) {
        score[o] = c->in[2] ? c->in[2]->v[o] : 0;
        for (long i = 0; i < c->d[3]; i++)
            score[o] += c->in[0]->v[r * c->d[3] + i] * c->in[1]->v[o * c->d[3] + i];
    }
}

static double row_log_sum(const Case *c, long r, double *score)
{
    double all = 0;
    score_row(c, r, score);
    for (long o = 0; o < c->d[1]; o++)
        all += exp(score[o]);
    return log(all);
}

static void ref_scores_log_sum(const Case *c, double *y)
{
    for (long r = 0; r < c->d[0]; r++)
        y[r] = row_log_sum(c, r, c->row);
}

static void ref_linear_xent(const Case *c, double *y)
{
    double sum = 0;
    for (long r = 0; r < c->d[0]; r++)
        if (c->ids[r] != IGNORE)
            sum += row_log_sum(c, r, c->row) - c->row[c->ids[r]];
    *y = c->vals.valid[c->d[2]] ? sum / (double)c->vals.valid[c->d[2]] : 0;
}

/* Quarters from -1 to 1: scores of them are exact in bf16 too, so that what is checked is the sums, not the narrowing. */
static Tensor *quarters(long n)
{
    Tensor *t = operand(REAL, n, -1, 1);
    for (long i = 0; i < n; i++) {
        t->v[i] = floor(4 * t->v[i] + 0.5) / 4;
        put(t->k, i, (float)t->v[i]);
    }
    return t;
}

/* A weight gradient as a tensor of the job's type: the gradients of scores that it is made of were narrowed. */
static Tensor *narrowed(Tensor *t)
{
    Tensor *to = result(REAL, t->n);
    read_back(t);
    for (long i = 0; i < t->n; i++)
        put(to->k, i, (float)t->v[i]);
    return to;
}

/* Scratch of exactly as many bytes as gen/build/shape_ops.c plans. */
static Tensor *scratch(long scores, long floats)
{
    long bytes = (scores * (long)sizeof(real) + 63) / 64 * 64;
    return result(FLOAT, bytes / 4 + floats);
}

typedef struct { Case c; long chunk; Tensor *lse, *dloss, *dx, *dw, *db; } Head;

static void head_backward(const Head *e, int acc)
{
    const long *d = e->c.d;
    Tensor *tmp = scratch(d[0] * e->chunk, sizeof(real) == sizeof(float) ? 0 : d[0] * d[3]);
    const Tensor *b = e->c.in[2];
    linear_xent_backward(stage, e->dx ? e->dx->k : 0, e->dw->k, b ? e->db->k : 0, e->dloss->k, e->c.in[0]->k, e->c.in[1]->k,
                         b ? b->k : 0, e->lse->k, e->c.ids, tmp->k, &e->c.vals, 0, acc, d[0], d[3], d[1], e->chunk, IGNORE,
                         (int)d[2]);
}

static void head_gradients(Head *e)
{
    static const char call[] = "linear_xent_backward";
    Tensor *again = filled(FLOAT, e->dw->n, 0), *bias_again = filled(FLOAT, e->db->n, 0);
    head_backward(e, 0);
    if (e->dx)
        check_gradient(call, e->dx, ref_linear_xent, &e->c, 0, e->dloss);
    check_gradient(call, narrowed(e->dw), ref_linear_xent, &e->c, 1, e->dloss);
    if (e->c.in[2])
        check_gradient(call, narrowed(e->db), ref_linear_xent, &e->c, 2, e->dloss);
    memcpy(again->k, e->dw->k, (size_t)again->n * sizeof(float));
    memcpy(bias_again->k, e->db->k, (size_t)bias_again->n * sizeof(float));
    Head more = *e;
    more.dw = again, more.db = bias_again;
    head_backward(&more, 1);
    check_accumulated("linear_xent_backward acc", e->dw, again);
    if (e->c.in[2])
        check_accumulated("linear_xent_backward acc", e->db, bias_again);
}

/* Targets that are taken from a row of scores, the first largest first; not in training. */
static void head_hits(Head *e)
{
    const long *d = e->c.d, top = d[1] > 9 ? 5 : 1;
    Tensor *tmp = scratch(d[0] * e->chunk, 4 * d[0]), *loss = result(FLOAT, 1);
    const Tensor *b = e->c.in[2];
    long found = 0;
    for (long r = 0; r < d[0]; r++) {
        score_row(&e->c, r, e->c.row);
        found += e->c.ids[r] != IGNORE && taken(e->c.row, d[1], top, e->c.ids[r]);
    }
    for (int eval = 1; eval >= 0; eval--) {
        e->c.vals.eval = eval;
        e->c.vals.hits = eval ? 7 : e->c.vals.hits;
        linear_xent_hits_forward(stage, loss->k, e->lse->k, e->c.in[0]->k, e->c.in[1]->k, b ? b->k : 0, e->c.ids, tmp->k,
                                 &e->c.vals, 0, d[0], d[3], d[1], e->chunk, IGNORE, (int)d[2], top);
        check_value("linear_xent_hits_forward", loss, ref_linear_xent, &e->c);
        expect(e->c.vals.hits == found, "linear_xent_hits_forward: %d, not %ld", e->c.vals.hits, found);
    }
}

/* Classes that a bias of -inf rules out, two chunks of them in front, add nothing. */
static void ruled_out(void)
{
    enum { ROWS = 4, IN = 6, OUT = 40, EACH_TIME = 8, NONE = 2 * EACH_TIME };
    Tensor *x = quarters(ROWS * IN), *w = quarters(OUT * IN), *b = quarters(OUT), *tmp = scratch(ROWS * EACH_TIME, 2 * ROWS);
    Tensor *loss = result(FLOAT, 1), *lse = result(FLOAT, ROWS);
    Case c = {.d = {ROWS, OUT, 0, IN}, .ids = ids(ROWS, NONE, OUT), .in = {x, w, b}, .row = numbers(OUT)};
    for (long i = 0; i < NONE; i++) {
        b->v[i] = -INFINITY;
        put(b->k, i, -INFINITY);
    }
    c.vals.valid[0] = ROWS;
    linear_xent_forward(stage, loss->k, lse->k, x->k, w->k, b->k, c.ids, tmp->k, &c.vals, 0, ROWS, IN, OUT, EACH_TIME, IGNORE,
                        0);
    check_value("linear_xent_forward", loss, ref_linear_xent, &c);
    check_value("linear_xent_forward lse", lse, ref_scores_log_sum, &c);
    case_end();
}

/* rows, in, out, chunk: one chunk, several, a short last one, rows of a warp and of a block */
static void linear_xent(void)
{
    const long shapes[][4] = {{1, 1, 2, 2}, {7, 5, 11, 4}, {33, 16, 257, 100}, {2, 70, 500, 500}, {5, 8, 64, 32},
                              {300, 24, 40, 7}, {3, 9, 2600, 1536}, {3, 1030, 1100, 1100}};
    for (int s = 0; s < 8; s++) {
        const long *d = shapes[s];
        long count = s % 3;
        Tensor *x = quarters(d[0] * d[1]), *w = quarters(d[2] * d[1]), *b = s % 2 ? quarters(d[2]) : NULL;
        Tensor *loss = result(FLOAT, 1), *tmp = scratch(d[0] * d[3], 2 * d[0]);
        int32_t *target = ids(d[0], 0, d[2]);
        for (long i = 0; s == 7 && i < x->n; i++)       /* scores of few factors are exact */
            put(x->k, i, (float)(x->v[i] *= i % d[1] < 24));
        if (s)
            target[d[0] / 2] = IGNORE;
        Head e = {.c = {.d = {d[0], d[2], count, d[1]}, .ids = target, .in = {x, w, b}, .row = numbers(d[2])}, .chunk = d[3],
                  .lse = result(FLOAT, d[0]), .dloss = filled(FLOAT, 1, s ? 1 : 0.5), .dx = s == 3 ? NULL : result(REAL, x->n),
                  .dw = result(FLOAT, w->n), .db = result(FLOAT, d[2])};
        e.c.vals.valid[count] = s == 4 ? 0 : 3 * d[0] - 1;
        linear_xent_forward(stage, loss->k, e.lse->k, x->k, w->k, b ? b->k : 0, target, tmp->k, &e.c.vals, 0, d[0], d[1], d[2],
                            d[3], IGNORE, (int)count);
        check_value("linear_xent_forward", loss, ref_linear_xent, &e.c);
        check_value("linear_xent_forward lse", e.lse, ref_scores_log_sum, &e.c);
        if (s < 7)
            head_gradients(&e);
        if (d[2] <= 300 || s == 7)
            head_hits(&e);
        case_end();
    }
    ruled_out();
}

static void ref_mse(const Case *c, double *y)
{
    *y = 0;
    for (long i = 0; i < c->d[0]; i++)
        *y += pow(c->in[0]->v[i] - c->in[1]->v[i], 2) / ((double)c->d[0] * c->vals.micro);
}

static void mse(void)
{
    const long sizes[] = {1, 13, 5003, 70001};
    for (int s = 0; s < 4; s++) {
        long n = sizes[s];
        Tensor *x = operand(REAL, n, -1, 1), *t = operand(REAL, n, -1, 1), *loss = result(FLOAT, 1);
        Tensor *dx = result(REAL, n);
        Tensor *dt = result(REAL, n), *dloss = filled(FLOAT, 1, 2);
        Case c = {.d = {n}, .vals = {.micro = 3}, .in = {x, t}};
        mse_forward(stage, loss->k, x->k, t->k, &c.vals, n);
        check_value("mse_forward", loss, ref_mse, &c);
        mse_backward(stage, dx->k, 0, dloss->k, x->k, t->k, &c.vals, n);
        mse_backward(stage, 0, dt->k, dloss->k, x->k, t->k, &c.vals, n);
        check_gradient("mse_backward dx", dx, ref_mse, &c, 0, dloss);
        check_gradient("mse_backward dtargets", dt, ref_mse, &c, 1, dloss);
        case_end();
    }
}

static void scalars(void)
{
    Values vals = {.loss = 99};
    Tensor *a = operand(FLOAT, 1, 1, 2), *b = operand(FLOAT, 1, 1, 2), *y = result(FLOAT, 1);
    loss_add_forward(stage, y->k, a->k, b->k);
    check_values("loss_add_forward", y, &(double){a->v[0] + b->v[0]});
    loss_scale_forward(stage, y->k, a->k, 0.25f);
    check_values("loss_scale_forward", y, &(double){a->v[0] * 0.25});
    loss_seed(stage, y->k);
    check_values("loss_seed", y, &(double){1});
    loss_report(stage, a->k, &vals, 0);
    expect(vals.loss == a->v[0], "loss_report starts with %g, should be %g", vals.loss, a->v[0]);
    loss_report(stage, b->k, &vals, 1);
    expect(vals.loss == a->v[0] + b->v[0], "loss_report adds to %.17g", vals.loss);
    hash(&vals.loss, 1, sizeof vals.loss);
}

/* ---- update ------------------------------------------------------------------------------------------------------ */

static const long sizes[] = {1, 15, 17, 4111, 100003};

static void tie(void)
{
    for (int s = 0; s < 5; s++) {
        Tensor *g = operand(FLOAT, sizes[s], -1, 1), *other = operand(FLOAT, sizes[s], -1, 1);
        double *want = numbers(g->n);
        for (long i = 0; i < g->n; i++)
            want[i] = g->v[i] + other->v[i];
        tie_add(stage, g->k, other->k, g->n);
        check_values("tie_add", g, want);
        case_end();
    }
}

/* The length of a block that norm_partial has for n elements; gen/targets.def says the same. */
static long norm_each(long n)
{
    long each = (n + 1023) / 1024;
    return !folds() ? (n + 4095) / 4096 * 16 : each < 4096 ? 4096 : each;
}

/* Blocks in any number of parts are the same numbers, and add up to the same bits. */
static void norm_in_parts(const Tensor *g, double want)
{
    static double blocks[1024 + 3], sum[2];
    long each = norm_each(g->n), count = (g->n + each - 1) / each;
    for (long parts = 1; parts <= 4; parts *= 2) {
        for (long q = 0; q < parts; q++) {
            long from = count * q / parts, until = count * (q + 1) / parts, end = until * each < g->n ? until * each : g->n;
            if (until > from)
                norm_blocks(stage, blocks, (const float *)g->k + from * each, end - from * each, each, 3 + from);
        }
        norm_sum(stage, sum, blocks, count, 3, 1);
        expect(sum[1] == want, "norm_sum of %ld parts: %.17g, norm_partial %.17g", parts, sum[1], want);
    }
}

static void norms(void)
{
    double norm[5] = {0}, total = 0;
    Values vals = {0};
    Tensor *clip = result(FLOAT, 1);
    for (int s = 0; s < 5; s++) {
        Tensor *g = operand(FLOAT, sizes[s], -1, 1);
        double want = 0;
        for (long i = 0; i < g->n; i++)
            want += g->v[i] * g->v[i];
        norm_partial(stage, norm, g->k, g->n, s);
        double alone = norm[s];
        if (!folds())           /* GPU kernels have no teams; here, a stage of one device; of several: tests/axes.c */
            norm_team(stage, norm, g->k, g->n, 1, g->n, s);
        expect(norm[s] == alone, "norm_team: %.17g, norm_partial %.17g", norm[s], alone);
        expect(fabs(norm[s] - want) <= 1e-13 * want, "norm_partial: %.17g, should be %.17g", norm[s], want);
        norm_in_parts(g, norm[s]);
        total += want;
    }
    hash(norm, sizeof norm / sizeof *norm, sizeof *norm);
    norm_total(stage, clip->k, norm, &vals, 5, 2);
    expect(fabs(vals.norm - sqrt(total)) <= 1e-12 * sqrt(total), "norm_total: norm %.17g", vals.norm);
    check_values("norm_total", clip, &(double){2 / (sqrt(total) + 1e-6)});
    norm_total(stage, clip->k, norm, &vals, 5, 1e6f);
    check_values("norm_total below the limit", clip, &(double){1});
    hash(&vals.norm, 1, sizeof vals.norm);
}

/* Three steps of PyTorch's torch.optim.SGD, in double. */
static void sgd(void)
{
    for (int s = 0; s < 8; s++) {
        long n = sizes[s % 4], decay = s % 2;
        int with_moment = s != 5, with_copy = s > 3;
        Values vals = {.lr = 0.125f, .weight_decay = 0.25f};
        Tensor *p = operand(FLOAT, n, -1, 1), *m = filled(FLOAT, n, 0), *c = result(REAL, n);
        Tensor *clip = filled(FLOAT, 1, 0.75);
        double *want = numbers(n), *moment = numbers(n);
        memcpy(want, p->v, (size_t)n * sizeof *want);
        for (int step = 0; step < 3; step++) {
            Tensor *g = operand(FLOAT, n, -1, 1);
            for (long i = 0; i < n; i++) {
                double d = g->v[i] * (s % 3 ? 0.75 : 1) + (decay ? 0.25 : 0) * want[i];
                moment[i] = with_moment ? 0.5 * moment[i] + d : d;
                want[i] -= 0.125 * moment[i];
            }
            sgd_update(stage, p->k, with_copy ? c->k : 0, g->k, with_moment ? m->k : 0, s % 3 ? clip->k : 0, &vals, n,
                       0.5f, decay);
        }
        check_values("sgd_update p", p, want);
        if (with_copy)
            check_values("sgd_update c", c, p->v);
        case_end();
    }
}

/* Three steps of torch.optim.SGD with nesterov, and of torch.optim.RMSprop, in double. */
static void nesterov(void)
{
    for (int s = 0; s < 8; s++) {
        long n = sizes[s % 4], decay = s % 2;
        Values vals = {.lr = 0.125f, .weight_decay = 0.25f};
        Tensor *p = operand(FLOAT, n, -1, 1), *m = filled(FLOAT, n, 0), *c = result(REAL, n), *clip = filled(FLOAT, 1, 0.75);
        double *want = numbers(n), *moment = numbers(n);
        memcpy(want, p->v, (size_t)n * sizeof *want);
        for (int step = 0; step < 3; step++) {
            Tensor *g = operand(FLOAT, n, -1, 1);
            for (long i = 0; i < n; i++) {
                double d = g->v[i] * (s % 3 ? 0.75 : 1) + (decay ? 0.25 : 0) * want[i];
                moment[i] = 0.5 * moment[i] + d;
                want[i] -= 0.125 * (d + 0.5 * moment[i]);
            }
            sgd_nesterov(stage, p->k, s > 3 ? c->k : 0, g->k, m->k, s % 3 ? clip->k : 0, &vals, n, 0.5f, decay);
        }
        check_values("sgd_nesterov p", p, want);
        check_values("sgd_nesterov m", m, moment);
        if (s > 3)
            check_values("sgd_nesterov c", c, p->v);
        case_end();
    }
}

static void rmsprop(int centred)
{
    for (int s = 0; s < 8; s++) {
        long n = sizes[s % 4], decay = s % 2;
        Tensor *centre = filled(FLOAT, n, 0);
        double *average = numbers(n);
        int with_moment = s % 4 != 2;
        Values vals = {.lr = 0.125f, .weight_decay = 0.25f};
        Tensor *p = operand(FLOAT, n, -1, 1), *m = filled(FLOAT, n, 0), *v = filled(FLOAT, n, 0), *c = result(REAL, n);
        Tensor *clip = filled(FLOAT, 1, 0.75);
        double *want = numbers(n), *moment = numbers(n), *mean = numbers(n);
        memcpy(want, p->v, (size_t)n * sizeof *want);
        for (int step = 0; step < 3; step++) {
            Tensor *g = operand(FLOAT, n, -1, 1);
            for (long i = 0; i < n; i++) {
                double d = g->v[i] * (s % 3 ? 0.75 : 1) + (decay ? 0.25 : 0) * want[i];
                mean[i] = 0.875 * mean[i] + 0.125 * d * d;
                average[i] = 0.875 * average[i] + 0.125 * d;
                double spread = mean[i] - (centred ? average[i] * average[i] : 0);
                moment[i] = (with_moment ? 0.5 * moment[i] : 0) + d / (sqrt(spread) + 0.0625);
                want[i] -= 0.125 * moment[i];
            }
            if (centred)
                rmsprop_centred(stage, p->k, s > 3 ? c->k : 0, g->k, with_moment ? m->k : 0, v->k, centre->k,
                                s % 3 ? clip->k : 0, &vals, n, 0.875f, 0.0625f, 0.5f, decay);
            else
                rmsprop_update(stage, p->k, s > 3 ? c->k : 0, g->k, with_moment ? m->k : 0, v->k, s % 3 ? clip->k : 0, &vals,
                               n, 0.875f, 0.0625f, 0.5f, decay);
        }
        if (centred)
            check_values("rmsprop_centred centre", centre, average);
        check_values(centred ? "rmsprop_centred p" : "rmsprop_update p", p, want);
        check_values(centred ? "rmsprop_centred v" : "rmsprop_update v", v, mean);
        if (with_moment)
            check_values(centred ? "rmsprop_centred m" : "rmsprop_update m", m, moment);
        if (s > 3)
            check_values(centred ? "rmsprop_centred c" : "rmsprop_update c", c, p->v);
        case_end();
    }
}

static void rmsprop_plain(void) { rmsprop(0); }
static void rmsprop_about(void) { rmsprop(1); }

typedef void (*Adam)(Stage *, float *, real *, const float *, float *, float *, const float *, const Values *, long, float,
                     float, float, long);

/* Three steps of PyTorch's torch.optim.AdamW, in double; Nesterov's momentum is in it as Dozat's algorithm 8 has it, all of its
 * momenta beta1: the next m, and the gradient at the weight that it has in m. */
static void adam(const char *call, Adam update, int nesterov)
{
    const float beta1 = 0.875f, beta2 = 0.96875f, eps = 1e-3f;
    for (int s = 0; s < 8; s++) {
        long n = sizes[s % 5], decay = s % 2;
        Values vals = {.lr = 0.125f, .weight_decay = 0.25f};
        Tensor *p = operand(FLOAT, n, -1, 1), *m = filled(FLOAT, n, 0), *v = filled(FLOAT, n, 0), *c = result(REAL, n);
        Tensor *clip = filled(FLOAT, 1, 0.5);
        double *want = numbers(n), *m1 = numbers(n), *m2 = numbers(n);
        memcpy(want, p->v, (size_t)n * sizeof *want);
        for (int step = 0; step < 3; step++) {
            Tensor *g = operand(FLOAT, n, -1, 1);
            double bias1 = 1 - pow((double)beta1, step + 1), bias2 = 1 - pow((double)beta2, step + 1);
            vals.bias1 = (float)bias1, vals.bias2 = (float)bias2;
            for (long i = 0; i < n; i++) {
                double d = g->v[i] * (s % 3 ? 0.5 : 1);
                want[i] *= 1 - 0.125 * (decay ? 0.25 : 0);
                m1[i] = (double)beta1 * m1[i] + (1 - (double)beta1) * d;
                m2[i] = (double)beta2 * m2[i] + (1 - (double)beta2) * d * d;
                double mean = m1[i] / bias1, ahead = m1[i] / (1 - pow((double)beta1, step + 2));
                if (nesterov)
                    mean = (double)beta1 * ahead + (1 - (double)beta1) * d / bias1;
                want[i] -= 0.125 * mean / (sqrt(m2[i]) / sqrt(bias2) + (double)eps);
            }
            update(stage, p->k, s > 3 ? c->k : 0, g->k, m->k, v->k, s % 3 ? clip->k : 0, &vals, n, beta1, beta2, eps, decay);
        }
        check_values(call, p, want);
        check_values(call, m, m1);
        check_values(call, v, m2);
        if (s > 3)
            check_values(call, c, p->v);
        case_end();
    }
}

static void adamw(void) { adam("adamw_update", adamw_update, 0); }
static void nadamw(void) { adam("nadamw_update", nadamw_update, 1); }

/* Steps of the paper's update, in double; with no delay the bits of sgd_update.  One gradient, and none after it, moves the
 * weights in the end by lr g / (1 - momentum), whatever the delay. */
static void spike(void)
{
    for (int s = 0; s < 8; s++) {
        long n = sizes[s % 4], decay = s % 2, late = s % 5;
        int with_moment = s != 5;
        Values vals = {.lr = 0.125f, .weight_decay = 0.25f};
        Tensor *p = operand(FLOAT, n, -1, 1), *m = filled(FLOAT, n, 0), *c = result(REAL, n), *clip = filled(FLOAT, 1, 0.75);
        double *want = numbers(n), *moment = numbers(n), a = pow(0.5, (double)late), b = (1 - a) / (1 - 0.5);
        memcpy(want, p->v, (size_t)n * sizeof *want);
        for (int step = 0; step < 3; step++) {
            Tensor *g = operand(FLOAT, n, -1, 1);
            for (long i = 0; i < n; i++) {
                double d = g->v[i] * (s % 3 ? 0.75 : 1) + (decay ? 0.25 : 0) * want[i];
                moment[i] = with_moment ? 0.5 * moment[i] + d : d;
                want[i] -= 0.125 * (a * moment[i] + b * d);
            }
            sgd_spike(stage, p->k, s > 3 ? c->k : 0, g->k, with_moment ? m->k : 0, s % 3 ? clip->k : 0, &vals, n, 0.5f, decay,
                      late);
        }
        check_values("sgd_spike p", p, want);
        if (s > 3)
            check_values("sgd_spike c", c, p->v);
        case_end();
    }
    for (long late = 0; late < 8; late++) {
        Values vals = {.lr = 0.125f};
        float p = 1, q = 1, m = 0, m2 = 0, g = 0.5f;
        for (int step = 0; step < 400; step++, g = 0) {
            sgd_spike(stage, &p, 0, &g, &m, 0, &vals, 1, 0.75f, 0, late);
            sgd_update(stage, &q, 0, &g, &m2, 0, &vals, 1, 0.75f, 0);
        }
        expect(fabs((double)p - 0.75) < 1e-6, "sgd_spike, %ld late: an impulse moves the weight to %.9g", late, (double)p);
        expect(late || (p == q && m == m2), "sgd_spike, not late: %.9g, and sgd_update %.9g", (double)p, (double)q);
    }
}

/* Steps of the paper's update, in double: rates, and the mean of what they add; with no delay the bits of sgd_update. */
static void drift(void)
{
    for (int s = 0; s < 8; s++) {
        long n = sizes[s % 4], decay = s % 2, late = s % 5;
        int with_moment = s != 5;
        Values vals = {.lr = 0.125f, .weight_decay = 0.25f};
        Tensor *p = operand(FLOAT, n, -1, 1), *m = filled(FLOAT, n, 0), *old = filled(FLOAT, n, 0), *c = result(REAL, n);
        Tensor *clip = filled(FLOAT, 1, 0.75), *to = result(FLOAT, n);
        double *want = numbers(n), *moment = numbers(n), *mean = numbers(n), *back = numbers(n);
        memcpy(want, p->v, (size_t)n * sizeof *want);
        for (int step = 0; step < 6; step++) {
            Tensor *g = operand(FLOAT, n, -1, 1);
            double lr = 0.125 / (late ? pow((double)late, step < 4 ? 1 - step / 4.0 : 0) : 1);
            double stays = late ? exp(-2.0 / (double)late) : 0;
            for (long i = 0; i < n; i++) {
                double d = g->v[i] * (s % 3 ? 0.75 : 1) + (decay ? 0.25 : 0) * want[i];
                moment[i] = with_moment ? 0.5 * moment[i] + d : d;
                want[i] -= lr * moment[i];
                mean[i] = stays * mean[i] - (1 - stays) * lr * moment[i];
                back[i] = want[i] - (double)late * mean[i];
            }
            vals.step = step;
            sgd_drift(stage, p->k, s > 3 ? c->k : 0, g->k, with_moment ? m->k : 0, old->k, s % 3 ? clip->k : 0, &vals, n, 0.5f,
                      decay, late, 4);
        }
        predict_old(stage, to->k, p->k, old->k, late, n);
        check_values("sgd_drift p", p, want);
        check_values("sgd_drift old", old, mean);
        check_values("predict_old", to, back);
        if (s > 3)
            check_values("sgd_drift c", c, p->v);
        case_end();
    }
}

/* In place of the older weights, and elsewhere; a straight line exactly. */
static void line(void)
{
    for (int s = 0; s < 8; s++) {
        long n = sizes[s % 4], ahead = s % 5;
        Tensor *newer = operand(FLOAT, n, -1, 1), *older = operand(FLOAT, n, -1, 1), *to = result(FLOAT, n);
        double *want = numbers(n);
        for (long i = 0; i < n; i++)
            want[i] = newer->v[i] + (double)ahead * (newer->v[i] - older->v[i]);
        predict(stage, s < 4 ? to->k : older->k, newer->k, older->k, ahead, n);
        check_values("predict", s < 4 ? to : older, want);
        case_end();
    }
}

/* What a step has seen counts for `history` steps; what it has not, one step less than before. */
static void ages(void)
{
    for (int s = 0; s < 4; s++) {
        long n = sizes[s], history = s % 2 ? 3 : 1024;
        Tensor *amax = filled(FLOAT, n, 0);
        double *want = numbers(n);
        for (int step = 0; step < 5; step++) {
            Tensor *seen = filled(FLOAT, 2 * n, 0);
            for (long i = 0; i < n; i++) {
                ((float *)seen->k)[i] = (i + step) % 5 == 1 ? (float)(1 + i % 3) : 0;
                want[i] = (i + step) % 5 == 1 ? (double)history : fmax(want[i] - 1, 0);
            }
            fp8_track(stage, amax->k, seen->k, n, history);
            check_values("fp8_track", amax, want);
        }
        case_end();
    }
}

const Check update_checks[] = {
    {" xent_forward xent_backward xent_both ", xent},
    {" hit_report ", hits},
    {" linear_xent_forward linear_xent_backward linear_xent_hits_forward ", linear_xent},
    {" mse_forward mse_backward ", mse},
    {" loss_add_forward loss_scale_forward loss_report loss_seed ", scalars},
    {" tie_add ", tie},
    {" norm_partial norm_team norm_blocks norm_sum norm_total ", norms},
    {" sgd_update ", sgd},
    {" sgd_nesterov ", nesterov},
    {" rmsprop_update ", rmsprop_plain}, {" rmsprop_centred ", rmsprop_about},
    {" adamw_update ", adamw},
    {" fp8_track ", ages},
    {" nadamw_update ", nadamw},
    {" sgd_spike ", spike},
    {" sgd_drift predict_old ", drift},
    {" predict ", line},
    {0, 0},
};
