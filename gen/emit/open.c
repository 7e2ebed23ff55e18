/* SPDX-License-Identifier: Apache-2.0
 *
 * stageN_open of a stage's source: a call for each handle of a kernel library, in the order of their numbers, and behind it
 * the algorithms that a profile has measured for its products.
 */
#include "emit.h"
#include "cost/prof.h"
#include <inttypes.h>
#include <string.h>

/* What a profile has measured for the products of one call. */
static void print_algorithms(FILE *f, const Plan *p, const Call *c, bool *done)
{
    const char *signature = cost_signature(&p->g->op.at[c->op]);
    for (int part = 0; part < ALGORITHM_PARTS; part++) {
        const int64_t *a = done[part] ? NULL : profile_algorithm(p->c->profile, signature, part);
        if (!a)
            continue;
        done[part] = true;
        fprintf(f, "    open_product_algorithm(st, %d, %d", c->handle, part);
        for (int k = 0; k < ALGORITHM_NUMBERS; k++)
            fprintf(f, ", %" PRId64, a[k]);
        fprintf(f, ");\n");
    }
}

/* Calls of one handle may differ in what has an algorithm: with a bias and without. */
static void print_measured(FILE *f, const Plan *p, int device, int handle)
{
    bool done[ALGORITHM_PARTS] = {false};
    for (int r = 0; emit_cuda(p) && p->c->profile && r < p->routine.n; r++)
        for (int i = 0; p->routine.at[r].device == device && i < p->routine.at[r].call.n; i++)
            if (p->routine.at[r].call.at[i].handle == handle)
                print_algorithms(f, p, &p->routine.at[r].call.at[i], done);
}

void emit_open(FILE *f, const Plan *p, int device)
{
    bool handles = emit_cuda(p) || !strcmp(emit_kernels(p), "onednn");
    int next = 0;
    fprintf(f, "\nvoid stage%d_open(Stage *st)\n{\n", device);
    for (int r = 0; handles && r < p->routine.n; r++)
        for (int i = 0; p->routine.at[r].device == device && i < p->routine.at[r].call.n; i++) {
            const Call *c = &p->routine.at[r].call.at[i];
            const Op *o = &p->g->op.at[c->op];
            if (c->handle != next)
                continue;
            next++;
            fprintf(f, "    open_%s(st, %d", o->call, c->handle);
            for (int j = 0; j < o->arg.n; j++)
                if (o->arg.at[j].kind == ARG_INT && strcmp(o->arg.at[j].token, "site"))
                    fprintf(f, ", %" PRId64, o->arg.at[j].i);
            fprintf(f, ");\n");
            print_measured(f, p, device, c->handle);
        }
    fprintf(f, "%s}\n", next ? "" : "    (void)st;\n");
}
