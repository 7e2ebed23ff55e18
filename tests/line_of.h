/* SPDX-License-Identifier: Apache-2.0
 *
 * line_of.h: an operator in a line, for tests that say what a graph should consist of.
 */
#ifndef LINE_OF_H
#define LINE_OF_H
#include "plan.h"

/* "W head linear_backward_w e.weight.grad.1 0 d.head p": phase, name, call, what it names, 0 for what is absent. */
static inline const char *line_of(const Graph *g, const Op *o)
{
    const char *text = strf("%c %s %s", "FIWU"[o->phase], o->name, o->call);
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        if (a->kind <= ARG_UPDATE)
            text = strf("%s %s", text, a->state ? g->state.at[a->index].name : g->tensor.at[a->index].name);
        else if (a->kind == ARG_NONE)
            text = strf("%s 0", text);
    }
    return text;
}

#endif
