/* SPDX-License-Identifier: Apache-2.0
 *
 * open.c: handles.  A kernel library prepares a handle for each call of each set of sizes.  Here are their names, and
 * stageN_open, with a call for each handle in the order of their numbers.  After it come the algorithms that a profile has
 * measured for its products.
 *
 * Operators of the same call and sizes share a handle.  Its name is the one that they share inside their layers, or else the
 * name of the call.  The library may not take every call of one handle; the first that it takes opens the handle.
 */
#include "stage.h"
#include "cost/prof.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The operators of a handle: the first and the last call, how many operators, and do all have the first one's name? */
typedef struct { const Op *first, *last; int n; bool alike; } Users;

static const char *inside(const Op *o)
{
    size_t n = strlen(o->layer);
    return n && !strncmp(o->name, o->layer, n) && o->name[n] == '.' ? o->name + n + 1 : o->name;
}

static Users users_of(const Plan *p, int device, int handle)
{
    Users u = {.alike = true};
    for (int r = 0; r < p->routine.n; r++)
        for (int i = 0; p->routine.at[r].device == device && i < p->routine.at[r].call.n; i++) {
            const Call *c = &p->routine.at[r].call.at[i];
            const Op *o = &p->g->op.at[c->op];
            if (c->handle != handle)
                continue;
            u.n += !p->routine.at[r].eval && !c->again;
            u.first = u.first ? u.first : o;
            u.last = o;
            u.alike &= !strcmp(inside(o), inside(u.first));
        }
    return u;
}

/* linear_backward_x: linear, _bwd_x */
static const char *phase_of(const char *call, int *stem)
{
    const char *f = strstr(call, "_forward"), *b = strstr(call, "_backward");
    *stem = f ? (int)(f - call) : b ? (int)(b - call) : (int)strlen(call);
    return f ? strf("_fwd%s", f + 8) : b ? strf("_bwd%s", b + 9) : "";
}

void handles_name(Stager *w)
{
    int n = w->p->dev.at[w->device].handles, stem;
    w->handle = alloc(sizeof *w->handle * (size_t)(n + 1));
    for (int h = 0; h < n; h++) {
        Users u = users_of(w->p, w->device, h);
        if (!u.first)
            continue;
        const char *phase = phase_of(u.first->call, &stem);
        w->handle[h] = name_new(&w->names, u.alike ? strf("H_%s%s", inside(u.first), phase)
                                                   : strf("H_%.*s%s", stem, u.first->call, phase));
    }
}

void handles_print(const Stager *w, FILE *f)
{
    int n = w->p->dev.at[w->device].handles, left = 0;
    for (int h = 0; h < n; h++)
        left += w->handle[h] != NULL;
    if (left == 0)
        return;
    fprintf(f, "\n/* Handles: what a kernel library prepares, once, in stage%d_open. */\nenum {\n", w->device);
    for (int h = 0; h < n; h++) {
        if (!w->handle[h])
            continue;
        Users u = users_of(w->p, w->device, h);
        Strs word = {0};
        *PUSH(&word) = u.first->call;
        for (EACH(const Arg, a, u.first->arg))
            if (a->kind == ARG_INT && arg_role(a) != ROLE_SITE)
                *PUSH(&word) = strf("%s %s", a->token, dims_arg(w->dims, w->dim, w->p->g, u.first, a));
        word.at[word.n - 1] = strf("%s: %s%s", word.at[word.n - 1], u.first->name, u.n > 1 ? strf(" .. %s", u.last->name) : "");
        if (u.n > 1)
            *PUSH(&word) = strf("%d calls", u.n);
        emit_wrap(f, fprintf(f, "    %-28s = %d%s  /* ", w->handle[h], h, --left ? "," : " "), 8, &word, " */");
    }
    fprintf(f, "};\n");
}

/* ---- the routine ------------------------------------------------------------------------------------------------- */

/* What a profile has measured for the products of one call. */
static void print_algorithms(Stager *w, const Call *c, bool *done)
{
    const char *signature = cost_signature(&w->p->g->op.at[c->op]);
    for (int part = 0; part < ALGORITHM_PARTS; part++) {
        const int64_t *a = done[part] ? NULL : profile_algorithm(w->p->c->profile, signature, part);
        if (!a)
            continue;
        done[part] = true;
        call_open(w, "open_product_algorithm");
        call_word(w, "%s", w->handle[c->handle]);
        call_int(w, part);
        for (int k = 0; k < ALGORITHM_NUMBERS; k++)
            call_int(w, a[k]);
        call_close(w, "");
    }
}

/* NULL: this handle is nobody's */
static const Call *opens(const Plan *p, int device, int handle)
{
    for (EACH(const Routine, x, p->routine))
        for (int i = 0; x->device == device && i < x->call.n; i++) {
            const Call *c = &x->call.at[i];
            if (c->handle == handle && cost_prepared(p->m, p->g, &p->g->op.at[c->op], x->eval))
                return c;
        }
    return NULL;
}

void open_print(Stager *w)
{
    bool any = false;
    fprintf(w->f, "\n/* Before the first step: what the kernel library prepares. */\n"
            "static void stage%d_open(Stage *st)\n{\n", w->device);
    for (int h = 0; h < w->p->dev.at[w->device].handles; h++) {
        const Call *c = opens(w->p, w->device, h);
        if (!c)
            continue;
        const Op *o = &w->p->g->op.at[c->op];
        call_open(w, strf("open_%s", o->call));
        call_word(w, "%s", w->handle[c->handle]);
        for (int j = 0; j < o->arg.n; j++)
            if (o->arg.at[j].kind == ARG_INT && arg_role(&o->arg.at[j]) != ROLE_SITE)
                call_literal(w, dims_arg(w->dims, w->dim, w->p->g, o, &o->arg.at[j]));
        call_close(w, "");
        /* Calls of one handle may differ in what has an algorithm: with a bias and without. */
        const Plan *p = w->p;
        bool done[ALGORITHM_PARTS] = {false};
        for (int r = 0; emit_cuda(p) && p->c->profile && r < p->routine.n; r++)
            for (int i = 0; p->routine.at[r].device == w->device && i < p->routine.at[r].call.n; i++)
                if (p->routine.at[r].call.at[i].handle == h)
                    print_algorithms(w, &p->routine.at[r].call.at[i], done);
        any = true;
    }
    fprintf(w->f, "%s}\n", any ? "" : "    (void)st;\n");
}
