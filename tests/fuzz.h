/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h: what fuzz.c (the model as a whole) and fuzz_ops.c (its operators) share: the pool of values, chance, lines.
 */
#ifndef FUZZ_H
#define FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIMS = 6, VALUES = 256, INPUTS = 8, TABLES = 64, TEXT = 1 << 16, ELEMENTS = 900, LOUD = 12 };

typedef struct { int n, d[DIMS]; } Shape;
typedef struct { char name[24]; Shape s; int uses, loud; } Value;      /* loud: about log2 of the largest element */
typedef struct { char name[24]; Shape s; bool ids; int from, to; } Input;
typedef struct { char name[24]; int rows, columns; } Table;             /* a weight that others may share */
/* An operator with a weight of its own, and something besides it; a Linear whose weight nobody else has. */
typedef struct { char at[24]; bool bias, linear; } Owner;
typedef struct { char at[TEXT]; size_t n; } Text;

typedef struct {
    uint64_t random;
    int batch, micro, values, inputs, tables, losses, entropies, tops, blocks, names;
    int last, skip, fan, tie, drop, block;          /* the policy, in percent */
    Value value[VALUES];
    Input input[INPUTS];
    Table table[TABLES];
    Owner owner[TABLES];
    int owners, adapted, frozen;                    /* adapted: the owner with adapters, or -1; frozen: so many do not learn */
    char loss[24];
    Text graph, block_text;
} Fuzz;
extern Fuzz f;


uint64_t draw(void);
int below(int n);
bool chance(int percent);
const char *yes(int percent);
int small(void);
#define PICK(list) ((list)[below((int)(sizeof(list) / sizeof *(list)))])

void say(Text *t, const char *form, ...) __attribute__((format(printf, 2, 3)));
void line(const char *form, ...) __attribute__((format(printf, 1, 2)));

int size(const Shape *s);
int width(const Shape *s);
bool same(const Shape *a, const Shape *b);
bool fits(const Shape *s);
bool sampled(const Value *v);

Value *fresh(Shape s, int loud);                /* a new value; its name goes onto the line that makes it */
typedef bool Want(const Value *v, const Value *with);
Value *choose(Want *want, const Value *with);   /* by the policy; NULL: there is none */
Want equal, quiet, sequence, matrix;
const char *use(Value *v);                      /* its name, and one more use */
int input_of(Shape s, bool ids, int from, int to);      /* old or new; -1: no more inputs */

/* fuzz_ops.c: lines of one operator, or of some that belong together; false: not possible now */
typedef struct { int weight; bool (*make)(void); } Maker;
extern const Maker makers[];
Value *linear(Value *x, int out);
Value *norm(Value *x);
bool embed(int columns);
Shape with_width(Shape s, int n);
Want beside, of_sample;
const char *start(int terms, int *loud);        /* `, init: ...`, and how much louder that makes a product of so many terms */
void name_table(char *to, size_t n, const char *what);
void owns(const char *name, bool bias);         /* patterns of train.freeze and of parameter groups name some of those */
const char *optional_mask(int key);
const char *attention_scores(int heads, int query, int key, bool causal);

/* fuzz_language.c */
bool make_rotary(void);
bool make_round(void), make_stop(void);
bool make_gate(void);
bool make_lstm(void);
bool make_scores(void);
bool make_experts(void);

/* fuzz_images.c */
bool make_pool(void);
bool make_batch_norm(void);
#endif
