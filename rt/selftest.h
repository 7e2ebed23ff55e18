/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest.h: a call as it was made, and the answer that it should have given.
 */
#ifndef SELFTEST_H
#define SELFTEST_H
#include "run.h"

typedef enum { OF_REAL, OF_FLOAT, OF_INT, OF_DOUBLE, OF_VALUES, OF_SCRATCH, OF_NUMBER, OF_FRACTION } Kind;

typedef struct {                /* an operand */
    char name[24];
    Kind kind;
    bool made;                  /* the call writes it */
    Given given;
    long n;                     /* elements */
    unsigned char *old, *new;   /* on the host: before the call, behind it; NULL: it is absent */
    double most;                /* of a call with `amax`: the largest magnitude of old */
} Operand;

typedef struct {
    char name[40], numbers[200];
    Operand operand[32];        /* attention_backward has 25 */
    int parts, shard;           /* shard: of the stage */
    const Values *vals;
} Call;

#define F32_SUM 0x1p-19         /* what a sum in f32 may be off, in parts of its terms */
typedef struct { double value, terms; } Answer;         /* terms: the sum of the sizes of what was added up */

typedef struct {
    const char *call;
    const char *out;            /* a result; other names of the list that `size` gives are operands */
    const char *size;           /* elements of each: "y=rows*out x=rows*in" */
    Answer (*answer)(const Call *c, long i);            /* element i of `out`, without acc and onto */
    int samples;                /* elements that are asked for; 0: 64 */
    int roundings;              /* to the compute type, of each term, inside the call */
} Known;

struct Answers { const Known *known; };         /* of one file answers_*.c; a call of NULL ends */

const Operand *part_of(const Call *c, const char *name); /* NULL: there is none of this name, or its address is 0 */
double number_of(const Call *c, const char *name);      /* 0: there is none */
double old_at(const Operand *p, long i);
/* The same where the operand may be absent: 0 then. */
double old_of(const Call *c, const char *name, long i);
double new_at(const Operand *p, long i);
#endif
