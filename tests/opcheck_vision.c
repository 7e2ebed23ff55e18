/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of images, continued: GroupNorm.  See opcheck.h.
 */
#include <math.h>
#include <string.h>
#include "opcheck.h"

/* ---- GroupNorm over x[batch pixels groups width] --------------------------------------------------------------------- */

enum { BATCH, PIXELS, GROUPS, WIDTH };
static const double eps = 1e-3;

static void moments(const Case *c, double *mean, double *rstd)
{
    const long *d = c->d, channels = d[GROUPS] * d[WIDTH], n = d[PIXELS] * d[WIDTH];
    for (long g = 0; g < d[BATCH] * d[GROUPS]; g++) {
        double sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++)
            for (long p = 0; p < d[PIXELS]; p++)
                for (long k = 0; k < d[WIDTH]; k++) {
                    double x = c->in[0]->v[(g / d[GROUPS] * d[PIXELS] + p) * channels + g % d[GROUPS] * d[WIDTH] + k];
                    sum += pass ? 0 : x / (double)n;
                    squares += pass ? (x - sum) * (x - sum) / (double)n : 0;
                }
        mean[g] = sum;
        rstd[g] = 1 / sqrt(squares + eps);
    }
}

/* in: x weight? bias? */
static void ref_group_norm(const Case *c, double *y)
{
    const long *d = c->d, channels = d[GROUPS] * d[WIDTH];
    double *mean = c->row, *rstd = c->row + d[BATCH] * d[GROUPS];
    moments(c, mean, rstd);
    for (long i = 0; i < d[BATCH] * d[PIXELS] * channels; i++) {
        long channel = i % channels, group = i / channels / d[PIXELS] * d[GROUPS] + channel / d[WIDTH];
        double u = (c->in[0]->v[i] - mean[group]) * rstd[group];
        y[i] = u * (c->in[1] ? c->in[1]->v[channel] : 1) + (c->in[2] ? c->in[2]->v[channel] : 0);
    }
}

static void group_norm_case(const long *d, int affine)
{
    long channels = d[GROUPS] * d[WIDTH], n = d[BATCH] * d[PIXELS] * channels, groups = d[BATCH] * d[GROUPS];
    Tensor *x = operand(REAL, n, -1, 2), *w = affine ? operand(FLOAT, channels, 0.5, 1.5) : NULL;
    Tensor *b = affine ? operand(FLOAT, channels, -1, 1) : NULL, *y = result(REAL, n), *dx = result(REAL, n);
    Tensor *mean = result(FLOAT, groups), *rstd = result(FLOAT, groups), *dy = operand(REAL, n, -1, 1);
    Case c = {.d = {d[0], d[1], d[2], d[3]}, .in = {x, w, b}, .row = numbers(2 * groups)};
    groupnorm_forward(stage, y->k, mean->k, rstd->k, x->k, w ? w->k : 0, b ? b->k : 0, d[0], d[1], d[2], d[3], (float)eps);
    check_value("groupnorm_forward", y, ref_group_norm, &c);
    moments(&c, c.row, c.row + groups);
    check_values("groupnorm_forward", mean, c.row);
    check_values("groupnorm_forward", rstd, c.row + groups);
    groupnorm_backward_x(stage, dx->k, dy->k, x->k, w ? w->k : 0, mean->k, rstd->k, d[0], d[1], d[2], d[3]);
    check_gradient("groupnorm_backward_x", dx, ref_group_norm, &c, 0, dy);
    if (affine) {
        Tensor *dw = result(FLOAT, channels), *db = result(FLOAT, channels);
        Tensor *dw2 = filled(FLOAT, channels, 0), *db2 = filled(FLOAT, channels, 0);
        groupnorm_backward_w(stage, dw->k, db->k, dy->k, x->k, mean->k, rstd->k, 0, d[0], d[1], d[2], d[3]);
        check_gradient("groupnorm_backward_w", dw, ref_group_norm, &c, 1, dy);
        check_gradient("groupnorm_backward_w", db, ref_group_norm, &c, 2, dy);
        memcpy(dw2->k, dw->k, (size_t)channels * sizeof(float));
        memcpy(db2->k, db->k, (size_t)channels * sizeof(float));
        groupnorm_backward_w(stage, dw2->k, db2->k, dy->k, x->k, mean->k, rstd->k, 1, d[0], d[1], d[2], d[3]);
        check_accumulated("groupnorm_backward_w acc", dw, dw2);
        check_accumulated("groupnorm_backward_w acc", db, db2);
    }
    case_end();
}

/* Groups of one channel, narrow ones that are taken together, with a rest, and ones wider than is read at once. */
static void group_norm(void)
{
    static const long sizes[][4] = {{1, 4, 1, 1}, {2, 9, 3, 5}, {3, 30, 19, 1}, {2, 7, 7, 6}, {2, 300, 2, 20}, {1, 12, 3, 40},
                                    {3, 1, 4, 8}, {2, 5, 1, 33}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        group_norm_case(sizes[s], 1);
        group_norm_case(sizes[s], 0);
    }
}

const Check vision_checks[] = {
    {" groupnorm_forward groupnorm_backward_x groupnorm_backward_w ", group_norm},
    {NULL, NULL},
};
