/* SPDX-License-Identifier: Apache-2.0
 *
 * budgets.h: how much work each part of a search may do, and why so much.
 *
 * Every budget counts steps of an algorithm, never time, so the same question gets the same answer on any machine.
 */
#ifndef BUDGETS_H
#define BUDGETS_H

/* ---- search/ ----------------------------------------------------------------------------------------------------- */
enum {
    ROUNDS = 4,             /* feeding packed sizes back to a planner: later rounds move limits by less than a packing gap */
    REPACKS = 8,            /* plans of one bisection of soft limits: 1/256 of a limit, finer than packing itself */
    SLOWER = 12,            /* of the expected step, that a plan may take longer at first: more than packing ever cost */
    TRIALS = 24,            /* moved cuts: four rounds of six moves; more found nothing on the models of bench/corpus */
    TRIED = 8000,           /* operators of all moved cuts together: large models try fewer */
    TRIAL_REPACKS = 3,      /* plans for one moved cut: enough to see whether it can win */
    CUT_OPERATORS = 600,    /* operators of graphs whose expected cuts are laid out: one layout costs their square */
    CUTS_TRIED = 4000,      /* operators of all cuts laid out once */
    CUTS_PACKED = 2400,     /* ... and of those packed again under other limits, which takes up to REPACKS plans each */
    PERIODS = 8,            /* periods that 1f1b* tries: the first that change a depth; longer ones only add memory */
    ORDERS = 1000,          /* device orders written down, of graphs of up to a thousand operators */
    LEAST_ORDERS = 8,       /* orders planned at least ... */
    MOST_ORDERS = 64,       /* ... and at most ... */
    ORDER_OPERATORS = 8000, /* ... and as many as these operators allow */
};
#endif
