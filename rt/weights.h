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

struct Weights;
struct Listed;
struct Adapters {               /* weights_adapter.c */
    struct Listed *(*tensor)(const struct Weights *x, const StateInfo *s);      /* NULL: there is none */
    int (*read)(Run *run, const char *path);            /* adapters alone, by the names of PEFT or ours */
};
struct Described {              /* weights_described.c */
    /* A tensor that is there as blocks and scales. */
    bool (*take_four)(const struct Weights *x, const Published *p);
    int (*read_four)(struct Weights *x, const StateInfo *s, const Published *p, float *values);
    bool (*ignored)(const struct Weights *x, const char *name);
    bool (*passes)(const struct Weights *x, const struct Listed *tensor);       /* nobody takes it, and that is right */
    int (*compare)(struct Weights *x, const StateInfo *s, const float *values);        /* with what holds it once more */
};

/* What says which tensors a folder has: of a checkpoint, of shards, or a file.  How many of them are there, by name. */
enum { WEIGHTS_LISTS = 3 };
int weights_lists(const char *dir, const char *found[WEIGHTS_LISTS]);
/* A status: of two, nobody knows which one is meant. */
int weights_one_list(const char *dir, const char *found[WEIGHTS_LISTS]);
/* Sets run->opt.weights: what was asked for, or the newest of a directory of checkpoints, with `store` of CKPT_PATH bytes. */
int weights_find(Run *run, const char *asked, char *store);
#endif
