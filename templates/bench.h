/* bench.h: what the rows that dpgen profile writes (stage0.c) tell the program that times them (launch.c). */
#ifndef BENCH_H
#define BENCH_H
#include "rt.h"

/* One call of the model.  Its operands lie `near` and `far` bytes behind their first places; copies of them, stride apart, are
 * used in turn, because in a stage a call does not find in the caches what it left there a moment ago. */
typedef struct {
    void (*call)(Stage *st, size_t near, size_t far);
    size_t stride[2];           /* near: tensors; far: parameters, gradients, moments */
    size_t copies[2];
    int product;                /* handle of a matrix product of the library; -1: of none */
} Row;

typedef enum { FILL_ZERO, FILL_REAL, FILL_F32, FILL_POSITIVE, FILL_IDS, FILL_EVEN, FILL_VALUES } FillKind;
typedef struct {                /* a part of the arena and what stands in it before the first call */
    size_t from, bytes;
    FillKind kind;
    long lo, hi;                /* FILL_IDS: lo <= id < hi; FILL_EVEN: from 0 to hi in lo steps */
} Fill;

extern const Row rows[];
extern const int mix[];         /* rows in the order of one micro-batch, forward and backward */
extern const Fill fills[];
extern const int row_count, mix_count, fill_count;
extern const int stages, threads, blocks, ranks;        /* blocks: of a sum; ranks: each stage has a process of its own */
extern const long batch;
extern const size_t arena_bytes, workspace_bytes;
void stage0_open(Stage *st);
#endif
