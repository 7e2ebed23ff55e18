/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h: parameters of a job in files of published weights, for weights.c, which reads them, and publish.c and ckpt.c.
 */
#ifndef WEIGHTS_H
#define WEIGHTS_H
#include "place.h"
#include "run.h"

/* A parameter is in so many tensors, a history of sizes in none; the place of one of them. */
int weights_pieces(const Job *job, const StateInfo *s);
Published weights_place(const Job *job, const StateInfo *s, int piece);
#endif
