/* SPDX-License-Identifier: Apache-2.0
 *
 * meet.h: messages between the threads of one process, for the program (link_local.c) and for the library.
 */
#ifndef MEET_H
#define MEET_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "rt.h"

typedef struct Half {           /* a send or a receive */
    int stage, request, tag, sending;
    int64_t at;                 /* action that began it */
    char *buffer;
    long bytes;
    int64_t begun, ready;       /* ns, of message_ready() and message_carry(); 0 unless paced */
    _Atomic int done;
    struct Half *next;
} Half;

typedef struct {                /* halves of one ordered pair of stages that came first */
    pthread_mutex_t lock;
    Half *head, *tail;
    int64_t wire;               /* paced jobs: when the wire is free, ns */
} Queue;

typedef struct {                /* where a stage sleeps */
    pthread_mutex_t lock;
    pthread_cond_t wake;
} Bed;

typedef struct Meet {
    int stages, requests;       /* of each stage */
    Half *half;                 /* [stage * requests + number] */
    Queue *queue;               /* [from * stages + to] */
    Bed *bed;
    _Atomic int broken;         /* a stage has failed: nobody waits any more */
} Meet;

/* Bytes of its tables; they lie where the caller says, at a multiple of 64. */
size_t meet_bytes(int stages, int requests);
/* false: the system has no locks left, and there is nothing to close. */
bool meet_open(Meet *m, void *room, int stages, int requests);
void meet_close(Meet *m);
/* What link_begin() and link_wait() are to a stage (link.h). */
void *meet_begin(Meet *m, Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes);
void meet_wait(Meet *m, Stage *st, void *half);

/* ---- what the floor above has: action.c and message.c, or the library ---------------------------------------------- */
/* A message between stages of one process.  What was given to the sender's, or receiver's, device so far comes before the
 * message of this request; both halves have begun: carry it; what is given to the device from now on comes after it. */
typedef struct Message { const Half *from, *to; const void *source; void *target; long bytes; } Message;
int64_t message_ready(Stage *st, int request);
int64_t message_carry(Stage *st, const Message *m, int64_t *wire);
void message_arrived(Stage *st, int request, int64_t ready);
/* The end of all stages, with its reason; numbers are long long. */
_Noreturn void stage_fail(Stage *st, const char *form, ...);
_Noreturn void stage_leave(Stage *st);                  /* another stage has failed */
const char *stage_action(const Stage *st, int stage, int64_t at);       /* the text of an action of another stage */
/* It waits: 1 + the stage that it receives from, -1 - the one that it sends to; 0: no longer. */
void stage_waits(Stage *st, int who);
#endif
