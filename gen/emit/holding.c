/* SPDX-License-Identifier: Apache-2.0
 *
 * holding.c: buffers by kind.
 */
#include "emit.h"

const char *const holding_name[H_KINDS] = {"parameters", "gradients", "moments", "saved", "messages", "other"};

Holding holding_of(const Plan *p, const Buf *x)
{
    static const Holding of_state[] = {[S_PARAM] = H_PARAM, [S_COPY] = H_PARAM, [S_GRAD] = H_GRAD, [S_MOMENT1] = H_MOMENT,
        [S_MOMENT2] = H_MOMENT, [S_CENTRE] = H_MOMENT, [S_DRIFT] = H_MOMENT, [S_CLIP] = H_OTHER, [S_NORM] = H_OTHER,
        [S_BLOCKS] = H_OTHER, [S_VALUES] = H_OTHER};
    if (x->origin == RECEIVED || x->death == AT_SEND)
        return H_MESSAGE;
    if (x->state >= 0)
        return of_state[p->g->state.at[x->state].kind];
    bool crosses = x->tensor >= 0 && (x->birth == AT_F || x->birth == AT_LOAD) && (x->death == AT_B || x->death == AT_W);
    return crosses && x->origin == MADE ? H_SAVED : H_OTHER;
}
