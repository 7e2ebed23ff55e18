/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_write.h: a checkpoint while it is written, for ckpt.c and ckpt_commit.c.
 */
#ifndef CKPT_WRITE_H
#define CKPT_WRITE_H
#include "ckpt.h"
#include "sha256.h"

typedef struct Written { int status, pad; int64_t bytes; char sha[72]; } Written;

/* One stage's part of a checkpoint that is not yet committed. */
/* A stage writes; the first replica reads what all wrote into its file, for the hash; stage 0 commits. */
typedef enum { WRITES, SUMS, COMMITS } Phase;
typedef struct { Beside beside; Worker *w; int64_t step; bool open; Phase phase; Written mine; Best best; int failed; } Flight;

struct Checkpoint {
    Item **local;               /* by stage of this process */
    int *owns;
    Text *header;
    Item *all;                  /* for the index: stage 0 */
    int alls;
    Text index;
    Written *written;           /* of all stages */
    Saved *old;                 /* committed, ascending; room for what this run adds */
    int olds;
    Saved *stale;               /* never committed: removed when the first checkpoint is written, not before */
    int stales;
    CkptLock lock;
    bool cut;                   /* replicas have parts of some state */
    bool aside;                 /* there are threads, and memory for copies */
    Flight *flight;             /* by stage of this process */
    int late;                   /* one was due while another was written */
};

/* ckpt.c.  A file and its hash; nan: something was not finite. */
typedef struct Put { int file; Digest *d; bool nan; } Put;
bool ckpt_floats(void *put, const void *piece, size_t n);
/* The file of a stage: its header and what `body` adds; *broken: the first item that is not finite.  Where replicas have parts,
 * the file is that of all, and the first one begins it. */
typedef bool PutBody(Worker *w, Put *to, const Item **broken);
void ckpt_file(Worker *w, int64_t step, PutBody *body, Written *out);
bool ckpt_items(Worker *w, Put *to, const Item **broken);      /* all of the stage */
void ckpt_stage(char path[CKPT_PATH], const Worker *w, int64_t step);   /* the file of a stage, or of its twin in replica 0 */
/* ckpt_commit.c.  By stage 0, when all have written: index, COMMIT, its name; the best of all, and how many stay. */
int ckpt_commit(Worker *w, int64_t step, const Best *best);
#endif
