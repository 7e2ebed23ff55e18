/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_xent.c: losses of classes, and how losses begin and are reported.
 */
#include "answers.h"

static Answer xent_lse(const Call *c, long row)
{
    double lse = log_sum(c, row);
    return near(lse, fabs(lse) + 1);
}

static Answer xent_loss(const Call *c, long i)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    Answer a = {0, 0};
    (void)i;
    for (long r = 0; r < of(c, "rows") && valid; r++) {
        long target = (long)old(c, "targets", r);
        if (target == of(c, "ignore"))
            continue;
        plus(&a, new_at(part_of(c, "lse"), r) / (double)valid);
        plus(&a, -old(c, "x", r * of(c, "width") + target) / (double)valid);
    }
    return a;
}

static Answer score_dx(const Call *c, long i, double lse)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    long n = of(c, "width"), row = i / n, target = (long)old(c, "targets", row);
    if (!valid || target == of(c, "ignore"))
        return exact(0);
    double p = exp(old(c, "x", i) - lse), by = old(c, "dloss", 0) / (double)valid;
    double hit = target == i % n;
    return near((p - hit) * by, (p * (1 + fabs(old(c, "x", i))) + hit) * by);
}

static Answer xent_dx(const Call *c, long i) { return score_dx(c, i, old(c, "lse", i / of(c, "width"))); }
static Answer both_dx(const Call *c, long i) { return score_dx(c, i, new_at(part_of(c, "lse"), i / of(c, "width"))); }

static Answer seed_y(const Call *c, long i) { (void)c, (void)i; return exact(1); }

/* In a step it reports nothing, and the loss stays. */
static Answer hits_vals(const Call *c, long i) { (void)i; return exact(c->vals->loss); }
static Answer report_vals(const Call *c, long i) { (void)i; return exact(old(c, "x", 0)); }

#define XENT "loss=1 lse=rows x=rows*width targets=rows dx=rows*width dloss=1"
#define ONE "y=1 x=1"

static const Known known[] = {
    {"xent_forward", "loss", XENT, xent_loss, 0, 0}, {"xent_forward", "lse", XENT, xent_lse, 0, 0},
    {"xent_backward", "dx", XENT, xent_dx, 0, 0}, {"xent_both", "dx", XENT, both_dx, 0, 0},
    {"xent_both", "loss", XENT, xent_loss, 0, 0}, {"xent_both", "lse", XENT, xent_lse, 0, 0},
    {"hit_report", "vals", XENT, hits_vals, 0, 0}, {"loss_seed", "y", ONE, seed_y, 0, 0},
    {"loss_report", "vals", ONE, report_vals, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_xent = {known};
