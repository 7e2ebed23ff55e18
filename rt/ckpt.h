/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt.h: a directory of checkpoints, for ckpt.c (writes), ckpt_load.c (reads) and ckpt_list.c (looks around).
 *
 *   DIR/step-000100/stage0.safetensors ...   parameters NAME, moments NAME.m NAME.v, of their home stage
 *   DIR/step-000100/index.json     which tensor is in which file; step, seed, model, batch, micro, groups; bytes and
 *                                  SHA-256 of the files
 *   DIR/step-000100/COMMIT                   SHA-256 of index.json
 *   DIR/step-000100.part/                    being written
 *   DIR/lock                                 held by the job that writes here; its host, process and start
 */
#ifndef CKPT_H
#define CKPT_H
#include "run.h"

enum { CKPT_PATH = 4096, CKPT_NAME = 64 };

typedef enum { CKPT_PART, CKPT_UNCOMMITTED, CKPT_COMMITTED } CkptState;
typedef struct { int64_t step; CkptState state; int files; } Saved;

/* By ascending step; NULL and *status DONE: no such directory.  Allocates: only before the first step. */
Saved *ckpt_list(const char *dir, int *n, int *status);
int64_t ckpt_newest(const char *dir, int *status);      /* that is committed; -1: there is none */
void ckpt_name(char *to, const char *dir, int64_t step, const char *tail);      /* CKPT_PATH bytes */
/* Removes the files that a checkpoint of `files` stages may have, COMMIT first, and the directory. */
void ckpt_remove(const char *dir, int64_t step, CkptState state, int files);

/* ckpt_beside.c: a thread that does one piece of work at a time, and the memory for it.  Not started: the caller does it. */
typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;       /* of work, of, stop */
    pthread_cond_t wake, done;
    void (*work)(void *of);
    void *of;
    bool started, stop;
    _Atomic bool busy;
    _Atomic uint64_t pieces;    /* written so far */
    unsigned char *at;          /* copies of states, `used` bytes of `room` */
    size_t room, used;
} Beside;
bool beside_fits(size_t bytes, int processes);                         /* in half of what is free */
/* Bytes that a control group, and those that it is in up to `root` bytes of the path, leave of so many: a batch system ends a
 * job that takes more.  The files of a folder say what may be used, and what is; path: it is cut. */
double beside_left(char *path, size_t root, const char *most, const char *now, double left);
bool beside_open(Beside *b, size_t bytes);
void beside_post(Beside *b, void (*work)(void *of), void *of);
void beside_wait(Beside *b, Worker *w);
bool beside_busy(const Beside *b);
void beside_close(Beside *b);

void ckpt_host(char to[64]);
void ckpt_mark(char mark[SHARED_MARK]);                 /* this process at this time; a line */
typedef struct { int file; bool made; } CkptLock;       /* file -1: none is held; made: the directory is ours */
/* For the process of stage 0.  `make`: the directory too, where it is missing.  mark: a line for those who find it. */
int ckpt_lock(CkptLock *l, const char *dir, bool make, const char *mark);
bool ckpt_alone(const CkptLock *l, const char *dir);    /* is DIR/lock still the file that is held? */
int ckpt_held(const CkptLock *l, const char *dir);      /* the same as a status, told */
void ckpt_unlock(CkptLock *l, const char *dir);
#endif
