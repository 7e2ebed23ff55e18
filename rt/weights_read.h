/* SPDX-License-Identifier: Apache-2.0
 *
 * weights_read.h: the tensors of published weights, for weights.c and for those that read some of them otherwise.
 */
#ifndef WEIGHTS_READ_H
#define WEIGHTS_READ_H
#include "json.h"
#include "safetensors.h"
#include "weights.h"

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
int weights_open_tensor(Weights *x, const Listed *listed, Shard **shard, const SafeTensor **t);     /* it, in its file */
/* ... and how its numbers stand there (safe_type). */
int weights_find_tensor(Weights *x, const Listed *listed, Shard **shard, const SafeTensor **t, char *type);
int weights_refuse(const SafeFile *f, const SafeTensor *t, const Published *p, bool adapter);   /* its shape */
int weights_untaken(const char *from, const char *tensor);      /* status 5: the job has no parameter for it */
int weights_parameter(Weights *x, Worker *w, const StateInfo *s);
#endif
