/* SPDX-License-Identifier: Apache-2.0
 *
 * rendezvous.c: do the devices' lists, run together, come to an end?
 *
 * Method: every message is a rendezvous: a wait passes when both halves have begun.  For programs without wildcards that
 * decides deadlock for every transport.  Copies to the host and back wait for no peer.  comm asks before it settles how early
 * messages are posted; check/comm.c asks of the finished lists.
 *
 * Source: Siegel, Efficient Verification of Halting Properties for MPI Programs with Wildcard Receives, VMCAI 2005, section 3.
 *
 * Cost: linear in actions for each round in which some device goes on.
 */
#include "list.h"

typedef struct { int at; Ints sent, got; int *which; } Runner;      /* sent[peer], got[peer]: messages begun so far */

/* A wait for message n of its directed pair passes once the peer has begun its half. */
static bool may_pass(Runner *run, int device, const Action *k)
{
    int n = run[device].which[k->request];
    const Runner *peer = &run[k->peer];
    return k->of == K_SEND ? peer->got.at[device] > n : peer->sent.at[device] > n;
}

static bool advance(Runner *run, int device, const Actions *list)
{
    Runner *me = &run[device];
    if (me->at == list->n)
        return false;
    const Action *k = &list->at[me->at];
    if (k->kind == K_WAIT && !is_copy(k) && !may_pass(run, device, k))
        return false;
    if (k->kind == K_SEND)
        me->which[k->request] = me->sent.at[k->peer]++;
    if (k->kind == K_RECV)
        me->which[k->request] = me->got.at[k->peer]++;
    me->at++;
    return true;
}

/* Plays the lists until no device can go on. */
static Runner *run_all(const Plan *p, const Actions *list)
{
    Runner *run = alloc(sizeof *run * (size_t)p->devices);
    for (int d = 0; d < p->devices; d++) {
        run[d].which = alloc(sizeof(int) * MOST_REQUESTS);
        for (int e = 0; e < p->devices; e++) {
            *PUSH(&run[d].sent) = 0;
            *PUSH(&run[d].got) = 0;
        }
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < p->devices; d++)
            while (advance(run, d, &list[d]))
                moved = true;
    }
    return run;
}

int rendezvous_steps(const Plan *p, bool eval)
{
    int overlap = order_overlap(p);
    return eval || !overlap ? 1 : overlap + 2;
}

int rendezvous_stops(const Plan *p, const Actions *list, int *at)
{
    const Runner *run = run_all(p, list);
    for (int d = 0; d < p->devices; d++)
        if (run[d].at < list[d].n) {
            *at = run[d].at;
            return d;
        }
    return -1;
}

static int stuck(const Plan *p, const Actions *list)
{
    int at;
    return rendezvous_stops(p, list, &at);
}

const Actions *rendezvous_meeting(const Plan *p, int periods)
{
    Actions *list = alloc(sizeof *list * (size_t)p->devices);
    const Actions *whole = order_lists(p, false, order_overlap(p) + periods);
    for (int d = 0; d < p->devices; d++) {
        list[d] = whole[d];
        while (list[d].n > 0 && list[d].at[list[d].n - 1].piece == PIECE_EPILOGUE)
            list[d].n--;
    }
    return list;
}

int comm_stuck(const Plan *p, bool eval)
{
    int d = -1;
    for (int periods = 0; !eval && order_overlap(p) > 0 && periods < 3 && d < 0; periods++)
        d = stuck(p, rendezvous_meeting(p, periods));
    for (int steps = rendezvous_steps(p, eval); steps > 0 && d < 0; steps--)
        d = stuck(p, order_lists(p, eval, steps));
    return d;
}
