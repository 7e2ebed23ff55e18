/* SPDX-License-Identifier: Apache-2.0
 *
 * stageN_open of a stage's source: a call for each handle that a kernel library prepares, in the order of their numbers.
 * After it come the algorithms that a profile has measured for its products.  The library may not take every call of one
 * handle; the first that it takes opens the handle.
 */
#include "emit.h"
#include "cost/prepared.h"
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

/* NULL: this handle is nobody's */
static const Call *opens(const Plan *p, int device, int handle)
{
    for (int r = 0; r < p->routine.n; r++) {
        const Routine *x = &p->routine.at[r];
        for (int i = 0; x->device == device && i < x->call.n; i++) {
            const Call *c = &x->call.at[i];
            if (c->handle == handle && cost_prepared(p->m, p->g, &p->g->op.at[c->op], x->eval))
                return c;
        }
    }
    return NULL;
}

static void print_open(FILE *f, const Op *o, int handle)
{
    fprintf(f, "    open_%s(st, %d", o->call, handle);
    for (int j = 0; j < o->arg.n; j++)
        if (o->arg.at[j].kind == ARG_INT && strcmp(o->arg.at[j].token, "site"))
            fprintf(f, ", %" PRId64, o->arg.at[j].i);
    fprintf(f, ");\n");
}

void emit_open(FILE *f, const Plan *p, int device)
{
    bool any = false;
    fprintf(f, "\nvoid stage%d_open(Stage *st)\n{\n", device);
    for (int h = 0; h < p->dev.at[device].handles; h++) {
        const Call *c = opens(p, device, h);
        if (c)
            print_open(f, &p->g->op.at[c->op], h);
        if (c)
            print_measured(f, p, device, h);
        any |= c != NULL;
    }
    fprintf(f, "%s}\n", any ? "" : "    (void)st;\n");
}
