/* SPDX-License-Identifier: Apache-2.0
 *
 * copies.c: how long a copy to the host, and one back, may take: for the list that is emitted (offload.c), and for the bytes of
 * a choice before there is a list (replay/offload.c).
 *
 * Method: copies out follow each other, each behind the last reader of forward.  Copies in are begun as late as the link
 * allows, from the last to the first.  Where memory lacks, all micro-batches share two places, or one.  A tensor must then be
 * gone before the chunk's second next forward, or its next one, and comes back after as many backwards before.  Or copies stop
 * computation, and nothing is held for them.
 *
 * Cost: linear in pieces and copies; with places, in computations between a copy and the limit of it.
 */
#include "list.h"

int copies_by_piece(const void *a, const void *b)
{
    const CopyOrder *x = a, *y = b;
    return x->piece != y->piece ? x->piece - y->piece : x->copy - y->copy;
}

/* Places that all micro-batches share; 0: as many as it takes. */
static int places(const CopyList *l)
{
    return l->slack == COPY_SLACK_SECOND ? 2 : l->slack == COPY_SLACK_NEXT;
}

/* The last boundary for a tensor to be gone.  With places, the forward that takes its own begins there. */
static int out_until(const CopyList *l, const CopyTime *c)
{
    if (l->slack == COPY_SLACK_NONE)
        return c->out;
    for (int i = c->maker + 1, left = places(l); left > 0 && i < l->steps; i++)
        if (l->step[i].forward && l->step[i].chunk == l->step[c->maker].chunk && --left == 0)
            return l->step[i].first < c->due ? l->step[i].first : c->due;
    return c->due;
}

/* The first boundary for it to come back.  With places, the backward that leaves one has ended there. */
static int in_from(const CopyList *l, const CopyTime *c)
{
    const CopyStep *reader = &l->step[c->reader];
    if (l->slack == COPY_SLACK_NONE)
        return c->due;
    for (int i = c->reader - 1, left = places(l), last = reader->mb; left > 0 && i >= 0; i--) {
        const CopyStep *k = &l->step[i];
        if (k->chunk != reader->chunk || k->forward || k->mb == reader->mb || k->mb == last)
            continue;
        last = k->mb;
        if (--left == 0)
            return k[1].first > c->sent ? k[1].first : c->sent;
    }
    return c->sent;
}

void copies_out(const CopyList *l, CopyTime *copy, const CopyOrder *order, int n)
{
    Ns free = 0;
    for (int i = 0, sent = 0; i < n; i++) {
        CopyTime *c = &copy[order[i].copy];
        wire_take(&free, l->at[c->out], c->ns);
        for (sent = sent > c->out ? sent : c->out; sent < l->pieces && l->at[sent] < free;)
            sent++;
        int until = out_until(l, c);
        c->sent = sent < until ? sent : until;
    }
}

void copies_in(const CopyList *l, CopyTime *copy, const CopyOrder *order, int n)
{
    Ns next = l->at[l->pieces];
    for (int i = n - 1, in = l->pieces; i >= 0; i--) {
        CopyTime *c = &copy[order[i].copy];
        next = (next < l->at[c->due] ? next : l->at[c->due]) - c->ns;
        for (in = in < c->due ? in : c->due; in > 0 && l->at[in] > next;)
            in--;
        int from = in_from(l, c);
        c->in = in > from ? in : from;
    }
}
