/* SPDX-License-Identifier: Apache-2.0
 *
 * stage.h: what the files that write stageN.c and stageN.h share.
 */
#ifndef STAGE_H
#define STAGE_H
#include "emit.h"

/* A function of rt.h: the names of its parameters behind `Stage *st`, and how many calls of it this stage has. */
typedef struct { const char *name; Strs param; int calls; } Proto;

/* A number that calls name: of label or site `base`, an integer or a float. */
typedef struct { const char *base, *name; bool whole; int64_t i; float f; } Constant;

typedef struct {
    FILE *f;
    const Plan *p;
    int device;
    const EmitDims *dims;
    Idents names;
    const char **dim;           /* identifier of each dim */
    const char **buf;           /* of each buffer of this device */
    const char **host;          /* of each host buffer of this device */
    const char **handle;        /* of each library handle; NULL: nobody's */
    const char **routine;       /* of each routine */
    Ints *slots;                /* by pool: the slots of the plan, in the order of the numbers that are printed */
    VEC(Proto) rt;
    const Strs *label;          /* of the call that is being printed: the names of its parameters */
    int arg;                    /* its next one */
    Strs word;                  /* of that call, up to there */
    bool changes;               /* the next word is the address of what the call reads and writes, or adds to */
    const char *action;         /* that begins with the next call; NULL: none */
    const Action *now;          /* whose one call stands where its routine would be called; NULL: calls are in a routine */
    VEC(Constant) constant;
    const int *together;        /* by action of the step: so many messages that leave together begin with it */
    int *told;                  /* by tensor: bits of K_OUT and K_IN, whose why has been printed */
} Stager;

/* slots.c: a pool has a slot for each place that an action uses, numbered from 0. */
void  slots_find(Stager *w);
bool  slots_pooled(const Stager *w, int b);          /* has this buffer more than one place? */
int   slots_count(const Stager *w, int pool);
int   slots_number(const Stager *w, int pool, int slot);    /* of a slot of the plan */
Bytes slots_at(const Stager *w, int pool, int number);      /* from offset of a buffer to its place in that slot */
Bytes slots_offset(const Stager *w, int b);          /* of a buffer, in slot 0 */

/* call.c: one call, argument by argument; a literal stands behind the name of its parameter. */
void call_prototypes(Stager *w);                    /* reads rt.h */
void call_open(Stager *w, const char *name);        /* of rt.h */
void call_open_routine(Stager *w, const char *name, const Strs *label);
void call_literal(Stager *w, const char *text);
void call_int(Stager *w, int64_t value);
void call_float(Stager *w, double value);
const char *call_decimal(float x);
void call_site(Stager *w, const char *what, int64_t value);         /* where random numbers are drawn */
void call_word(Stager *w, const char *form, ...) PRINTF(2, 3);      /* an address, a handle, a parameter */
void call_place(Stager *w, int b, int slot);        /* the address of a buffer in a slot of the plan */
void call_part(Stager *w, int b, int slot, Bytes at);   /* the same, so many bytes further */
void call_action(Stager *w, int number, const char *text);      /* stands in front of the next call */
void call_close(Stager *w, const char *behind);     /* prints it, and a comment behind it */

/* stage.c */
void stage_signature(const Stager *w, const char *name, const Strs *label, const char *about);
/* turns.c: routines of buffers that take turns */
int  turns_made(const Stager *w, int state, int way);
const Strs *turns_words(const Stager *w, const Routine *r);     /* its parameters; NULL: another kind of routine */
void turns_print(Stager *w, const Routine *r, const char *const *word);
void turns_routine(Stager *w, int index);
/* together.c: by action of the step; 0: none */
int *together_runs(const Plan *p, int device);
/* head.c: the comment at the top of stageN.c */
void head_print(Stager *w, FILE *f);
/* header.c: stageN.h */
void header_print(Stager *w, FILE *f);
const char *stage_shape(const Stager *w, const Buf *b, const Shape *s);     /* of a buffer, as dims */
/* table.c: the end of stageN.c, what the runtime knows of the stage */
void table_print(Stager *w);
/* open.c: names of handles; stageN_open */
void handles_name(Stager *w);
void handles_print(const Stager *w, FILE *f);       /* as constants */
void open_print(Stager *w);

/* ---- pair.c: two calls that are printed as one ---- */
typedef struct {
    const char *both;
    const char *word[19];       /* arguments; with a 2 or 3 in front, the second or third call's */
    bool early;                 /* a call between the two stands behind them, not in front */
    bool three;                 /* the second is one of a pair, and that is part of it */
} EmitPair;
/* Of a routine: the pair of the first of `calls` and the next, second 1, or the one behind that, second 2; NULL: none. */
const EmitPair *pair_of(const Plan *p, const Routine *r, const Call *c, int calls, int *second);
const char *pair_call(int pair);                     /* of call_pairs: the one call */
int pair_word(const Op *o, const char *word);       /* the argument that its row calls so */
/* How far behind its buffer a scratch begins: the first result of call c has what it would begin with. */
Bytes pair_skip(const Plan *p, const EmitPair *pair, const Call *c, const char *word);
#endif
