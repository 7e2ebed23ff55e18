/* SPDX-License-Identifier: Apache-2.0
 *
 * opcheck.h: the frame of the operator checks.
 *
 * A Tensor holds a value twice: as the kernel sees it (k: real or float) and the same number in double (v).  A
 * reference is a plain loop in double, written from the operator's definition, without looking at the kernel.  A
 * gradient is checked against differences of that reference, f'(x) = (8 (f(h) - f(-h)) - f(2h) + f(-2h)) / 12h,
 * good to about 1e-10: element by element where there are few, else in a sample, and along two random directions,
 * which a single wrong element would bend.
 *
 * With `hash` nothing is compared: every result of every kernel goes into one number, printed at the end
 * (tests/bits.sh).
 */
#ifndef OPCHECK_H
#define OPCHECK_H
#include "rt/real.h"

enum { REAL, FLOAT };
typedef struct { int type; long n; double *v; void *k; } Tensor;

/* What a reference needs beside its operands; a check fills in what its operator has. */
typedef struct {
    long d[16];
    double f[4];
    const int32_t *ids, *documents;
    Values vals;
    int mb;
    int64_t site;
    const Tensor *in[8];        /* NULL: absent */
    double *row;                /* room for a row of something */
} Case;
typedef void (*Reference)(const Case *c, double *y);

extern Stage *stage;
Tensor *operand(int type, long n, double lo, double hi);        /* random, kept until case_end() */
Tensor *filled(int type, long n, double value);
Tensor *result(int type, long n);                               /* poisoned */
int32_t *ids(long n, long lo, long hi);
double *numbers(long n);
double uniform(double lo, double hi);
void read_back(Tensor *t);                                      /* v from k, after a kernel wrote k; hashes it */
int hashing(void);
int folds(void);                                                /* are the kernels those for GPUs? -DFOLDS */
void hash(const void *data, long n, size_t size);                /* n numbers, each from its low byte on */
void case_end(void);

void expect(int ok, const char *form, ...) __attribute__((format(printf, 2, 3)));
/* got (a result, read back here) against the reference. */
void check_value(const char *call, Tensor *got, Reference f, const Case *c);
void check_values(const char *call, Tensor *got, const double *want);
/* got, the gradient of operand `which` when dy comes in, against differences of f. */
void check_gradient(const char *call, Tensor *got, Reference f, const Case *c, int which, const Tensor *dy);
/* The gradient of attention takes delta, the sum of dy y over a row, from the y that forward has stored.  So it is that of
 * sum dy y - sum r lse: r is what rounding y has put on delta, lse the log of a row's sum of exponentials.  f gives y and then
 * lse, row by row; this is what comes in for both. */
const Tensor *for_stored(Reference f, const Case *c, const Tensor *y, const Tensor *dy, long width);
/* A call makes what other calls make. */
void same_bits(const char *call, long what, Tensor *got, const Tensor *want);
/* got_again, from the same call with acc = 1 on top of got: twice as much. */
void check_accumulated(const char *call, Tensor *got, Tensor *again);

void ref_linear(const Case *c, double *y);                       /* opcheck_product.c: operands x, weight, bias */
/* opcheck_product.c: the bits of gradients of a norm; mean, db: NULL for RMSNorm.  Kernels for GPUs differ. */
void norm_bits(const char *call, Tensor *dx, Tensor *dw, Tensor *db, const Tensor *dy, const Tensor *x, const Tensor *w,
               const Tensor *mean, const Tensor *rstd, long rows, long width);
void alike(const char *call, Tensor *got, Tensor *want);         /* opcheck_team.c: have both the same bits? */
/* opcheck_product.c, opcheck_shape.c, opcheck_update.c: each check covers the calls that it names. */
typedef struct { const char *calls; void (*check)(void); } Check;
extern const Check product_checks[], element_checks[], image_checks[], vision_checks[], language_checks[], update_checks[],
    team_checks[], eight_checks[];
extern const Check recurrent_checks[], expert_checks[];
extern const Check fold_checks[];       /* with -DFOLDS: tests/simt/opcheck_fold.c */
#endif
