/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h: parameters of a job in files of published weights, for those who read some of them, or write them.
 */
#ifndef WEIGHTS_H
#define WEIGHTS_H
#include "json.h"
#include "place.h"
#include "safetensors.h"

/* A parameter is in so many tensors, a history of sizes in none; the place of one of them. */
int weights_pieces(const Job *job, const StateInfo *s);
Published weights_place(const Job *job, const StateInfo *s, int piece);

struct Weights;
struct Listed;
struct Adapters {               /* weights_adapter.c */
    struct Listed *(*tensor)(const struct Weights *x, const StateInfo *s);      /* NULL: there is none */
    int (*read)(Run *run, const char *path);            /* adapters alone, by the names of PEFT or ours */
    void (*describe)(Text *t, const Job *job);          /* in the index of a checkpoint, for dpgen export */
    long (*room)(const Job *job);                       /* bytes that this takes */
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

/* ---- the tensors of files, for those who read them ------------------------------------------------------------------ */

enum { WEIGHTS_NAME = 512 };

/* bytes, sha: as the index of a checkpoint has them; an empty one: it has not */
typedef struct Shard { char *path; bool open; SafeFile file; int64_t bytes; char sha[65]; } Shard;
typedef struct Listed { char *name; int shard; bool used; } Listed;
typedef struct Weights {
    const Job *job;
    const char *path;           /* as the user gave it */
    const char *index;          /* file that lists the tensors: that of the index, or the only one */
    Shard *shard;
    int shards;
    Listed *tensor;             /* by name */
    int tensors;
} Weights;

int weights_single(Weights *x);                         /* lists the tensors of a file */
bool weights_map(Weights *x, Json *j);                  /* those of a weight_map */
int weights_shard(Weights *x, Json *j, const char *file);       /* the number of a file of the folder, or j->why */
int weights_sort(Weights *x);                           /* by name, before any is looked for; none is there twice */
void weights_close(Weights *x);
Listed *weights_named(const Weights *x, const char *name);
Listed *weights_prefixed(const Weights *x, const char *name);   /* with the prefix, without it, or as it is */
/* It, in its file, and how its numbers stand there (safe_type); type NULL: whatever they are. */
int weights_find_tensor(Weights *x, const Listed *listed, Shard **shard, const SafeTensor **t, char *type);
int weights_refuse(const SafeFile *f, const SafeTensor *t, const Published *p, bool adapter);   /* its shape */
int weights_untaken(const char *from, const char *tensor);      /* status 5: the job has no parameter for it */
int weights_parameter(Weights *x, Worker *w, const StateInfo *s);
#endif
